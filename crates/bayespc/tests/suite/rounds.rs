//! Learning in two halves and in rounds: sums say all that a batch has to say, and no cut of a table changes a bit.

use crate::common::{normal, rewritten, rng};
use bayespc::base::linalg::cast;
use bayespc::data::Dataset;
use bayespc::heads::{Categorical, Gaussian, HeadSettings, VarianceNode};
use bayespc::inference::FeedbackSettings;
use bayespc::learners::{Bpc, Learner, Rule, Step};
use bayespc::learning::{BatchStatistics, Schedule};
use bayespc::model::Calibration;
use bayespc::model::rounds::{PartStatistics, Pass, RoundSettings, Rounds};
use bayespc::network::{Network, NetworkSettings};
use bayespc::{Error, Mat, Model, ModelSettings, Precision, Real, Samples, Targets, Task, metrics};
use proptest::prelude::*;
use rand::seq::SliceRandom;
use rayon::ThreadPoolBuilder;
use serde_json::{Value, json};

const STEP: Step = Step { index: 3, total: Some(10), n_total: 500.0, full_batch: false };

/// A learner with one step behind it, and a batch.
fn learner<T: Real>(head: HeadSettings, n: usize) -> (Bpc<T>, Mat<T>, Mat<T>) {
    let k = if matches!(head, HeadSettings::Categorical(_)) { 3 } else { 2 };
    let settings = NetworkSettings { hidden_layer_sizes: vec![7, 5], head, ..NetworkSettings::default() };
    let network = Network::new(&settings, 4, k, &mut rng(1)).unwrap();
    let mut learner = Bpc::new(network, Rule::Feedback(FeedbackSettings::default())).unwrap();
    let input = cast::<f64, T>(normal(4, n, &mut rng(2)).as_ref());
    let target = Mat::from_fn(k, n, |i, j| {
        T::lit(if k == 3 { f64::from(u8::from(j % 3 == i)) } else { input[(i, j)].as_f64().sin() })
    });
    let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
    learner.learn(&data, &Step { index: 1, ..STEP }, &mut rng(0)).unwrap();
    (learner, input, target)
}

fn heads() -> [HeadSettings; 3] {
    [
        HeadSettings::Gaussian(Gaussian::default()),
        HeadSettings::VarianceNode(VarianceNode::default()),
        HeadSettings::Categorical(Categorical::default()),
    ]
}

fn means(learner: Bpc<f64>) -> Vec<Mat<f64>> {
    learner.into_network().unwrap().layers().map(|layer| layer.mean().to_owned()).collect()
}

/// So few samples that `learn` goes through them one by one; the sums must lead to the same weights.
#[test]
fn sums_lead_where_the_samples_themselves_do() {
    for head in heads() {
        for weighted in [false, true] {
            let (mut one, input, target) = learner::<f64>(head.clone(), 9);
            let weights: Vec<f64> = (0..9).map(|j| 0.25 + f64::from(j % 4)).collect();
            let mut data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
            if weighted {
                data = data.with_weights(&weights).unwrap();
            }
            let mut other = one.clone();
            one.learn(&data, &STEP, &mut rng(0)).unwrap();
            let sums = other.statistics(&data).unwrap();
            other.absorb(&sums, &STEP).unwrap();
            assert_eq!(one.feedback_state().1, other.feedback_state().1);
            for (a, b) in means(one).iter().zip(means(other)) {
                assert!((a - &b).norm_max() < 1e-9 * (1.0 + a.norm_max()), "{head:?} {weighted}");
            }
        }
    }
}

#[test]
fn learning_a_large_batch_is_its_statistics_absorbed() {
    let (mut one, input, target) = learner::<f64>(heads()[0].clone(), 300);
    let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
    let mut other = one.clone();
    let loss = one.learn(&data, &STEP, &mut rng(0)).unwrap();
    let sums = other.statistics(&data).unwrap();
    assert_eq!(other.absorb(&sums, &STEP).unwrap(), loss);
    assert_eq!(means(one), means(other));
}

#[test]
fn sums_of_two_parts_are_those_of_the_whole_and_survive_as_numbers() {
    let (learner, input, target) = learner::<f64>(heads()[1].clone(), 40);
    let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
    let whole = learner.statistics(&data).unwrap();
    let part = |samples: std::ops::Range<usize>| {
        learner.statistics(&data.gather(&samples.collect::<Vec<_>>()).view()).unwrap()
    };
    let mut both = part(0..13);
    both.add(&part(13..40)).unwrap();
    for (a, b) in both.values().iter().zip(whole.values()) {
        assert!((a - b).abs() < 1e-10 * (1.0 + b.abs()));
    }
    let back = BatchStatistics::from_values(learner.network(), &whole.values()).unwrap();
    assert_eq!(back, whole);
    assert!(BatchStatistics::from_values(learner.network(), &whole.values()[1..]).is_err());
}

/// 2500 rows of three columns, with weights, some of them 0.
fn table() -> (Mat<f64>, Mat<f64>, Vec<f64>) {
    let x = normal(3, 2500, &mut rng(5));
    let noise = normal(1, 2500, &mut rng(6));
    let y = Mat::from_fn(1, 2500, |_, j| (x[(0, j)] * x[(1, j)]).sin() + 0.1 * noise[(0, j)]);
    let weights = (0..2500).map(|j| [1.0, 0.5, 2.0, 0.0][j % 4]).collect();
    (x, y, weights)
}

fn settings(precision: Precision) -> (ModelSettings, RoundSettings) {
    let mut settings = ModelSettings { members: 2, bins: 4, precision, ..ModelSettings::fast() };
    settings.network.hidden_layer_sizes = vec![6];
    let rounds = RoundSettings { rounds: 3, batch_rows: 1200, ..RoundSettings::default() };
    (settings, rounds)
}

/// The bytes of a model made from parts that end at these rows, in an order of their own in every pass.
fn made(precision: Precision, ends: &[usize], seed: u64, in_pairs: bool) -> Vec<u8> {
    let (x, y, weights) = table();
    let (settings, rounds) = settings(precision);
    let mut bytes = Rounds::begin(&settings, &rounds, Task::Regression).unwrap().to_bytes().unwrap();
    let mut rng = rng(seed);
    loop {
        // Everything goes through bytes, as between machines.
        let rounds = Rounds::from_bytes(&bytes).unwrap();
        if rounds.next_pass().is_none() {
            return bytes;
        }
        let mut parts: Vec<Vec<u8>> = Vec::new();
        let mut first = 0;
        for &end in ends {
            let n = end - first;
            let own = &weights[first..end];
            let part = if n > 0 && own.iter().all(|&weight| weight == 0.0) {
                rounds.statistics_of_weightless(n as u64, first as u64).unwrap()
            } else {
                let samples = (n > 0).then(|| {
                    let targets = Targets::Values(y.subcols(first, n));
                    Samples::new(x.subcols(first, n), targets).unwrap().weighted(own).unwrap()
                });
                rounds.statistics(samples.as_ref(), first as u64).unwrap()
            };
            parts.push(part.to_bytes().unwrap());
            first = end;
        }
        parts.shuffle(&mut rng);
        let read = |parts: &[Vec<u8>]| -> Vec<PartStatistics> {
            parts.iter().map(|bytes| PartStatistics::from_bytes(bytes).unwrap()).collect()
        };
        let parts = if in_pairs {
            parts.chunks(2).map(|pair| rounds.combine(read(pair)).unwrap()).collect()
        } else {
            read(&parts)
        };
        bytes = rounds.absorb(parts).unwrap().to_bytes().unwrap();
    }
}

#[test]
fn no_cut_no_order_and_no_number_of_threads_changes_a_bit() {
    for precision in [Precision::F64, Precision::F32] {
        let whole = made(precision, &[2500], 0, false);
        for (ends, in_pairs) in [
            (&[1024, 2048, 2500][..], false),
            (&[1, 1, 700, 1023, 1025, 2499, 2500], true),
            (&[0, 300, 2048, 2048, 2500], false),
        ] {
            assert!(made(precision, ends, 3, in_pairs) == whole, "{precision:?} {ends:?}");
        }
        for threads in [1, 2] {
            let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
            assert!(pool.install(|| made(precision, &[1500, 2500], 1, false)) == whole, "{threads} threads");
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4))]
    #[test]
    fn any_cut_gives_the_same_bits(mut ends in proptest::collection::vec(0usize..=2500, 0..6), seed: u64) {
        ends.push(2500);
        ends.sort_unstable();
        let whole = made(Precision::F64, &[2500], 0, false);
        prop_assert!(made(Precision::F64, &ends, seed, seed % 2 == 0) == whole);
    }
}

#[test]
fn rows_that_are_missing_or_come_twice_and_statistics_of_another_pass_are_refused() {
    let (x, y, _) = table();
    let (settings, rounds) = settings(Precision::F64);
    let begun = Rounds::begin(&settings, &rounds, Task::Regression).unwrap();
    let part = |rounds: &Rounds, rows: std::ops::Range<usize>| {
        let (first, n) = (rows.start, rows.len());
        let samples = Samples::new(x.subcols(first, n), Targets::Values(y.subcols(first, n))).unwrap();
        rounds.statistics(Some(&samples), first as u64).unwrap()
    };
    let refused = |rounds: &Rounds, parts: Vec<PartStatistics>| rounds.absorb(parts).unwrap_err().to_string();
    let gap = refused(&begun, vec![part(&begun, 0..900), part(&begun, 1000..2500)]);
    assert_eq!(gap, "rows 900 to 999 are in no statistics");
    let gap = refused(&begun, vec![part(&begun, 0..1024), part(&begun, 2048..2500)]);
    assert_eq!(gap, "rows 1024 to 2047 are in no statistics");
    let twice = refused(&begun, vec![part(&begun, 0..1200), part(&begun, 1100..2500)]);
    assert_eq!(twice, "row 1100 is in the statistics of two parts");
    assert!(matches!(begun.absorb(vec![]), Err(Error::Empty { .. })));
    let known = begun.clone().expecting(2500).unwrap();
    let short = refused(&known, vec![part(&known, 0..2000)]);
    assert_eq!(short, "rows 2000 to 2047 are in no statistics");
    let known = begun.clone().expecting(1000).unwrap();
    let long = refused(&known, vec![part(&known, 0..2500)]);
    assert_eq!(long, "the table has 1000 rows, and there are statistics of more");
    let far = Samples::new(&x, &y).unwrap();
    assert!(matches!(begun.statistics(Some(&far), u64::MAX - 5), Err(Error::Setting { .. })));
    let first = begun.absorb(vec![part(&begun, 0..2500)]).unwrap();
    assert_eq!(first.next_pass(), Some(Pass::Round { index: 1, of: 3 }));
    let old = refused(&first, vec![part(&first, 0..1000), part(&begun, 1000..2500)]);
    assert_eq!(old, "statistics number 1 are of another model or another pass (table)");
    // Known by now: the table has 2500 rows.
    let short = refused(&first, vec![part(&first, 0..2400)]);
    assert_eq!(short, "rows 2400 to 2499 are in no statistics");
    let narrow = Samples::new(x.subrows(0, 2), &y).unwrap();
    assert!(matches!(first.statistics(Some(&narrow), 0), Err(Error::Shape { .. })));
    assert!(first.into_model().is_err());
    assert!(PartStatistics::from_bytes(b"nothing").is_err());
}

/// Without rows held out the last passes are the exact finalisation of the local fit.
#[test]
fn the_last_passes_are_the_exact_finalisation() {
    let (x, y, weights) = table();
    let samples = Samples::new(&x, &y).unwrap().weighted(&weights).unwrap();
    let (mut settings, mut rounds) = settings(Precision::F64);
    (settings.members, settings.bins, rounds.held_out) = (1, 0, 0.0);
    let mut making = Rounds::begin(&settings, &rounds, Task::Regression).unwrap();
    while making.next_pass() != Some(Pass::Weights) {
        making = making.absorb(vec![making.statistics(Some(&samples), 0).unwrap()]).unwrap();
    }
    let model = making.model().unwrap().clone();
    while making.next_pass().is_some() {
        making = making.absorb(vec![making.statistics(Some(&samples), 0).unwrap()]).unwrap();
    }
    let finished = making.into_model().unwrap();
    let mut learner = Bpc::new(model.members()[0].network().clone(), Rule::default()).unwrap();
    let input = model.input_scaling().apply(x.as_ref()).unwrap();
    let target = model.target_scaling().apply(y.as_ref()).unwrap();
    let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap().with_weights(&weights).unwrap();
    learner.finish(&data).unwrap();
    for (a, b) in learner.network().layers().zip(finished.members()[0].network().layers()) {
        let (a, b) = (a.natural(), b.natural());
        assert!((&a.pre_pre - &b.pre_pre).norm_max() < 1e-9 * a.pre_pre.norm_max());
        assert!((&a.post_pre - &b.post_pre).norm_max() < 1e-8 * a.post_pre.norm_max());
        assert!((&a.post_post - &b.post_post).norm_max() < 1e-8 * a.post_post.norm_max());
        assert!((a.count - b.count).abs() < 1e-9 * a.count);
    }
}

/// As good as the local fit of the same network, and sure of itself in the right measure.
#[test]
fn rounds_learn_what_a_local_fit_learns() {
    let (x, y, _) = table();
    let samples = Samples::new(x.subcols(0, 2000), Targets::Values(y.subcols(0, 2000))).unwrap();
    let mut settings = ModelSettings::fast();
    settings.network.hidden_layer_sizes = vec![30];
    let mut making = Rounds::begin(&settings, &RoundSettings::default(), Task::Regression).unwrap();
    while making.next_pass().is_some() {
        making = making.absorb(vec![making.statistics(Some(&samples), 0).unwrap()]).unwrap();
    }
    let rounds = making.into_model().unwrap();
    let (test, truth) = (x.subcols(2000, 500), y.subcols(2000, 500));
    let rmse = |model: &Model| metrics::rmse(model.predict(test).unwrap().mean().as_ref(), truth).unwrap();
    let local = Model::fit(&samples, &settings).unwrap();
    let (own, others) = (rmse(&rounds), rmse(&local));
    assert!(own < 1.1 * others, "{own} in rounds, {others} at once");
    let coverage = metrics::interval_coverage(&rounds.predict(test).unwrap(), truth, 0.9).unwrap();
    // Four standard errors of a share of 500 rows.
    assert!((coverage - 0.9).abs() < 4.0 * (0.09_f64 / 500.0).sqrt(), "{coverage}");
    assert_eq!(rounds.notes().len(), 0);
}

#[test]
fn classes_are_learned_in_rounds_and_what_rounds_cannot_do_is_refused() {
    let x = normal(2, 600, &mut rng(8));
    let labels: Vec<usize> = (0..600).map(|j| usize::from(x[(0, j)] + x[(1, j)] > 0.0)).collect();
    let samples = Samples::new(&x, Targets::Classes { labels: &labels, classes: 2 }).unwrap();
    let mut settings = ModelSettings::fast();
    settings.network.head = HeadSettings::Categorical(Categorical::default());
    settings.network.hidden_layer_sizes = vec![5];
    let rounds = RoundSettings {
        rounds: 20,
        schedule: Schedule::Cosine { first: 0.5, last: 0.1 },
        ..RoundSettings::default()
    };
    let task = Task::Classification { classes: 2 };
    let mut making = Rounds::begin(&settings, &rounds, task).unwrap();
    while making.next_pass().is_some() {
        making = making.absorb(vec![making.statistics(Some(&samples), 0).unwrap()]).unwrap();
    }
    let model = making.into_model().unwrap();
    let probabilities = model.predict_probabilities(&x).unwrap();
    assert!(metrics::accuracy(probabilities.as_ref(), &labels).unwrap() > 0.97);
    assert!(model.temperature() != 1.0);
    assert!(Rounds::begin(&ModelSettings::paper(), &rounds, Task::Regression).is_err());
    assert!(Rounds::begin(&settings, &rounds, Task::Regression).is_err());
    let bad = RoundSettings { held_out: 0.7, ..rounds };
    assert!(Rounds::begin(&settings, &bad, task).is_err());
}

/// A model of 2100 rows after some passes, and the statistics of two parts for the next one. The second part has a
/// chunk of its own, and rows of two others; few rows have a weight, so that files are small.
fn small(task: Task, passes: usize) -> (Rounds, [Vec<u8>; 2]) {
    let (x, y, _) = table();
    let weights: Vec<f64> = (0..2100).map(|j| f64::from(u8::from(j % 90 == 0))).collect();
    let labels: Vec<usize> = (0..2100).map(|j| usize::from(y[(0, j)] > 0.0)).collect();
    let mut settings = ModelSettings { bins: 2, ..ModelSettings::fast() };
    settings.network.hidden_layer_sizes = vec![2];
    if task != Task::Regression {
        settings.network.head = HeadSettings::Categorical(Categorical::default());
    }
    let learning = RoundSettings { rounds: 1, held_out: 0.5, ..RoundSettings::default() };
    let mut rounds = Rounds::begin(&settings, &learning, task).unwrap().expecting(2100).unwrap();
    for pass in 0.. {
        let part = |rows: std::ops::Range<usize>| {
            let (first, n) = (rows.start, rows.len());
            let targets = match task {
                Task::Classification { classes } => {
                    Targets::Classes { labels: &labels[rows.clone()], classes }
                }
                Task::Regression => Targets::Values(y.subcols(first, n)),
            };
            let samples =
                Samples::new(x.subcols(first, n), targets).unwrap().weighted(&weights[rows]).unwrap();
            rounds.statistics(Some(&samples), first as u64).unwrap().to_bytes().unwrap()
        };
        let parts = [part(0..900), part(900..2100)];
        if pass == passes {
            return (rounds, parts);
        }
        rounds = absorbed(&rounds, &parts).unwrap();
    }
    unreachable!("the loop ends at the pass")
}

fn absorbed(rounds: &Rounds, parts: &[Vec<u8>]) -> Result<Rounds, Error> {
    let parts = parts.iter().map(|bytes| PartStatistics::from_bytes(bytes)).collect::<Result<Vec<_>, _>>();
    parts.and_then(|parts| rounds.absorb(parts))
}

#[test]
fn a_file_of_rounds_that_is_cut_short_or_has_a_flipped_bit_is_refused() {
    for passes in [0, 1] {
        let (rounds, [_, part]) = small(Task::Regression, passes);
        let state = rounds.to_bytes().unwrap();
        let is_part = |bytes: &[u8]| PartStatistics::from_bytes(bytes).is_ok();
        let is_state = |bytes: &[u8]| Rounds::from_bytes(bytes).is_ok();
        for (name, file, is_read) in
            [("part", part, &is_part as &dyn Fn(&[u8]) -> bool), ("state", state, &is_state)]
        {
            assert!(is_read(&file));
            let accepted: Vec<usize> = (0..file.len()).filter(|&n| is_read(&file[..n])).collect();
            assert!(accepted.is_empty(), "{name} of pass {passes}, cut at {accepted:?}");
            let flipped = |place: usize, mask: u8| {
                let mut bytes = file.clone();
                bytes[place] ^= mask;
                bytes
            };
            let is_accepted =
                |&place: &usize| [1 << (place % 8), 0xff].iter().any(|&m| is_read(&flipped(place, m)));
            let accepted: Vec<usize> = (0..file.len()).filter(is_accepted).collect();
            assert!(accepted.is_empty(), "{name} of pass {passes}, {} bytes: {accepted:?}", file.len());
        }
    }
}

/// The places of all numbers in a JSON document.
fn numbers(value: &Value, place: &str, found: &mut Vec<(String, u64)>) {
    match value {
        Value::Number(number) => found.extend(number.as_u64().map(|number| (place.to_owned(), number))),
        Value::Array(all) => {
            all.iter().enumerate().for_each(|(i, inner)| numbers(inner, &format!("{place}/{i}"), found));
        }
        Value::Object(all) => {
            all.iter().for_each(|(name, inner)| numbers(inner, &format!("{place}/{name}"), found));
        }
        _ => {}
    }
}

fn with_header(bytes: &[u8], place: &str, new: &Value) -> Vec<u8> {
    let change = |header: &str| {
        let mut header: Value = serde_json::from_str(header).unwrap();
        *header.pointer_mut(place).unwrap() = new.clone();
        header.to_string()
    };
    rewritten(bytes, change, |_, _, _| true)
}

/// The metadata of a file, and the names and lengths of its tensors.
fn content(bytes: &[u8]) -> (Value, Vec<(String, usize)>) {
    let (mut header, mut tensors) = (Value::Null, Vec::new());
    let read = |text: &str| {
        header = serde_json::from_str(text).unwrap();
        text.to_owned()
    };
    rewritten(bytes, read, |name, shape, _| {
        tensors.push((name.to_owned(), shape[0]));
        true
    });
    (header, tensors)
}

/// Sizes, counts and places in statistics that are wrong under a checksum that is right.
#[test]
fn wrong_sizes_in_statistics_are_refused() {
    let classes = Task::Classification { classes: 2 };
    // The passes are table, a round, weights, curvature, calibration.
    for (task, passes) in (0..5).map(|passes| (Task::Regression, passes)).chain([(classes, 0), (classes, 1)])
    {
        let (rounds, [one, other]) = small(task, passes);
        absorbed(&rounds, &[one.clone(), other.clone()]).unwrap();
        let refused = |what: &str, bytes: Vec<u8>| {
            let found = absorbed(&rounds, &[one.clone(), bytes]);
            assert!(found.is_err(), "{task:?} {:?}: {what}", rounds.next_pass());
        };
        let (header, tensors) = content(&other);
        let mut places = Vec::new();
        numbers(&header, "", &mut places);
        assert!(places.len() > 10 && tensors.len() == 9, "{places:?} {tensors:?}");
        for (place, own) in places {
            for new in [0, 1, own.wrapping_sub(1), own.wrapping_add(1), 1 << 40, 1 << 63, u64::MAX] {
                if new != own {
                    refused(&format!("{place} {new}"), with_header(&other, &place, &json!(new)));
                }
            }
        }
        refused("no widths", with_header(&other, "/widths", &Value::Null));
        refused("one edge of three chunks", with_header(&other, "/edges", &json!([[900, 2100, 0]])));
        for (own, length) in tensors {
            refused(&format!("no {own}"), rewritten(&other, str::to_owned, |name, _, _| name != own));
            for new in [0, length.saturating_sub(1), length + 1] {
                let change = |name: &str, shape: &mut Vec<usize>, data: &mut Vec<u8>| {
                    if name == own {
                        shape[0] = new;
                        data.resize(8 * new, 0);
                    }
                    true
                };
                if new != length {
                    refused(&format!("{own} {new}"), rewritten(&other, str::to_owned, change));
                }
            }
        }
    }
}

/// The same of what a model is to be.
#[test]
fn a_plan_that_cannot_be_is_refused() {
    for passes in [0, 1] {
        let (rounds, _) = small(Task::Regression, passes);
        let file = rounds.to_bytes().unwrap();
        let with = |place: &str, new: Value| {
            let change = |header: &str| {
                let mut header: Value = serde_json::from_str(header).unwrap();
                if passes == 0 {
                    *header["plan"].pointer_mut(place).unwrap() = new;
                } else {
                    let mut plan: Value =
                        serde_json::from_str(header["notes"]["rounds"].as_str().unwrap()).unwrap();
                    *plan.pointer_mut(place).unwrap() = new;
                    header["notes"]["rounds"] = plan.to_string().into();
                }
                header.to_string()
            };
            Rounds::from_bytes(&rewritten(&file, change, |_, _, _| true))
        };
        assert!(with("/weight", json!(7.0)).is_ok());
        let (table, first) = (json!({"pass": "table"}), json!({"pass": "round", "index": 1, "of": 1}));
        let mut wrong = vec![
            ("/pass", if passes == 0 { first } else { table }),
            ("/pass", json!({"pass": "round", "index": 0, "of": 1})),
            ("/pass", json!({"pass": "round", "index": 2, "of": 1})),
            ("/pass", json!({"pass": "round", "index": 1, "of": u64::MAX})),
            ("/rows", json!(u64::MAX)),
            ("/rows", json!(1_u64 << 49)),
            ("/weight", json!(-1.0)),
            ("/members", json!(0)),
            ("/members", json!(7)),
        ];
        if passes > 0 {
            wrong.push(("/rows", json!(0)));
            wrong.push(("/task", json!({"classification": {"classes": 3}})));
        }
        for (place, new) in wrong {
            assert!(with(place, new.clone()).is_err(), "{place} {new} behind {passes} passes");
        }
    }
}

/// The error that names a setting.
fn conflicts(settings: &ModelSettings, rounds: &RoundSettings, name: &str) {
    match Rounds::begin(settings, rounds, Task::Regression) {
        Err(Error::Conflict { first, .. }) => assert_eq!(first, name),
        other => panic!("{name}: {:?}", other.map(|_| "begun")),
    }
}

#[test]
fn settings_that_rounds_do_not_obey_are_refused_by_name() {
    type Change = fn(&mut ModelSettings, &mut FeedbackSettings);
    let changes: [(&str, Change); 13] = [
        ("time_limit", |s, _| s.time_limit = Some(60.0)),
        ("training.epochs", |s, _| s.training.epochs = 50),
        ("training.batch_size", |s, _| s.training.batch_size = Some(64)),
        ("training.batch_size", |s, _| s.training.batch_size = None),
        ("training.validation_fraction", |s, _| s.training.validation_fraction = 0.1),
        ("training.validation_fraction", |s, _| {
            (s.training.validation_fraction, s.training.patience) = (0.1, Some(3));
        }),
        ("rule.gain", |_, rule| rule.gain = 0.5),
        ("rule.damping", |_, rule| rule.damping = 0.1),
        ("rule.trust", |_, rule| rule.trust = 0.1),
        ("rule.rate", |_, rule| rule.rate = 0.1),
        ("rule.schedule", |_, rule| rule.schedule = Schedule::Cosine { first: 0.2, last: 0.1 }),
        ("rule.refresh_every", |_, rule| rule.refresh_every = 10),
        ("rule.whiten_input", |_, rule| rule.whiten_input = true),
    ];
    for (name, change) in changes {
        let mut settings = ModelSettings::fast();
        let Rule::Feedback(mut rule) = settings.rule.clone() else { panic!("another rule") };
        change(&mut settings, &mut rule);
        settings.rule = Rule::Feedback(rule);
        conflicts(&settings, &RoundSettings::default(), name);
    }
    let held_out = ModelSettings { calibration: Calibration::Holdout, ..ModelSettings::fast() };
    conflicts(
        &held_out,
        &RoundSettings { held_out: 0.0, ..RoundSettings::default() },
        "calibration = holdout",
    );
    let conformal = ModelSettings { calibration: Calibration::Conformal, ..ModelSettings::fast() };
    conflicts(&conformal, &RoundSettings::default(), "calibration = conformal");
    conflicts(&ModelSettings::paper(), &RoundSettings::default(), "rule = relaxation");
}

#[test]
fn settings_that_rounds_obey_or_that_are_the_default_are_taken() {
    let takes = |settings: &ModelSettings, rounds: &RoundSettings| {
        Rounds::begin(settings, rounds, Task::Regression).unwrap();
    };
    let default = RoundSettings::default();
    takes(&ModelSettings::default(), &default);
    takes(&ModelSettings::fast(), &default);
    let exact = Rule::Feedback(FeedbackSettings { scale_batches: false, ..FeedbackSettings::default() });
    takes(&ModelSettings { rule: exact, ..ModelSettings::fast() }, &default);
    takes(&ModelSettings { calibration: Calibration::Holdout, ..ModelSettings::fast() }, &default);
    // Rounds for epochs and their rows for batches, as Python gives them.
    let mut settings = ModelSettings::fast();
    (settings.training.epochs, settings.training.batch_size) = (7, Some(900));
    takes(&settings, &RoundSettings { rounds: 7, batch_rows: 900, ..RoundSettings::default() });
    settings.training.batch_size = None;
    takes(&settings, &RoundSettings { rounds: 7, batch_rows: 1 << 53, ..RoundSettings::default() });
}
