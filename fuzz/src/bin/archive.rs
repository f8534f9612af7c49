//! Packed files and workbooks, told by their first bytes.

#![no_main]

use bayespc_data::{Kinds, Table};
use bayespc_fuzz::scratch;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let name = if bytes.first().is_some_and(|byte| *byte == b'P') { "xlsx" } else { "csv.gz" };
    let _ = Table::read_as(&scratch(bytes, name), &Kinds::new());
});
