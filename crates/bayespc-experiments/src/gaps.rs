//! Gaps: how the command's default predicts between and beyond the data, beside five plain networks and other
//! programs.

use std::path::Path;

use crate::benchmark::{OTHERS, score_rows};
use crate::error::Result;
use crate::records::{Records, quantile};
use crate::report::{Block, Section};
use crate::reproduce::table;
use crate::spec::{RunSpec, Spec};
use crate::splitting::Splitting;

/// Records of other programs, written by scripts/peers_tables.py into the same folder.
const PEERS: &str = "gaps-peers.csv";

const NOTE: &str = "For every feature the rows are sorted by it and cut into thirds. Between the data, the middle third is \
    predicted from the outer ones; beyond the data, the outer thirds from the middle one. A single row that was thought \
    impossible can make up all of a mean log density, so the median over features stands beside it.";

/// Tables of both kinds of gaps; records of other programs are taken from `out` if they are there.
pub fn section(spec: &Spec, records: &Records, out: &Path) -> Result<Section> {
    let path = out.join(PEERS);
    let all = if path.is_file() { records.with(&Records::read(&path)?) } else { records.clone() };
    let first = spec.runs.first().map_or(&[][..], |run| &run.learners[..]);
    let own = first.iter().map(|name| (name.as_str(), spec.learners[name].label.as_str()));
    let learners: Vec<(&str, &str)> = own.chain(OTHERS).collect();
    let mut blocks = vec![Block::Text(NOTE.to_owned())];
    for (splitting, caption) in [
        (Splitting::Gap, "Between the data: mean ± standard error over features, original units."),
        (Splitting::Outside, "Beyond the data: mean ± standard error over features, original units."),
    ] {
        let runs = || spec.runs.iter().filter(|run| run.splitting == splitting);
        let names: Vec<String> = runs().map(RunSpec::record_name).collect();
        let header: Vec<&str> =
            ["method", "score"].into_iter().chain(runs().map(|run| run.dataset.as_str())).collect();
        let mut rows = Vec::new();
        for learner in &learners {
            rows.extend(score_rows(&all, *learner, &names, &[("rmse", "RMSE", true), ("ll", "LL", true)]));
            rows.extend(median_row(&all, *learner, &names));
            let rest = [("crps", "CRPS", true), ("coverage_90", "90 % coverage", true)];
            rows.extend(score_rows(&all, *learner, &names, &rest));
        }
        blocks.push(table(caption, &header, rows));
    }
    Ok(Section { heading: "Gaps".to_owned(), blocks })
}

/// Median log density over features; none where nothing was measured.
fn median_row(records: &Records, (name, label): (&str, &str), datasets: &[String]) -> Option<Vec<String>> {
    let groups = records.group_by(|r| (r.learner == name && r.metric == "ll").then(|| r.dataset.clone()));
    let cell = |dataset| {
        groups
            .get(dataset)
            .map_or_else(String::new, |values| format!("{:.3}", quantile(values, 0.5)).replace('-', "−"))
    };
    let cells: Vec<String> = datasets.iter().map(cell).collect();
    let there = cells.iter().any(|cell| !cell.is_empty());
    there.then(|| [label.to_owned(), "LL, median".to_owned()].into_iter().chain(cells).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::{RecordFile, Unit};
    use crate::reproduce::Experiment;

    fn specification() -> Spec {
        Spec::parse("gaps", Experiment::Gaps.specification()).unwrap()
    }

    #[test]
    fn every_feature_of_every_table_makes_a_gap_and_its_mirror() {
        let spec = specification();
        for info in bayespc_data::catalogue() {
            for splitting in [Splitting::Gap, Splitting::Outside] {
                let runs = spec.runs.iter().filter(|r| r.dataset == info.name && r.splitting == splitting);
                assert_eq!(runs.map(|run| run.splits).collect::<Vec<_>>(), [info.features.len()]);
            }
        }
    }

    #[test]
    fn other_programs_stand_beside_ours_with_the_scores_they_have() {
        let folder = tempfile::tempdir().unwrap();
        let unit = |learner: &str, split| Unit {
            experiment: "gaps".to_owned(),
            dataset: "yacht+gap".to_owned(),
            learner: learner.to_owned(),
            split,
            seed: 0,
        };
        let path = folder.path().join("own.csv");
        let mut own = RecordFile::open(&path).unwrap();
        for (split, ll) in [(0, -1.0), (1, -2.0), (2, -9.0)] {
            let unit = unit("bpc", split);
            own.append(&[unit.record(None, "rmse", 0.5), unit.record(None, "ll", ll)]).unwrap();
        }
        // As the script writes it.
        let peers = "experiment,dataset,learner,split,seed,epoch,metric,value\n\
                     gaps,yacht+gap,xgboost,0,0,,rmse,0.75\n\
                     gaps,yacht+gap,xgboost,0,0,,seconds_fit,0.1\n\
                     gaps,yacht+gap,xgboost,0,0,,unit_records,2.0\n";
        std::fs::write(folder.path().join(PEERS), peers).unwrap();
        let section = section(&specification(), &Records::read(&path).unwrap(), folder.path()).unwrap();
        let Block::Table { rows, header, .. } = &section.blocks[1] else { panic!("a table") };
        let yacht = header.iter().position(|name| name == "yacht").unwrap();
        let shown: Vec<[&str; 3]> =
            rows.iter().map(|row| [row[0].as_str(), row[1].as_str(), row[yacht].as_str()]).collect();
        let expected = [
            ["bayespc", "RMSE", "0.500 ± 0.000"],
            ["bayespc", "LL", "−4.000 ± 2.517"],
            ["bayespc", "LL, median", "−2.000"],
            ["XGBoost", "RMSE", "0.750"],
        ];
        assert_eq!(shown, expected);
        assert!(matches!(&section.blocks[2], Block::Table { rows, .. } if rows.is_empty()));
    }
}
