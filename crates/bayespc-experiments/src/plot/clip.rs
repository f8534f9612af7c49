//! Cutting lines and polygons at the edge of the plotting area, which SVG text alone would not do.
//!
//! Segments by Liang and Barsky (1984): the part of p + t (q − p), t ∈ [0, 1], inside the four half planes.
//! Polygons by Sutherland and Hodgman (1974): one half plane after the other.

/// A point in pixels, y downwards.
pub(super) type Point = (f64, f64);

/// An upright rectangle in pixels.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rect {
    pub(super) left: f64,
    pub(super) top: f64,
    pub(super) right: f64,
    pub(super) bottom: f64,
}

impl Rect {
    pub(super) fn width(&self) -> f64 {
        self.right - self.left
    }

    pub(super) fn height(&self) -> f64 {
        self.bottom - self.top
    }

    /// Whether the point is inside; half a pixel outside still counts, so that data at the very end of a
    /// requested range is not lost to rounding.
    pub(super) fn contains(&self, (x, y): Point) -> bool {
        x >= self.left - 0.5 && x <= self.right + 0.5 && y >= self.top - 0.5 && y <= self.bottom + 0.5
    }
}

/// The part of a segment inside the rectangle.
pub(super) fn segment(rect: &Rect, p: Point, q: Point) -> Option<(Point, Point)> {
    let (dx, dy) = (q.0 - p.0, q.1 - p.1);
    let (mut enter, mut leave) = (0.0_f64, 1.0_f64);
    let half_planes =
        [(-dx, p.0 - rect.left), (dx, rect.right - p.0), (-dy, p.1 - rect.top), (dy, rect.bottom - p.1)];
    for (speed, room) in half_planes {
        if speed == 0.0 {
            if room < 0.0 {
                return None;
            }
        } else if speed < 0.0 {
            enter = enter.max(room / speed);
        } else {
            leave = leave.min(room / speed);
        }
    }
    let at = |t: f64| (p.0 + t * dx, p.1 + t * dy);
    (enter <= leave)
        .then(|| (if enter == 0.0 { p } else { at(enter) }, if leave == 1.0 { q } else { at(leave) }))
}

/// The parts of an open path inside the rectangle.
pub(super) fn path(rect: &Rect, points: &[Point]) -> Vec<Vec<Point>> {
    let mut parts: Vec<Vec<Point>> = Vec::new();
    for pair in points.windows(2) {
        let Some((p, q)) = segment(rect, pair[0], pair[1]) else {
            continue;
        };
        match parts.last_mut() {
            Some(part) if part.last() == Some(&p) => part.push(q),
            _ => parts.push(vec![p, q]),
        }
    }
    parts
}

/// The part of a closed polygon inside the rectangle.
pub(super) fn polygon(rect: &Rect, points: &[Point]) -> Vec<Point> {
    // Each half plane: signed room left on its inner side.
    let rooms: [&dyn Fn(Point) -> f64; 4] =
        [&|p| p.0 - rect.left, &|p| rect.right - p.0, &|p| p.1 - rect.top, &|p| rect.bottom - p.1];
    rooms.iter().fold(points.to_vec(), |polygon, room| {
        let mut kept = Vec::with_capacity(polygon.len() + 2);
        for (i, &q) in polygon.iter().enumerate() {
            let p = polygon[(i + polygon.len() - 1) % polygon.len()];
            let (room_p, room_q) = (room(p), room(q));
            if (room_p >= 0.0) != (room_q >= 0.0) {
                let t = room_p / (room_p - room_q);
                kept.push((p.0 + t * (q.0 - p.0), p.1 + t * (q.1 - p.1)));
            }
            if room_q >= 0.0 {
                kept.push(q);
            }
        }
        kept
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNIT: Rect = Rect { left: 0.0, top: 0.0, right: 1.0, bottom: 1.0 };

    #[test]
    fn a_segment_through_the_square_is_cut_at_both_edges() {
        assert_eq!(segment(&UNIT, (-1.0, 0.5), (3.0, 0.5)), Some(((0.0, 0.5), (1.0, 0.5))));
        assert_eq!(segment(&UNIT, (-1.0, 2.0), (3.0, 2.0)), None);
        assert_eq!(segment(&UNIT, (-1.0, 0.5), (0.5, 2.5)), None);
    }

    #[test]
    fn a_path_that_leaves_and_returns_has_two_parts() {
        let parts = path(&UNIT, &[(0.1, 0.5), (0.2, 0.5), (0.3, 9.0), (0.4, 0.5), (0.5, 0.5)]);
        assert_eq!(parts.len(), 2);
        assert!(parts.iter().flatten().all(|&p| UNIT.contains(p)));
    }

    #[test]
    fn a_triangle_over_a_corner_keeps_the_corner() {
        let clipped = polygon(&UNIT, &[(0.5, 0.5), (3.0, 0.5), (0.5, 3.0)]);
        assert!(clipped.contains(&(1.0, 1.0)), "{clipped:?}");
        assert!(clipped.iter().all(|&p| UNIT.contains(p)));
    }
}
