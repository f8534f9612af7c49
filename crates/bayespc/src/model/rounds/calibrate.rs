//! How sure networks may be, as rows say that they have not seen.

use faer::MatRef;

use super::plan::Plan;
use super::rows::Rows;
use crate::data::{Samples, Targets, Task};
use crate::error::Result;
use crate::model::calibration::{Calibrated, best_common_temperature};
use crate::model::ensemble::predict_member;
use crate::model::model::Model;
use crate::model::spread::{Moments, Spread};
use crate::prediction::Predictive;
use crate::real::Precision;

/// What rows say of the networks they were held out of; of no rows nothing.
pub(super) fn calibrate(plan: &Plan, model: &Model, rows: &Rows) -> Result<Calibrated> {
    let parts: Vec<(usize, Rows)> = (0..plan.members)
        .map(|m| (m, rows.only(|row| plan.held_out_of(row) == Some(m))))
        .filter(|(_, rows)| !rows.is_empty())
        .collect();
    if parts.is_empty() {
        return Ok(Calibrated::default());
    }
    let predictions =
        parts.iter().map(|(m, rows)| predict(plan, model, *m, rows)).collect::<Result<Vec<Predictive>>>()?;
    match plan.task {
        Task::Regression => Ok(spread(model, &parts, &predictions)),
        Task::Classification { classes } => temperature(classes, &parts, &predictions),
    }
}

/// What a network says of rows, in standard deviations of the targets.
fn predict(plan: &Plan, model: &Model, m: usize, rows: &Rows) -> Result<Predictive> {
    let (member, method) = (&model.members()[m], model.settings().method);
    rows.with_samples(plan.task, |samples| match model.settings().precision {
        Precision::F32 => {
            predict_member(member, &model.ensemble.standardise::<f32>(samples, member.bins)?, method)
        }
        Precision::F64 => {
            predict_member(member, &model.ensemble.standardise::<f64>(samples, member.bins)?, method)
        }
    })
}

/// Noise, doubt and tails.
fn spread(model: &Model, parts: &[(usize, Rows)], predictions: &[Predictive]) -> Calibrated {
    let (mut moments, mut targets, mut weights) = (Moments::default(), Vec::new(), Vec::new());
    let scaling = model.target_scaling();
    let k = scaling.dim();
    for ((_, rows), predictive) in parts.iter().zip(predictions) {
        moments.add(predictive);
        let standardised = |(i, y): (usize, &f64)| (y - scaling.offset[i % k]) / scaling.scale[i % k];
        targets.extend(rows.targets.iter().enumerate().map(standardised));
        weights.extend(rows.weights.iter().flat_map(|&weight| std::iter::repeat_n(weight, k)));
    }
    let networks = [(1.0, &moments)];
    let mut spread = Spread::fit(&networks, &targets, &weights);
    if k == 1 {
        spread = spread.and_skew(&networks, &targets, &weights);
    }
    Calibrated { spread: Some(spread), ..Calibrated::default() }
}

/// The temperature of class probabilities.
fn temperature(classes: usize, parts: &[(usize, Rows)], predictions: &[Predictive]) -> Result<Calibrated> {
    let labels: Vec<Vec<usize>> =
        parts.iter().map(|(_, rows)| rows.targets.iter().map(|&label| label as usize).collect()).collect();
    let mut tests = Vec::with_capacity(parts.len());
    for (((_, rows), labels), predictive) in parts.iter().zip(&labels).zip(predictions) {
        let inputs = MatRef::from_column_major_slice(&rows.inputs, rows.widths().0, rows.len());
        let samples = Samples::new(inputs, Targets::Classes { labels, classes })?;
        tests.push((predictive, samples.weighted(&rows.weights)?));
    }
    let temperature = best_common_temperature(&tests)?;
    Ok(Calibrated { temperature, ..Calibrated::default() })
}
