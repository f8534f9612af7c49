//! A Parquet file: refused, or its columns can be encoded. The library that reads it panics at some damaged files; those
//! panics are caught and silent. One that nobody caught ends the run.

#![no_main]

use bayespc_data::{Encoding, EncodingOptions, Kinds, Table};
use bayespc_fuzz::scratch;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let path = scratch(bytes, "parquet");
    let Ok(table) = Table::read_as(&path, &Kinds::new()) else { return };
    let Some(target) = table.header().last().cloned() else { return };
    if let Ok(encoding) = Encoding::fit(&table, &[&target], &EncodingOptions::default()) {
        let _ = encoding.transform(&table);
    }
});
