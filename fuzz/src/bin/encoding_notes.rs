//! The encoding in a model's notes: refused, or a table can be encoded by it, or that is refused.

#![no_main]

use bayespc_data::{Encoding, Kinds, Table};
use bayespc_fuzz::{FLATS, SPOTS};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Ok(encoding) = serde_json::from_slice::<Encoding>(bytes) else { return };
    for csv in [FLATS, SPOTS] {
        let Ok(table) = Table::from_csv("t.csv", csv.as_bytes(), &Kinds::new()) else { continue };
        let _ = encoding.transform(&table);
        let _ = encoding.targets(&table);
    }
    let _ = encoding.owners();
});
