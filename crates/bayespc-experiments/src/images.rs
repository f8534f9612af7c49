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
