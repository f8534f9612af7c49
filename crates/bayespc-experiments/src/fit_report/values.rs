//! Predictions of values: how near they are, whether their uncertainty is honest, and where it comes from.

use bayespc::metrics::{calibration_curve, pit};
use bayespc::prediction::Predictive;
use faer::MatRef;

use super::shared::{chart, limits, shown};
use crate::error::Result;
use crate::plot::{Color, Line, Panel, Scatter};
use crate::report::Section;

/// Error bars show mean ± this many standard deviations, the central 90 % of a normal.
const BAR: f64 = 1.644_853_626_951_472_2;

/// Bars of the histogram of transforms.
const BARS: usize = 10;

pub(super) fn values_sections(
    predictive: &Predictive,
    targets: MatRef<'_, f64>,
    names: &[String],
) -> Result<Vec<Section>> {
    let samples = shown(targets.ncols());
    let (mean, std) = (predictive.mean(), predictive.std());
    let (aleatoric, epistemic) = (predictive.aleatoric_variance(), predictive.epistemic_variance());
    let mut accuracy = Vec::new();
    let mut sources = Vec::new();
    // Ends of bars that are not shown.
    let mut cut = 0;
    for (k, name) in names.iter().enumerate() {
        let pick = |values: &dyn Fn(usize) -> f64| samples.iter().map(|&j| values(j)).collect::<Vec<_>>();
        let observed = pick(&|j| targets[(k, j)]);
        let ends = [-BAR, BAR].map(|bar| pick(&|j| mean[(k, j)] + bar * std[(k, j)])).concat();
        // All that was observed is shown; bars that are much longer than others end outside.
        let range = limits(&ends).map(|(low, high)| {
            observed.iter().fold((low, high), |(low, high), &y| (low.min(y), high.max(y)))
        });
        let beyond = |&end: &&f64| range.is_some_and(|(low, high)| !(low..=high).contains(end));
        cut += ends.iter().filter(beyond).count();
        accuracy.push(Panel {
            title: format!("{name}: predicted and observed"),
            x_label: format!("observed {name}"),
            y_label: format!("predicted {name}"),
            x_range: range,
            y_range: range,
            scatters: vec![Scatter {
                x: observed,
                y: pick(&|j| mean[(k, j)]),
                y_error: Some(pick(&|j| BAR * std[(k, j)])),
                label: "mean, with 90 % bars".to_owned(),
                ..Scatter::default()
            }],
            identity_line: true,
            ..Panel::default()
        });
        let (noise, epistemic_std) =
            (pick(&|j| aleatoric[(k, j)].sqrt()), pick(&|j| epistemic[(k, j)].sqrt()));
        sources.push(Panel {
            title: format!("{name}: two kinds of uncertainty"),
            x_label: "aleatoric standard deviation".to_owned(),
            y_label: "epistemic standard deviation".to_owned(),
            x_range: limits(&noise),
            y_range: limits(&epistemic_std),
            scatters: vec![Scatter {
                x: noise.clone(),
                y: epistemic_std.clone(),
                label: "scored rows".to_owned(),
                ..Scatter::default()
            }],
            ..Panel::default()
        });
        let by_prediction = |label: &str, y| Scatter {
            x: pick(&|j| mean[(k, j)]),
            y,
            label: label.to_owned(),
            ..Scatter::default()
        };
        sources.push(Panel {
            title: format!("{name}: uncertainty by prediction"),
            x_label: format!("predicted {name}"),
            y_label: "standard deviation".to_owned(),
            y_range: limits(&[&noise[..], &epistemic_std].concat()),
            scatters: vec![by_prediction("aleatoric", noise), by_prediction("epistemic", epistemic_std)],
            ..Panel::default()
        });
    }
    let curve = calibration_curve(predictive, targets)?;
    // Coverage is a share of n rows: this is its standard error if the model is calibrated.
    let n = targets.ncols() as f64;
    let chance = |p: f64| (p * (1.0 - p) / n).sqrt();
    let band = |sign: f64| curve.levels.iter().map(|&p| (p + sign * chance(p)).clamp(0.0, 1.0)).collect();
    let calibration = Panel {
        title: "Calibration".to_owned(),
        x_label: "coverage promised".to_owned(),
        y_label: "share of rows inside".to_owned(),
        x_range: Some((0.0, 1.0)),
        y_range: Some((0.0, 1.0)),
        lines: vec![Line {
            label: "calibrated ± one standard error".to_owned(),
            x: curve.levels.clone(),
            y: curve.levels.clone(),
            band: Some((band(-1.0), band(1.0))),
            dashed: true,
            color: Some(Color::Grey),
        }],
        scatters: vec![Scatter {
            label: "this model".to_owned(),
            x: curve.levels.clone(),
            y: curve.empirical,
            ..Scatter::default()
        }],
        ..Panel::default()
    };
    accuracy.push(calibration);
    accuracy.push(transforms(predictive, targets)?);
    let outside = match cut {
        0 => String::new(),
        1 => " One bar ends beyond the axis.".to_owned(),
        n => format!(" {n} ends of bars lie beyond the axis."),
    };
    let caption = format!(
        "A perfect model has every prediction on the diagonal; a calibrated one has nine in ten bars \
                 touching it. Calibration below its diagonal means intervals that promise too much. Where targets fall in \
                 their predicted distribution should be level: high at both ends means intervals too narrow, high in the \
                 middle too wide, a slope predictions that are too low or too high.{outside}"
    );
    Ok(vec![
        Section { heading: "Predictions".to_owned(), blocks: vec![chart(&accuracy, &caption)?] },
        Section {
            heading: "Uncertainty".to_owned(),
            blocks: vec![chart(
                &sources,
                "Aleatoric uncertainty is noise in the data; epistemic uncertainty is what more data like these \
                 rows would take away. Rows whose deviation is far above all others are not shown.",
            )?],
        },
    ])
}

/// Where targets fall in their predicted distribution: a histogram of F(y), level for a calibrated model.
fn transforms(predictive: &Predictive, targets: MatRef<'_, f64>) -> Result<Panel> {
    let transforms = pit(predictive, targets)?;
    let mut counts = [0.0; BARS];
    for column in transforms.col_iter() {
        for p in column.iter() {
            counts[((p * BARS as f64) as usize).min(BARS - 1)] += 1.0;
        }
    }
    let n: f64 = counts.iter().sum();
    let share = 1.0 / BARS as f64;
    // Shares of a level histogram have the standard error of a binomial share.
    let error = (share * (1.0 - share) / n).sqrt();
    let (mut x, mut y) = (Vec::new(), Vec::new());
    for (bar, count) in counts.iter().enumerate() {
        x.extend([bar as f64 * share, (bar + 1) as f64 * share]);
        y.extend([count / n, count / n]);
    }
    let level = |shift: f64| vec![(share + shift).max(0.0); 2];
    let highest = y.iter().copied().fold(share + 2.0 * error, f64::max);
    Ok(Panel {
        title: "Where targets fall in their prediction".to_owned(),
        x_label: "share of the predicted distribution below".to_owned(),
        y_label: "share of rows".to_owned(),
        x_range: Some((0.0, 1.0)),
        y_range: Some((0.0, 1.1 * highest)),
        lines: vec![
            Line {
                label: "level ± two standard errors".to_owned(),
                x: vec![0.0, 1.0],
                y: level(0.0),
                band: Some((level(-2.0 * error), level(2.0 * error))),
                dashed: true,
                color: Some(Color::Grey),
            },
            Line { label: "this model".to_owned(), x, y, color: Some(Color::Blue), ..Line::default() },
        ],
        ..Panel::default()
    })
}
