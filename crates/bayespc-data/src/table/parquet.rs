//! Parquet: the flat columns of numbers, texts and booleans, some rows at a time.
//!
//! Columns of other types stay in the table as unsupported, so that they are an error only when used.
//! Index columns that pandas adds (`__index_level_0__`) are left out.

use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{ConvertedType, LogicalType, Repetition, Type as Physical};
use parquet::data_type::Decimal;
use parquet::errors::ParquetError;
use parquet::file::reader::{FileReader, SerializedFileReader};
use parquet::record::{Field, reader::RowIter};
use parquet::schema::types::Type;

use super::{Column, Kind, Kinds, Table, Values, check_names};
use crate::{Error, Result};

/// Reads a Parquet file forward.
pub(crate) struct Reader {
    /// Only the columns that can be read.
    rows: Option<RowIter<'static>>,
    file: String,
    /// Name and kind of each column, or why it cannot be read.
    columns: Vec<(String, Result<Kind, String>)>,
    n_rows: usize,
    n_read: usize,
}

impl Reader {
    /// Reads the schema.
    pub fn open(path: &Path) -> Result<Self> {
        let file = path.display().to_string();
        let input = File::open(path).map_err(Error::io(path))?;
        if input.metadata().map_err(Error::io(path))?.len() == 0 {
            return Err(Error::EmptyFile { file });
        }
        let wrong = |source: ParquetError| Error::Parquet { file: file.clone(), source };
        let reader = guarded(|| SerializedFileReader::new(input)).map_err(wrong)?;
        let metadata = reader.metadata().file_metadata();
        let n_rows = usize::try_from(metadata.num_rows()).unwrap_or(0);
        let fields: Vec<_> = metadata
            .schema()
            .get_fields()
            .iter()
            .filter(|field| !is_pandas_index(field.name()))
            .cloned()
            .collect();
        let columns: Vec<_> = fields.iter().map(|field| (field.name().to_owned(), kind(field))).collect();
        let names: Vec<_> = columns.iter().map(|(name, _)| name.clone()).collect();
        check_names(&names, &file)?;
        let readable: Vec<_> = fields.into_iter().filter(|field| kind(field).is_ok()).collect();
        let rows = if readable.is_empty() {
            None
        } else {
            let schema = Type::group_type_builder(metadata.schema().name()).with_fields(readable).build();
            let rows = RowIter::from_file_into(Box::new(reader));
            Some(rows.project(Some(schema.map_err(wrong)?)).map_err(wrong)?)
        };
        Ok(Self { rows, file, columns, n_rows, n_read: 0 })
    }

    /// The next rows, at most `limit`; columns named in `kinds` are of that kind, others as in the file.
    /// `None` at the end.
    pub fn chunk(&mut self, kinds: &Kinds, limit: usize) -> Result<Option<Table>> {
        let mut columns: Vec<Column> = self
            .columns
            .iter()
            .map(|(name, kind)| match kind {
                Ok(kind) => {
                    let kind = *kinds.get(name).unwrap_or(kind);
                    Column::of(name, kind, Values::new(kind))
                }
                Err(unsupported) => Column::of(name, Kind::Text, Values::Unsupported(unsupported.clone())),
            })
            .collect();
        let mut rows = Vec::new();
        while rows.len() < limit && self.n_read < self.n_rows {
            self.n_read += 1;
            rows.push(self.n_read);
            let Some(iterator) = &mut self.rows else { continue };
            let wrong = |source: ParquetError| Error::Parquet { file: self.file.clone(), source };
            let cut = || ParquetError::EOF(format!("{} of {} rows", self.n_read - 1, self.n_rows));
            let row = guarded(|| iterator.next().unwrap_or_else(|| Err(cut()))).map_err(wrong)?;
            let readable =
                columns.iter_mut().filter(|column| !matches!(column.values, Values::Unsupported(_)));
            for (column, (_, field)) in readable.zip(row.into_columns()) {
                column.values.push_field(field, column.kind).map_err(|value| Error::WrongType {
                    file: self.file.clone(),
                    row: self.n_read,
                    column: column.name.clone(),
                    value,
                    expected: column.kind.noun(),
                })?;
            }
        }
        Ok((!rows.is_empty()).then(|| Table { file: self.file.clone(), rows, columns, remarks: Vec::new() }))
    }
}

impl Values {
    /// Adds a field as it is if the kinds agree, else by way of its text.
    fn push_field(&mut self, field: Field, kind: Kind) -> Result<(), String> {
        let text = match (&mut *self, field) {
            (_, Field::Null) => {
                self.push_missing();
                return Ok(());
            }
            (Self::Text(values), Field::Str(text)) => {
                values.push(Some(&text));
                return Ok(());
            }
            (_, Field::Str(text)) => text,
            (_, Field::Bool(bit)) => bit.to_string(),
            (Self::Number(values), field) => {
                values.push(number(&field).unwrap_or(f64::NAN));
                return Ok(());
            }
            (_, field) => match number(&field).filter(|x| !x.is_nan()) {
                None => String::new(),
                Some(x) => format!("{}", x + 0.0),
            },
        };
        self.push(text.trim(), kind).map_err(|()| text)
    }
}

fn number(field: &Field) -> Option<f64> {
    Some(match field {
        Field::Byte(x) => f64::from(*x),
        Field::Short(x) => f64::from(*x),
        Field::Int(x) => f64::from(*x),
        Field::Long(x) => *x as f64,
        Field::UByte(x) => f64::from(*x),
        Field::UShort(x) => f64::from(*x),
        Field::UInt(x) => f64::from(*x),
        Field::ULong(x) => *x as f64,
        Field::Float(x) => f64::from(*x),
        Field::Double(x) => *x,
        Field::Decimal(x) => decimal(x),
        _ => return None,
    })
}

/// A decimal is a big-endian integer over a power of ten.
fn decimal(x: &Decimal) -> f64 {
    let negative = x.data().first().is_some_and(|byte| *byte >= 0x80);
    let start = if negative { -1_i128 } else { 0 };
    let integer = x.data().iter().fold(start, |sum, byte| (sum << 8) | i128::from(*byte));
    integer as f64 / 10_f64.powi(x.scale())
}

/// The kind of a column, or the name of its type if it cannot be read.
fn kind(field: &Arc<Type>) -> Result<Kind, String> {
    let info = field.get_basic_info();
    if !field.is_primitive() || info.has_repetition() && info.repetition() == Repetition::REPEATED {
        return Err("nested".to_owned());
    }
    let (physical, converted) = (field.get_physical_type(), info.converted_type());
    let is_time = matches!(
        info.logical_type_ref(),
        Some(LogicalType::Timestamp { .. } | LogicalType::Time { .. } | LogicalType::Date)
    );
    match (physical, converted) {
        (Physical::BOOLEAN, _) => Ok(Kind::Bool),
        (Physical::FLOAT | Physical::DOUBLE, _)
        | (Physical::FIXED_LEN_BYTE_ARRAY | Physical::BYTE_ARRAY, ConvertedType::DECIMAL) => Ok(Kind::NUMBER),
        (
            Physical::INT32,
            ConvertedType::NONE
            | ConvertedType::INT_8
            | ConvertedType::INT_16
            | ConvertedType::INT_32
            | ConvertedType::UINT_8
            | ConvertedType::UINT_16
            | ConvertedType::UINT_32
            | ConvertedType::DECIMAL,
        )
        | (
            Physical::INT64,
            ConvertedType::NONE | ConvertedType::INT_64 | ConvertedType::UINT_64 | ConvertedType::DECIMAL,
        ) if !is_time => Ok(Kind::NUMBER),
        (Physical::BYTE_ARRAY, ConvertedType::UTF8 | ConvertedType::ENUM) => Ok(Kind::Text),
        _ => Err(info
            .logical_type_ref()
            .map_or_else(|| format!("{physical}"), |logical| format!("{logical:?}"))),
    }
}

/// Turns a panic into an error: the parquet crate asserts what a damaged file may break.
///
/// What `work` leaves half done is not used again, since every error ends the reading.
fn guarded<T>(work: impl FnOnce() -> Result<T, ParquetError>) -> Result<T, ParquetError> {
    catch_unwind(AssertUnwindSafe(work))
        .unwrap_or_else(|_| Err(ParquetError::General("damaged file".to_owned())))
}

fn is_pandas_index(name: &str) -> bool {
    name.starts_with("__index_level_") && name.ends_with("__")
}
