//! The ordinary chart: lines with bands and points with error bars over two numeric axes.

use super::axis::{Scale, Tick};
use super::canvas::{Align, Canvas, Font, Rgb, Stroke};
use super::clip::{self, Point, Rect};
use super::figure::Chart;
use super::legend::{Entry, LineStyle};
use super::palette::{Claim, Color, Look, Palette};
use super::text::{self, LEADING, MEDIUM, SMALL};
use crate::error::{Error, Result};

pub(super) const INK: Rgb = (40, 40, 40);
pub(super) const GRID: Rgb = (225, 225, 225);
const FAINT_GRID: Rgb = (241, 241, 241);
const FRAME: Rgb = (150, 150, 150);

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
        let range_error = |axis, (low, high)| Error::Range {
            chart: self.title.clone(),
            axis,
            low,
            high,
        };
        let xs = self
            .lines
            .iter()
            .flat_map(|l| &l.x)
            .chain(self.scatters.iter().flat_map(|s| &s.x));
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
        Err(Error::Length {
            what,
            label: label.to_owned(),
            found,
            expected,
        })
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
        let lines = self.lines.iter().map(|l| Claim {
            label: &l.label,
            color: l.color,
            marker: false,
        });
        let scatters = self.scatters.iter().map(|s| Claim {
            label: &s.label,
            color: s.color,
            marker: true,
        });
        lines.chain(scatters).collect()
    }

    fn entries(&self) -> Vec<Entry> {
        let lines = self.lines.iter().map(|l| Entry {
            label: l.label.clone(),
            line: Some(if l.dashed {
                LineStyle::Dashed
            } else {
                LineStyle::Solid
            }),
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
        let widest = ticks
            .iter()
            .map(|t| text::width(&t.label, SMALL))
            .fold(0.0, f64::max);
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
                let font = Font {
                    size: SMALL,
                    bold: false,
                    upwards: false,
                    align: Align::Right,
                    color: INK,
                };
                canvas.text(&tick.label, (plot.left - 7.0, height), font)?;
            }
        }
        for (k, line) in text::wrap(&self.y_label, MEDIUM, plot.height(), 3)
            .iter()
            .enumerate()
        {
            let font = Font {
                size: MEDIUM,
                bold: false,
                upwards: true,
                align: Align::Center,
                color: INK,
            };
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
            let stroke = Stroke {
                color: (110, 110, 110),
                width: 1.2,
                dashed: true,
                opacity: 1.0,
            };
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

/// Horizontal axis: grid lines and labels below them.
pub(super) fn x_axis(canvas: &mut Canvas<'_>, scale: &Scale, plot: &Rect) -> Result<()> {
    for tick in scale.ticks_across(plot.width(), 8) {
        let Some(fraction) = scale.fraction(tick.value) else {
            continue;
        };
        let x = plot.left + fraction * plot.width();
        canvas.path(&[(x, plot.top), (x, plot.bottom)], hairline(GRID))?;
        let font = Font {
            size: SMALL,
            bold: false,
            upwards: false,
            align: Align::Center,
            color: INK,
        };
        canvas.text(&tick.label, (x, plot.bottom + 5.0 + SMALL / 2.0), font)?;
    }
    Ok(())
}

/// Lines at the left and bottom edge.
pub(super) fn frame(canvas: &mut Canvas<'_>, plot: &Rect) -> Result<()> {
    let corners = [
        (plot.left, plot.top),
        (plot.left, plot.bottom),
        (plot.right, plot.bottom),
    ];
    canvas.path(&corners, hairline(FRAME))
}

/// Says that there is nothing to see.
pub(super) fn no_data(canvas: &mut Canvas<'_>, plot: &Rect) -> Result<()> {
    let font = Font {
        size: MEDIUM,
        bold: false,
        upwards: false,
        align: Align::Center,
        color: (110, 110, 110),
    };
    canvas.text(
        "no data",
        (
            f64::midpoint(plot.left, plot.right),
            f64::midpoint(plot.top, plot.bottom),
        ),
        font,
    )
}

pub(super) fn hairline(color: Rgb) -> Stroke {
    Stroke {
        color,
        width: 1.0,
        dashed: false,
        opacity: 1.0,
    }
}

/// Both scales and where they are drawn.
struct Map {
    x: Scale,
    y: Scale,
    plot: Rect,
}

impl Map {
    fn across(&self, fraction: f64) -> f64 {
        self.plot.left + fraction * self.plot.width()
    }

    fn up(&self, fraction: f64) -> f64 {
        self.plot.bottom - fraction * self.plot.height()
    }

    fn point(&self, x: f64, y: f64) -> Option<Point> {
        Some((self.across(self.x.fraction(x)?), self.up(self.y.fraction(y)?)))
    }

    fn vertical(&self, canvas: &mut Canvas<'_>, value: f64, color: Rgb) -> Result<()> {
        let Some(fraction) = self.x.fraction(value) else {
            return Ok(());
        };
        let x = self.across(fraction);
        canvas.path(&[(x, self.plot.top), (x, self.plot.bottom)], hairline(color))
    }

    fn horizontal(&self, canvas: &mut Canvas<'_>, value: f64, color: Rgb) -> Result<Option<f64>> {
        let Some(fraction) = self.y.fraction(value) else {
            return Ok(None);
        };
        let y = self.up(fraction);
        canvas.path(&[(self.plot.left, y), (self.plot.right, y)], hairline(color))?;
        Ok(Some(y))
    }

    fn path(&self, canvas: &mut Canvas<'_>, points: &[Point], stroke: Stroke) -> Result<()> {
        clip::path(&self.plot, points)
            .iter()
            .try_for_each(|part| canvas.path(part, stroke))
    }

    /// Number of runs drawn; a run is a stretch without points that cannot be drawn.
    fn line(&self, canvas: &mut Canvas<'_>, line: &Line, look: Look) -> Result<usize> {
        let color = look.color.rgb();
        let stroke = Stroke {
            color,
            width: 2.0,
            dashed: line.dashed != look.dashed,
            opacity: 1.0,
        };
        let points: Vec<Option<Point>> = line
            .x
            .iter()
            .zip(&line.y)
            .map(|(&x, &y)| self.point(x, y))
            .collect();
        let mut drawn = 0;
        for run in points.split(Option::is_none) {
            let run: Vec<Point> = run.iter().flatten().copied().collect();
            match run[..] {
                [] => continue,
                // A point between gaps has no line to be seen by.
                [lone] if self.plot.contains(lone) => canvas.marker(lone, look.marker, 2.5, color, 1.0)?,
                _ => self.path(canvas, &run, stroke)?,
            }
            drawn += 1;
        }
        Ok(drawn)
    }

    fn band(&self, canvas: &mut Canvas<'_>, line: &Line, look: Look) -> Result<usize> {
        let Some((lower, upper)) = &line.band else {
            return Ok(0);
        };
        let edges: Vec<Option<(Point, Point)>> = line
            .x
            .iter()
            .zip(lower.iter().zip(upper))
            .map(|(&x, (&low, &high))| {
                let x = self.across(self.x.fraction(x)?);
                let (low, high) = (self.y.fraction_of_bound(low)?, self.y.fraction_of_bound(high)?);
                Some(((x, self.up(low)), (x, self.up(high))))
            })
            .collect();
        let mut drawn = 0;
        for run in edges.split(Option::is_none).filter(|run| run.len() > 1) {
            let there = run.iter().flatten().map(|&(low, _)| low);
            let back = run.iter().rev().flatten().map(|&(_, high)| high);
            let polygon = clip::polygon(&self.plot, &there.chain(back).collect::<Vec<_>>());
            canvas.polygon(&polygon, look.color.rgb(), 0.2)?;
            drawn += 1;
        }
        Ok(drawn)
    }

    fn scatter(&self, canvas: &mut Canvas<'_>, scatter: &Scatter, look: Look) -> Result<usize> {
        let color = look.color.rgb();
        // Many points: smaller and lighter, so that density shows.
        let (radius, opacity) = match scatter.x.len() {
            0..=60 => (4.0, 0.9),
            61..=400 => (3.0, 0.65),
            _ => (2.2, 0.4),
        };
        let mut drawn = 0;
        for (i, (&x, &y)) in scatter.x.iter().zip(&scatter.y).enumerate() {
            let Some(centre) = self.point(x, y) else { continue };
            drawn += 1;
            let error = scatter.y_error.as_ref().map_or(f64::NAN, |errors| errors[i]);
            let ends = (
                self.y.fraction_of_bound(y - error),
                self.y.fraction_of_bound(y + error),
            );
            if let (Some(low), Some(high)) = ends
                && error > 0.0
            {
                let stroke = Stroke {
                    color,
                    width: 1.4,
                    dashed: false,
                    opacity,
                };
                let (low, high) = ((centre.0, self.up(low)), (centre.0, self.up(high)));
                self.path(canvas, &[low, high], stroke)?;
                for end in [low, high] {
                    self.path(canvas, &[(end.0 - 3.5, end.1), (end.0 + 3.5, end.1)], stroke)?;
                }
            }
            if self.plot.contains(centre) {
                canvas.marker(centre, look.marker, radius, color, opacity)?;
            }
        }
        Ok(drawn)
    }
}
