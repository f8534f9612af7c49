//! Predictions beside columns of their table, as CSV or as Parquet.

use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Result;
use bayespc_data::{Column, ParquetWriter, Values};

/// Where predictions go, some rows at a time.
pub enum Sink<'a> {
    /// Text, numbers of so many significant digits.
    Csv {
        /// The file.
        out: Box<dyn Write + 'a>,
        /// Significant digits of predictions.
        digits: usize,
        /// Whether the header is written.
        begun: bool,
    },
    /// Parquet, once the columns are known.
    Parquet {
        /// The file's name, for messages.
        path: PathBuf,
        /// The file, until it is begun.
        out: Option<Box<dyn Write + Send + 'a>>,
        /// The file, once it is begun.
        writer: Option<Box<ParquetWriter<Box<dyn Write + Send + 'a>>>>,
    },
}

impl<'a> Sink<'a> {
    /// A file of the format that its name says.
    pub fn new(out: impl Write + Send + 'a, path: &Path, digits: usize) -> Self {
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("parquet")) {
            return Self::Parquet { path: path.to_owned(), out: Some(Box::new(out)), writer: None };
        }
        Self::csv(out, digits)
    }

    /// CSV text.
    pub fn csv(out: impl Write + 'a, digits: usize) -> Self {
        Self::Csv { out: Box::new(out), digits, begun: false }
    }

    /// Adds rows; predictions that are called like a kept column get `predicted_` in front.
    pub fn write(&mut self, kept: Vec<Column>, mut predicted: Vec<Column>) -> Result<()> {
        for column in &mut predicted {
            if kept.iter().any(|other| other.name == column.name) {
                column.name = format!("predicted_{}", column.name);
            }
        }
        match self {
            Self::Csv { out, digits, begun } => {
                let text = csv_text(&kept, &predicted, *digits, !std::mem::replace(begun, true))?;
                Ok(out.write_all(&text)?)
            }
            Self::Parquet { path, out, writer } => {
                let columns: Vec<Column> = kept.into_iter().chain(predicted).collect();
                if let Some(out) = out.take() {
                    *writer = Some(Box::new(ParquetWriter::new(path, out, &columns)?));
                }
                if let Some(writer) = writer {
                    writer.write(columns)?;
                }
                Ok(())
            }
        }
    }

    /// Write what is left.
    pub fn finish(self) -> Result<()> {
        match self {
            Self::Csv { mut out, .. } => out.flush()?,
            Self::Parquet { writer, .. } => {
                if let Some(writer) = writer {
                    writer.finish()?;
                }
            }
        }
        Ok(())
    }
}

fn csv_text(kept: &[Column], predicted: &[Column], digits: usize, header: bool) -> Result<Vec<u8>> {
    let mut writer = csv::Writer::from_writer(Vec::new());
    if header {
        writer.write_record(kept.iter().chain(predicted).map(|column| &column.name))?;
    }
    for i in 0..kept.iter().chain(predicted).find_map(Column::n_cells).unwrap_or(0) {
        for column in kept {
            writer.write_field(column.text(i).unwrap_or_default().as_bytes())?;
        }
        for column in predicted {
            match &column.values {
                Values::Number(values) => writer.write_field(significant(values[i], digits))?,
                _ => writer.write_field(column.text(i).unwrap_or_default().as_bytes())?,
            }
        }
        writer.write_record(None::<&[u8]>)?;
    }
    Ok(writer.into_inner().map_err(csv::IntoInnerError::into_error)?)
}

/// A number of so many digits, and no more zeros than it needs.
pub fn significant(x: f64, digits: usize) -> String {
    let scientific = format!("{x:.0$e}", digits - 1);
    let rounded: f64 = scientific.parse().unwrap_or(x);
    let size = rounded.abs();
    if size == 0.0 || !size.is_finite() || (1e-5..1e15).contains(&size) {
        // Adding zero turns −0 into 0.
        format!("{}", rounded + 0.0)
    } else {
        format!("{rounded:e}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_have_the_digits_asked_for_and_no_more() {
        for (x, digits, expected) in [
            (1.0 / 3.0, 6, "0.333333"),
            (1_234.567_89, 6, "1234.57"),
            (1_234_567.9, 6, "1234570"),
            (-0.0, 6, "0"),
            (30.0, 6, "30"),
            (0.1 + 0.2, 17, "0.30000000000000004"),
            (7.9e-46, 3, "7.9e-46"),
            (9.999_999_9, 3, "10"),
            (f64::INFINITY, 6, "inf"),
        ] {
            assert_eq!(significant(x, digits), expected);
        }
    }

    #[test]
    fn predictions_give_way_to_columns_of_the_same_name() {
        let mut out = Vec::new();
        let mut sink = Sink::csv(&mut out, 3);
        for _ in 0..2 {
            let kept = vec![Column::texts("mean", [Some("a, b"), None].into_iter().collect())];
            sink.write(kept, vec![Column::numbers("mean", vec![1.0, 2.5])]).unwrap();
        }
        sink.finish().unwrap();
        assert_eq!(
            String::from_utf8(out).unwrap(),
            "mean,predicted_mean\n\"a, b\",1\n,2.5\n\"a, b\",1\n,2.5\n"
        );
    }
}
