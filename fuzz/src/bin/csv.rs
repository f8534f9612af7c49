//! A table of text: refused, or it can be encoded and read again.

#![no_main]

use bayespc_data::{Encoding, EncodingOptions, Kinds, Table};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(table) = Table::from_csv("t.csv", bytes, &Kinds::new()) else { return };
    let Some(target) = table.header().last().cloned() else { return };
    if let Ok(encoding) = Encoding::fit(&table, &[&target], &EncodingOptions::default()) {
        let _ = encoding.transform(&table);
        let _ = encoding.targets(&table);
    }
});
