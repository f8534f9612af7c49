//! What sections of the page share: charts with a caption, samples that are shown, numbers as people read them.

use crate::error::Result;
use crate::plot::{DotPlot, Panel, dot_figure, figure};
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

/// A number with so many significant digits, with a minus that is as long as a plus.
pub(super) fn number(value: f64, digits: usize) -> String {
    if !value.is_finite() {
        return "–".to_owned();
    }
    let magnitude = if value == 0.0 { 0 } else { value.abs().log10().floor() as i32 };
    let text = if (-4..7).contains(&magnitude) {
        let decimals = (digits as i32 - 1 - magnitude).max(0) as usize;
        format!("{value:.decimals$}")
    } else {
        format!("{value:.*e}", digits.saturating_sub(1))
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
    fn numbers_have_their_digits_at_any_size() {
        assert_eq!(number(1234.567, 3), "1235");
        assert_eq!(number(-0.012_345, 3), "−0.0123");
        assert_eq!(number(1.234e-9, 3), "1.23e−9");
        assert_eq!(number(0.0, 2), "0.0");
        assert_eq!(number(f64::NAN, 2), "–");
    }
}
