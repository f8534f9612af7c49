//! The one file that touches plotters: primitives in pixels, written as SVG.
//!
//! Plotters rounds coordinates to integers. The canvas therefore draws in tenths of a pixel and gives the
//! finished document a `viewBox` ten times its size, so that curves stay smooth.

use plotters::backend::{DrawingBackend, SVGBackend};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{FontDesc, FontFamily, FontStyle, FontTransform, RGBAColor, ShapeStyle, TextStyle};

use super::clip::{Point, Rect};
use crate::error::{Error, Result};
use crate::markup::{escape, printable};

const UNITS_PER_PIXEL: f64 = 10.0;
/// Plotters divides font sizes by this when it writes SVG.
const PLOTTERS_FONT_RATIO: f64 = 1.24;
/// From the middle of the line to the baseline, in font sizes: half the height of a digit.
const MIDDLE_TO_BASELINE: f64 = 0.36;

/// Red, green, blue.
pub(super) type Rgb = (u8, u8, u8);

/// Shape of a point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
}

/// Where text stands relative to its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Align {
    Left,
    Center,
    Right,
}

/// How text looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Font {
    pub(super) size: f64,
    pub(super) bold: bool,
    /// Read from bottom to top.
    pub(super) upwards: bool,
    pub(super) align: Align,
    pub(super) color: Rgb,
}

/// How a stroke looks.
#[derive(Clone, Copy, Debug)]
pub(super) struct Stroke {
    pub(super) color: Rgb,
    pub(super) width: f64,
    pub(super) dashed: bool,
    pub(super) opacity: f64,
}

/// An SVG document being drawn.
pub(super) struct Canvas<'a> {
    backend: SVGBackend<'a>,
}

impl Canvas<'_> {
    /// A polyline; dashes are drawn as separate strokes.
    pub(super) fn path(&mut self, points: &[Point], stroke: Stroke) -> Result<()> {
        let style = ShapeStyle {
            color: rgba(stroke.color, stroke.opacity),
            filled: false,
            stroke_width: (stroke.width * UNITS_PER_PIXEL).round() as u32,
        };
        let parts = if stroke.dashed { dashes(points, 6.0, 4.0) } else { vec![points.to_vec()] };
        for part in parts {
            let mut rounded: Vec<_> = part.into_iter().map(units).collect();
            rounded.dedup();
            if rounded.len() > 1 {
                self.backend.draw_path(rounded, &style).map_err(drawing)?;
            }
        }
        Ok(())
    }

    /// A filled polygon.
    pub(super) fn polygon(&mut self, points: &[Point], color: Rgb, opacity: f64) -> Result<()> {
        let mut rounded: Vec<_> = points.iter().copied().map(units).collect();
        rounded.dedup();
        if rounded.len() < 3 {
            return Ok(());
        }
        self.backend.fill_polygon(rounded, &rgba(color, opacity)).map_err(drawing)
    }

    /// A filled rectangle.
    pub(super) fn rectangle(&mut self, rect: Rect, color: Rgb, opacity: f64) -> Result<()> {
        let (upper_left, lower_right) = (units((rect.left, rect.top)), units((rect.right, rect.bottom)));
        self.backend.draw_rect(upper_left, lower_right, &rgba(color, opacity), true).map_err(drawing)
    }

    /// A point of about the same area in every shape.
    pub(super) fn marker(
        &mut self,
        (x, y): Point,
        marker: Marker,
        radius: f64,
        color: Rgb,
        opacity: f64,
    ) -> Result<()> {
        let corners = |offsets: &[(f64, f64)]| -> Vec<Point> {
            offsets.iter().map(|&(dx, dy)| (x + radius * dx, y + radius * dy)).collect()
        };
        let polygon = match marker {
            Marker::Circle => {
                let r = (radius * UNITS_PER_PIXEL).round() as u32;
                return self
                    .backend
                    .draw_circle(units((x, y)), r, &rgba(color, opacity), true)
                    .map_err(drawing);
            }
            Marker::Square => corners(&[(-0.89, -0.89), (0.89, -0.89), (0.89, 0.89), (-0.89, 0.89)]),
            Marker::Triangle => corners(&[(0.0, -1.35), (1.17, 0.67), (-1.17, 0.67)]),
            Marker::Diamond => corners(&[(0.0, -1.3), (1.3, 0.0), (0.0, 1.3), (-1.3, 0.0)]),
        };
        self.polygon(&polygon, color, opacity)
    }

    /// One line of text; `(x, y)` is the middle of the line's height at the end that `align` names.
    pub(super) fn text(&mut self, text: &str, (x, y): Point, font: Font) -> Result<()> {
        // Plotters shifts text that is anchored at the bottom up by half an x-height (0.26 of a font size).
        let shift = (MIDDLE_TO_BASELINE + 0.26) * font.size;
        let position = if font.upwards { (x + shift, y) } else { (x, y + shift) };
        let h_pos = match font.align {
            Align::Left => HPos::Left,
            Align::Center => HPos::Center,
            Align::Right => HPos::Right,
        };
        let style = if font.bold { FontStyle::Bold } else { FontStyle::Normal };
        let size = font.size * PLOTTERS_FONT_RATIO * UNITS_PER_PIXEL;
        let turn = if font.upwards { FontTransform::Rotate270 } else { FontTransform::None };
        let style = TextStyle {
            font: FontDesc::new(FontFamily::SansSerif, size, style).transform(turn),
            color: plotters::style::Color::to_backend_color(&rgba(font.color, 1.0)),
            pos: Pos::new(h_pos, VPos::Bottom),
        };
        self.backend.draw_text(&printable(text), &style, units(position)).map_err(drawing)
    }
}

/// Draw a document of the given size in pixels on white; `name` is what a screen reader says.
pub(super) fn document(
    width: u32,
    height: u32,
    name: &str,
    draw: impl FnOnce(&mut Canvas<'_>) -> Result<()>,
) -> Result<String> {
    let scale = UNITS_PER_PIXEL as u32;
    let size = (width.saturating_mul(scale), height.saturating_mul(scale));
    let mut drawn = String::new();
    let mut canvas = Canvas { backend: SVGBackend::with_string(&mut drawn, size) };
    let page = Rect { left: 0.0, top: 0.0, right: f64::from(width), bottom: f64::from(height) };
    canvas.rectangle(page, (255, 255, 255), 1.0)?;
    draw(&mut canvas)?;
    canvas.backend.present().map_err(drawing)?;
    drop(canvas);
    let body = drawn.split_once('>').map_or("", |(_, body)| body);
    let name = escape(name);
    Ok(format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"{name}\" stroke-linejoin=\"round\">{body}",
        size.0, size.1
    ))
}

fn units((x, y): Point) -> (i32, i32) {
    debug_assert!(x.is_finite() && y.is_finite(), "a point at ({x}, {y})");
    ((x * UNITS_PER_PIXEL).round() as i32, (y * UNITS_PER_PIXEL).round() as i32)
}

fn rgba((r, g, b): Rgb, opacity: f64) -> RGBAColor {
    RGBAColor(r, g, b, opacity)
}

fn drawing<E: std::error::Error + Send + Sync + 'static>(error: E) -> Error {
    Error::Drawing(std::io::Error::other(error))
}

/// Cut a path into strokes of length `on`, `off` apart.
fn dashes(points: &[Point], on: f64, off: f64) -> Vec<Vec<Point>> {
    let mut strokes: Vec<Vec<Point>> = Vec::new();
    let Some(&first) = points.first() else {
        return strokes;
    };
    let (mut drawing, mut left, mut stroke) = (true, on, vec![first]);
    for pair in points.windows(2) {
        let (mut p, q) = (pair[0], pair[1]);
        loop {
            let distance = (q.0 - p.0).hypot(q.1 - p.1);
            if distance <= left {
                left -= distance;
                if drawing {
                    stroke.push(q);
                }
                break;
            }
            let t = left / distance;
            p = (p.0 + t * (q.0 - p.0), p.1 + t * (q.1 - p.1));
            if drawing {
                stroke.push(p);
                strokes.push(std::mem::take(&mut stroke));
            } else {
                stroke.push(p);
            }
            drawing = !drawing;
            left = if drawing { on } else { off };
        }
    }
    strokes.push(stroke);
    strokes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashes_follow_the_path_round_a_corner() {
        let strokes = dashes(&[(0.0, 0.0), (3.0, 0.0), (3.0, 10.0)], 6.0, 4.0);
        assert_eq!(strokes[0], vec![(0.0, 0.0), (3.0, 0.0), (3.0, 3.0)]);
        assert_eq!(strokes[1], vec![(3.0, 7.0), (3.0, 10.0)]);
    }
}
