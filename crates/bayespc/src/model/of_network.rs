//! A model of a network that somebody has trained by hand: it then has a file, and everything else a model has.

use std::collections::BTreeMap;

use super::ensemble::{Ensemble, Member, MemberPlan};
use super::model::Model;
use super::settings::ModelSettings;
use crate::data::{Standardiser, Task};
use crate::error::{Error, Result};
use crate::heads::HeadSettings;
use crate::learners::Bpc;
use crate::training::TrainingReport;

impl Model {
    /// A model of one network, `steps` batches into its training. `scaling` says how inputs and targets became what it
    /// was trained on: [`Standardiser::identity`] if they were taken as they are. The network is a copy in which every
    /// natural parameter is up to date; the rows it represents are those of its output layer.
    pub fn of_network(
        learner: &Bpc<f64>,
        steps: u64,
        task: Task,
        (input_scaling, target_scaling): (Standardiser, Standardiser),
    ) -> Result<Self> {
        let feedback = learner.feedback_state();
        let network = learner.clone().into_network()?;
        input_scaling.validate(network.d_input())?;
        target_scaling.validate(network.n_targets())?;
        match task {
            Task::Classification { classes } if classes != network.n_targets() => {
                let (found, expected) = (classes, network.n_targets());
                return Err(Error::Shape { what: "the network's output", axis: "classes", found, expected });
            }
            Task::Regression if matches!(network.settings().head, HeadSettings::Categorical(_)) => {
                return Err(Error::Conflict { first: "head.kind = categorical", second: "regression" });
            }
            _ => {}
        }
        let settings = ModelSettings {
            network: network.settings().clone(),
            rule: learner.rule().clone(),
            ..ModelSettings::fast()
        };
        let n_seen = network.output().blocks().first().map_or(0.0, |block| {
            // An update that does not scale batches by N may count less than the prior's own.
            block.samples_seen().max(0.0)
        });
        let plan = MemberPlan::new(settings.network.clone(), &settings.training, 0);
        let member = Member::new(network, &plan, feedback, steps, TrainingReport::none());
        let codes = BTreeMap::new();
        let ensemble = Ensemble { task, input_scaling, target_scaling, codes, members: vec![member] };
        Ok(Self::of(&settings, ensemble, n_seen))
    }
}

#[cfg(test)]
mod tests {
    use faer::Mat;

    use super::*;
    use crate::data::Dataset;
    use crate::learners::{Learner, Rule, Step};
    use crate::network::{Network, NetworkSettings};
    use crate::prediction::{self, Method};
    use crate::training::init_rng;

    #[test]
    fn a_network_trained_by_hand_predicts_the_same_from_its_file() {
        let x = Mat::from_fn(2, 60, |i, j| ((1 + i) as f64 * 0.7 * j as f64).sin());
        let y = Mat::from_fn(1, 60, |_, j| x[(0, j)] * x[(1, j)]);
        let settings = NetworkSettings { hidden_layer_sizes: vec![6], ..NetworkSettings::default() };
        let network = Network::new(&settings, 2, 1, &mut init_rng(0)).unwrap();
        let mut learner = Bpc::new(network, Rule::default()).unwrap();
        let data = Dataset::new(x.as_ref(), y.as_ref()).unwrap();
        for index in 1..=20 {
            let step = Step { index, total: Some(20), n_total: 60.0, full_batch: true };
            learner.learn(&data, &step, &mut init_rng(0)).unwrap();
        }
        learner.finish(&data).unwrap();
        let same = (Standardiser::identity(2), Standardiser::identity(1));
        let model = Model::of_network(&learner, 20, Task::Regression, same).unwrap();
        let again = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
        let expected = prediction::predict(learner.network(), x.as_ref(), Method::Linearised).unwrap();
        let found = again.predict(&x).unwrap();
        // A layer keeps η and solves M = η₂ η₁⁻¹ anew.
        assert!((found.mean() - expected.mean()).norm_max() < 1e-10);
        assert!((found.std() - expected.std()).norm_max() < 1e-10);
        assert_eq!((again.members()[0].steps, again.n_seen()), (20, 60.0));

        // In other units it says the same of the same rows.
        let units = (
            Standardiser { offset: vec![5.0, -1.0], scale: vec![2.0, 0.1] },
            Standardiser { offset: vec![100.0], scale: vec![10.0] },
        );
        let raw = units.0.undo(x.as_ref()).unwrap();
        let model = Model::of_network(&learner, 20, Task::Regression, units).unwrap();
        let mean = model.predict(&raw).unwrap().mean();
        for j in 0..60 {
            assert!((mean[(0, j)] - 100.0 - 10.0 * expected.mean()[(0, j)]).abs() < 1e-8);
        }

        let short = (Standardiser::identity(1), Standardiser::identity(1));
        assert!(matches!(
            Model::of_network(&learner, 0, Task::Regression, short),
            Err(Error::Shape { found: 1, expected: 2, .. })
        ));
        let same = (Standardiser::identity(2), Standardiser::identity(1));
        let three = Task::Classification { classes: 3 };
        assert!(matches!(
            Model::of_network(&learner, 0, three, same),
            Err(Error::Shape { axis: "classes", .. })
        ));
    }
}
