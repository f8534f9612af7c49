//! Rules of learning in networks of growing depth: accuracy, density and seconds against the number of hidden layers.

use crate::error::Result;
use crate::plot::{Line, Panel, figure};
use crate::records::{Record, Records, mean_sd};
use crate::report::{Block, Section};
use crate::reproduce::table;
use crate::run::DIVERGED;
use crate::spec::Spec;

/// Scores, how they are shown, and with how many digits.
const SCORES: [(&str, &str, usize); 3] =
    [("accuracy_posterior", "Accuracy", 3), ("nll", "NLL", 3), ("seconds_fit", "Seconds", 1)];

/// One table for each score, and accuracy as a picture.
pub fn sections(spec: &Spec, records: &Records) -> Result<Vec<Section>> {
    let mut datasets: Vec<&str> = spec.runs.iter().map(|run| run.dataset.as_str()).collect();
    datasets.dedup();
    let mut depths: Vec<usize> = spec.runs.iter().filter_map(|run| run.depth).collect();
    depths.sort_unstable();
    depths.dedup();
    let mut blocks = vec![Block::Text(
        "Residual networks of hidden layers of one width, and of no other help: no normalisation, and but for the gain of \
         feedback the same settings at every depth. Every rule sees the same images and begins at the same weights. Accuracy and NLL are those of the test images \
         after the last epoch, without a temperature. Seconds are those of training, with as many networks side by side as \
         there are threads. A rule that could not go on diverged after so many epochs."
            .to_owned(),
    )];
    let header: Vec<String> =
        ["data", "rule"].map(str::to_owned).into_iter().chain(depths.iter().map(usize::to_string)).collect();
    let header: Vec<&str> = header.iter().map(String::as_str).collect();
    let mut panels = Vec::new();
    for (metric, shown, digits) in SCORES {
        let mut rows = Vec::new();
        for &dataset in &datasets {
            let mut lines = Vec::new();
            let diverged = rules(spec, records, dataset, DIVERGED, &depths);
            for ((label, values), (_, diverged)) in
                rules(spec, records, dataset, metric, &depths).into_iter().zip(diverged)
            {
                let show = |(values, diverged): (&Vec<f64>, &Vec<f64>)| match values.len() {
                    0 if !diverged.is_empty() => format!("diverged after {:.0}", mean_sd(diverged).mean),
                    0 => String::new(),
                    1 => format!("{:.digits$}", values[0]),
                    _ => format!("{:.digits$}", mean_sd(values)),
                };
                let cells = values.iter().zip(&diverged).map(show);
                rows.push([dataset.to_owned(), label.clone()].into_iter().chain(cells).collect());
                let known = depths.iter().zip(&values).filter(|(_, values)| !values.is_empty());
                let (x, y) = known.map(|(depth, values)| (*depth as f64, mean_sd(values).mean)).unzip();
                lines.push(Line { label, x, y, ..Line::default() });
            }
            if metric == SCORES[0].0 {
                panels.push(Panel {
                    title: dataset.to_owned(),
                    x_label: "hidden layers".to_owned(),
                    y_label: "test accuracy".to_owned(),
                    y_range: Some((0.0, 1.0)),
                    lines,
                    ..Panel::default()
                });
            }
        }
        let caption =
            format!("{shown}, by the number of hidden layers; mean ± standard deviation over seeds.");
        blocks.push(table(&caption, &header, rows));
    }
    let count = panels.len().max(1);
    let svg = figure(&panels, count, 420 * count as u32, 420)?;
    let caption = "Test accuracy against the number of hidden layers.".to_owned();
    blocks.insert(1, Block::Figure { svg, caption });
    Ok(vec![Section { heading: "Depth".to_owned(), blocks }])
}

/// Values of a score at every depth, rule by rule. Settings that change with the depth are one rule: they have one
/// label.
fn rules(
    spec: &Spec,
    records: &Records,
    dataset: &str,
    metric: &str,
    depths: &[usize],
) -> Vec<(String, Vec<Vec<f64>>)> {
    let mut rules: Vec<(String, Vec<Vec<f64>>)> = Vec::new();
    for run in spec.runs.iter().filter(|run| run.dataset == dataset) {
        let Some(place) = depths.iter().position(|depth| Some(*depth) == run.depth) else { continue };
        let record_name = run.record_name();
        for name in &run.learners {
            let label = &spec.learners[name].label;
            let own = |r: &Record| {
                (r.dataset == record_name && &r.learner == name && r.metric == metric).then_some(())
            };
            let values = records.group_by(own).remove(&()).unwrap_or_default();
            let rule = rules.iter().position(|(known, _)| known == label).unwrap_or_else(|| {
                rules.push((label.clone(), vec![Vec::new(); depths.len()]));
                rules.len() - 1
            });
            rules[rule].1[place].extend(values);
        }
    }
    rules
}

#[cfg(test)]
mod tests {
    use bayespc_data::DataSource;

    use super::*;
    use crate::records::{RecordFile, Unit};
    use crate::reproduce::Experiment;
    use crate::run::run;

    #[test]
    fn every_rule_is_asked_at_every_depth_on_both_sets() {
        let spec = Spec::parse("depth", Experiment::Depth.specification()).unwrap();
        for dataset in ["mnist", "fashion-mnist"] {
            let runs: Vec<_> = spec.runs.iter().filter(|run| run.dataset == dataset).collect();
            assert_eq!(runs.iter().filter_map(|run| run.depth).collect::<Vec<_>>(), [3, 10, 20, 30]);
            for run in runs {
                let network = run.network();
                assert_eq!(network.hidden_layer_sizes, vec![128; run.depth.unwrap()]);
                assert!(network.residual);
                let labels: Vec<&str> = run.learners.iter().map(|l| &*spec.learners[l].label).collect();
                let expected = ["feedback", "relaxation", "relaxation (errors)", "PC", "PC (errors)", "BP"];
                assert_eq!(labels, expected);
            }
        }
    }

    #[test]
    fn the_shipped_rules_run_at_two_depths_on_two_moons() {
        let mut spec = Spec::parse("depth", Experiment::Depth.specification()).unwrap();
        spec.runs.retain(|run| run.dataset == "mnist" && run.depth <= Some(10));
        for run in &mut spec.runs {
            run.dataset = "two_moons".to_owned();
            (run.hidden_layer_sizes, run.epochs, run.seeds) = (vec![8], 2, 1);
        }
        let folder = tempfile::tempdir().unwrap();
        let source = DataSource { folder: None, download: false, ..DataSource::from_env() };
        let records = run(&spec, &source, &folder.path().join("depth.csv"), &|_, _, _| {}).unwrap();
        assert_eq!(records.units().count(), 12);
        let sections = sections(&spec, &records).unwrap();
        let Block::Table { rows, .. } = &sections[0].blocks[2] else { panic!("no table") };
        for row in rows {
            let accuracy: Vec<f64> = row[2..].iter().map(|cell| cell.parse().unwrap()).collect();
            assert!(accuracy.len() == 2 && accuracy.iter().all(|a| (0.3..=1.0).contains(a)), "{row:?}");
        }
        let learned = rows.iter().find(|row| row[1] == "relaxation (errors)").unwrap();
        assert!(learned[3].parse::<f64>().unwrap() > 0.75, "{learned:?}");
    }

    #[test]
    fn a_rule_has_a_row_with_its_mean_at_every_depth() {
        let spec = Spec::parse("depth", Experiment::Depth.specification()).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("depth.csv");
        let own = |depth: usize| {
            let run =
                spec.runs.iter().find(|run| run.dataset == "mnist" && run.depth == Some(depth)).unwrap();
            (run.record_name(), run.learners[0].clone())
        };
        for (depth, seed, accuracy) in [(3, 0, 0.9), (3, 1, 0.8), (30, 0, 0.7)] {
            let (dataset, learner) = own(depth);
            let unit = Unit { experiment: "depth".to_owned(), dataset, learner, split: 0, seed };
            let records = [unit.record(None, "accuracy_posterior", accuracy)];
            RecordFile::open(&path).unwrap().append(&records).unwrap();
        }
        let (dataset, learner) = own(20);
        let unit = Unit { experiment: "depth".to_owned(), dataset, learner, split: 0, seed: 0 };
        let records = [unit.record(Some(4), "accuracy", 0.9), unit.record(None, DIVERGED, 4.0)];
        RecordFile::open(&path).unwrap().append(&records).unwrap();
        let sections = sections(&spec, &Records::read(&path).unwrap()).unwrap();
        let Block::Table { header, rows, .. } = &sections[0].blocks[2] else { panic!("no table") };
        assert_eq!(header, &["data", "rule", "3", "10", "20", "30"]);
        assert!(
            rows[0][2].starts_with("0.850") && rows[0][3].is_empty() && rows[0][5] == "0.700",
            "{rows:?}"
        );
        assert_eq!(rows[0][4], "diverged after 4");
        assert!(matches!(&sections[0].blocks[1], Block::Figure { svg, .. } if svg.contains("hidden layers")));
    }
}
