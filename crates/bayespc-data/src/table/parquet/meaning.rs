//! What the values of a Parquet column mean: its physical type is how they are stored, its logical type is what for.

use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit, Type as Physical};
use parquet::schema::types::Type;

use crate::Result;
use crate::table::{Kind, TimeFormat};

/// What the values of a column mean.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Meaning {
    Bool,
    Text,
    /// Numbers, integers to be divided by a power of ten.
    Number {
        scale: i32,
        unsigned: bool,
    },
    /// Half-precision numbers in two bytes.
    Half,
    /// Days since 1970-01-01.
    Date,
    /// So many make a microsecond, or a microsecond times so many.
    Instant {
        per_microsecond: i64,
        microseconds: i64,
        is_clock: bool,
    },
}

impl Meaning {
    pub fn kind(self) -> Kind {
        match self {
            Self::Bool => Kind::Bool,
            Self::Text => Kind::Text,
            Self::Number { .. } | Self::Half => Kind::NUMBER,
            Self::Instant { is_clock: true, .. } => Kind::Time(TimeFormat::Clock),
            Self::Date | Self::Instant { .. } => Kind::Time(TimeFormat::ISO),
        }
    }

    pub fn integer(self, x: i64) -> Cell {
        match self {
            Self::Date => x.checked_mul(86_400_000_000).map_or(Cell::Missing, Cell::Time),
            Self::Instant { per_microsecond, microseconds, .. } => {
                x.div_euclid(per_microsecond).checked_mul(microseconds).map_or(Cell::Missing, Cell::Time)
            }
            Self::Number { scale: 0, unsigned: true } => Cell::Number(x.cast_unsigned() as f64),
            Self::Number { scale, .. } => Cell::Number(scaled(i128::from(x), scale)),
            _ => Cell::Missing,
        }
    }
}

/// One value.
pub(super) enum Cell {
    Missing,
    Number(f64),
    Bool(bool),
    Time(i64),
}

/// What a column means, or the name of its type if it cannot be read.
pub(super) fn meaning(field: &Type) -> Result<Meaning, String> {
    let info = field.get_basic_info();
    if !field.is_primitive() || info.has_repetition() && info.repetition() == Repetition::REPEATED {
        return Err("nested".to_owned());
    }
    let physical = field.get_physical_type();
    let scale = if let Type::PrimitiveType { scale, .. } = field { *scale } else { 0 };
    let instant = |unit: TimeUnit, is_clock| {
        let (per_microsecond, microseconds) = match unit {
            TimeUnit::MILLIS => (1, 1000),
            TimeUnit::MICROS => (1, 1),
            TimeUnit::NANOS => (1000, 1),
        };
        Meaning::Instant { per_microsecond, microseconds, is_clock }
    };
    let number = Meaning::Number { scale: 0, unsigned: false };
    let unsigned = Meaning::Number { scale: 0, unsigned: true };
    let decimal = Meaning::Number { scale, unsigned: false };
    let is_integer = matches!(physical, Physical::INT32 | Physical::INT64);
    let logical = info.logical_type_ref();
    let known = match (logical, info.converted_type()) {
        (Some(LogicalType::Timestamp(time)), _) if is_integer => Some(instant(time.unit, false)),
        (Some(LogicalType::Time(time)), _) if is_integer => Some(instant(time.unit, true)),
        (Some(LogicalType::Date), _) | (_, ConvertedType::DATE) => Some(Meaning::Date),
        (_, ConvertedType::TIMESTAMP_MILLIS) => Some(instant(TimeUnit::MILLIS, false)),
        (_, ConvertedType::TIMESTAMP_MICROS) => Some(instant(TimeUnit::MICROS, false)),
        (_, ConvertedType::TIME_MILLIS) => Some(instant(TimeUnit::MILLIS, true)),
        (_, ConvertedType::TIME_MICROS) => Some(instant(TimeUnit::MICROS, true)),
        (Some(LogicalType::Decimal(_)), _) | (_, ConvertedType::DECIMAL) => Some(decimal),
        (Some(LogicalType::Float16), _) => Some(Meaning::Half),
        (
            _,
            ConvertedType::UINT_8 | ConvertedType::UINT_16 | ConvertedType::UINT_32 | ConvertedType::UINT_64,
        ) => Some(unsigned),
        (Some(LogicalType::String | LogicalType::Enum), _)
        | (_, ConvertedType::UTF8 | ConvertedType::ENUM) => {
            (physical == Physical::BYTE_ARRAY).then_some(Meaning::Text)
        }
        (None | Some(LogicalType::Integer(_)), _) => match physical {
            Physical::BOOLEAN => Some(Meaning::Bool),
            Physical::INT32 | Physical::INT64 | Physical::FLOAT | Physical::DOUBLE => Some(number),
            Physical::INT96 => Some(instant(TimeUnit::NANOS, false)),
            _ => None,
        },
        _ => None,
    };
    known.ok_or_else(|| logical.map_or_else(|| format!("{physical}"), |logical| format!("{logical:?}")))
}

/// A decimal is a big-endian integer over a power of ten.
pub(super) fn decimal(bytes: &[u8], scale: i32) -> f64 {
    let start = if bytes.first().is_some_and(|byte| *byte >= 0x80) { -1_i128 } else { 0 };
    scaled(bytes.iter().fold(start, |sum, byte| (sum << 8) | i128::from(*byte)), scale)
}

fn scaled(integer: i128, scale: i32) -> f64 {
    if scale == 0 { integer as f64 } else { integer as f64 / 10_f64.powi(scale) }
}

/// Sign, five bits of exponent, ten of fraction; low byte first.
pub(super) fn half(bytes: &[u8]) -> Option<f64> {
    let bits = u16::from_le_bytes(bytes.try_into().ok()?);
    let (exponent, fraction) = (i32::from(bits >> 10 & 31), f64::from(bits & 1023) / 1024.0);
    let size = match exponent {
        0 => fraction * 2_f64.powi(-14),
        31 if fraction == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (1.0 + fraction) * 2_f64.powi(exponent - 15),
    };
    Some(if bits >> 15 == 1 { -size } else { size })
}
