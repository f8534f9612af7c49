//! A fit whose networks are trained elsewhere has the bits of a fit, whoever trains which of them.

use std::collections::BTreeSet;

use bayespc::model::{Calibration, Networks, Step};
use bayespc::{Error, Model, ModelSettings, Samples, Targets};
use faer::Mat;

use crate::common::{normal, rng};

/// The fit in steps, its networks trained by so many workers, each for itself; and how often it had to wait.
fn in_steps(samples: &Samples<'_>, settings: &ModelSettings, workers: usize) -> (Model, usize) {
    let mut known = Networks::new();
    for waits in 0..100 {
        let wanted = match Model::fit_step(samples, settings, &known, &BTreeSet::new()).unwrap() {
            Step::Model(model) => return (*model, waits),
            Step::Wanted(wanted) => wanted,
            Step::Made(_) => panic!("nothing was to be made"),
        };
        assert!(wanted.iter().all(|(key, cost)| !known.contains_key(key) && *cost > 0));
        let mut made = Networks::new();
        for worker in 0..workers {
            let own = wanted.iter().skip(worker).step_by(workers).map(|(key, _)| key.clone());
            let own: BTreeSet<String> = own.collect();
            if own.is_empty() {
                continue;
            }
            let Step::Made(networks) = Model::fit_step(samples, settings, &known, &own).unwrap() else {
                panic!("networks were to be made");
            };
            assert!(networks.keys().eq(own.iter()), "all that were asked for, and no others");
            made.extend(networks);
        }
        known.extend(made);
    }
    panic!("the fit does not end");
}

fn short() -> ModelSettings {
    let mut settings = ModelSettings::default();
    settings.training.epochs = 5;
    settings.search.widths_from = 0;
    settings
}

fn check(samples: &Samples<'_>, settings: &ModelSettings) -> usize {
    let expected = Model::fit(samples, settings).unwrap().to_bytes().unwrap();
    let (model, waits) = in_steps(samples, settings, 3);
    assert!(model.to_bytes().unwrap() == expected, "the bits differ");
    waits
}

fn values(n: usize) -> (Mat<f64>, Mat<f64>) {
    let x = normal(3, n, &mut rng(1));
    let noise = normal(1, n, &mut rng(2));
    let y = Mat::from_fn(1, n, |_, j| (2.0 * x[(0, j)]).sin() - x[(1, j)] + 0.3 * noise[(0, j)]);
    (x, y)
}

#[test]
fn a_search_and_its_ensemble_of_folds() {
    let (x, y) = values(90);
    let waits = check(&Samples::new(&x, &y).unwrap(), &short());
    assert!(waits >= 4, "rounds of the race wait for each other: {waits}");
}

#[test]
fn candidates_that_learn_from_a_part_only() {
    let (x, y) = values(120);
    let mut settings = short();
    settings.search.max_rows = 60;
    check(&Samples::new(&x, &y).unwrap(), &settings);
}

#[test]
fn few_networks_on_all_samples_and_samples_held_out_besides() {
    let (x, y) = values(90);
    let weights: Vec<f64> = (0..90).map(|j| f64::from(1 + j % 3)).collect();
    let settings = ModelSettings { members: 2, calibration: Calibration::Holdout, ..short() };
    check(&Samples::new(&x, &y).unwrap().weighted(&weights).unwrap(), &settings);
}

#[test]
fn classes() {
    let (x, y) = values(90);
    let labels: Vec<usize> = (0..90).map(|j| usize::from(y[(0, j)] > 0.0)).collect();
    check(&Samples::new(&x, Targets::Classes { labels: &labels, classes: 2 }).unwrap(), &short());
}

#[test]
fn networks_that_are_not_searched_need_one_step() {
    let (x, y) = values(60);
    let mut settings = ModelSettings { members: 3, ..short() };
    settings.search.enabled = false;
    assert_eq!(check(&Samples::new(&x, &y).unwrap(), &settings), 1);
}

#[test]
fn a_limit_of_time_is_refused() {
    let (x, y) = values(60);
    let settings = ModelSettings { time_limit: Some(1.0), ..short() };
    let result =
        Model::fit_step(&Samples::new(&x, &y).unwrap(), &settings, &Networks::new(), &BTreeSet::new());
    assert!(matches!(result, Err(Error::Conflict { first: "time_limit", .. })));
}
