//! Columns as a Parquet file, some rows at a time.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ConvertedType, Repetition, Type as Physical};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use super::{Column, Values};
use crate::{Error, Result};

/// Rows of a row group: fewer would be read slowly.
const ROWS: usize = 1 << 16;

/// Writes columns to a Parquet file; every cell may be missing.
pub struct ParquetWriter<W: Write + Send> {
    file: String,
    writer: SerializedFileWriter<W>,
    /// Rows that are not yet a row group.
    waiting: Vec<Column>,
}

impl<W: Write + Send> ParquetWriter<W> {
    /// Begins a file whose columns are named and of the kinds of `columns`.
    pub fn new(path: &Path, out: W, columns: &[Column]) -> Result<Self> {
        let file = path.display().to_string();
        let wrong = |source| Error::Parquet { file: file.clone(), source };
        let fields = columns.iter().map(field).collect::<Result<Vec<_>, _>>().map_err(wrong)?;
        let schema = Type::group_type_builder("schema").with_fields(fields).build().map_err(wrong)?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = SerializedFileWriter::new(out, Arc::new(schema), Arc::new(properties)).map_err(wrong)?;
        Ok(Self { file, writer, waiting: Vec::new() })
    }

    /// Adds rows of the same columns.
    pub fn write(&mut self, columns: Vec<Column>) -> Result<()> {
        if self.waiting.is_empty() {
            self.waiting = columns;
        } else {
            for (column, more) in self.waiting.iter_mut().zip(columns) {
                column.values.append(more.values);
            }
        }
        if self.waiting.first().and_then(Column::n_cells).unwrap_or(0) >= ROWS {
            self.flush()
        } else {
            Ok(())
        }
    }

    /// Ends the file.
    pub fn finish(mut self) -> Result<()> {
        self.flush()?;
        let wrong = |source| Error::Parquet { file: self.file.clone(), source };
        self.writer.finish().map_err(wrong)?;
        Ok(())
    }

    fn flush(&mut self) -> Result<()> {
        let columns = std::mem::take(&mut self.waiting);
        if columns.is_empty() {
            return Ok(());
        }
        let mut write = || -> Result<(), ParquetError> {
            let mut group = self.writer.next_row_group()?;
            columns.iter().try_for_each(|column| put(&mut group, &column.values))?;
            group.close().map(drop)
        };
        write().map_err(|source| Error::Parquet { file: self.file.clone(), source })
    }
}

fn field(column: &Column) -> Result<TypePtr, ParquetError> {
    let (physical, converted) = match &column.values {
        Values::Number(_) => (Physical::DOUBLE, ConvertedType::NONE),
        Values::Bool(_) => (Physical::BOOLEAN, ConvertedType::NONE),
        Values::Time(_) => (Physical::INT64, ConvertedType::TIMESTAMP_MICROS),
        Values::Text(_) | Values::Unsupported(_) => (Physical::BYTE_ARRAY, ConvertedType::UTF8),
    };
    let builder = Type::primitive_type_builder(&column.name, physical);
    builder.with_repetition(Repetition::OPTIONAL).with_converted_type(converted).build().map(Arc::new)
}

fn put<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    values: &Values,
) -> Result<(), ParquetError> {
    fn write<T: DataType, W: Write + Send>(
        group: &mut SerializedRowGroupWriter<'_, W>,
        cells: impl Iterator<Item = Option<T::T>>,
    ) -> Result<(), ParquetError> {
        let (mut known, mut levels) = (Vec::new(), Vec::new());
        for cell in cells {
            levels.push(i16::from(cell.is_some()));
            known.extend(cell);
        }
        let missing = || ParquetError::General("more columns than the schema has".to_owned());
        let mut column = group.next_column()?.ok_or_else(missing)?;
        column.typed::<T>().write_batch(&known, Some(&levels), None)?;
        column.close()
    }
    match values {
        Values::Number(cells) => {
            write::<DoubleType, W>(group, cells.iter().map(|x| Some(*x).filter(|x| !x.is_nan())))
        }
        Values::Bool(cells) => write::<BoolType, W>(group, cells.iter().copied()),
        Values::Time(cells) => write::<Int64Type, W>(
            group,
            cells.iter().map(|t| Some(*t).filter(|t| *t != super::values::NO_TIME)),
        ),
        Values::Text(cells) => {
            let text = |i: usize| cells.get(i).map(ByteArray::from);
            write::<ByteArrayType, W>(group, (0..cells.len()).map(text))
        }
        Values::Unsupported(_) => write::<ByteArrayType, W>(group, std::iter::empty()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Table;

    #[test]
    fn what_is_written_is_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.parquet");
        let text = "a,b,c,d\n1.5,x,true,2024-01-01\n,y,,\n-3,,false,2024-12-31T08:00\n";
        let table = Table::from_csv("t.csv", text.as_bytes(), &crate::Kinds::new()).unwrap();
        let out = std::fs::File::create(&path).unwrap();
        let mut writer = ParquetWriter::new(&path, out, table.columns()).unwrap();
        writer.write(table.columns().to_vec()).unwrap();
        writer.write(table.columns().to_vec()).unwrap();
        writer.finish().unwrap();
        let read = Table::read(&path).unwrap();
        assert_eq!(read.n_rows(), 6);
        for (column, written) in read.columns().iter().zip(table.columns()) {
            assert_eq!(column.kind, written.kind);
            (0..6).for_each(|i| assert_eq!(column.text(i), written.text(i % 3), "{}", column.name));
        }
    }
}
