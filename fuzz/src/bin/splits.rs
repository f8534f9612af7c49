//! A file of splits: refused, or every row is in one part of each split.

#![no_main]

use bayespc_data::parse_splits;
use bayespc_fuzz::scratch;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let n = 50;
    let Ok(splits) = parse_splits(&scratch(bytes, "splits"), n) else { return };
    for split in splits {
        let mut rows = [split.train, split.test].concat();
        rows.sort_unstable();
        rows.dedup();
        assert_eq!(rows, (0..n).collect::<Vec<_>>());
    }
});
