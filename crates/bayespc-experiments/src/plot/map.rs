//! Lines, bands and points on two scales: from values to pixels, cut at the edge of the plotting area.

use super::axis::Scale;
use super::canvas::{Canvas, Rgb, Stroke};
use super::clip::{self, Point, Rect};
use super::furniture::hairline;
use super::palette::Look;
use super::panel::{Line, Scatter};
use crate::error::Result;

/// Both scales and where they are drawn.
pub(super) struct Map {
    pub(super) x: Scale,
    pub(super) y: Scale,
    pub(super) plot: Rect,
}

impl Map {
    fn across(&self, fraction: f64) -> f64 {
        self.plot.left + fraction * self.plot.width()
    }

    fn up(&self, fraction: f64) -> f64 {
        self.plot.bottom - fraction * self.plot.height()
    }

    pub(super) fn point(&self, x: f64, y: f64) -> Option<Point> {
        Some((self.across(self.x.fraction(x)?), self.up(self.y.fraction(y)?)))
    }

    pub(super) fn vertical(&self, canvas: &mut Canvas<'_>, value: f64, color: Rgb) -> Result<()> {
        let Some(fraction) = self.x.fraction(value) else {
            return Ok(());
        };
        let x = self.across(fraction);
        canvas.path(&[(x, self.plot.top), (x, self.plot.bottom)], hairline(color))
    }

    pub(super) fn horizontal(&self, canvas: &mut Canvas<'_>, value: f64, color: Rgb) -> Result<Option<f64>> {
        let Some(fraction) = self.y.fraction(value) else {
            return Ok(None);
        };
        let y = self.up(fraction);
        canvas.path(&[(self.plot.left, y), (self.plot.right, y)], hairline(color))?;
        Ok(Some(y))
    }

    pub(super) fn path(&self, canvas: &mut Canvas<'_>, points: &[Point], stroke: Stroke) -> Result<()> {
        clip::path(&self.plot, points).iter().try_for_each(|part| canvas.path(part, stroke))
    }

    /// Number of runs drawn; a run is a stretch without points that cannot be drawn.
    pub(super) fn line(&self, canvas: &mut Canvas<'_>, line: &Line, look: Look) -> Result<usize> {
        let color = look.color.rgb();
        let stroke = Stroke { color, width: 2.0, dashed: line.dashed != look.dashed, opacity: 1.0 };
        let points: Vec<Option<Point>> =
            line.x.iter().zip(&line.y).map(|(&x, &y)| self.point(x, y)).collect();
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

    pub(super) fn band(&self, canvas: &mut Canvas<'_>, line: &Line, look: Look) -> Result<usize> {
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

    pub(super) fn scatter(&self, canvas: &mut Canvas<'_>, scatter: &Scatter, look: Look) -> Result<usize> {
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
            let ends = (self.y.fraction_of_bound(y - error), self.y.fraction_of_bound(y + error));
            if let (Some(low), Some(high)) = ends
                && error > 0.0
            {
                let stroke = Stroke { color, width: 1.4, dashed: false, opacity };
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
