//! A file of any format, read forward some rows at a time.

use std::path::Path;

use super::open::Content;
use super::{
    Kind, Kinds, ReadOptions, Table, Texts, Unread, Values, Wish, Wishes, csv, head, json, open, parquet,
    sheet,
};
use crate::{Error, Result};

/// Columns that are read some rows at a time.
#[derive(Clone, Debug, Default)]
pub(crate) struct Asked {
    /// Columns that must be of a kind.
    pub kinds: Kinds,
    /// The kind of all others; left out if none is given.
    pub others: Option<Kind>,
}

impl Asked {
    /// What a column is to be, if it is asked for.
    pub(super) fn kind(&self, name: &str) -> Option<Kind> {
        self.kinds.get(name).copied().or(self.others)
    }
}

/// A file that is read some rows at a time.
pub(crate) enum ChunkReader {
    Csv(csv::Reader),
    Json(json::Reader),
    Parquet(parquet::Reader),
    /// A sheet is read at once, and given out in parts.
    Workbook {
        file: String,
        bytes: Vec<u8>,
        sheet: Option<String>,
        rest: Option<Table>,
    },
}

impl ChunkReader {
    pub fn open(path: &Path, sheet: Option<&str>) -> Result<Self> {
        Self::of(&open::name(path), open::open(path)?, sheet)
    }

    pub(super) fn of(name: &str, content: Content, sheet: Option<&str>) -> Result<Self> {
        Ok(match content {
            Content::Csv(source) => Self::Csv(csv::Reader::new(name, source)?),
            Content::Json(source) => Self::Json(json::Reader::new(name, source)),
            Content::Parquet(reader) => Self::Parquet(reader),
            Content::Workbook(bytes) => {
                Self::Workbook { file: name.to_owned(), bytes, sheet: sheet.map(str::to_owned), rest: None }
            }
        })
    }

    /// The first rows, at most `limit`, as asked or as they look; they will be given out nonetheless.
    pub fn head(&mut self, options: &ReadOptions, limit: usize) -> Result<Table> {
        match self {
            Self::Csv(reader) => {
                let file = reader.file().to_owned();
                let mut table = csv::read(&file, reader.head(limit)?, &options.wishes)?;
                table.remarks.extend(reader.remark());
                Ok(table)
            }
            Self::Json(reader) => reader.head(&options.wishes, limit, &mut Unread::Fail),
            Self::Parquet(reader) => {
                let head = reader.head(&exactly(&options.wishes), limit)?;
                let head = head.ok_or_else(|| Error::NoRows { file: reader.file().to_owned() })?;
                head.judge_texts(&|name| options.wishes.get(name).copied())
            }
            Self::Workbook { file, bytes, sheet, .. } => {
                let wish = |name: &str| options.wishes.get(name).copied();
                Ok(sheet::read(file, bytes.clone(), sheet.as_deref(), &wish)?.split(limit).0)
            }
        }
    }

    /// The same, but for rows that cannot be read: what columns are is told by the others.
    pub fn head_that_reads(&mut self, options: &ReadOptions, limit: usize) -> Result<Table> {
        let texts = ReadOptions { wishes: head::as_texts(&options.wishes), sheet: options.sheet.clone() };
        let table = match self {
            Self::Csv(reader) => {
                let (text, rows) = reader.head_of_whole_rows(limit)?;
                let mut table = csv::read(reader.file(), &text, &texts.wishes)?;
                table.remarks.extend(reader.remark());
                table.rows = rows;
                table
            }
            Self::Json(reader) => {
                let mut unread = Unread::Skip(Vec::new());
                let table = reader.head(&texts.wishes, limit, &mut unread)?;
                let wrong = unread.up_to(limit).into_iter().map(|(row, _)| row - 1).collect();
                table.without(wrong)
            }
            Self::Parquet(_) | Self::Workbook { .. } => self.head(&texts, limit)?,
        };
        Ok(table.settled(&options.wishes))
    }

    /// The next rows, at most `limit`; columns that are not asked for may be left out. `None` at the end.
    pub fn chunk(&mut self, asked: &Asked, limit: usize, unread: &mut Unread) -> Result<Option<Table>> {
        match self {
            Self::Csv(reader) => reader.chunk(asked, limit, unread),
            Self::Json(reader) => reader.chunk(asked, limit, unread),
            Self::Parquet(reader) => reader.chunk(&asked.kinds, limit, unread),
            Self::Workbook { file, bytes, sheet, rest } => {
                if !bytes.is_empty() {
                    let bytes = std::mem::take(bytes);
                    let wish = |name: &str| asked.kind(name).map(|_| Wish::As(Kind::Text));
                    let mut table = sheet::read(file, bytes, sheet.as_deref(), &wish)?;
                    as_asked(&mut table, asked, unread)?;
                    *rest = Some(table);
                }
                let Some(table) = rest.take() else { return Ok(None) };
                let (now, later) = table.split(limit);
                *rest = later;
                Ok(Some(now))
            }
        }
    }
}

/// Texts read as what is asked.
fn as_asked(table: &mut Table, asked: &Asked, unread: &mut Unread) -> Result<()> {
    for column in &mut table.columns {
        let (Some(kind), Values::Text(texts)) = (asked.kind(&column.name), &mut column.values) else {
            continue;
        };
        let (mut values, unreadable) = std::mem::replace(texts, Texts::new()).read_as_far(kind);
        for (i, value) in unreadable {
            let (file, row, name) = (table.file.clone(), table.rows[i], column.name.clone());
            unread.meet(row, Error::WrongType { file, row, column: name, value, expected: kind.noun() })?;
        }
        values.settle();
        (column.kind, column.values) = (kind, values);
    }
    Ok(())
}

/// What is asked of columns in so many words.
fn exactly(wishes: &Wishes) -> Kinds {
    let exact = |(name, wish): (&String, &Wish)| match wish {
        Wish::As(kind) => Some((name.clone(), *kind)),
        Wish::Number | Wish::Time => None,
    };
    wishes.iter().filter_map(exact).collect()
}
