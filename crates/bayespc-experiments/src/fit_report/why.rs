//! Which columns matter, how the prediction runs along them, and what drove the worst predictions.

use bayespc::metrics;
use bayespc::model::{CurveSettings, Model, PermutationSettings, Quantity};
use bayespc::{Samples, Targets};
use bayespc_data::{Coding, Encoding};
use faer::{Mat, MatRef};

use super::shared::{chart, dots, number, spread};
use super::{Outcome, ScoredRows};
use crate::error::Result;
use crate::plot::{Color, DotPlot, DotSeries, Line, Panel};
use crate::records::quantile;
use crate::report::{Block, Section};

/// Rows explained at most, rows shuffled at most, and rows that a curve is averaged over at most.
const EXPLAINED: usize = 100;
const SHUFFLED: usize = 500;
const AVERAGED: usize = 50;

/// Share of a column's values on either side that curves leave out: where rows are few, bands are so wide that nothing else
/// can be seen.
const CURVE_TAIL: f64 = 0.01;

/// Columns listed, curves drawn, points of a curve, worst rows shown, and reasons of each.
const LISTED: usize = 12;
const CURVES: usize = 4;
const POINTS: usize = 40;
const WORST: usize = 5;
const REASONS: usize = 3;

/// The columns of a model, by importance.
pub(super) struct Why {
    pub(super) sections: Vec<Section>,
    /// The columns that matter most.
    pub(super) leading: Vec<String>,
}

/// A table's columns as a model sees them.
struct Columns<'a> {
    encoding: &'a Encoding,
    names: Vec<String>,
    owners: Vec<usize>,
}

impl Columns<'_> {
    /// Inputs of a column.
    fn inputs(&self, column: usize) -> Vec<usize> {
        (0..self.owners.len()).filter(|&i| self.owners[i] == column).collect()
    }
}

/// Sections on the scored rows `inputs`; of several targets or classes the first one that is not the last is shown.
pub(super) fn why(
    model: &Model,
    encoding: &Encoding,
    inputs: MatRef<'_, f64>,
    outcome: &Outcome<'_>,
    scored: ScoredRows,
) -> Result<Why> {
    let names = encoding.features.iter().map(|feature| feature.name.clone()).collect();
    let columns = Columns { encoding, names, owners: encoding.owners() };
    let (target, of) = match outcome {
        Outcome::Values { names, .. } => (0, names[0].clone()),
        Outcome::Classes { names, .. } => {
            let last = names.len() - 1;
            (last, format!("probability of {}", names[last]))
        }
    };
    let rows = select(inputs, &spread(inputs.ncols(), EXPLAINED));
    let explanation = model.explain(rows.as_ref(), Quantity::Mean, target)?.by_column(&columns.owners)?;
    let importance = explanation.importance();
    let mut order: Vec<usize> = (0..importance.len()).collect();
    order.sort_by(|&a, &b| importance[b].total_cmp(&importance[a]));
    let leading = order.iter().take(REASONS).map(|&c| columns.names[c].clone()).collect();
    let listed: Vec<usize> = order.iter().copied().take(LISTED).collect();
    let mut sections =
        vec![importance_section(model, &columns, &listed, &importance, (inputs, outcome), scored)?];
    sections.extend(curves(model, &columns, &order, inputs, (target, &of))?);
    sections.extend(worst(model, &columns, inputs, outcome)?);
    Ok(Why { sections, leading })
}

fn select(inputs: MatRef<'_, f64>, samples: &[usize]) -> Mat<f64> {
    Mat::from_fn(inputs.nrows(), samples.len(), |i, k| inputs[(i, samples[k])])
}

fn importance_section(
    model: &Model,
    columns: &Columns<'_>,
    listed: &[usize],
    importance: &[f64],
    (inputs, outcome): (MatRef<'_, f64>, &Outcome<'_>),
    scored: ScoredRows,
) -> Result<Section> {
    let groups: Vec<String> = listed.iter().map(|&c| columns.names[c].clone()).collect();
    let moved = DotPlot {
        title: "How far a column moves predictions".to_owned(),
        value_label: "mean size of its part".to_owned(),
        groups: groups.clone(),
        series: vec![DotSeries {
            label: "this model".to_owned(),
            values: listed.iter().map(|&c| importance[c]).collect(),
            ..DotSeries::default()
        }],
        reference: Some(0.0),
        ..DotPlot::default()
    };
    let samples: Vec<usize> = spread(inputs.ncols(), SHUFFLED);
    let rows = select(inputs, &samples);
    let shuffled: Vec<Vec<usize>> = listed.iter().map(|&c| columns.inputs(c)).collect();
    let lost = match outcome {
        Outcome::Values { targets, .. } => {
            let targets = select(*targets, &samples);
            let samples = Samples::new(&rows, &targets)?;
            model.permutation_importance(&samples, &shuffled, PermutationSettings::default())?
        }
        Outcome::Classes { labels, names, .. } => {
            let labels: Vec<usize> = samples.iter().map(|&j| labels[j]).collect();
            let targets = Targets::Classes { labels: &labels, classes: names.len() };
            let samples = Samples::new(&rows, targets)?;
            model.permutation_importance(&samples, &shuffled, PermutationSettings::default())?
        }
    };
    let without = DotPlot {
        title: "What is lost without it".to_owned(),
        value_label: "log density lost when shuffled".to_owned(),
        groups,
        series: vec![DotSeries {
            label: "this model".to_owned(),
            values: lost.iter().map(|lost| lost.mean).collect(),
            errors: Some(lost.iter().map(|lost| lost.std_error).collect()),
            ..DotSeries::default()
        }],
        reference: Some(0.0),
        ..DotPlot::default()
    };
    let of = if scored == ScoredRows::HeldOut { "held-out rows" } else { "rows it was trained on" };
    let caption = format!(
        "Left: mean size of a column's part in the prediction, from an average row to each of the {of}. Right: how much worse \
         the prediction gets when the column is shuffled, ± one standard error; a column that another one stands in for loses \
         little. Neither says that a column causes the target."
    );
    Ok(Section { heading: "What matters".to_owned(), blocks: vec![dots(&[moved, without], &caption)?] })
}

/// Curves along the columns of numbers that matter most.
fn curves(
    model: &Model,
    columns: &Columns<'_>,
    order: &[usize],
    inputs: MatRef<'_, f64>,
    (target, of): (usize, &str),
) -> Result<Option<Section>> {
    let rows = select(inputs, &spread(inputs.ncols(), AVERAGED));
    let is_number = |c: &&usize| matches!(columns.encoding.features[**c].coding, Coding::Number(_));
    let mut panels = Vec::new();
    for &column in order.iter().filter(is_number).take(CURVES) {
        let feature = columns.inputs(column)[0];
        let values: Vec<f64> = inputs.row(feature).iter().copied().collect();
        let ends = |tail: f64| (quantile(&values, tail), quantile(&values, 1.0 - tail));
        // A column that hardly changes is drawn over all its values.
        let Some((low, high)) = [ends(CURVE_TAIL), ends(0.0)].into_iter().find(|(low, high)| low < high)
        else {
            continue;
        };
        let grid: Vec<f64> =
            (0..POINTS).map(|g| low + (high - low) * g as f64 / (POINTS - 1) as f64).collect();
        let curve = model.curve(rows.as_ref(), feature, &grid, CurveSettings { target, coverage: 0.9 })?;
        let band = |std: &dyn Fn(usize) -> f64| {
            let edge = |sign: f64| (0..POINTS).map(|g| curve.mean[g] + sign * std(g)).collect();
            Some((edge(-1.0), edge(1.0)))
        };
        let both = |g: usize| curve.aleatoric_std[g].hypot(curve.epistemic_std[g]);
        let line = |label: &str, band, color| Line {
            label: label.to_owned(),
            x: grid.clone(),
            y: curve.mean.clone(),
            band,
            color: Some(color),
            ..Line::default()
        };
        panels.push(Panel {
            title: columns.names[column].clone(),
            x_label: columns.names[column].clone(),
            y_label: of.to_owned(),
            lines: vec![
                line("± both kinds", band(&both), Color::Orange),
                line("± epistemic", band(&|g| curve.epistemic_std[g]), Color::Blue),
            ],
            ..Panel::default()
        });
    }
    if panels.is_empty() {
        return Ok(None);
    }
    let caption = "The prediction as one column runs through the central 98 % of its values and the others stay as they are in \
                   the table: the mean over rows, with the standard deviation of the median row. The inner band is what more rows \
                   would take away, the outer one has the noise besides.";
    Ok(Some(Section { heading: "Along a column".to_owned(), blocks: vec![chart(&panels, caption)?] }))
}

/// The rows that were predicted worst, and what drove their predictions.
fn worst(
    model: &Model,
    columns: &Columns<'_>,
    inputs: MatRef<'_, f64>,
    outcome: &Outcome<'_>,
) -> Result<Option<Section>> {
    let surprise: Vec<f64> = match outcome {
        Outcome::Values { predictive, targets, .. } => {
            predictive.log_density(*targets)?.into_iter().map(|density| -density).collect()
        }
        Outcome::Classes { probabilities, labels, .. } => {
            metrics::log_probabilities(*probabilities, labels)?.into_iter().map(|density| -density).collect()
        }
    };
    let mut places: Vec<usize> = (0..surprise.len()).collect();
    places.sort_by(|&a, &b| surprise[b].total_cmp(&surprise[a]));
    places.truncate(WORST);
    let mut rows = Vec::new();
    for &j in &places {
        let row = select(inputs, &[j]);
        let (target, told) = match outcome {
            Outcome::Values { predictive, targets, .. } => {
                let std = predictive.std();
                // The target that is furthest from its prediction.
                let far = |i: &usize| (targets[(*i, j)] - predictive.mean()[(*i, j)]).abs() / std[(*i, j)];
                let target = (0..targets.nrows()).max_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(0);
                let mean = predictive.mean()[(target, j)];
                let predicted = format!("{} ± {}", number(mean, 4), number(std[(target, j)], 2));
                (target, vec![number(targets[(target, j)], 4), predicted])
            }
            Outcome::Classes { probabilities, labels, names } => {
                let best = (1..names.len()).fold(0, |best, k| {
                    if probabilities[(k, j)] > probabilities[(best, j)] { k } else { best }
                });
                let sure = format!("{} ({})", names[best], super::shared::percent(probabilities[(best, j)]));
                (best, vec![names[labels[j]].clone(), sure])
            }
        };
        let explanation = model.explain(row.as_ref(), Quantity::Mean, target)?.by_column(&columns.owners)?;
        let values = explanation.values.col(0);
        let mut order: Vec<usize> = (0..columns.names.len()).collect();
        order.sort_by(|&a, &b| values[b].abs().total_cmp(&values[a].abs()));
        let sign = |v: f64| if v >= 0.0 { "+" } else { "" };
        let reasons: Vec<String> = order
            .iter()
            .take(REASONS)
            .map(|&c| format!("{} {}{}", columns.names[c], sign(values[c]), number(values[c], 3)))
            .collect();
        let mut cells = vec![(j + 1).to_string()];
        cells.extend(told);
        cells.extend([number(explanation.base[0], 4), reasons.join(", ")]);
        rows.push(cells);
    }
    if rows.is_empty() {
        return Ok(None);
    }
    let table = Block::Table {
        caption: "The scored rows that surprised the model most, by their place among the scored rows, and the columns that moved \
                  their prediction most from that of an average row. Look here for mistakes in the table, and for what it lacks."
            .to_owned(),
        header: ["row", "observed", "predicted", "average row", "moved by"].map(str::to_owned).to_vec(),
        rows,
        highlight: Vec::new(),
    };
    Ok(Some(Section { heading: "Worst rows".to_owned(), blocks: vec![table] }))
}
