//! Statistics of a part of a table: refused, or a pass can be made with them, or that is refused; and a model in the making.

#![no_main]

use std::sync::LazyLock;

use bayespc::distributions::SufficientStats;
use bayespc::model::rounds::{PartStatistics, Rounds, ThinPart};
use bayespc_fuzz::{rounds, statistics, with_right_checksum};
use libfuzzer_sys::fuzz_target;

/// A model before each of its passes, and the statistics of the other part.
static PASSES: LazyLock<Vec<(Rounds, PartStatistics)>> = LazyLock::new(|| {
    rounds().into_iter().map(|rounds| (rounds.clone(), statistics(&rounds).remove(1))).collect()
});

fuzz_target!(|bytes: &[u8]| {
    try_it(bytes);
    if let Some(fixed) = with_right_checksum(bytes) {
        try_it(&fixed);
    }
});

fn try_it(bytes: &[u8]) {
    if let Ok(part) = PartStatistics::from_bytes(bytes) {
        assert!(part.to_bytes().is_ok_and(|again| PartStatistics::from_bytes(&again).is_ok()));
        for (rounds, other) in PASSES.iter() {
            let _ = rounds.absorb(vec![part.clone(), other.clone()]);
        }
    }
    if let Ok(part) = ThinPart::from_bytes(bytes) {
        for (rounds, _) in PASSES.iter() {
            let _ = rounds.statistics_of_thin(&part);
        }
    }
    if let Ok(stats) = SufficientStats::from_bytes(bytes) {
        assert!(stats.to_bytes().is_ok());
    }
    if let Ok(rounds) = Rounds::from_bytes(bytes)
        && let Ok(part) = rounds.statistics(None, 0)
    {
        let _ = rounds.absorb(vec![part]);
    }
}
