//! Whether the sizes and counts in the metadata of a Parquet file can be those of this file.

use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};

/// Checks the metadata of a file of `len` bytes: where the pages of a column are is inside the file, no byte belongs to two
/// columns, and every row has a value or is said to have none.
pub(super) fn check(metadata: &ParquetMetaData, len: u64) -> Result<()> {
    let mut left = len;
    for (i, group) in metadata.row_groups().iter().enumerate() {
        for column in group.columns() {
            let wrong = |what: String| {
                let name = column.column_descr().name();
                ParquetError::General(format!("damaged metadata: column {name} in row group {i} {what}"))
            };
            let size = place(column, len).map_err(wrong)?;
            left = left.checked_sub(size).ok_or_else(|| wrong("shares bytes with others".to_owned()))?;
            let (n_values, n_rows) = (column.num_values(), group.num_rows());
            let repeats = column.column_descr().max_rep_level() > 0;
            if n_rows < 0 || n_values < n_rows || (n_values > n_rows && !repeats) {
                return Err(wrong(format!("has {n_values} values for {n_rows} rows")));
            }
        }
    }
    Ok(())
}

/// How many bytes the pages of a column have.
fn place(column: &ColumnChunkMetaData, len: u64) -> Result<u64, String> {
    let start = column.dictionary_page_offset().unwrap_or(column.data_page_offset());
    let size = column.compressed_size();
    let end = start.checked_add(size).and_then(|end| u64::try_from(end).ok());
    if start < 0 || size < 0 || end.is_none_or(|end| end > len) {
        return Err(format!("has {size} bytes at {start} in a file of {len}"));
    }
    Ok(size.unsigned_abs())
}
