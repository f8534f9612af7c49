//! Predictions of classes: whether their confidence is honest, and what is taken for what.

use bayespc::metrics::reliability_bins;
use faer::MatRef;

use super::shared::chart;
use crate::error::{Error, Result};
use crate::plot::{Panel, Scatter};
use crate::report::{Block, Section};

/// Bins of the reliability diagram.
const BINS: usize = 10;

/// Rows and columns a confusion table may have and still be read.
const MOST_CLASSES: usize = 20;

pub(super) fn classes_sections(
    probabilities: MatRef<'_, f64>,
    labels: &[usize],
    names: &[String],
) -> Result<Vec<Section>> {
    let bins = reliability_bins(probabilities, labels, BINS)?;
    let filled: Vec<_> = bins.iter().filter(|bin| bin.count > 0).collect();
    let error = |accuracy: f64, count: usize| (accuracy * (1.0 - accuracy) / count as f64).sqrt();
    let reliability = Panel {
        title: "Reliability".to_owned(),
        x_label: "confidence (largest probability)".to_owned(),
        y_label: "share classified rightly".to_owned(),
        x_range: Some((0.0, 1.0)),
        y_range: Some((0.0, 1.0)),
        scatters: vec![Scatter {
            label: "this model ± one standard error".to_owned(),
            x: filled.iter().map(|bin| bin.confidence).collect(),
            y: filled.iter().map(|bin| bin.accuracy).collect(),
            y_error: Some(filled.iter().map(|bin| error(bin.accuracy, bin.count)).collect()),
            ..Scatter::default()
        }],
        identity_line: true,
        ..Panel::default()
    };
    let mut blocks = vec![chart(
        &[reliability],
        "Points below the diagonal are more confident than right; each stands for the rows of a tenth of the axis.",
    )?];
    if names.len() <= MOST_CLASSES {
        blocks.push(confusion(probabilities, labels, names)?);
    }
    Ok(vec![Section { heading: "Predictions".to_owned(), blocks }])
}

/// How often each class was taken for each other.
pub(super) fn confusion(probabilities: MatRef<'_, f64>, labels: &[usize], names: &[String]) -> Result<Block> {
    let classes = names.len();
    if probabilities.nrows() != classes {
        return Err(Error::Length {
            what: "class names",
            label: "confusion table".to_owned(),
            found: classes,
            expected: probabilities.nrows(),
        });
    }
    let mut counts = vec![vec![0_usize; classes]; classes];
    for (j, &label) in labels.iter().enumerate() {
        let column = probabilities.col(j);
        let best = (1..classes).fold(0, |best, k| if column[k] > column[best] { k } else { best });
        counts[label][best] += 1;
    }
    let header =
        std::iter::once("true class".to_owned()).chain(names.iter().map(|name| format!("as {name}")));
    let rows = counts.iter().zip(names).map(|(row, name)| {
        std::iter::once(name.clone()).chain(row.iter().map(ToString::to_string)).collect()
    });
    Ok(Block::Table {
        caption: "How many rows of each class were taken for which; right answers in bold.".to_owned(),
        header: header.collect(),
        rows: rows.collect(),
        highlight: (0..classes).map(|k| (k, k + 1)).collect(),
    })
}
