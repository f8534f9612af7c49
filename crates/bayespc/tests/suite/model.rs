//! The layer a user touches: one default, progress that can be watched and stopped, files, streams, small tables.

use bayespc::heads::HeadSettings;
use bayespc::model::{Control, Observer, Progress, Stage};
use bayespc::network::NetworkSettings;
use bayespc::real::Precision;
use bayespc::training::TrainingSettings;
use bayespc::{Error, Model, ModelSettings, Samples, Targets};
use faer::Mat;
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

/// y = x₀ + sin 2x₁ + noise, or noise alone.
fn table(n: usize, signal: f64, noise: f64, seed: u64) -> (Mat<f64>, Mat<f64>) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let x: Mat<f64> = Mat::from_fn(3, n, |_, _| rng.random_range(-2.0..2.0));
    let y = Mat::from_fn(1, n, |_, j| {
        let draw: f64 = StandardNormal.sample(&mut rng);
        signal * (x[(0, j)] + (2.0 * x[(1, j)]).sin()) + noise * draw
    });
    (x, y)
}

/// The default with small networks and few epochs, so that a test does not wait.
fn short() -> ModelSettings {
    let mut settings = ModelSettings::default();
    settings.training.epochs = 10;
    settings.search.widths = Vec::new();
    settings
}

fn samples<'a>(x: &'a Mat<f64>, y: &'a Mat<f64>) -> Samples<'a> {
    Samples::new(x, y).unwrap()
}

/// Writes down what it hears, and stops when told to.
struct Listener<F> {
    heard: Vec<Progress>,
    stop: F,
}

impl<F: FnMut(&Progress) -> bool + Send> Observer for Listener<F> {
    fn update(&mut self, progress: &Progress) -> Control {
        self.heard.push(*progress);
        if (self.stop)(progress) { Control::Stop } else { Control::Continue }
    }
}

#[test]
fn progress_names_its_stages_never_falls_and_ends_at_one() {
    let (x, y) = table(120, 1.0, 0.3, 1);
    let mut listener = Listener { heard: Vec::new(), stop: |_: &Progress| false };
    Model::fit_watched(&samples(&x, &y), &short(), &mut listener).unwrap();
    let heard = &listener.heard;
    assert_eq!(heard[0].stage, Stage::Search);
    assert!(heard[0].share < 0.01);
    assert!(heard.windows(2).all(|pair| pair[0].share <= pair[1].share));
    let last = heard[heard.len() - 1];
    assert_eq!(last.stage, Stage::Training);
    assert!(last.share > 0.95 && last.loss.is_some() && last.held_out.is_some(), "{last:?}");
    // The stages come one after the other.
    assert!(heard.windows(2).all(|pair| (pair[0].stage, pair[1].stage) != (Stage::Training, Stage::Search)));
}

#[test]
fn what_is_stopped_in_the_search_is_an_error_and_little_more_is_done() {
    let (x, y) = table(120, 1.0, 0.3, 2);
    let mut calls = 0;
    let stop = move |_: &Progress| {
        calls += 1;
        calls > 20
    };
    let mut listener = Listener { heard: Vec::new(), stop };
    let outcome = Model::fit_watched(&samples(&x, &y), &short(), &mut listener);
    assert!(matches!(outcome, Err(Error::Interrupted)));
    // One more report per thread at most.
    assert!(listener.heard.len() < 21 + 2 * rayon::current_num_threads(), "{}", listener.heard.len());
}

#[test]
fn a_network_that_is_stopped_is_kept_once_it_has_learned_a_tenth_of_its_epochs() {
    let (x, y) = table(64, 1.0, 0.3, 3);
    let settings = ModelSettings {
        training: TrainingSettings { epochs: 50, ..TrainingSettings::default() },
        ..ModelSettings::fast()
    };
    // Two batches an epoch.
    let stopped_after = |steps: usize| {
        let mut calls = 0;
        let stop = move |_: &Progress| {
            calls += 1;
            calls > steps
        };
        Model::fit_watched(&samples(&x, &y), &settings, &mut Listener { heard: Vec::new(), stop })
    };
    assert!(matches!(stopped_after(4), Err(Error::Interrupted)));
    let kept = stopped_after(60).unwrap();
    assert!(kept.was_interrupted());
    let epochs = kept.reports()[0].epochs;
    assert!((29..=31).contains(&epochs), "{epochs}");
    assert!(!Model::fit(&samples(&x, &y), &settings).unwrap().was_interrupted());
}

#[test]
fn networks_of_an_ensemble_differ_and_each_has_free_energies_of_its_own() {
    let (x, y) = table(150, 1.0, 0.5, 4);
    let model = Model::fit(&samples(&x, &y), &short()).unwrap();
    // Ten of each kind, one for each fold.
    let n = model.members().len();
    assert!(n.is_multiple_of(10) && (10..=40).contains(&n), "{n}");
    let energies = model.free_energy(&samples(&x, &y)).unwrap();
    for (member, energies) in model.members().iter().zip(&energies) {
        assert_eq!(energies.len(), member.network().layers().count());
    }
    let picked: usize = model.candidates().iter().map(|candidate| candidate.members).sum();
    assert_eq!(picked, n);
    // Each learned from other samples: no two are equal.
    let means: Vec<Mat<f64>> =
        model.members().iter().map(|m| m.network().layers().next().unwrap().mean().to_owned()).collect();
    assert!((1..n).all(|m| (0..m).all(|k| means[m] != means[k])));
    // The exact linear model is always among the candidates.
    assert!(model.candidates().iter().any(|candidate| candidate.hidden_layer_sizes.is_empty()));
}

#[test]
fn a_default_model_comes_back_from_its_file_and_goes_on_learning_the_same_way() {
    let (x, y) = table(120, 1.0, 0.3, 5);
    let mut model = Model::fit(&samples(&x, &y), &short()).unwrap();
    let bytes = model.to_bytes().unwrap();
    let mut loaded = Model::from_bytes(&bytes).unwrap();
    assert_eq!(loaded.to_bytes().unwrap(), bytes);
    // What was asked stays asked.
    assert_eq!(loaded.settings(), &short());
    assert_eq!(loaded.candidates(), model.candidates());
    let steps: Vec<u64> = model.members().iter().map(|member| member.feedback.1).collect();
    let (more, target) = table(40, 1.0, 0.3, 6);
    for model in [&mut model, &mut loaded] {
        model.partial_fit(&samples(&more, &target)).unwrap();
    }
    assert_eq!(model.to_bytes().unwrap(), loaded.to_bytes().unwrap());
    for (member, before) in model.members().iter().zip(steps) {
        assert!(member.network().hidden().is_empty() || member.feedback.1 > before);
    }
}

#[test]
fn a_file_keeps_the_counts_of_networks_that_trained_for_different_times() {
    let (x, y) = table(64, 1.0, 0.3, 7);
    // With early stopping on so few samples the networks end at different epochs.
    let settings = ModelSettings {
        network: NetworkSettings { hidden_layer_sizes: vec![6], ..NetworkSettings::default() },
        training: TrainingSettings {
            epochs: 40,
            validation_fraction: 0.3,
            patience: Some(1),
            validate_every: 1,
            ..TrainingSettings::default()
        },
        members: 4,
        ..ModelSettings::fast()
    };
    let model = Model::fit(&samples(&x, &y), &settings).unwrap();
    let counts: Vec<u64> = model.members().iter().map(|member| member.feedback.1).collect();
    assert!(counts.iter().any(|&count| count != counts[0]), "{counts:?}");
    let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    let read: Vec<u64> = loaded.members().iter().map(|member| member.feedback.1).collect();
    assert_eq!(read, counts);
}

#[test]
fn a_stream_in_single_precision_is_one_and_close_to_double() {
    let (x, y) = table(200, 1.0, 0.3, 8);
    let streamed = |precision| {
        let settings = ModelSettings { precision, ..ModelSettings::fast() };
        let mut model = Model::for_stream(&samples(&x, &y), &settings).unwrap();
        for _ in 0..3 {
            model.partial_fit(&samples(&x, &y)).unwrap();
        }
        model.predict(&x).unwrap().mean()
    };
    let gap = (streamed(Precision::F32) - streamed(Precision::F64)).norm_max();
    assert!(gap > 0.0 && gap < 1e-3, "{gap}");
}

#[test]
fn a_warm_start_forgets_what_the_first_fit_had_to_say() {
    let x = Mat::from_fn(1, 30, |_, j| j as f64);
    let constant = Mat::from_fn(1, 30, |_, _| 3.0);
    let mut settings = ModelSettings::fast();
    settings.training.epochs = 3;
    let mut first = Model::fit(&samples(&x, &constant), &settings).unwrap();
    assert!(first.warnings()[0].contains("one value"), "{:?}", first.warnings());
    first.notes_mut().insert("data".to_owned(), "old".to_owned());
    let again = first.refit(&samples(&x, &x), &settings).unwrap();
    assert!(again.warnings().is_empty() && again.notes().is_empty());
}

#[test]
fn a_network_beyond_memory_is_refused_before_anything_is_allocated() {
    let (x, y) = table(30, 1.0, 0.3, 9);
    for width in [3_000_000, 99_999_999_999] {
        let mut settings = ModelSettings::fast();
        settings.network.hidden_layer_sizes = vec![width];
        let refused = Model::fit(&samples(&x, &y), &settings).unwrap_err();
        assert!(refused.to_string().contains("hidden_layer_sizes"), "{refused}");
        assert!(matches!(refused, Error::TooLarge { .. }));
        assert!(matches!(Model::for_stream(&samples(&x, &y), &settings), Err(Error::TooLarge { .. })));
    }
}

#[test]
fn one_sample_gives_a_model_that_says_how_little_it_knows() {
    let x = Mat::from_fn(1, 2, |_, j| j as f64);
    let one = Samples::new(x.subcols(0, 1), x.subcols(0, 1)).unwrap();
    let model = Model::fit(&one, &ModelSettings::default()).unwrap();
    assert!(model.warnings()[0].contains("one sample"), "{:?}", model.warnings());
    let model = Model::fit(&samples(&x, &x), &ModelSettings::default()).unwrap();
    assert!(model.predict(&x).unwrap().std().norm_max().is_finite());
}

#[test]
fn a_handful_of_samples_gets_the_linear_model_of_largest_evidence() {
    let mut rng = ChaCha8Rng::seed_from_u64(10);
    let x = Mat::from_fn(2, 15, |_, _| rng.random_range(-1.0..1.0));
    let fitted = |noise: f64| {
        let mut rng = ChaCha8Rng::seed_from_u64(11);
        let y = Mat::from_fn(1, 15, |_, j| {
            let draw: f64 = StandardNormal.sample(&mut rng);
            x[(0, j)] + noise * draw
        });
        Model::fit(&samples(&x, &y), &ModelSettings::default()).unwrap()
    };
    let var = |model: &Model| {
        assert!(model.members().iter().all(|member| member.network().hidden().is_empty()));
        model.members()[0].network().settings().prior.var
    };
    // A clear line asks for a wide prior, noise for a narrow one.
    assert!(var(&fitted(0.05)) > var(&fitted(20.0)));
}

#[test]
fn a_table_of_noise_gives_intervals_of_the_right_width() {
    let (x, y) = table(300, 0.0, 2.0, 12);
    let model = Model::fit(&samples(&x, &y), &ModelSettings::default()).unwrap();
    let (new, truth) = table(4000, 0.0, 2.0, 13);
    let predictive = model.predict(&new).unwrap();
    let covered = bayespc::metrics::interval_coverage(&predictive, truth.as_ref(), 0.9).unwrap();
    // The noise of 300 samples is known to 4 %, which moves coverage by 0.014; new samples add 0.005.
    assert!((covered - 0.9).abs() < 3.0 * 0.015, "{covered}");
    let spread = bayespc::metrics::rmse(predictive.mean().as_ref(), Mat::zeros(1, 4000).as_ref()).unwrap();
    assert!(spread < 0.5, "the mean wanders by {spread} where there is nothing to learn");
}

#[test]
fn a_sample_of_weight_two_is_two_samples_and_one_of_weight_zero_is_none() {
    let (x, y) = table(24, 1.0, 0.3, 14);
    let twice = |m: &Mat<f64>| Mat::from_fn(m.nrows(), 25, |i, j| m[(i, if j == 24 { 5 } else { j })]);
    let mut weights = vec![1.0; 24];
    weights[5] = 2.0;
    let weighted = samples(&x, &y).weighted(&weights).unwrap();
    let fit = |samples: &Samples<'_>| Model::fit(samples, &short()).unwrap().predict(&x).unwrap().mean();
    let (x2, y2) = (twice(&x), twice(&y));
    assert_eq!(fit(&weighted), fit(&samples(&x2, &y2)));
    weights[5] = 0.0;
    let absent = samples(&x, &y).weighted(&weights).unwrap();
    let rest: Vec<usize> = (0..24).filter(|&j| j != 5).collect();
    let pick = |m: &Mat<f64>| Mat::from_fn(m.nrows(), 23, |i, j| m[(i, rest[j])]);
    let (x3, y3) = (pick(&x), pick(&y));
    assert_eq!(fit(&absent), fit(&samples(&x3, &y3)));
}

#[test]
fn samples_are_the_same_from_rows_columns_and_matrices() {
    let (x, y) = table(30, 1.0, 0.3, 15);
    let rows: Vec<f64> = (0..30).flat_map(|j| (0..3).map(move |i| (i, j))).map(|at| x[at]).collect();
    let columns: Vec<f64> = (0..3).flat_map(|i| (0..30).map(move |j| (i, j))).map(|at| x[at]).collect();
    let target: Vec<f64> = (0..30).map(|j| y[(0, j)]).collect();
    let fit = |samples: &Samples<'_>| {
        let mut settings = ModelSettings::fast();
        settings.training.epochs = 3;
        Model::fit(samples, &settings).unwrap().to_bytes().unwrap()
    };
    let expected = fit(&samples(&x, &y));
    assert_eq!(fit(&Samples::from_rows(&rows, 3, &target).unwrap()), expected);
    assert_eq!(fit(&Samples::from_columns(&columns, 3, &target).unwrap()), expected);
    assert!(matches!(Samples::from_rows(&rows, 4, &target), Err(Error::Shape { what: "input", .. })));
}

#[test]
fn wrong_samples_are_refused_by_name() {
    let (x, y) = table(5, 1.0, 0.3, 16);
    let mut bad = x.clone();
    bad[(1, 3)] = f64::NAN;
    assert!(matches!(Samples::new(&bad, &y), Err(Error::NotFinite { row: 3, column: 1, .. })));
    assert!(matches!(Samples::new(x.subcols(0, 4), &y), Err(Error::Shape { what: "target", .. })));
    let none = Mat::<f64>::zeros(2, 0);
    assert!(matches!(Samples::new(&none, &Mat::zeros(1, 0)), Err(Error::Empty { .. })));
    assert!(matches!(samples(&x, &y).weighted(&[1.0; 4]), Err(Error::Shape { what: "sample weights", .. })));
    assert!(samples(&x, &y).weighted(&[0.0; 5]).is_err());
    let labels = [0, 1, 4, 1, 0];
    let wrong = Targets::Classes { labels: &labels, classes: 3 };
    assert!(matches!(Samples::new(&x, wrong), Err(Error::Label { label: 4, row: 2, classes: 3 })));
}

#[test]
fn classes_are_tried_as_codes_and_as_logits() {
    let (x, _) = table(80, 0.0, 1.0, 17);
    let labels: Vec<usize> = (0..80).map(|j| usize::from(x[(0, j)] > 0.2)).collect();
    let samples = Samples::new(&x, Targets::classes(&labels)).unwrap();
    let model = Model::fit(&samples, &short()).unwrap();
    let tried = |wanted: fn(&HeadSettings) -> bool| model.candidates().iter().any(|c| wanted(&c.head));
    assert!(tried(|head| matches!(head, HeadSettings::Gaussian(_))));
    assert!(tried(|head| matches!(head, HeadSettings::Categorical(_))));
    // A temperature set by hand is not fitted over.
    let by_hand = ModelSettings { temperature: 3.0, ..short() };
    let model = Model::fit(&samples, &by_hand).unwrap();
    assert!(model.members().iter().all(|member| member.temperature == 1.0));
    assert_eq!(model.temperature(), 3.0);
}

#[test]
fn no_class_is_impossible_after_so_many_samples_nor_after_more() {
    let n = 120;
    let (x, _) = table(2 * n, 0.0, 1.0, 23);
    // Three classes that nobody could take for another.
    let x = Mat::from_fn(3, 2 * n, |i, j| x[(i, j)] + if i == 0 { 20.0 * (j % 3) as f64 } else { 0.0 });
    let labels: Vec<usize> = (0..2 * n).map(|j| j % 3).collect();
    let part = |first: usize| {
        Samples::new(x.subcols(first, n), Targets::classes(&labels[first..first + n])).unwrap()
    };
    let mut model = Model::fit(&part(0), &short()).unwrap();
    // One network in ½/(n + 1) says a third to each; all others say what they say.
    let least = 0.5 / (n as f64 + 1.0) / 3.0;
    for round in 0..2 {
        let p = model.predict(x.as_ref()).unwrap().class_probabilities(model.temperature()).unwrap();
        for (j, &label) in labels.iter().enumerate() {
            assert!((0..3).all(|k| p[(k, j)] > 0.999 * least), "round {round}, row {j}");
            assert!(p[(label, j)] > 0.97, "round {round}, row {j}");
        }
        let smallest = (0..2 * n).map(|j| p[((j + 2) % 3, j)]).fold(1.0, f64::min);
        assert!(smallest < 1.5 * least, "round {round}: {smallest}");
        model.partial_fit(&part(n)).unwrap();
    }
}

#[test]
fn the_same_seed_makes_the_same_choice() {
    let (x, y) = table(100, 1.0, 0.3, 18);
    let fit = || Model::fit(&samples(&x, &y), &short()).unwrap().to_bytes().unwrap();
    assert_eq!(fit(), fit());
}

#[test]
fn an_interruption_after_two_folds_keeps_their_networks() {
    let (x, y) = table(200, 1.0, 0.3, 19);
    let mut in_training = 0;
    // Long enough in the last stage for a third fold of some kinds.
    let stop = move |progress: &Progress| {
        in_training += usize::from(progress.stage == Stage::Training);
        in_training > 20
    };
    let mut listener = Listener { heard: Vec::new(), stop };
    let model = Model::fit_watched(&samples(&x, &y), &short(), &mut listener).unwrap();
    assert!(model.was_interrupted());
    let n = model.members().len();
    assert!((2..40).contains(&n), "{n}");
    assert!(model.spread().is_some() && model.predict(&x).unwrap().std().norm_max().is_finite());
}

#[test]
fn folds_tell_how_good_a_model_is_before_anything_else_does() {
    let (x, y) = table(400, 1.0, 0.5, 20);
    let model = Model::fit(&samples(&x, &y), &ModelSettings::default()).unwrap();
    let told = model.held_out().unwrap();
    let (new, truth) = table(4000, 1.0, 0.5, 21);
    let predictive = model.predict(&new).unwrap();
    let density = bayespc::metrics::log_predictive_density(&predictive, truth.as_ref()).unwrap();
    let error = bayespc::metrics::rmse(predictive.mean().as_ref(), truth.as_ref()).unwrap();
    // 400 samples tell the error of the noise to 4 %; all networks together are a little better than each.
    assert!(error < 1.08 * told.rmse[0] && error > 0.85 * told.rmse[0], "{error} {told:?}");
    assert!((density - told.log_density).abs() < 0.15, "{density} {told:?}");
    let covered = bayespc::metrics::interval_coverage(&predictive, truth.as_ref(), 0.9).unwrap();
    assert!((0.86..0.95).contains(&covered), "{covered}");
    assert!((error - 0.5).abs() < 0.06, "{error}");
}

/// Exponential noise: a quarter of a nat is to be had, and intervals are not around the mean.
#[test]
fn noise_that_leans_is_followed_and_noise_that_does_not_is_left_alone() {
    let leaning = |n: usize, seed: u64| {
        let (x, mut y) = table(n, 1.0, 0.0, seed);
        let mut rng = ChaCha8Rng::seed_from_u64(1000 + seed);
        (0..n).for_each(|j| y[(0, j)] += 0.5 * (-rng.random::<f64>().ln() - 1.0));
        (x, y)
    };
    let (x, y) = leaning(400, 30);
    let model = Model::fit(&samples(&x, &y), &short()).unwrap();
    let skew = model.spread().unwrap().skew.expect("exponential noise leans");
    assert!(skew.skewness() > 0.3, "{skew:?}");
    let (new, truth) = leaning(3000, 31);
    let predictive = model.predict(&new).unwrap();
    let below = |p: f64| {
        let quantile = &predictive.quantile(&[p]).unwrap()[0];
        (0..3000).filter(|&j| truth[(0, j)] <= quantile[(0, j)]).count() as f64 / 3000.0
    };
    // 400 samples say where quantiles are to two standard errors of .025; symmetric ones miss the lowest by .05 and more.
    for p in [0.05, 0.25, 0.5, 0.75, 0.95] {
        assert!((below(p) - p).abs() < 0.05, "{p}: {}", below(p));
    }
    // The file keeps it, and what it leaves alone is as it was.
    let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    let quantile = |model: &Model| model.predict(&new).unwrap().quantile(&[0.05]).unwrap();
    assert_eq!(quantile(&again), quantile(&model));
    let (x, y) = table(400, 1.0, 0.5, 20);
    assert_eq!(Model::fit(&samples(&x, &y), &short()).unwrap().spread().unwrap().skew, None);
}

#[test]
fn few_networks_are_trained_on_all_samples_and_speak_of_the_same_noise() {
    let (x, y) = table(150, 1.0, 0.5, 22);
    let settings = ModelSettings { members: 2, ..short() };
    let model = Model::fit(&samples(&x, &y), &settings).unwrap();
    assert_eq!(model.members().len(), 2);
    assert!(model.spread().is_some());
    assert_eq!(model.candidates().iter().map(|c| c.members).sum::<usize>(), 2);
    // Asked for more, there are twice as many of each kind, since the samples are few.
    let model = Model::fit(&samples(&x, &y), &ModelSettings { members: 10, ..short() }).unwrap();
    assert_eq!(model.members().len() % 20, 0);
}

#[test]
fn networks_that_learn_from_all_samples_take_the_place_of_the_folds() {
    let (x, y) = table(150, 1.0, 0.5, 22);
    let folds = Model::fit(&samples(&x, &y), &short()).unwrap();
    let mut settings = short();
    settings.search.refit = 3;
    let all = Model::fit(&samples(&x, &y), &settings).unwrap();
    assert_eq!(all.members().len(), 3);
    // The folds have chosen, and what they say of the model is the same.
    assert_eq!(all.candidates().len(), folds.candidates().len());
    let density = |model: &Model| model.candidates().iter().map(|c| c.density).collect::<Vec<_>>();
    assert_eq!(density(&all), density(&folds));
    assert!(all.spread().is_some());
    settings.search.refit = 20_000;
    assert!(Model::fit(&samples(&x, &y), &settings).unwrap_err().to_string().contains("search.refit"));
}

#[test]
fn codes_survive_the_file_and_extrapolate_as_lines() {
    let (x, y) = table(300, 1.0, 0.2, 23);
    let mut settings = short();
    settings.search.bins = vec![8];
    settings.search.linear_vars = Vec::new();
    let model = Model::fit(&samples(&x, &y), &settings).unwrap();
    assert_eq!(model.codes().keys().copied().collect::<Vec<_>>(), [8]);
    assert!(model.members().iter().all(|member| member.bins == 8));
    let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    let far = Mat::from_fn(3, 4, |i, j| if i == 0 { 2.0 + 20.0 * j as f64 } else { 0.1 });
    let predictive = loaded.predict(&far).unwrap();
    assert_eq!(predictive.mean(), model.predict(&far).unwrap().mean());
    // Beyond the data the mean is a line up to what silu networks bend, and less and less is known.
    let std = predictive.std();
    assert!((1..4).all(|j| std[(0, j)] > std[(0, j - 1)]), "{std:?}");
    assert!(std[(0, 3)] > 3.0 * std[(0, 0)], "{std:?}");
}

#[test]
fn a_limit_that_is_not_reached_changes_nothing() {
    let (x, y) = table(60, 1.0, 0.3, 5);
    let all = Model::fit(&samples(&x, &y), &short()).unwrap();
    let settings = ModelSettings { time_limit: Some(1e6), ..short() };
    let limited = Model::fit(&samples(&x, &y), &settings).unwrap();
    assert_eq!(all.predict(&x).unwrap().mean(), limited.predict(&x).unwrap().mean());
    assert_eq!(all.spread(), limited.spread());
    assert_eq!(limited.warnings(), all.warnings());
}

#[test]
fn when_the_time_is_up_the_best_that_was_trained_is_kept_and_a_warning_says_so() {
    let (x, y) = table(300, 1.0, 0.3, 6);
    let mut settings = ModelSettings { time_limit: Some(5.0), ..short() };
    // Days of work, but for the linear models.
    settings.training.epochs = 1_000_000;
    let begun = std::time::Instant::now();
    let model = Model::fit(&samples(&x, &y), &settings).unwrap();
    assert!(begun.elapsed().as_secs() < 60);
    assert!(!model.was_interrupted());
    assert!(model.warnings().iter().any(|warning| warning.contains("time limit of 5 s")));
    // The linear part of the truth is known: better than a constant by far.
    let (new, truth) = table(500, 1.0, 0.3, 7);
    let rmse = bayespc::metrics::rmse(model.predict(&new).unwrap().mean().as_ref(), truth.as_ref()).unwrap();
    assert!(rmse < 0.9, "{rmse}");

    settings.time_limit = Some(1e-9);
    let error = Model::fit(&samples(&x, &y), &settings).unwrap_err();
    assert!(matches!(error, Error::TimeLimit { .. }), "{error}");
    settings.time_limit = Some(0.0);
    assert!(Model::fit(&samples(&x, &y), &settings).unwrap_err().to_string().contains("time_limit"));
}

/// y = exp(x₀ + sin 2x₁ + noise), over a factor of hundreds.
fn multiplied(n: usize, noise: f64, seed: u64) -> (Mat<f64>, Mat<f64>) {
    let (x, y) = table(n, 1.5, noise, seed);
    let y = Mat::from_fn(1, n, |_, j| y[(0, j)].exp());
    (x, y)
}

#[test]
fn a_target_of_many_sizes_is_learned_by_its_logarithm_too() {
    let (x, y) = multiplied(300, 0.2, 30);
    let (new, truth) = multiplied(2000, 0.2, 31);
    let density = |settings: &ModelSettings| {
        let model = Model::fit(&samples(&x, &y), settings).unwrap();
        let predictive = model.predict(&new).unwrap();
        let covered = bayespc::metrics::interval_coverage(&predictive, truth.as_ref(), 0.9).unwrap();
        let density = bayespc::metrics::log_predictive_density(&predictive, truth.as_ref()).unwrap();
        (density, covered, model)
    };
    let (with, covered, model) = density(&short());
    assert!(model.members().iter().any(|member| member.curve.is_some()));
    assert!(model.candidates().iter().any(|candidate| candidate.log_target && candidate.members > 0));
    let mut settings = short();
    settings.search.log_target = false;
    let (without, _, plain) = density(&settings);
    assert!(plain.members().iter().all(|member| member.curve.is_none()));
    assert!(with > without + 0.2, "{with} {without}");
    assert!((0.84..0.96).contains(&covered), "{covered}");
    // The densities that folds tell are those of the target, not of its logarithm.
    let told = model.held_out().unwrap();
    assert!((told.log_density - with).abs() < 0.3, "{told:?} {with}");

    // The file keeps it to the bit; a stream and a warm start go on with it.
    let mut again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(again.predict(&new).unwrap().mean(), model.predict(&new).unwrap().mean());
    let (more, targets) = multiplied(200, 0.2, 32);
    again.partial_fit(&samples(&more, &targets)).unwrap();
    let error = |model: &Model| {
        let log = |y: Mat<f64>| Mat::from_fn(1, y.ncols(), |_, j| y[(0, j)].max(1e-3).ln());
        bayespc::metrics::rmse(log(model.predict(&new).unwrap().mean()).as_ref(), log(truth.clone()).as_ref())
            .unwrap()
    };
    assert!(error(&again) < 1.1 * error(&model), "{} {}", error(&again), error(&model));
    // Far outside it is a line, not an explosion.
    let far = Mat::from_fn(3, 1, |_, _| 1e3);
    assert!(model.predict(&far).unwrap().mean()[(0, 0)].abs() < 1e7);
    assert!(again.free_energy(&samples(&more, &targets)).is_ok());
}
