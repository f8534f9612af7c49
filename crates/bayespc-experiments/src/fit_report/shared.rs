//! What sections of the page share: charts with a caption, samples that are shown, numbers as people read them.

use crate::error::Result;
use crate::plot::{DotPlot, Panel, dot_figure, figure};
use crate::records::quantile;
use crate::report::Block;

/// Points drawn at most; more make the page heavy and the plot no clearer.
const MOST_POINTS: usize = 2000;

/// Charts in rows of two, or three in one row, with a caption.
pub(super) fn chart(panels: &[Panel], caption: &str) -> Result<Block> {
    let columns = if panels.len() == 3 { 3 } else { panels.len().min(2) };
    let rows = panels.len().div_ceil(columns) as u32;
    let width = [640, 1000, 1200][columns - 1];
    let svg = figure(panels, columns, width, 420 * rows)?;
    Ok(Block::Figure { svg, caption: caption.to_owned() })
}

/// Dot plots side by side, as high as their rows need, with a caption.
pub(super) fn dots(plots: &[DotPlot], caption: &str) -> Result<Block> {
    let columns = plots.len().min(2);
    let most = plots.iter().map(|plot| plot.groups.len()).max().unwrap_or(1) as u32;
    let rows = plots.len().div_ceil(columns) as u32;
    let svg = dot_figure(plots, columns, if columns == 1 { 720 } else { 1000 }, (110 + 30 * most) * rows)?;
    Ok(Block::Figure { svg, caption: caption.to_owned() })
}

/// At most [`MOST_POINTS`] samples, evenly spread.
pub(super) fn shown(n: usize) -> Vec<usize> {
    spread(n, MOST_POINTS)
}

/// At most so many samples, evenly spread.
pub(super) fn spread(n: usize, most: usize) -> Vec<usize> {
    let count = n.min(most);
    (0..count).map(|i| i * n / count).collect()
}

/// Share of values on either side that does not stretch an axis.
const TAIL: f64 = 0.01;

/// Room beyond the central values, in their width, that an axis may take to show the rest.
const ROOM: f64 = 0.25;

/// Ends of an axis that shows all values, unless a few of them are so far out that the others could not be distinguished:
/// these end outside. None where the values differ by no more than rounding.
pub(super) fn limits(values: &[f64]) -> Option<(f64, f64)> {
    let values: Vec<f64> = values.iter().copied().filter(|value| value.is_finite()).collect();
    let quantiles = [0.0, TAIL, 1.0 - TAIL, 1.0].map(|p| quantile(&values, p));
    let [first, low, high, last] = quantiles;
    let room = ROOM * (high - low);
    let (low, high) = (first.max(low - room), last.min(high + room));
    let margin = 0.03 * (high - low);
    let size = low.abs().max(high.abs());
    (high - low > ROUNDING * size).then_some((low - margin, high + margin))
}

/// Relative difference below which values are the same.
const ROUNDING: f64 = 1e-9;

/// A number with so many significant digits, with a minus that is as long as a plus.
pub(super) fn number(value: f64, digits: u8) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let text = if (-4..7).contains(&magnitude) {
        let decimals = (i32::from(digits) - 1 - magnitude).max(0) as usize;
        format!("{value:.decimals$}")
    } else {
        format!("{value:.*e}", usize::from(digits.saturating_sub(1)))
    };
    text.replace('-', "−")
}

/// A share in per cent.
pub(super) fn percent(share: f64) -> String {
    format!("{:.0} %", 100.0 * share)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shown_samples_are_spread_over_all() {
        assert_eq!(shown(3), [0, 1, 2]);
        let many = shown(10 * MOST_POINTS);
        assert_eq!((many.len(), many[1], many[MOST_POINTS - 1]), (MOST_POINTS, 10, 10 * (MOST_POINTS - 1)));
    }

    #[test]
    fn one_value_far_out_does_not_stretch_an_axis() {
        let mut values: Vec<f64> = (0..200).map(f64::from).collect();
        let (low, high) = limits(&values).unwrap();
        assert!(low < 0.0 && high > 199.0 && high - low < 220.0, "{low} {high}");
        values[7] = 1e6;
        values[9] = f64::NAN;
        let (low, high) = limits(&values).unwrap();
        assert!(low < 0.0 && high > 199.0 && high < 300.0, "{low} {high}");
        assert_eq!(limits(&[2.0, 2.0]), None);
        assert_eq!(limits(&[2.0, 2.0 + f64::EPSILON]), None);
        assert_eq!(limits(&[]), None);
        let (low, high) = limits(&[1.0, 2.0]).unwrap();
        assert!(low < 1.0 && high > 2.0);
    }

    #[test]
    fn numbers_have_their_digits_at_any_size() {
        assert_eq!(number(1234.567, 3), "1235");
        assert_eq!(number(-0.012_345, 3), "−0.0123");
        assert_eq!(number(1.234e-9, 3), "1.23e−9");
        assert_eq!(number(0.0, 2), "0.0");
        assert_eq!(number(f64::NAN, 2), "–");
    }
}
