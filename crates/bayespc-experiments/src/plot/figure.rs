//! Figures: charts of one kind in a grid, aligned by row and column, with their legends.

use super::canvas::{Align, Canvas, Font, document};
use super::clip::Rect;
use super::dots::DotPlot;
use super::legend::{Entry, Legend, merged};
use super::palette::{Claim, Palette};
use super::panel::Panel;
use super::text::{self, LARGE, LEADING, MEDIUM, SMALL};
use crate::error::{Error, Result};

/// Room around the figure and between charts, pixels.
const MARGIN: f64 = 12.0;
const BETWEEN_ROWS: f64 = 22.0;
const TICK_ROW: f64 = 8.0 + SMALL;
/// With less room than this for its data a chart says nothing.
const LEAST: f64 = 40.0;

/// What a figure needs to know of a chart.
pub(super) trait Chart {
    /// Above the chart.
    fn title(&self) -> &str;
    /// Below the horizontal axis.
    fn x_label(&self) -> &str;
    /// What each series asks of the palette, in order.
    fn claims(&self) -> Vec<Claim<'_>>;
    /// What the legend shows.
    fn entries(&self) -> Vec<Entry>;
    /// Whether the chart can be drawn at all.
    fn check(&self) -> Result<()>;
    /// Pixels the vertical axis needs left of the data, for a chart of this width and data height.
    fn left(&self, width: f64, plot_height: f64) -> Result<f64>;
    /// Draw axes and data; `outer` is the left edge of the chart, where its vertical label may start.
    fn draw(&self, canvas: &mut Canvas<'_>, outer: f64, plot: Rect, palette: &Palette) -> Result<()>;
}

/// Panels in a grid of `columns`, as one SVG document of `width × height` pixels.
pub fn figure(panels: &[Panel], columns: usize, width: u32, height: u32) -> Result<String> {
    arrange(&panels.iter().map(|p| p as &dyn Chart).collect::<Vec<_>>(), columns, width, height)
}

/// Dot plots in a grid of `columns`, as one SVG document of `width × height` pixels.
pub fn dot_figure(plots: &[DotPlot], columns: usize, width: u32, height: u32) -> Result<String> {
    arrange(&plots.iter().map(|p| p as &dyn Chart).collect::<Vec<_>>(), columns, width, height)
}

fn arrange(charts: &[&dyn Chart], columns: usize, width: u32, height: u32) -> Result<String> {
    if charts.is_empty() {
        return Err(Error::EmptyFigure { what: "chart" });
    }
    if columns == 0 {
        return Err(Error::EmptyFigure { what: "column" });
    }
    charts.iter().try_for_each(|chart| chart.check())?;
    let columns = columns.min(charts.len());
    let rows = charts.len().div_ceil(columns);
    let palette = Palette::new(&charts.iter().map(|chart| chart.claims()).collect::<Vec<_>>());

    let (page_width, page_height) = (f64::from(width), f64::from(height));
    let cell_width = (page_width - MARGIN * (columns as f64 + 1.0)) / columns as f64;
    let entries: Vec<Vec<Entry>> = charts.iter().map(|chart| merged(chart.entries().into_iter())).collect();
    let shared = shared_entries(&entries);
    let below = shared.as_ref().map(|entries| Legend::new(entries, page_width - 2.0 * MARGIN));
    let below_height = below.as_ref().map_or(0.0, Legend::height);
    let own: Vec<Legend> = entries
        .iter()
        .map(|entries| Legend::new(if below.is_some() { &[] } else { entries }, cell_width))
        .collect();
    let cell_height =
        (page_height - below_height - 2.0 * MARGIN - BETWEEN_ROWS * (rows as f64 - 1.0)) / rows as f64;

    let titles: Vec<Vec<String>> =
        charts.iter().map(|chart| text::wrap(chart.title(), LARGE * 1.08, cell_width, 3)).collect();
    let x_labels: Vec<Vec<String>> =
        charts.iter().map(|chart| text::wrap(chart.x_label(), MEDIUM, cell_width * 0.85, 2)).collect();
    // Charts of a row share their upper and lower edge, charts of a column their left one.
    let over_row = |row: usize, measure: &dyn Fn(usize) -> f64| -> f64 {
        (row * columns..((row + 1) * columns).min(charts.len())).map(measure).fold(0.0, f64::max)
    };
    let top = |row| 8.0 + over_row(row, &|i| titles[i].len() as f64 * LARGE * LEADING);
    let bottom = |row| {
        TICK_ROW
            + over_row(row, &|i| x_labels[i].len() as f64 * MEDIUM * LEADING)
            + over_row(row, &|i| own[i].height())
    };
    let mut left = vec![0.0_f64; columns];
    for (i, chart) in charts.iter().enumerate() {
        let plot_height = cell_height - top(i / columns) - bottom(i / columns);
        left[i % columns] = left[i % columns].max(chart.left(cell_width, plot_height)?);
    }

    let name = charts.iter().map(|chart| chart.title()).collect::<Vec<_>>().join("; ");
    document(width, height, &name, |canvas| {
        for (i, chart) in charts.iter().enumerate() {
            let (row, column) = (i / columns, i % columns);
            let outer = MARGIN + column as f64 * (cell_width + MARGIN);
            let upper = MARGIN + row as f64 * (cell_height + BETWEEN_ROWS);
            let plot = Rect {
                left: outer + left[column],
                top: upper + top(row),
                right: outer + cell_width - 4.0,
                bottom: upper + cell_height - bottom(row),
            };
            if plot.width() < LEAST || plot.height() < LEAST {
                let (width, height) = (plot.width().max(0.0), plot.height().max(0.0));
                return Err(Error::NoRoom { chart: chart.title().to_owned(), width, height });
            }
            // A title starts above the data unless it is so long that it needs the whole width.
            let title_width =
                titles[i].iter().map(|line| text::width(line, LARGE * 1.08)).fold(0.0, f64::max);
            let title_left = plot.left.min(outer + cell_width - title_width).max(outer);
            for (k, line) in titles[i].iter().enumerate() {
                let font =
                    Font { size: LARGE, bold: true, upwards: false, align: Align::Left, color: (20, 20, 20) };
                canvas.text(line, (title_left, upper + (k as f64 + 0.5) * LARGE * LEADING), font)?;
            }
            chart.draw(canvas, outer, plot, &palette)?;
            for (k, line) in x_labels[i].iter().enumerate() {
                let font = Font {
                    size: MEDIUM,
                    bold: false,
                    upwards: false,
                    align: Align::Center,
                    color: (40, 40, 40),
                };
                let y = plot.bottom + TICK_ROW + (k as f64 + 0.5) * MEDIUM * LEADING;
                canvas.text(line, (f64::midpoint(plot.left, plot.right), y), font)?;
            }
            let legend_top = plot.bottom + TICK_ROW + x_labels[i].len() as f64 * MEDIUM * LEADING;
            let area =
                Rect { left: outer, top: legend_top, right: outer + cell_width, bottom: upper + cell_height };
            own[i].draw(canvas, area, &palette)?;
        }
        if let Some(legend) = &below {
            let area = Rect {
                left: MARGIN,
                top: page_height - below_height - 4.0,
                right: page_width - MARGIN,
                bottom: page_height,
            };
            legend.draw(canvas, area, &palette)?;
        }
        Ok(())
    })
}

/// The entries of the chart that has all others' too: then one legend serves the whole figure.
fn shared_entries(entries: &[Vec<Entry>]) -> Option<Vec<Entry>> {
    let most = entries.iter().max_by_key(|list| list.len())?;
    let known = |entry: &Entry| most.iter().any(|other| other.label == entry.label);
    if entries.len() < 2 || !entries.iter().flatten().all(known) {
        return None;
    }
    // A label may be a line in one chart and a point in another: show both.
    Some(merged(most.iter().chain(entries.iter().flatten()).cloned()))
}
