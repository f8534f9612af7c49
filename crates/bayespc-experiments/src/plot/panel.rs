//! The ordinary chart: lines with bands and points with error bars over two numeric axes.

use super::axis::{Scale, Tick};
use super::canvas::{Align, Canvas, Font, Stroke};
use super::clip::{Point, Rect};
use super::figure::Chart;
use super::furniture::{FAINT_GRID, GRID, INK, frame, no_data, x_axis};
use super::legend::{Entry, LineStyle};
use super::map::Map;
use super::palette::{Claim, Color, Palette};
use super::text::{self, LEADING, MEDIUM, SMALL};
use crate::error::{Error, Result};

/// A line, optionally within a shaded band.
#[derive(Clone, Debug, Default)]
pub struct Line {
    /// Name in the legend; lines with one label share one entry and one colour, without label they are grey.
    pub label: String,
    /// Horizontal positions.
    pub x: Vec<f64>,
    /// Heights, one per position.
    pub y: Vec<f64>,
    /// Lower and upper edge of the band, one pair of heights per position.
    pub band: Option<(Vec<f64>, Vec<f64>)>,
    /// Whether the line is dashed.
    pub dashed: bool,
    /// Colour, if not the next free one.
    pub color: Option<Color>,
}

/// Points, optionally with vertical error bars.
#[derive(Clone, Debug, Default)]
pub struct Scatter {
    /// Name in the legend, as for [`Line`].
    pub label: String,
    /// Horizontal positions.
    pub x: Vec<f64>,
    /// Heights, one per position.
    pub y: Vec<f64>,
    /// Half lengths of the error bars, one per position.
    pub y_error: Option<Vec<f64>>,
    /// Colour, if not the next free one.
    pub color: Option<Color>,
}

/// One chart: axes, lines and points.
#[derive(Clone, Debug, Default)]
pub struct Panel {
    /// Heading above the chart; may be empty.
    pub title: String,
    /// Quantity and unit along the horizontal axis.
    pub x_label: String,
    /// Quantity and unit along the vertical axis.
    pub y_label: String,
    /// Logarithmic horizontal axis.
    pub x_log: bool,
    /// Logarithmic vertical axis.
    pub y_log: bool,
    /// Ends of the horizontal axis; by default it fits the data.
    pub x_range: Option<(f64, f64)>,
    /// Ends of the vertical axis; by default it fits the data, bands and error bars.
    pub y_range: Option<(f64, f64)>,
    /// Lines, the last on top.
    pub lines: Vec<Line>,
    /// Points, the last on top. They lie above the bands and below the lines.
    pub scatters: Vec<Scatter>,
    /// Draw y = x; axes without a range of their own then span the same values.
    pub identity_line: bool,
}

impl Panel {
    fn scales(&self) -> Result<(Scale, Scale)> {
        let range_error = |axis, (low, high)| Error::Range { chart: self.title.clone(), axis, low, high };
        let xs = self.lines.iter().flat_map(|l| &l.x).chain(self.scatters.iter().flat_map(|s| &s.x));
        let mut x = Scale::fit(xs.copied(), self.x_log);
        let line_ys = self.lines.iter().flat_map(|l| {
            let band = l.band.iter().flat_map(|(lower, upper)| lower.iter().chain(upper));
            l.y.iter().chain(band).copied()
        });
        let scatter_ys = self.scatters.iter().flat_map(|s| {
            s.y.iter().enumerate().flat_map(|(i, &y)| {
                let error = s.y_error.as_ref().map_or(0.0, |errors| errors[i]);
                let error = if error.is_finite() { error } else { 0.0 };
                [y - error, y, y + error]
            })
        });
        let mut y = Scale::fit(line_ys.chain(scatter_ys), self.y_log);
        if self.identity_line && self.x_log == self.y_log {
            let both = x.union(y);
            (x, y) = (both, both);
        }
        if let Some(range) = self.x_range {
            x = Scale::exactly(range, self.x_log).ok_or_else(|| range_error("x", range))?;
        }
        if let Some(range) = self.y_range {
            y = Scale::exactly(range, self.y_log).ok_or_else(|| range_error("y", range))?;
        }
        Ok((x, y))
    }
}

fn same_length(what: &'static str, label: &str, found: usize, expected: usize) -> Result<()> {
    if found == expected {
        Ok(())
    } else {
        Err(Error::Length { what, label: label.to_owned(), found, expected })
    }
}

fn vertical_ticks(scale: &Scale, plot_height: f64) -> Vec<Tick> {
    scale.ticks(((plot_height / 42.0) as usize).clamp(2, 7))
}

impl Chart for Panel {
    fn title(&self) -> &str {
        &self.title
    }

    fn x_label(&self) -> &str {
        &self.x_label
    }

    fn claims(&self) -> Vec<Claim<'_>> {
        let lines = self.lines.iter().map(|l| Claim { label: &l.label, color: l.color, marker: false });
        let scatters = self.scatters.iter().map(|s| Claim { label: &s.label, color: s.color, marker: true });
        lines.chain(scatters).collect()
    }

    fn entries(&self) -> Vec<Entry> {
        let lines = self.lines.iter().map(|l| Entry {
            label: l.label.clone(),
            line: Some(if l.dashed { LineStyle::Dashed } else { LineStyle::Solid }),
            band: l.band.is_some(),
            marker: false,
        });
        let scatters = self.scatters.iter().map(|s| Entry {
            label: s.label.clone(),
            line: None,
            band: false,
            marker: true,
        });
        lines.chain(scatters).collect()
    }

    fn check(&self) -> Result<()> {
        for line in &self.lines {
            same_length("y", &line.label, line.y.len(), line.x.len())?;
            if let Some((lower, upper)) = &line.band {
                same_length("lower band", &line.label, lower.len(), line.x.len())?;
                same_length("upper band", &line.label, upper.len(), line.x.len())?;
            }
        }
        for scatter in &self.scatters {
            same_length("y", &scatter.label, scatter.y.len(), scatter.x.len())?;
            if let Some(errors) = &scatter.y_error {
                same_length("y error", &scatter.label, errors.len(), scatter.x.len())?;
            }
        }
        self.scales().map(|_| ())
    }

    fn left(&self, _width: f64, plot_height: f64) -> Result<f64> {
        let (_, y) = self.scales()?;
        let ticks = vertical_ticks(&y, plot_height);
        let widest = ticks.iter().map(|t| text::width(&t.label, SMALL)).fold(0.0, f64::max);
        let label_lines = text::wrap(&self.y_label, MEDIUM, plot_height, 3).len();
        Ok(widest + 10.0 + label_lines as f64 * MEDIUM * LEADING + if label_lines > 0 { 4.0 } else { 0.0 })
    }

    fn draw(&self, canvas: &mut Canvas<'_>, outer: f64, plot: Rect, palette: &Palette) -> Result<()> {
        let (x, y) = self.scales()?;
        let map = Map { x, y, plot };
        for minor in x.minor() {
            map.vertical(canvas, minor, FAINT_GRID)?;
        }
        for minor in y.minor() {
            map.horizontal(canvas, minor, FAINT_GRID)?;
        }
        x_axis(canvas, &x, &plot)?;
        for tick in vertical_ticks(&y, plot.height()) {
            if let Some(height) = map.horizontal(canvas, tick.value, GRID)? {
                let font = Font { size: SMALL, bold: false, upwards: false, align: Align::Right, color: INK };
                canvas.text(&tick.label, (plot.left - 7.0, height), font)?;
            }
        }
        for (k, line) in text::wrap(&self.y_label, MEDIUM, plot.height(), 3).iter().enumerate() {
            let font = Font { size: MEDIUM, bold: false, upwards: true, align: Align::Center, color: INK };
            let centre = outer + (k as f64 + 0.5) * MEDIUM * LEADING;
            canvas.text(line, (centre, f64::midpoint(plot.top, plot.bottom)), font)?;
        }
        if self.identity_line {
            let (low, high) = x.union(y).ends();
            let points: Vec<Point> = (0..=200)
                .map(|i| f64::from(i) / 200.0)
                .filter_map(|t| {
                    let v = if self.x_log && self.y_log {
                        low * (high / low).powf(t)
                    } else {
                        low + t * (high - low)
                    };
                    map.point(v, v)
                })
                .collect();
            let stroke = Stroke { color: (110, 110, 110), width: 1.2, dashed: true, opacity: 1.0 };
            map.path(canvas, &points, stroke)?;
        }
        let mut drawn = 0;
        for line in &self.lines {
            drawn += map.band(canvas, line, palette.look(&line.label))?;
        }
        for scatter in &self.scatters {
            drawn += map.scatter(canvas, scatter, palette.look(&scatter.label))?;
        }
        for line in &self.lines {
            drawn += map.line(canvas, line, palette.look(&line.label))?;
        }
        if drawn == 0 {
            no_data(canvas, &plot)?;
        }
        frame(canvas, &plot)
    }
}
