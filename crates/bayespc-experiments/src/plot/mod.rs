//! Charts as SVG text: lines with bands, scatters with error bars, and dot plots that compare methods.
//!
//! A figure is a grid of charts of one kind. Colours follow labels across the whole figure, and charts that
//! share their labels share one legend, which stands below the data and never on it. Points that cannot be
//! drawn (NaN, infinite, not positive on a logarithmic axis) are left out and interrupt their line.
//!
//! ```text
//! axis, text ─▶ map, furniture ─▶ panel, dots ─▶ figure ─▶ canvas (the one file that touches plotters)
//! ```

mod axis;
mod canvas;
mod clip;
mod dots;
mod figure;
mod furniture;
mod legend;
mod map;
mod palette;
mod panel;
mod text;

pub use dots::{DotPlot, DotSeries};
pub use figure::{dot_figure, figure};
pub use palette::Color;
pub use panel::{Line, Panel, Scatter};

#[cfg(test)]
mod tests;
