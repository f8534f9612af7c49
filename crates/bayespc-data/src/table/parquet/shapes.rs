//! What the fields of the headers of a Parquet file are, by the format's own definition (`parquet.thrift`).
//!
//! The parquet crate reads a field by its number, whatever type the file says it has. A file that says another one would
//! have it take the bytes of one field for those of another, where anything may stand.

/// What a field is. Types are told apart as far as their bytes differ.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    Bool,
    Byte,
    /// A whole number of any size.
    Int,
    /// How many elements follow, for which the crate makes room at once: no more than there are bytes.
    Count,
    Double,
    /// Bytes or a text.
    Bytes,
    Struct(Shape),
    List(&'static Self),
}

/// Fields of a struct by their numbers; others are skipped by their types.
pub(super) type Shape = &'static [(i64, Kind)];

use Kind::{Bool, Byte, Bytes, Count, Double, Int, List, Struct};

pub(super) const FILE_METADATA: Shape = &[
    (1, Int),
    (2, List(&Struct(SCHEMA_ELEMENT))),
    (3, Int),
    (4, List(&Struct(ROW_GROUP))),
    (5, List(&Struct(KEY_VALUE))),
    (6, Bytes),
    (7, List(&Struct(ONE_OF_EMPTY))),
    (8, Struct(ENCRYPTION)),
    (9, Bytes),
];

pub(super) const PAGE_HEADER: Shape = &[
    (1, Int),
    (2, Int),
    (3, Int),
    (4, Int),
    (5, Struct(&[(1, Int), (2, Int), (3, Int), (4, Int), (5, Struct(STATISTICS))])),
    (6, Struct(EMPTY)),
    (7, Struct(&[(1, Int), (2, Int), (3, Bool)])),
    (
        8,
        Struct(&[
            (1, Int),
            (2, Int),
            (3, Int),
            (4, Int),
            (5, Int),
            (6, Int),
            (7, Bool),
            (8, Struct(STATISTICS)),
        ]),
    ),
];

const EMPTY: Shape = &[];

/// A union of structs without fields: units of time, orders of a column.
const ONE_OF_EMPTY: Shape = &[(1, Struct(EMPTY)), (2, Struct(EMPTY)), (3, Struct(EMPTY))];

const KEY_VALUE: Shape = &[(1, Bytes), (2, Bytes)];

const CIPHER: Kind = Struct(&[(1, Bytes), (2, Bytes), (3, Bool)]);
const ENCRYPTION: Shape = &[(1, CIPHER), (2, CIPHER)];

const SCHEMA_ELEMENT: Shape = &[
    (1, Int),
    (2, Int),
    (3, Int),
    (4, Bytes),
    (5, Count),
    (6, Int),
    (7, Int),
    (8, Int),
    (9, Int),
    (10, Struct(LOGICAL_TYPE)),
];

const TIME: Kind = Struct(&[(1, Bool), (2, Struct(ONE_OF_EMPTY))]);
const LOGICAL_TYPE: Shape = &[
    (1, Struct(EMPTY)),
    (2, Struct(EMPTY)),
    (3, Struct(EMPTY)),
    (4, Struct(EMPTY)),
    (5, Struct(&[(1, Int), (2, Int)])),
    (6, Struct(EMPTY)),
    (7, TIME),
    (8, TIME),
    (10, Struct(&[(1, Byte), (2, Bool)])),
    (11, Struct(EMPTY)),
    (12, Struct(EMPTY)),
    (13, Struct(EMPTY)),
    (14, Struct(EMPTY)),
    (15, Struct(EMPTY)),
    (16, Struct(&[(1, Byte)])),
    (17, Struct(&[(1, Bytes)])),
    (18, Struct(&[(1, Bytes), (2, Int)])),
];

const ROW_GROUP: Shape = &[
    (1, List(&Struct(COLUMN_CHUNK))),
    (2, Int),
    (3, Int),
    (4, List(&Struct(&[(1, Int), (2, Bool), (3, Bool)]))),
    (5, Int),
    (6, Int),
    (7, Int),
];

const COLUMN_CHUNK: Shape = &[
    (1, Bytes),
    (2, Int),
    (3, Struct(COLUMN_METADATA)),
    (4, Int),
    (5, Int),
    (6, Int),
    (7, Int),
    (8, Struct(&[(1, Struct(EMPTY)), (2, Struct(&[(1, List(&Bytes)), (2, Bytes)]))])),
    (9, Bytes),
];

const COLUMN_METADATA: Shape = &[
    (1, Int),
    (2, List(&Int)),
    (3, List(&Bytes)),
    (4, Int),
    (5, Int),
    (6, Int),
    (7, Int),
    (8, List(&Struct(KEY_VALUE))),
    (9, Int),
    (10, Int),
    (11, Int),
    (12, Struct(STATISTICS)),
    (13, List(&Struct(&[(1, Int), (2, Int), (3, Int)]))),
    (14, Int),
    (15, Int),
    (16, Struct(&[(1, Int), (2, List(&Int)), (3, List(&Int))])),
    (17, Struct(&[(1, Struct(BOX)), (2, List(&Int))])),
];

const STATISTICS: Shape =
    &[(1, Bytes), (2, Bytes), (3, Int), (4, Int), (5, Bytes), (6, Bytes), (7, Bool), (8, Bool), (9, Int)];

const BOX: Shape =
    &[(1, Double), (2, Double), (3, Double), (4, Double), (5, Double), (6, Double), (7, Double), (8, Double)];

impl Kind {
    /// Whether a value of this wire type is one of this kind.
    pub fn is(self, wire: u8) -> bool {
        match self {
            Bool => matches!(wire, 1 | 2),
            Byte => wire == 3,
            Int | Count => matches!(wire, 4..=6),
            Double => wire == 7,
            Bytes => wire == 8,
            List(_) => wire == 9,
            Struct(_) => wire == 12,
        }
    }
}
