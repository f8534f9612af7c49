//! Running a specification: every unit (data set, learner, split, seed) trains once and leaves its records.
//!
//! Units run in parallel, are written whole as they finish, and are skipped if their records are there: an
//! interrupted run goes on where it stopped.

use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use bayespc::base::linalg::cast;
use bayespc::data::Dataset;
use bayespc::learners::{Learner, LearnerSettings, Startable};
use bayespc::model::{Model, ModelSettings, member_seed};
use bayespc::prediction::Predictive;
use bayespc::training::{self, Control, EpochReport, Observer, Silent, TrainingSettings};
use bayespc::{Error, Real, Samples, metrics};
use bayespc_data::DataSource;
use faer::{Mat, MatRef};
use rayon::prelude::*;

use crate::error::Result;
use crate::learner::{model_settings, search};
use crate::records::{Record, RecordFile, Records, Unit};
use crate::spec::{LearnerSpec, Measure, RunSpec, Spec};
use crate::strangers::aurocs;
use crate::task::{Source, Task, learning};

/// Epochs after which a network of images could not go on.
pub const DIVERGED: &str = "diverged";

/// Run what is missing of `spec` into `path`, and return all its records. `progress` hears of units done.
pub fn run(
    spec: &Spec,
    data: &DataSource,
    path: &Path,
    progress: &(dyn Fn(usize, usize, &str) + Sync),
) -> Result<Records> {
    let file = Mutex::new(RecordFile::open(path)?);
    let units: usize = spec.runs.iter().map(|run| run.learners.len() * run.splits * run.seeds).sum();
    let done = Mutex::new(0);
    for run in &spec.runs {
        let source = Source::load(&run.dataset, run.splitting, data)?;
        let strangers =
            run.strangers.as_ref().map(|name| Source::load(name, run.splitting, data)).transpose()?;
        let mut work = Vec::new();
        for split in 0..run.splits {
            for seed in 0..run.seeds {
                for name in &run.learners {
                    let unit = Unit {
                        experiment: spec.name.clone(),
                        dataset: run.record_name(),
                        learner: name.clone(),
                        split: split as u32,
                        seed: seed as u64,
                    };
                    work.push((unit, &spec.learners[name]));
                }
            }
        }
        work.into_par_iter().try_for_each(|(unit, learner)| -> Result<()> {
            let known = lock(&file).records().is_complete(&unit);
            if !known {
                let records = if run.single_precision {
                    train::<f32>(run, learner, (&source, strangers.as_ref()), &unit)?
                } else {
                    train::<f64>(run, learner, (&source, strangers.as_ref()), &unit)?
                };
                lock(&file).append(&records)?;
            }
            let mut count = lock(&done);
            *count += 1;
            progress(*count, units, &format!("{} {}", unit.dataset, learner.label));
            Ok(())
        })?;
    }
    Records::read(path)
}

/// A poisoned lock means another unit panicked; its records are whole all the same.
fn lock<G>(mutex: &Mutex<G>) -> std::sync::MutexGuard<'_, G> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}

fn train<T: Startable>(
    run: &RunSpec,
    spec: &LearnerSpec,
    (source, strangers): (&Source, Option<&Source>),
    unit: &Unit,
) -> Result<Vec<Record>> {
    let name = format!("{} on {} (split {}, seed {})", spec.label, unit.dataset, unit.split, unit.seed);
    let mut task = source.task::<T>(unit.split as usize, unit.seed, run.most_rows, run.validate)?;
    if run.relu_inputs {
        for inputs in [&mut task.train.0, &mut task.test.0] {
            faer::zip!(inputs).for_each(|faer::unzip!(x)| *x = x.max(T::zero()));
        }
    }
    let seed = 100 * u64::from(unit.split) + unit.seed;
    let settings = training_settings(run, spec, seed);
    let train = Dataset::new(task.train.0.as_ref(), task.train.1.as_ref()).map_err(learning(&name))?;
    let start = Instant::now();
    if let Some(settings) = whole_model(run, spec, &settings) {
        // Targets as a user has them: whether they are positive is something a model may use.
        let (offset, scale) = (task.target_offset, task.target_scale);
        let (input, target): (Mat<f64>, Mat<f64>) = (cast(train.input()), cast(train.target()));
        let target = Mat::from_fn(target.nrows(), target.ncols(), |i, j| offset + scale * target[(i, j)]);
        let model = Samples::new(&input, &target).and_then(|samples| Model::fit(&samples, &settings));
        let model = model.map_err(learning(&name))?;
        let seconds = start.elapsed().as_secs_f64();
        let test: Mat<f64> = cast(task.test.0.as_ref());
        let d = target.nrows();
        let predict = || {
            model.predict_by(&test, spec.method)?.unscale(&vec![-offset / scale; d], &vec![1.0 / scale; d])
        };
        return end_records(&task, unit, predict, seconds).map_err(learning(&name));
    }
    let chosen = if spec.search {
        search(&spec.learner, &run.network(), &settings, &train).map_err(learning(&name))?
    } else {
        spec.learner.clone()
    };
    let begin = |seed: u64| {
        let (d, k) = (train.input().nrows(), train.target().nrows());
        chosen.start::<T>(&run.network(), d, k, &mut training::init_rng(seed)).map_err(learning(&name))
    };
    if let Some(members) = spec.members {
        let mut networks = Vec::with_capacity(members);
        for member in 0..members {
            let seed = member_seed(seed, member);
            let mut network = begin(seed)?;
            let settings = TrainingSettings { seed, ..settings.clone() };
            training::fit(network.as_mut(), &train, &settings, &mut Silent).map_err(learning(&name))?;
            networks.push(network);
        }
        let seconds = start.elapsed().as_secs_f64();
        let predict = || {
            let each = networks.iter().map(|network| network.predict(task.test.0.as_ref(), spec.method));
            Predictive::mixture(each.collect::<bayespc::Result<_>>()?)
        };
        return end_records(&task, unit, predict, seconds).map_err(learning(&name));
    }
    let mut learner = begin(seed)?;
    let mut recorder = Recorder { run, spec, task: &task, train: &train, unit, records: Vec::new() };
    if matches!(run.measure, Measure::Curve | Measure::Images) {
        recorder.measure(0, learner.as_ref()).map_err(learning(&name))?;
    }
    let trained = training::fit(learner.as_mut(), &train, &settings, &mut recorder);
    let seconds = start.elapsed().as_secs_f64();
    let mut records = recorder.records;
    if let (Measure::Images, Err(Error::NotPositiveDefinite { .. } | Error::NotFinite { .. })) =
        (run.measure, &trained)
    {
        // That a rule does not get through is what such an experiment wants to know.
        let epochs = records.iter().filter_map(|record| record.epoch).max().unwrap_or(0);
        records.push(unit.record(None, DIVERGED, f64::from(epochs)));
        return Ok(records);
    }
    trained.map_err(learning(&name))?;
    if run.measure == Measure::End {
        let predict = || learner.predict(task.test.0.as_ref(), spec.method);
        records = end_records(&task, unit, predict, seconds).map_err(learning(&name))?;
    }
    if run.measure == Measure::Images {
        let strange = strangers.and_then(|strangers| source.as_seen_here::<T>(strangers));
        let predict = |input: MatRef<'_, T>| learner.predict(input, spec.method);
        let scores = image_records(&task, strange.as_ref(), unit, predict, seconds);
        records.extend(scores.map_err(learning(&name))?);
    }
    Ok(records)
}

fn training_settings(run: &RunSpec, spec: &LearnerSpec, seed: u64) -> TrainingSettings {
    TrainingSettings {
        epochs: spec.epochs.unwrap_or(run.epochs),
        batch_size: run.batch_size.map(|size| spec.batch_size.unwrap_or(size)),
        seed,
        ..TrainingSettings::default()
    }
}

/// Settings of the model, where the learner is one and not a network.
fn whole_model(run: &RunSpec, spec: &LearnerSpec, training: &TrainingSettings) -> Option<ModelSettings> {
    match (&spec.learner, spec.members) {
        _ if spec.default_model => {
            Some(ModelSettings { training: training.clone(), ..ModelSettings::default() })
        }
        (LearnerSettings::Bpc(bpc), Some(members)) => {
            let search = spec.choose.clone().unwrap_or_default();
            Some(ModelSettings { search, ..model_settings(bpc, &run.network(), training, members) })
        }
        _ => None,
    }
}

/// Records the test error while training runs.
struct Recorder<'a, T: Real> {
    run: &'a RunSpec,
    spec: &'a LearnerSpec,
    task: &'a Task<T>,
    train: &'a Dataset<'a, T>,
    unit: &'a Unit,
    records: Vec<Record>,
}

impl<T: Real> Recorder<'_, T> {
    fn measure(&mut self, epoch: usize, learner: &dyn Learner<T>) -> bayespc::Result<()> {
        let epoch = Some(epoch as u32);
        if self.run.measure == Measure::DensityCurve {
            let finished = learner.finished_copy(self.train)?;
            let predictive = finished.predict(self.task.test.0.as_ref(), self.spec.method)?;
            let target: Mat<f64> = cast(self.task.test.1.as_ref());
            let rmse = metrics::rmse(predictive.mean().as_ref(), target.as_ref())?;
            let density = metrics::log_predictive_density(&predictive, target.as_ref())?;
            self.records.push(self.unit.record(epoch, "rmse", rmse * self.task.target_scale));
            self.records.push(self.unit.record(epoch, "lpd", density));
            return Ok(());
        }
        let output: Mat<f64> = cast(learner.mean_network()?.forward(self.task.test.0.as_ref())?.as_ref());
        let (metric, value) = if let Some(labels) = &self.task.labels {
            ("accuracy", metrics::accuracy(output.as_ref(), labels)?)
        } else {
            let target: Mat<f64> = cast(self.task.test.1.as_ref());
            ("mse", metrics::rmse(output.as_ref(), target.as_ref())?.powi(2))
        };
        self.records.push(self.unit.record(epoch, metric, value));
        Ok(())
    }
}

impl<T: Real> Observer<T> for Recorder<'_, T> {
    fn epoch(&mut self, report: &EpochReport, learner: &dyn Learner<T>) -> bayespc::Result<Control> {
        let due = match self.run.measure {
            Measure::Curve | Measure::Images => true,
            Measure::DensityCurve => is_checkpoint(report.epoch) || report.epoch == report.epochs,
            Measure::End => false,
        };
        if due {
            self.measure(report.epoch, learner)?;
        }
        Ok(Control::Continue)
    }
}

/// 1, 2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100, …
fn is_checkpoint(epoch: usize) -> bool {
    let mut scale = 1;
    while scale * 10 <= epoch {
        scale *= 10;
    }
    let leading = epoch as f64 / scale as f64;
    [1.0, 1.5, 2.0, 3.0, 5.0, 7.0].contains(&leading)
}

fn end_records<T: Real>(
    task: &Task<T>,
    unit: &Unit,
    predict: impl FnOnce() -> bayespc::Result<Predictive>,
    seconds: f64,
) -> bayespc::Result<Vec<Record>> {
    let start = Instant::now();
    let predictive = predict()?;
    let seconds_predict = start.elapsed().as_secs_f64();
    let target: Mat<f64> = cast(task.test.1.as_ref());
    let lpd = metrics::log_predictive_density(&predictive, target.as_ref())?;
    let values = [
        ("rmse", metrics::rmse(predictive.mean().as_ref(), target.as_ref())? * task.target_scale),
        ("lpd", lpd),
        ("ll", lpd - task.target_scale.ln()),
        ("crps", metrics::mean_crps(&predictive, target.as_ref())? * task.target_scale),
        ("coverage_90", metrics::interval_coverage(&predictive, target.as_ref(), 0.9)?),
        ("seconds_fit", seconds),
        ("seconds_predict", seconds_predict),
    ];
    Ok(values.into_iter().map(|(metric, value)| unit.record(None, metric, value)).collect())
}

/// What the probabilities of the test images are worth, and whether others are known for what they are.
fn image_records<T: Real>(
    task: &Task<T>,
    strange: Option<&Mat<T>>,
    unit: &Unit,
    predict: impl Fn(MatRef<'_, T>) -> bayespc::Result<Predictive>,
    seconds: f64,
) -> bayespc::Result<Vec<Record>> {
    let Some(labels) = &task.labels else { return Ok(Vec::new()) };
    let predictive = predict(task.test.0.as_ref())?;
    let probabilities = predictive.class_probabilities(1.0)?;
    let all = metrics::classification_metrics(probabilities.as_ref(), labels)?;
    let mut values = vec![
        ("accuracy_posterior", all.accuracy),
        ("nll", all.negative_log_likelihood),
        ("ece", all.expected_calibration_error),
        ("seconds_fit", seconds),
    ];
    if let Some(strange) = strange {
        let [entropy, epistemic] = aurocs(&predictive, &predict(strange.as_ref())?, 1.0)?;
        values.extend([("auroc_entropy", entropy), ("auroc_epistemic", epistemic)]);
    }
    Ok(values.into_iter().map(|(metric, value)| unit.record(None, metric, value)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reproduce::Experiment;

    #[test]
    fn gaps_are_predicted_by_what_the_command_fits_when_nothing_is_said() {
        let spec = Spec::parse("gaps", Experiment::Gaps.specification()).unwrap();
        let learner = &spec.learners["bpc"];
        for run in &spec.runs {
            let model = whole_model(run, learner, &training_settings(run, learner, 0));
            assert_eq!(model, Some(ModelSettings::default()));
            assert_eq!(learner.method, ModelSettings::default().method);
        }
    }

    #[test]
    fn several_networks_in_a_gap_are_mixed_and_leave_one_unit() {
        // Wine is part of the program.
        let text = r#"
            name = "gaps"
            [[runs]]
            dataset = "wine"
            hidden_layer_sizes = [5]
            epochs = 2
            batch_size = 128
            splitting = "outside"
            measure = "end"
            learners = ["one", "three"]
            [learners.one]
            label = "one network"
            learner = { kind = "backprop" }
            [learners.three]
            label = "three networks"
            learner = { kind = "backprop" }
            members = 3
        "#;
        let spec = Spec::parse("gaps", text).unwrap();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gaps.csv");
        let source = DataSource { folder: None, download: false, ..DataSource::from_env() };
        let records = run(&spec, &source, &path, &|_, _, _| {}).unwrap();
        assert_eq!(records.units().count(), 2);
        let ll = |learner: &str| {
            let found = records.rows().iter().find(|r| r.learner == learner && r.metric == "ll").unwrap();
            assert_eq!(found.dataset, "wine+outside");
            found.value
        };
        assert!(ll("one").is_finite() && ll("three").is_finite() && ll("one") != ll("three"));
    }
}
