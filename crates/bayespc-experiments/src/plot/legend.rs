//! Legends: a sample of each series' look beside its label, in centred rows below the data.

use super::canvas::{Align, Canvas, Font, Stroke};
use super::clip::Rect;
use super::palette::{Look, Palette};
use super::text::{self, SMALL};
use crate::error::Result;

const SWATCH: f64 = 26.0;
const GAP: f64 = 7.0;
const BETWEEN: f64 = 20.0;
const ROW: f64 = 20.0;

/// How a line is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LineStyle {
    Solid,
    Dashed,
}

/// What a series with this label consists of.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Entry {
    pub(super) label: String,
    pub(super) line: Option<LineStyle>,
    pub(super) band: bool,
    pub(super) marker: bool,
}

/// One entry per label: a label used twice shows everything it stands for.
pub(super) fn merged(entries: impl Iterator<Item = Entry>) -> Vec<Entry> {
    let mut merged: Vec<Entry> = Vec::new();
    for entry in entries.filter(|e| !e.label.is_empty()) {
        match merged.iter_mut().find(|known| known.label == entry.label) {
            Some(known) => {
                // Solid if any of its lines is.
                known.line = match (known.line, entry.line) {
                    (Some(LineStyle::Solid), _) | (_, Some(LineStyle::Solid)) => Some(LineStyle::Solid),
                    (known, entry) => known.or(entry),
                };
                known.band |= entry.band;
                known.marker |= entry.marker;
            }
            None => merged.push(entry),
        }
    }
    merged
}

/// Entries arranged in rows of a given width.
pub(super) struct Legend {
    rows: Vec<Vec<(Entry, String, f64)>>,
}

impl Legend {
    /// Arrange entries in rows no wider than `width`; only a label too long for a row of its own is cut.
    pub(super) fn new(entries: &[Entry], width: f64) -> Self {
        let mut rows: Vec<Vec<(Entry, String, f64)>> = Vec::new();
        let mut used = f64::INFINITY;
        for entry in entries {
            let label = text::wrap(&entry.label, SMALL, width - SWATCH - GAP, 1).concat();
            let size = SWATCH + GAP + text::width(&label, SMALL);
            if used + BETWEEN + size > width {
                rows.push(Vec::new());
                used = -BETWEEN;
            }
            used += BETWEEN + size;
            if let Some(row) = rows.last_mut() {
                row.push((entry.clone(), label, size));
            }
        }
        Self { rows }
    }

    /// Height in pixels.
    pub(super) fn height(&self) -> f64 {
        if self.rows.is_empty() { 0.0 } else { ROW * self.rows.len() as f64 + 6.0 }
    }

    /// Draw into the given area, from its top.
    pub(super) fn draw(&self, canvas: &mut Canvas<'_>, area: Rect, palette: &Palette) -> Result<()> {
        for (i, row) in self.rows.iter().enumerate() {
            let total: f64 =
                row.iter().map(|(_, _, size)| size).sum::<f64>() + BETWEEN * (row.len() as f64 - 1.0);
            let mut x = (area.left + (area.width() - total) / 2.0).max(area.left);
            let y = area.top + 6.0 + ROW * (i as f64 + 0.5);
            for (entry, label, size) in row {
                swatch(canvas, entry, palette.look(&entry.label), x, y)?;
                let font = Font {
                    size: SMALL,
                    bold: false,
                    upwards: false,
                    align: Align::Left,
                    color: (40, 40, 40),
                };
                canvas.text(label, (x + SWATCH + GAP, y), font)?;
                x += size + BETWEEN;
            }
        }
        Ok(())
    }
}

fn swatch(canvas: &mut Canvas<'_>, entry: &Entry, look: Look, x: f64, y: f64) -> Result<()> {
    let color = look.color.rgb();
    if entry.band {
        let area = Rect { left: x, top: y - 6.0, right: x + SWATCH, bottom: y + 6.0 };
        canvas.rectangle(area, color, 0.2)?;
    }
    if let Some(style) = entry.line {
        let stroke =
            Stroke { color, width: 2.0, dashed: (style == LineStyle::Dashed) != look.dashed, opacity: 1.0 };
        canvas.path(&[(x, y), (x + SWATCH, y)], stroke)?;
    }
    if entry.marker {
        canvas.marker((x + SWATCH / 2.0, y), look.marker, 4.0, color, 1.0)?;
    }
    Ok(())
}
