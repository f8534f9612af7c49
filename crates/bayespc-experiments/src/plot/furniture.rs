//! What every chart has around its data: horizontal axis, frame, and a word when there is nothing to show.

use super::axis::Scale;
use super::canvas::{Align, Canvas, Font, Rgb, Stroke};
use super::clip::Rect;
use super::text::{MEDIUM, SMALL};
use crate::error::Result;

pub(super) const INK: Rgb = (40, 40, 40);
pub(super) const GRID: Rgb = (225, 225, 225);
pub(super) const FAINT_GRID: Rgb = (241, 241, 241);
const FRAME: Rgb = (150, 150, 150);

/// Horizontal axis: grid lines and labels below them.
pub(super) fn x_axis(canvas: &mut Canvas<'_>, scale: &Scale, plot: &Rect) -> Result<()> {
    for tick in scale.ticks_across(plot.width(), 8) {
        let Some(fraction) = scale.fraction(tick.value) else {
            continue;
        };
        let x = plot.left + fraction * plot.width();
        canvas.path(&[(x, plot.top), (x, plot.bottom)], hairline(GRID))?;
        let font = Font { size: SMALL, bold: false, upwards: false, align: Align::Center, color: INK };
        canvas.text(&tick.label, (x, plot.bottom + 5.0 + SMALL / 2.0), font)?;
    }
    Ok(())
}

/// Lines at the left and bottom edge.
pub(super) fn frame(canvas: &mut Canvas<'_>, plot: &Rect) -> Result<()> {
    let corners = [(plot.left, plot.top), (plot.left, plot.bottom), (plot.right, plot.bottom)];
    canvas.path(&corners, hairline(FRAME))
}

/// Says that there is nothing to see.
pub(super) fn no_data(canvas: &mut Canvas<'_>, plot: &Rect) -> Result<()> {
    let font =
        Font { size: MEDIUM, bold: false, upwards: false, align: Align::Center, color: (110, 110, 110) };
    canvas.text("no data", (f64::midpoint(plot.left, plot.right), f64::midpoint(plot.top, plot.bottom)), font)
}

pub(super) fn hairline(color: Rgb) -> Stroke {
    Stroke { color, width: 1.0, dashed: false, opacity: 1.0 }
}
