//! The records file: appended to one whole unit at a time, readable after any crash.
//!
//! ```text
//! experiment,dataset,learner,split,seed,epoch,metric,value
//! uci,yacht,bpc,0,1,1,rmse,2.5            ┐
//! uci,yacht,bpc,0,1,,rmse,0.61            │ one unit
//! uci,yacht,bpc,0,1,,unit_records,2       ┘ its closing line: how many records it has
//! ```
//!
//! A unit counts only with its closing line, newline included, and the right number of records before it.
//! What follows the last closing line was being written when the program stopped: a reader skips it, and a
//! writer cuts it off before it appends. Anything else that does not fit is an error, because repairing it
//! would mean guessing.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read as _, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

use super::table::{Record, Records, Unit};
use crate::error::{Error, Result};

const HEADER: &str = "experiment,dataset,learner,split,seed,epoch,metric,value\n";
/// Metric of the line that closes a unit.
const CLOSING: &str = "unit_records";

/// A records file opened for appending; no other process can append meanwhile.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    file: File,
    /// Length of the file up to and with its last closing line.
    length: u64,
    records: Records,
}

impl RecordFile {
    /// Open the file, creating it and its folder if needed, and cut off a unit that was left half written.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |source| Error::File { path: path.to_owned(), source };
        if let Some(folder) = path.parent() {
            std::fs::create_dir_all(folder).map_err(failed)?;
        }
        let mut file = OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(path)
            .map_err(failed)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => {
                return Err(Error::Locked { path: path.to_owned() });
            }
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes).map_err(failed)?;
        let (records, mut length) = parse(path, &bytes)?;
        file.set_len(length).map_err(failed)?;
        file.seek(SeekFrom::End(0)).map_err(failed)?;
        if length == 0 {
            file.write_all(HEADER.as_bytes()).and_then(|()| file.sync_all()).map_err(failed)?;
            length = HEADER.len() as u64;
        }
        Ok(Self { path: path.to_owned(), file, length, records })
    }

    /// The complete units so far.
    pub fn records(&self) -> &Records {
        &self.records
    }

    /// Append all records of one unit. When this returns they are on disk; when it fails, none of them is.
    pub fn append(&mut self, records: &[Record]) -> Result<()> {
        let unit = records.first().ok_or(Error::EmptyUnit)?.unit();
        if let Some(other) = records.iter().map(Record::unit).find(|other| *other != unit) {
            return Err(Error::MixedUnits { first: Box::new(unit), second: Box::new(other) });
        }
        if self.records.is_complete(&unit) {
            return Err(Error::DuplicateUnit { unit: Box::new(unit) });
        }
        if records.iter().any(|record| record.metric == CLOSING) {
            return Err(Error::ReservedMetric { metric: CLOSING.to_owned() });
        }
        let block = encode(&unit, records)?;
        let written = self.file.write_all(&block).and_then(|()| self.file.sync_data());
        if let Err(source) = written {
            // Take back what was written; should that fail too, the next reader drops it.
            let _ =
                self.file.set_len(self.length).and_then(|()| self.file.seek(SeekFrom::End(0)).map(|_| ()));
            return Err(Error::File { path: self.path.clone(), source });
        }
        self.length += block.len() as u64;
        self.records.extend(unit, records.to_vec());
        Ok(())
    }
}

impl Records {
    /// Read the complete units of a file without changing it.
    pub fn read(path: &Path) -> Result<Self> {
        let bytes = std::fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
        Ok(parse(path, &bytes)?.0)
    }
}

fn encode(unit: &Unit, records: &[Record]) -> Result<Vec<u8>> {
    let mut writer = csv::WriterBuilder::new().has_headers(false).from_writer(Vec::new());
    let closing = unit.record(None, CLOSING, records.len() as f64);
    for record in records.iter().chain([&closing]) {
        writer
            .serialize(record)
            .map_err(|source| Error::Encoding { unit: Box::new(unit.clone()), source })?;
    }
    writer
        .into_inner()
        .map_err(|error| Error::Encoding { unit: Box::new(unit.clone()), source: error.into_error().into() })
}

/// The complete units, and the length of the file up to the last of them.
fn parse(path: &Path, bytes: &[u8]) -> Result<(Records, u64)> {
    let mut records = Records::default();
    if bytes.len() < HEADER.len() && HEADER.as_bytes().starts_with(bytes) {
        return Ok((records, 0));
    }
    let Some(body) = bytes.strip_prefix(HEADER.as_bytes()) else {
        let first = bytes.split(|&b| b == b'\n').next().unwrap_or(bytes);
        let found = String::from_utf8_lossy(first).chars().take(200).collect();
        return Err(Error::Header { path: path.to_owned(), found });
    };
    // A last line without its newline may have lost digits and still parse.
    let whole = body.iter().rposition(|&b| b == b'\n').map_or(0, |last| last + 1);
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(&body[..whole]);
    let mut row = csv::StringRecord::new();
    let (mut length, mut pending) = (0, Vec::<Record>::new());
    // First line that is no record; forgivable only in the torn end, that is if no closing line follows.
    let mut bad_line = None;
    loop {
        let line = reader.position().line() as usize + 1;
        let record = match reader.read_record(&mut row) {
            Ok(false) => break,
            Ok(true) => row.deserialize::<Record>(None).ok(),
            Err(_) => None,
        };
        let Some(record) = record else {
            bad_line = bad_line.or(Some(line));
            continue;
        };
        if record.metric != CLOSING {
            pending.push(record);
            continue;
        }
        let unit = record.unit();
        let fits = record.value == pending.len() as f64 && pending.iter().all(|r| r.unit() == unit);
        if bad_line.is_some() || !fits || records.is_complete(&unit) {
            return Err(Error::Malformed { path: path.to_owned(), line: bad_line.unwrap_or(line) });
        }
        records.extend(unit, std::mem::take(&mut pending));
        length = reader.position().byte();
    }
    Ok((records, HEADER.len() as u64 + length))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::mean_se;

    fn unit(split: u32) -> Unit {
        let name = |s: &str| s.to_owned();
        Unit {
            experiment: name("uci"),
            dataset: name("yacht, \"old\"\nname"),
            learner: name("bpc é"),
            split,
            seed: 7,
        }
    }

    fn rows(split: u32) -> Vec<Record> {
        let unit = unit(split);
        vec![
            unit.record(Some(1), "rmse", 2.5 + f64::from(split)),
            unit.record(Some(2), "rmse", 0.1 + 0.2),
            unit.record(None, "log density", f64::NEG_INFINITY),
        ]
    }

    fn written(folder: &Path, splits: u32) -> PathBuf {
        let path = folder.join("runs").join("records.csv");
        let mut file = RecordFile::open(&path).unwrap();
        for split in 0..splits {
            file.append(&rows(split)).unwrap();
        }
        path
    }

    #[test]
    fn what_was_appended_is_read_back_exactly() {
        let folder = tempfile::tempdir().unwrap();
        let records = Records::read(&written(folder.path(), 3)).unwrap();
        assert_eq!(records.rows(), [rows(0), rows(1), rows(2)].concat());
        assert_eq!(records.units().count(), 3);
        assert!(records.is_complete(&unit(2)) && !records.is_complete(&unit(3)));
    }

    #[test]
    fn values_that_are_not_finite_survive() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.csv");
        let values = [f64::NAN, f64::INFINITY, f64::NEG_INFINITY, -0.0, f64::MIN_POSITIVE, 1e300];
        let records: Vec<Record> = values.iter().map(|&v| unit(0).record(None, "m", v)).collect();
        RecordFile::open(&path).unwrap().append(&records).unwrap();
        let back: Vec<u64> = Records::read(&path).unwrap().rows().iter().map(|r| r.value.to_bits()).collect();
        assert_eq!(back, values.map(f64::to_bits));
    }

    #[test]
    fn cut_anywhere_the_file_keeps_exactly_its_whole_units_and_can_go_on() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path(), 2);
        let bytes = std::fs::read(&path).unwrap();
        let one = HEADER.len() + encode(&unit(0), &rows(0)).unwrap().len();
        for cut in 0..bytes.len() {
            std::fs::write(&path, &bytes[..cut]).unwrap();
            let kept = u32::from(cut >= one);
            if cut > 0 {
                assert_eq!(Records::read(&path).unwrap().units().count(), kept as usize, "cut at {cut}");
            }
            let mut file = RecordFile::open(&path).unwrap();
            for split in kept..2 {
                assert!(!file.records().is_complete(&unit(split)));
                file.append(&rows(split)).unwrap();
            }
            assert_eq!(std::fs::read(&path).unwrap(), bytes, "cut at {cut}");
        }
    }

    #[test]
    fn a_tail_of_garbage_is_dropped_but_garbage_inside_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path(), 1);
        let whole = std::fs::read(&path).unwrap();
        for tail in [&[0_u8; 64][..], b"\xff\xfe\n\n\"", b"uci,yacht\n", b"a,b,c,x,y,z,m,1\n"] {
            std::fs::write(&path, [&whole[..], tail].concat()).unwrap();
            assert_eq!(Records::read(&path).unwrap().units().count(), 1);
        }
        let next = encode(&unit(1), &rows(1)).unwrap();
        std::fs::write(&path, [&whole[..], b"uci,yacht\n", &next[..]].concat()).unwrap();
        assert!(matches!(Records::read(&path), Err(Error::Malformed { .. })));
        // A record lost from the middle: the count no longer fits.
        let two = String::from_utf8(encode(&unit(0), &rows(0)[..2]).unwrap()).unwrap();
        let lost = format!("{HEADER}{}", two.replace("unit_records,2.0", "unit_records,3.0"));
        assert_ne!(lost, format!("{HEADER}{two}"));
        std::fs::write(&path, lost).unwrap();
        assert!(matches!(Records::read(&path), Err(Error::Malformed { .. })));
    }

    #[test]
    fn another_file_is_not_overwritten() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("notes.csv");
        std::fs::write(&path, "a,b\n1,2\n").unwrap();
        assert!(matches!(RecordFile::open(&path), Err(Error::Header { found, .. }) if found == "a,b"));
        assert_eq!(std::fs::read(&path).unwrap(), b"a,b\n1,2\n");
    }

    #[test]
    fn units_that_are_empty_mixed_repeated_or_misnamed_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let path = written(folder.path(), 1);
        let before = std::fs::read(&path).unwrap();
        let mut file = RecordFile::open(&path).unwrap();
        assert!(matches!(file.append(&[]), Err(Error::EmptyUnit)));
        assert!(matches!(file.append(&[rows(1), rows(2)].concat()), Err(Error::MixedUnits { .. })));
        assert!(matches!(file.append(&rows(0)), Err(Error::DuplicateUnit { .. })));
        let misnamed = [unit(1).record(None, CLOSING, 1.0)];
        assert!(matches!(file.append(&misnamed), Err(Error::ReservedMetric { .. })));
        assert_eq!(std::fs::read(&path).unwrap(), before);
    }

    #[test]
    fn two_writers_cannot_open_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("records.csv");
        let first = RecordFile::open(&path).unwrap();
        assert!(matches!(RecordFile::open(&path), Err(Error::Locked { .. })));
        drop(first);
        assert!(RecordFile::open(&path).is_ok());
    }

    #[test]
    fn groups_hold_the_selected_values_in_order() {
        let folder = tempfile::tempdir().unwrap();
        let records = Records::read(&written(folder.path(), 3)).unwrap();
        let by_epoch = records.group_by(|r| (r.metric == "rmse").then_some(r.epoch));
        assert_eq!(by_epoch.keys().copied().collect::<Vec<_>>(), [Some(1), Some(2)]);
        assert_eq!(by_epoch[&Some(1)], [2.5, 3.5, 4.5]);
        assert_eq!(mean_se(&by_epoch[&Some(1)]).mean, 3.5);
    }
}
