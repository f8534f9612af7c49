//! The last two panels of Figure 2: a variance node on noise that depends on the input, and posterior spread
//! where there are no data. Each by our rule, and by the paper's with its settings of two moons: one hidden layer of 100,
//! full batches, 50 epochs.

use bayespc::Samples;
use bayespc::heads::{HeadSettings, VarianceNode};
use bayespc::model::{Model, ModelSettings};
use bayespc::network::NetworkSettings;
use bayespc::prediction::{Method, Predictive};
use bayespc::training::TrainingSettings;
use bayespc_data::synthetic::{self, Curve};
use faer::Mat;
use rand::SeedableRng;
use rand::rngs::ChaCha8Rng;

use crate::error::Result;
use crate::plot::{Color, Line, Panel, Scatter};
use crate::spec::Effort;
use crate::task::learning;

/// Samples of each task.
const SAMPLES: usize = 500;

/// Half width of a 95 % interval in standard deviations.
const WIDTH: f64 = 1.959_963_984_540_054;

/// Both panels side by side, ours above and the paper's below.
pub fn figure(effort: Effort) -> Result<String> {
    let mut rng = ChaCha8Rng::seed_from_u64(0);
    let noisy = synthetic::aleatoric(SAMPLES, &mut rng);
    let gap = synthetic::epistemic(SAMPLES / 5, &mut rng);
    let aleatoric = |title: &str, settings: &ModelSettings| {
        let (truth, variance) = (synthetic::aleatoric_mean, Predictive::aleatoric_variance);
        panel(title, &noisy, settings, (-0.75, 0.75), truth, variance, 0)
    };
    let epistemic = |title: &str, settings: &ModelSettings| {
        let (truth, variance) = (synthetic::epistemic_mean, Predictive::epistemic_variance);
        panel(title, &gap, settings, (-7.0, 7.0), truth, variance, 20)
    };
    let at = |mut settings: ModelSettings| {
        if effort == Effort::Smoke {
            settings.training.epochs = 1;
        }
        settings
    };
    let variance_node = HeadSettings::VarianceNode(VarianceNode::default());
    let panels = [
        aleatoric("Aleatoric, feedback", &at(one_network()))?,
        epistemic("Epistemic, default", &at(ModelSettings::default()))?,
        aleatoric("Aleatoric, as printed", &at(as_printed(variance_node)))?,
        epistemic("Epistemic, as printed", &at(as_printed(HeadSettings::default())))?,
    ];
    crate::plot::figure(&panels, 2, 1000, 920)
}

/// The paper's rule and settings.
fn as_printed(head: HeadSettings) -> ModelSettings {
    let paper = ModelSettings::paper();
    ModelSettings {
        network: NetworkSettings { hidden_layer_sizes: vec![100], head, ..paper.network },
        training: TrainingSettings { epochs: 50, batch_size: None, ..paper.training },
        ..paper
    }
}

/// One network shows what a variance node learns; the epistemic band is what the default ensemble is for.
fn one_network() -> ModelSettings {
    ModelSettings {
        network: NetworkSettings {
            hidden_layer_sizes: vec![100],
            head: HeadSettings::VarianceNode(VarianceNode::default()),
            ..NetworkSettings::default()
        },
        training: TrainingSettings { epochs: 200, ..TrainingSettings::default() },
        ..ModelSettings::fast()
    }
}

fn panel(
    title: &str,
    data: &Curve,
    settings: &ModelSettings,
    (low, high): (f64, f64),
    truth: fn(f64) -> f64,
    variance: fn(&Predictive) -> Mat<f64>,
    draws: usize,
) -> Result<Panel> {
    let samples = Samples::new(&data.features, &data.targets).map_err(learning(title))?;
    let model = Model::fit(&samples, settings);
    let model = model.map_err(learning(title))?;
    let places = 201;
    let x: Vec<f64> =
        (0..places).map(|k| low + (high - low) * f64::from(k) / f64::from(places - 1)).collect();
    let grid = Mat::from_fn(1, x.len(), |_, j| x[j]);
    let predictive = model.predict(grid.as_ref()).map_err(learning(title))?;
    let (mean, spread) = (predictive.mean(), variance(&predictive));
    let row = |values: &Mat<f64>| (0..x.len()).map(|j| values[(0, j)]).collect::<Vec<f64>>();
    let edge =
        |sign: f64| (0..x.len()).map(|j| mean[(0, j)] + sign * WIDTH * spread[(0, j)].sqrt()).collect();
    // Drawn first, so that prediction and truth stay on top.
    let mut lines = Vec::new();
    if draws > 0 {
        // One draw of each network is enough to see them apart; of a single one there are more.
        let each = draws.div_ceil(model.members().len());
        let method = Method::MonteCarlo { draws: each, seed: 1, layer_noise: false };
        let drawn = model.predict_by(grid.as_ref(), method).map_err(learning(title))?;
        for component in drawn.components().iter().take(draws) {
            lines.push(Line {
                label: "posterior draws".to_owned(),
                x: x.clone(),
                y: row(&component.mean),
                color: Some(Color::SkyBlue),
                ..Line::default()
            });
        }
    }
    lines.extend([
        Line {
            label: "prediction, 95 % band".to_owned(),
            x: x.clone(),
            y: row(&mean),
            band: Some((edge(-1.0), edge(1.0))),
            color: Some(Color::Blue),
            ..Line::default()
        },
        Line {
            label: "truth".to_owned(),
            x: x.clone(),
            y: x.iter().map(|&x| truth(x)).collect(),
            dashed: true,
            color: Some(Color::Black),
            ..Line::default()
        },
    ]);
    let points = (0..data.features.ncols()).map(|j| (data.features[(0, j)], data.targets[(0, j)]));
    let (px, py) = points.filter(|(x, _)| (low..=high).contains(x)).unzip();
    Ok(Panel {
        title: title.to_owned(),
        x_label: "x".to_owned(),
        y_label: "y".to_owned(),
        x_range: Some((low, high)),
        lines,
        scatters: vec![Scatter {
            label: "data".to_owned(),
            x: px,
            y: py,
            color: Some(Color::Grey),
            ..Scatter::default()
        }],
        ..Panel::default()
    })
}
