//! Same seed, same bits, whatever the number of threads; another seed, another result.

use crate::common::{normal, rng};
use bayespc::base::linalg::cast;
use bayespc::data::Dataset;
use bayespc::heads::{HeadSettings, VarianceNode};
use bayespc::inference::{FeedbackSettings, RelaxationSettings};
use bayespc::learners::{Bpc, Learner, Rule};
use bayespc::network::{CovarianceRule, Network, NetworkSettings};
use bayespc::prediction::{Method, predict};
use bayespc::training::{Silent, TrainingSettings, fit, init_rng};
use bayespc::{Activation, Real};
use faer::Mat;
use rayon::ThreadPoolBuilder;

/// `work` in pools of 1, 2 and 4 threads.
fn with_threads<R: Send>(work: impl Fn() -> R + Sync) -> [R; 3] {
    [1, 2, 4].map(|threads| {
        let pool = ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(&work)
    })
}

fn bits(matrices: &[Mat<f64>]) -> Vec<u64> {
    matrices
        .iter()
        .flat_map(|m| m.col_iter().flat_map(|column| column.iter().map(|x| x.to_bits()).collect::<Vec<_>>()))
        .collect()
}

fn predicted<T: Real>(network: &Network<T>, method: Method) -> Vec<u64> {
    // More samples than any predictor handles in one task.
    let input = cast::<f64, T>(normal(3, 600, &mut rng(1)).as_ref());
    let target = normal(2, 600, &mut rng(2));
    let predictive = predict(network, input.as_ref(), method).unwrap();
    let density = predictive.log_density(target.as_ref()).unwrap();
    let density = Mat::from_fn(1, density.len(), |_, j| density[j]);
    bits(&[predictive.mean(), predictive.aleatoric_variance(), predictive.epistemic_variance(), density])
}

fn methods(seed: u64) -> [Method; 4] {
    [
        Method::Mean,
        Method::Linearised,
        Method::Moments { covariance: CovarianceRule::Exact },
        Method::MonteCarlo { draws: 9, seed, layer_noise: true },
    ]
}

fn check_predictions<T: Real>() {
    let mut network =
        crate::common::network(&[3, 7, 5, 2], Activation::Relu, &NetworkSettings::default(), &mut rng(0));
    network.set_hidden_noise(true);
    let network = network.to_precision::<T>().unwrap();
    for method in methods(4) {
        let [one, two, four] = with_threads(|| predicted(&network, method));
        assert!(one == two && one == four, "{method:?} depends on the number of threads");
        assert!(one == predicted(&network, method), "{method:?} is not repeatable");
    }
    assert_ne!(predicted(&network, methods(4)[3]), predicted(&network, methods(5)[3]));
}

#[test]
fn predictions_do_not_depend_on_the_number_of_threads_in_f64() {
    check_predictions::<f64>();
}

#[test]
fn predictions_do_not_depend_on_the_number_of_threads_in_f32() {
    check_predictions::<f32>();
}

/// Natural parameters of every layer after a short training run.
fn trained<T: Real>(
    rule: &Rule,
    settings: &NetworkSettings,
    (samples, batches): (usize, usize),
    seed: u64,
) -> Vec<u64> {
    let mut data_rng = rng(9);
    let input = normal(20, samples, &mut data_rng);
    let target = Mat::from_fn(1, samples, |_, j| input[(0, j)].sin() + 0.3 * input[(1, j)]);
    let (input, target) = (cast::<f64, T>(input.as_ref()), cast::<f64, T>(target.as_ref()));
    let network = Network::<T>::new(settings, 20, 1, &mut init_rng(seed)).unwrap();
    let mut learner: Box<dyn Learner<T>> = Box::new(Bpc::new(network, rule.clone()).unwrap());
    let training = TrainingSettings {
        epochs: 1,
        batch_size: Some(samples / batches),
        seed,
        ..TrainingSettings::default()
    };
    let data = Dataset::new(input.as_ref(), target.as_ref()).unwrap();
    fit(learner.as_mut(), &data, &training, &mut Silent).unwrap();
    let weights = learner.mean_network().unwrap().weights;
    let predictive = learner.predict(input.as_ref(), Method::Linearised).unwrap();
    let mut all: Vec<Mat<f64>> = weights.iter().map(|w| cast(w.as_ref())).collect();
    all.extend([predictive.mean(), predictive.variance()]);
    bits(&all)
}

fn check_training<T: Real>() {
    let wide = NetworkSettings {
        // Wide enough to share a batch out between threads.
        hidden_layer_sizes: vec![180, 160],
        ..NetworkSettings::default()
    };
    let narrow = NetworkSettings { hidden_layer_sizes: vec![12, 8], ..NetworkSettings::default() };
    let variance_node =
        NetworkSettings { head: HeadSettings::VarianceNode(VarianceNode::default()), ..narrow.clone() };
    let feedback = Rule::Feedback(FeedbackSettings::default());
    let stale = RelaxationSettings { refresh_every: 5, ..RelaxationSettings::tied() };
    let whitened = Rule::Relaxation(RelaxationSettings { whiten_input: true, ..stale.clone() });
    let stale = Rule::Relaxation(stale);
    let cases = [
        (&feedback, &wide, (300, 2)),
        (&feedback, &variance_node, (600, 2)),
        (&Rule::Relaxation(RelaxationSettings::paper()), &narrow, (300, 2)),
        (&Rule::Relaxation(RelaxationSettings::tied()), &narrow, (300, 2)),
        // Enough batches for some of them to meet factors that are not new.
        (&stale, &wide, (1200, 12)),
        (&whitened, &wide, (1200, 12)),
    ];
    for (rule, settings, samples) in cases {
        let [one, two, four] = with_threads(|| trained::<T>(rule, settings, samples, 0));
        assert!(one == two && one == four, "{rule:?} depends on the number of threads");
        assert!(one == trained::<T>(rule, settings, samples, 0), "{rule:?} is not repeatable");
        assert!(one != trained::<T>(rule, settings, samples, 1), "{rule:?} ignores the seed");
    }
}

#[test]
fn training_does_not_depend_on_the_number_of_threads_in_f64() {
    check_training::<f64>();
}

#[test]
fn training_does_not_depend_on_the_number_of_threads_in_f32() {
    check_training::<f32>();
}
