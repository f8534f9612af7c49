//! The dot plot: one row per group (data set), one dot with error bar per series (method).
//!
//! Rows rather than columns, because names are longer than numbers; dots rather than bars, because a bar
//! needs an axis from zero and log densities have no zero.

use super::axis::Scale;
use super::canvas::{Align, Canvas, Font, Stroke};
use super::clip::{self, Rect};
use super::figure::Chart;
use super::furniture::{INK, frame, hairline, no_data, x_axis};
use super::legend::{Entry, LineStyle};
use super::palette::{Claim, Color, Palette};
use super::text::{self, LEADING, SMALL};
use crate::error::{Error, Result};

/// The values of one method over the groups.
#[derive(Clone, Debug, Default)]
pub struct DotSeries {
    /// Name in the legend.
    pub label: String,
    /// One value per group; NaN where there is none.
    pub values: Vec<f64>,
    /// Half lengths of the error bars, one per group.
    pub errors: Option<Vec<f64>>,
    /// Colour, if not the next free one.
    pub color: Option<Color>,
}

/// Methods compared over groups: a row per group, a dot per method.
#[derive(Clone, Debug, Default)]
pub struct DotPlot {
    /// Heading above the chart; may be empty.
    pub title: String,
    /// Quantity and unit along the horizontal axis.
    pub value_label: String,
    /// Logarithmic axis.
    pub value_log: bool,
    /// Ends of the axis; by default it fits the data and error bars.
    pub value_range: Option<(f64, f64)>,
    /// Names of the rows, from the top.
    pub groups: Vec<String>,
    /// Methods, drawn from the top of each row.
    pub series: Vec<DotSeries>,
    /// A dashed vertical line, such as a goal or zero difference.
    pub reference: Option<f64>,
}

impl DotPlot {
    fn scale(&self) -> Result<Scale> {
        if let Some(range) = self.value_range {
            let (low, high) = range;
            let error = || Error::Range { chart: self.title.clone(), axis: "value", low, high };
            return Scale::exactly(range, self.value_log).ok_or_else(error);
        }
        let values = self.series.iter().flat_map(|s| {
            s.values.iter().enumerate().flat_map(|(i, &value)| {
                let error = s.errors.as_ref().map_or(0.0, |errors| errors[i]);
                let error = if error.is_finite() { error } else { 0.0 };
                [value - error, value, value + error]
            })
        });
        Ok(Scale::fit(values.chain(self.reference), self.value_log))
    }

    fn names(&self, width: f64) -> Vec<Vec<String>> {
        self.groups.iter().map(|name| text::wrap(name, SMALL, 0.32 * width, 2)).collect()
    }
}

impl Chart for DotPlot {
    fn title(&self) -> &str {
        &self.title
    }

    fn x_label(&self) -> &str {
        &self.value_label
    }

    fn claims(&self) -> Vec<Claim<'_>> {
        self.series.iter().map(|s| Claim { label: &s.label, color: s.color, marker: true }).collect()
    }

    fn entries(&self) -> Vec<Entry> {
        let entry = |s: &DotSeries| Entry {
            label: s.label.clone(),
            line: s.errors.as_ref().map(|_| LineStyle::Solid),
            band: false,
            marker: true,
        };
        self.series.iter().map(entry).collect()
    }

    fn check(&self) -> Result<()> {
        let expected = self.groups.len();
        for series in &self.series {
            let errors = series.errors.as_ref().map_or(expected, Vec::len);
            for (what, found) in [("values", series.values.len()), ("errors", errors)] {
                if found != expected {
                    return Err(Error::Length { what, label: series.label.clone(), found, expected });
                }
            }
        }
        self.scale().map(|_| ())
    }

    fn left(&self, width: f64, _plot_height: f64) -> Result<f64> {
        let names = self.names(width);
        Ok(names.iter().flatten().map(|line| text::width(line, SMALL)).fold(0.0, f64::max) + 14.0)
    }

    fn draw(&self, canvas: &mut Canvas<'_>, outer: f64, plot: Rect, palette: &Palette) -> Result<()> {
        let scale = self.scale()?;
        let row_height = plot.height() / self.groups.len().max(1) as f64;
        for row in (0..self.groups.len()).step_by(2) {
            let top = plot.top + row as f64 * row_height;
            canvas.rectangle(Rect { top, bottom: top + row_height, ..plot }, (246, 246, 246), 1.0)?;
        }
        x_axis(canvas, &scale, &plot)?;
        // The chart's width, from which the names' share was taken: the plot ends 4 pixels before it.
        for (row, lines) in self.names(plot.right + 4.0 - outer).iter().enumerate() {
            let centre = plot.top + (row as f64 + 0.5) * row_height;
            for (k, line) in lines.iter().enumerate() {
                let font = Font { size: SMALL, bold: false, upwards: false, align: Align::Right, color: INK };
                let offset = (k as f64 - (lines.len() as f64 - 1.0) / 2.0) * SMALL * LEADING;
                canvas.text(line, (plot.left - 8.0, centre + offset), font)?;
            }
        }
        if let Some(fraction) = self.reference.and_then(|value| scale.fraction(value)) {
            let x = plot.left + fraction * plot.width();
            if plot.contains((x, plot.top)) {
                let stroke = Stroke { dashed: true, width: 1.3, ..hairline((110, 110, 110)) };
                canvas.path(&[(x, plot.top), (x, plot.bottom)], stroke)?;
            }
        }
        let mut drawn = 0;
        let pitch = 0.76 * row_height / self.series.len().max(1) as f64;
        for (k, series) in self.series.iter().enumerate() {
            let look = palette.look(&series.label);
            let color = look.color.rgb();
            for (row, &value) in series.values.iter().enumerate() {
                let Some(fraction) = scale.fraction(value) else {
                    continue;
                };
                drawn += 1;
                let offset = (k as f64 - (self.series.len() as f64 - 1.0) / 2.0) * pitch;
                let y = plot.top + (row as f64 + 0.5) * row_height + offset;
                let across = |fraction: f64| plot.left + fraction * plot.width();
                let error = series.errors.as_ref().map_or(f64::NAN, |errors| errors[row]);
                let ends = (scale.fraction_of_bound(value - error), scale.fraction_of_bound(value + error));
                if let (Some(low), Some(high)) = ends
                    && error > 0.0
                {
                    let stroke = Stroke { width: 1.8, ..hairline(color) };
                    for part in clip::path(&plot, &[(across(low), y), (across(high), y)]) {
                        canvas.path(&part, stroke)?;
                    }
                }
                if plot.contains((across(fraction), y)) {
                    let radius = (0.42 * pitch).clamp(2.2, 4.2);
                    canvas.marker((across(fraction), y), look.marker, radius, color, 1.0)?;
                }
            }
        }
        if drawn == 0 {
            no_data(canvas, &plot)?;
        }
        frame(canvas, &plot)
    }
}
