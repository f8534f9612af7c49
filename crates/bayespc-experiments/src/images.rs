//! MNIST and Fashion-MNIST: the best and the last epoch, what the probabilities are worth, and whether images of the
//! other kind are known for what they are.

use crate::records::{Records, mean_sd};
use crate::report::{Block, Section};
use crate::reproduce::table;
use crate::spec::Spec;

/// Scores at the end and how they are shown.
const SCORES: [(&str, &str); 5] = [
    ("nll", "NLL"),
    ("ece", "ECE"),
    ("auroc_entropy", "AUROC, entropy"),
    ("auroc_epistemic", "AUROC, epistemic"),
    ("seconds_fit", "seconds"),
];

/// The table of what was measured.
pub fn section(spec: &Spec, records: &Records) -> Section {
    let mut rows = Vec::new();
    for run in &spec.runs {
        for name in &run.learners {
            let curves = records.group_by(|r| {
                let own = r.dataset == run.dataset && &r.learner == name && r.metric == "accuracy";
                own.then_some((r.seed, r.epoch?))
            });
            let best = by_seed(&curves, |epochs| epochs.iter().map(|e| e.1).fold(0.0, f64::max));
            let last = by_seed(&curves, |epochs| epochs.last().map_or(0.0, |e| e.1));
            let score = |metric: &str| {
                let own = |r: &crate::records::Record| {
                    (r.dataset == run.dataset && &r.learner == name && r.metric == metric).then_some(())
                };
                let found = records.group_by(own);
                found.get(&()).map_or_else(String::new, |values| format!("{:.4}", mean_sd(values)))
            };
            let accuracies = [best, last].map(|values| format!("{:.4}", mean_sd(&values)));
            let head = [run.dataset.clone(), spec.learners[name].label.clone()];
            rows.push(head.into_iter().chain(accuracies).chain(SCORES.map(|(m, _)| score(m))).collect());
        }
    }
    let header = ["data", "learner", "accuracy, best epoch", "accuracy, last epoch"];
    let header: Vec<&str> = header.into_iter().chain(SCORES.map(|(_, shown)| shown)).collect();
    Section {
        heading: "Images".to_owned(),
        blocks: vec![
            Block::Text(
                "One network 784-128-128-128-10. The best epoch is chosen by the test images, as records of \
                 predictive coding are reported; the last one is what somebody without them would have. NLL and ECE are \
                 of the last epoch, without a temperature. AUROC: telling the test images from those of the other set by the \
                 entropy of the probabilities, and by the epistemic share of the predictive variance."
                    .to_owned(),
            ),
            table("Mean ± standard deviation over seeds.", &header, rows),
        ],
    }
}

/// Something of the epochs of each seed.
fn by_seed(
    curves: &std::collections::BTreeMap<(u64, u32), Vec<f64>>,
    of: impl Fn(&[(u32, f64)]) -> f64,
) -> Vec<f64> {
    let mut seeds: Vec<u64> = curves.keys().map(|key| key.0).collect();
    seeds.dedup();
    let epochs = |seed: u64| -> Vec<(u32, f64)> {
        let own = curves.iter().filter(|(key, _)| key.0 == seed);
        own.filter_map(|(key, values)| Some((key.1, *values.first()?))).collect()
    };
    seeds.into_iter().map(|seed| of(&epochs(seed))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{RecordFile, Unit};
    use crate::reproduce::Experiment;

    #[test]
    fn the_best_and_the_last_epoch_are_means_over_seeds() {
        let spec = Spec::parse("images", Experiment::Images.specification()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("images.csv");
        for (seed, curve) in [(0, [0.1, 0.9, 0.8]), (1, [0.1, 0.7, 0.6])] {
            let [experiment, dataset, learner] = ["images", "fashion-mnist", "bpc"].map(str::to_owned);
            let unit = Unit { experiment, dataset, learner, split: 0, seed };
            let mut records: Vec<_> = (0u32..)
                .zip(curve)
                .map(|(epoch, value)| unit.record(Some(epoch), "accuracy", value))
                .collect();
            records.push(unit.record(None, "nll", 0.25));
            RecordFile::open(&path).unwrap().append(&records).unwrap();
        }
        let section = section(&spec, &Records::read(&path).unwrap());
        let Some(Block::Table { rows, .. }) = section.blocks.last() else { panic!("no table") };
        let row = rows.iter().find(|row| row[0] == "fashion-mnist").unwrap();
        assert!(row[2].starts_with("0.8000") && row[3].starts_with("0.7000"), "{row:?}");
        assert!(row[4].starts_with("0.2500") && row[5].is_empty(), "{row:?}");
    }

    #[test]
    fn both_sets_are_strangers_to_each_other_and_learned_by_one_network() {
        let spec = Spec::parse("images", Experiment::Images.specification()).unwrap();
        let pairs: Vec<_> = spec.runs.iter().map(|run| (&*run.dataset, run.strangers.as_deref())).collect();
        assert_eq!(pairs, [("mnist", Some("fashion-mnist")), ("fashion-mnist", Some("mnist"))]);
        assert!(spec.runs.iter().all(|run| run.hidden_layer_sizes == [128, 128, 128]));
    }
}
