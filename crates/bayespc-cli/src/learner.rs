//! The learners `evaluate` compares, behind one function: train on one part, predict the other.

use std::time::Instant;

use anyhow::Result;
use bayespc::data::Standardiser;
use bayespc::data::{Dataset, one_hot};
use bayespc::heads::HeadSettings;
use bayespc::learners::{
    BackpropSettings, BayesByBackpropSettings, LearnerSettings, PredictiveCodingSettings,
    RandomFeaturesSettings,
};
use bayespc::model::{InputScaling, Model, ModelSettings};
use bayespc::prediction::Method;
use bayespc::training::{self, Silent, TrainingSettings};
use bayespc_data::Targets;
use clap::ValueEnum;
use faer::Mat;

use crate::input::Parts;
use crate::scores::Predictions;

/// What to train.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LearnerArg {
    /// Bayesian predictive coding
    Bpc,
    /// Predictive coding: point weights
    Pc,
    /// Backpropagation: point weights
    Backprop,
    /// Bayes by backprop: independent normal weights
    Bbb,
    /// One conjugate Bayesian layer on 300 random features
    RandomFeatures,
}

/// Predictions of the test part, and how long they took.
pub struct Timed {
    /// Predictions, in the units of the data.
    pub predictions: Predictions,
    /// What targets were divided by in training.
    pub scale: Vec<f64>,
    /// Seconds to train.
    pub seconds_fit: f64,
    /// Seconds to predict.
    pub seconds_predict: f64,
}

impl LearnerArg {
    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Bpc => "bpc",
            Self::Pc => "pc",
            Self::Backprop => "backprop",
            Self::Bbb => "bbb",
            Self::RandomFeatures => "random-features",
        }
    }

    /// What the learner needs instead of the settings of Bayesian predictive coding: the baselines know constant
    /// noise alone, and Bayes by backprop learns slowly, in batches of 100, and is read by 20 draws, as in the
    /// paper.
    pub fn defaults(self, mut settings: ModelSettings) -> ModelSettings {
        if self != Self::Bpc {
            settings.network.head = HeadSettings::default();
        }
        if self == Self::Bbb {
            settings.training.epochs = 500;
            settings.training.batch_size = Some(100);
            settings.method = Method::MonteCarlo { draws: 20, seed: 0, layer_noise: false };
        }
        settings
    }

    /// Train on one part, predict the other.
    pub fn train_and_predict(
        self,
        parts: &Parts,
        classes: Option<&[String]>,
        settings: &ModelSettings,
    ) -> Result<Timed> {
        let mut settings = settings.clone();
        let learner = match self {
            Self::Bpc => return train_model(parts, classes, &settings),
            Self::Pc => LearnerSettings::PredictiveCoding(PredictiveCodingSettings::default()),
            Self::Backprop => LearnerSettings::Backprop(BackpropSettings::default()),
            Self::Bbb => LearnerSettings::BayesByBackprop(BayesByBackpropSettings::default()),
            Self::RandomFeatures => {
                // Its posterior is exact: finishing is all the training there is.
                let seed = settings.training.seed;
                settings.training = TrainingSettings { epochs: 0, seed, ..TrainingSettings::default() };
                LearnerSettings::RandomFeatures(RandomFeaturesSettings::default())
            }
        };
        train_learner(parts, classes, &settings, &learner)
    }
}

fn train_model(parts: &Parts, classes: Option<&[String]>, settings: &ModelSettings) -> Result<Timed> {
    let start = Instant::now();
    let model = Model::fit(&parts.train.samples(classes)?, settings)?;
    let seconds_fit = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let predictions = Predictions::of(&model, &parts.test)?;
    Ok(Timed {
        predictions,
        scale: model.target_scaling().scale.clone(),
        seconds_fit,
        seconds_predict: start.elapsed().as_secs_f64(),
    })
}

/// Any learner, on standardised inputs and targets (one-hot codes stay as they are).
fn train_learner(
    parts: &Parts,
    classes: Option<&[String]>,
    settings: &ModelSettings,
    learner: &LearnerSettings,
) -> Result<Timed> {
    let start = Instant::now();
    let input_scaling = match settings.input_scaling {
        InputScaling::Auto | InputScaling::Features => Standardiser::fit(parts.train.features.as_ref())?,
        InputScaling::Whole => Standardiser::fit_whole(parts.train.features.as_ref(), None)?,
    };
    let input = input_scaling.apply(parts.train.features.as_ref())?;
    let (target_scaling, target): (Standardiser, Mat<f64>) = match &parts.train.targets {
        Targets::Regression(values) => {
            let scaling = Standardiser::fit(values.as_ref())?;
            let scaled = scaling.apply(values.as_ref())?;
            (scaling, scaled)
        }
        Targets::Classification(labels) => {
            let classes = classes.map_or(0, <[String]>::len);
            (Standardiser::identity(classes), one_hot(labels, classes)?)
        }
    };
    let data = Dataset::new(input.as_ref(), target.as_ref())?;
    let rng = &mut training::init_rng(settings.training.seed);
    let mut learner = learner.start::<f64>(&settings.network, input.nrows(), target.nrows(), rng)?;
    training::fit(learner.as_mut(), &data, &settings.training, &mut Silent)?;
    let seconds_fit = start.elapsed().as_secs_f64();

    let start = Instant::now();
    let test = input_scaling.apply(parts.test.features.as_ref())?;
    let predictive = learner.predict(test.as_ref(), settings.method)?;
    let predictions = match classes {
        None => Predictions::Values(predictive.unscale(&target_scaling.offset, &target_scaling.scale)?),
        Some(_) => Predictions::Probabilities(predictive.class_probabilities(1.0)?),
    };
    Ok(Timed {
        predictions,
        scale: target_scaling.scale,
        seconds_fit,
        seconds_predict: start.elapsed().as_secs_f64(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn baselines_have_constant_noise_even_where_images_ask_for_logits() {
        let images = ModelSettings::images();
        assert_eq!(LearnerArg::Bpc.defaults(images.clone()), images);
        assert_ne!(images.network.head, HeadSettings::default());
        for learner in [LearnerArg::Pc, LearnerArg::Backprop, LearnerArg::Bbb] {
            assert_eq!(learner.defaults(images.clone()).network.head, HeadSettings::default());
        }
    }
}
