//! How much each column of a row has to do with a reading: integrated gradients along a straight line, exactly.
//!
//! ```text
//! Q(x) − Q(b) = Σ_i ∫ ∂Q/∂x_i dx_i          from row b straight to row x; term i belongs to column i
//! ```
//!
//! The line is cut where a code bends and where a hidden unit with a kink turns on or off. Between two cuts Q is smooth and
//! the integral is by Gauss–Legendre nodes. A piece is halved until its terms add up to what Q changes along it.
//!
//! At a cut where unit u turns on or off, G_l jumps and so may Q. Its derivative there is the jump times ∇u δ(u): the jump
//! belongs to columns in the shares (∂u/∂x_i) dx_i/dt in which they moved u through 0.

use faer::{Mat, MatRef};

use super::Factors;
use super::sweep::{Reading, Sweep};
use crate::data::{Line, SAME_TIME};
use crate::network::{Activities, Network};

/// How exactly the parts of a piece are to add up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Precision {
    /// Error of a piece as large as the whole line that is not worth halving it, relative to the largest reading.
    pub(crate) tolerance: f64,
    /// What rounding does to a reading, relative to what the inputs add and take away to make it.
    pub(crate) rounding: f64,
    /// Pieces at most in one pass. Where so many are off, halves of them are no better.
    pub(crate) pieces: usize,
}

impl Default for Precision {
    fn default() -> Self {
        Self { tolerance: 1e-10, rounding: 1e-13, pieces: 1 << 13 }
    }
}

/// Halvings at most: a piece with a kink that is not known is then so short that it does not matter.
const HALVINGS: usize = 40;

/// Nodes between cuts where the network itself is not piecewise linear.
pub(super) const SMOOTH_NODES: usize = 4;

/// A stretch of time.
pub(crate) type Piece = (f64, f64);

/// A network that is followed along a line.
#[derive(Clone, Copy)]
pub(crate) struct Follow<'a> {
    pub(crate) network: &'a Network<f64>,
    pub(crate) factors: &'a Factors<f64>,
    pub(crate) line: &'a Line,
}

impl Follow<'_> {
    /// Whether the network's mean is straight between cuts.
    pub(crate) fn is_piecewise_linear(&self) -> bool {
        self.network.settings().activation.is_piecewise_linear()
    }

    /// Where a code bends or a hidden unit with a kink passes it, and both ends.
    pub(crate) fn cuts(&self) -> Vec<f64> {
        let mut cuts = self.line.knots().to_vec();
        let activation = self.network.settings().activation;
        if !self.is_piecewise_linear() || activation.derivative(1.0) == activation.derivative(-1.0) {
            return cuts;
        }
        // Layer by layer: between the cuts of the layers below, an activity runs straight.
        let means = self.network.means();
        for l in 0..self.network.hidden().len() {
            let mut activities = Activities::new(&self.network.widths()[..=l + 1], cuts.len());
            activities.forward(&means[..=l], activation, self.line.inputs(&cuts).as_ref());
            let z = &activities.post[l];
            let mut roots = Vec::new();
            for k in 0..cuts.len() - 1 {
                for (&before, &after) in z.col_as_slice(k).iter().zip(z.col_as_slice(k + 1)) {
                    if before < 0.0 && after > 0.0 || before > 0.0 && after < 0.0 {
                        roots.push(cuts[k] + (cuts[k + 1] - cuts[k]) * (before / (before - after)));
                    }
                }
            }
            cuts.extend(roots);
            cuts.sort_by(f64::total_cmp);
            cuts.dedup_by(|b, a| *b - *a < SAME_TIME);
            // The end is at 1, and not just before.
            let last = cuts.len() - 1;
            cuts[last] = 1.0;
        }
        cuts
    }

    /// a at these times.
    pub(crate) fn activities(&self, times: &[f64]) -> Mat<f64> {
        let means = self.network.means();
        let mut activities = Activities::new(&self.network.widths(), times.len());
        let input = self.line.inputs(times);
        activities.forward(&means, self.network.settings().activation, input.as_ref());
        activities.post.swap_remove(means.len() - 1)
    }

    /// The part of each column in what the reading changes along the line.
    pub(crate) fn attribute(&self, reading: &dyn Reading) -> Vec<f64> {
        let cuts = self.cuts();
        let mut pieces: Vec<Piece> = cuts.windows(2).map(|ends| (ends[0], ends[1])).collect();
        let mut sums = vec![0.0; self.line.n_columns()];
        let mut halving = Halving::new(reading.precision());
        while !pieces.is_empty() {
            let pass = self.pass(&pieces, reading);
            if halving.times == 0 {
                let shares = pass.jump_shares();
                self.add_jumps(&pieces, &pass.at_nodes, &shares, &mut sums);
            }
            halving.see(&pass.ends, pass.gross);
            let off = |p: usize| halving.is_off(&pass.parts[p], pass.ends[p], pieces[p]);
            let (halves, kept) = halving.split(&pieces, off);
            for p in kept {
                sums.iter_mut().zip(&pass.parts[p]).for_each(|(sum, part)| *sum += part);
            }
            pieces = halves;
            halving.times += 1;
        }
        sums
    }

    /// Every piece by its nodes.
    fn pass<'b>(&'b self, pieces: &[Piece], reading: &'b dyn Reading) -> Pass<'b> {
        let straight = self.is_piecewise_linear();
        let rule = gauss_legendre(if straight { reading.nodes() } else { SMOOTH_NODES });
        let (ends, places) = ends_of(pieces);
        let times = node_times(pieces, rule);
        let sweep = |times: &[f64]| {
            let input = self.line.inputs(times);
            Sweep::new(self.network, self.factors, reading.outputs(), input.as_ref())
        };
        let (at_ends, at_nodes) = (sweep(&ends), sweep(&times));
        let slopes: Vec<_> = (0..times.len()).map(|k| reading.read(&at_nodes.point(k)).1).collect();
        let pulled = at_nodes.pull_back(&slopes);
        let gross = gross(pulled.as_ref(), self.line.inputs(&times).as_ref());
        let parts = self.by_column(pieces, rule, pulled.as_ref());
        let value = |p: usize, end: usize| {
            // Ends of a piece lie on kinks, where only its inside says on which side.
            let beside = if straight { (&at_nodes, p * rule.len()) } else { (&at_ends, end) };
            reading.read(&at_ends.point_beside(end, beside)).0
        };
        let ends = places.iter().enumerate().map(|(p, &k)| (value(p, k), value(p, k + 1))).collect();
        Pass { parts, ends, gross, at_nodes }
    }

    /// ∫ Σ_i slope_i dx_i over every piece, column by column; `slopes` are those at its nodes.
    pub(super) fn by_column(
        &self,
        pieces: &[Piece],
        rule: &[(f64, f64)],
        slopes: MatRef<'_, f64>,
    ) -> Vec<Vec<f64>> {
        let times = node_times(pieces, rule);
        let of_piece = |(p, &(start, end)): (usize, &Piece)| {
            let mut sums = vec![0.0; self.line.n_columns()];
            for (k, (_, weight)) in rule.iter().enumerate() {
                let (node, share) = (p * rule.len() + k, weight * (end - start));
                self.line.add_by_column(times[node], share, slopes.col(node), &mut sums);
            }
            sums
        };
        pieces.iter().enumerate().map(of_piece).collect()
    }

    /// Jumps between pieces that follow each other, in equal shares to the units that turn there: `shares` has that of a unit,
    /// by the piece that begins with it.
    pub(super) fn add_jumps(&self, pieces: &[Piece], at_nodes: &Sweep<'_>, shares: &[f64], sums: &mut [f64]) {
        let per_piece = at_nodes.n_samples() / pieces.len();
        for l in 0..self.network.hidden().len() {
            let slopes = &at_nodes.slopes()[l];
            // Unit, node before, and its share of the jump.
            let mut turns = Vec::new();
            for (p, &share) in shares.iter().enumerate().skip(1).filter(|(_, share)| **share != 0.0) {
                let (before, after) = ((p - 1) * per_piece, p * per_piece);
                turns.extend(turned(slopes, before, after).map(|unit| (unit, before, share)));
            }
            let units: Vec<(usize, usize)> = turns.iter().map(|&(unit, node, _)| (unit, node)).collect();
            let by_input = at_nodes.unit_slopes(l, &units);
            for (k, &(_, node, jump)) in turns.iter().enumerate() {
                let (start, end) = pieces[node / per_piece];
                let mut moved = vec![0.0; sums.len()];
                self.line.add_by_column(0.5 * (start + end), 1.0, by_input.col(k), &mut moved);
                let total: f64 = moved.iter().sum();
                if total != 0.0 {
                    sums.iter_mut().zip(&moved).for_each(|(sum, part)| *sum += jump * (part / total));
                }
            }
        }
    }
}

/// Units that turn where this piece begins.
pub(super) fn turned_units(at_nodes: &Sweep<'_>, piece: usize, per_piece: usize) -> usize {
    let (before, after) = ((piece - 1) * per_piece, piece * per_piece);
    at_nodes.slopes().iter().map(|slopes| turned(slopes, before, after).count()).sum()
}

/// What the nodes of all pieces have said.
struct Pass<'a> {
    /// Part of each column, piece by piece.
    parts: Vec<Vec<f64>>,
    /// The reading at both ends of each piece, as seen from its inside.
    ends: Vec<(f64, f64)>,
    /// Largest Σ_i |slope_i x_i| of a node.
    gross: f64,
    at_nodes: Sweep<'a>,
}

impl Pass<'_> {
    /// By the piece that begins with it, the share of each unit that turns there in the jump between pieces.
    fn jump_shares(&self) -> Vec<f64> {
        let per_piece = self.at_nodes.n_samples() / self.ends.len();
        let share = |p: usize| {
            let jump = if p == 0 { 0.0 } else { self.ends[p].0 - self.ends[p - 1].1 };
            if jump == 0.0 { 0.0 } else { jump / turned_units(&self.at_nodes, p, per_piece).max(1) as f64 }
        };
        (0..self.ends.len()).map(share).collect()
    }
}

/// Which pieces to halve.
pub(super) struct Halving {
    precision: Precision,
    /// How often so far.
    pub(super) times: usize,
    /// Largest reading.
    scale: f64,
    /// Largest Σ_i |slope_i x_i|: an error ε of every input is one of ε times this.
    gross: f64,
}

impl Halving {
    pub(super) fn new(precision: Precision) -> Self {
        Self { precision, times: 0, scale: 0.0, gross: 0.0 }
    }

    /// Readings at the ends of pieces, and what inputs add and take away to make them.
    pub(super) fn see(&mut self, ends: &[(f64, f64)], gross: f64) {
        self.scale = ends.iter().fold(self.scale, |s, (start, end)| s.max(start.abs()).max(end.abs()));
        self.gross = self.gross.max(gross);
    }

    /// Whether the parts of a piece do not add up to what the reading changes along it.
    pub(super) fn is_off(&self, parts: &[f64], (first, last): (f64, f64), (start, end): Piece) -> bool {
        let error = (parts.iter().sum::<f64>() - (last - first)).abs();
        let rounding = self.precision.rounding * (self.scale + self.gross);
        error > (self.precision.tolerance * self.scale * (end - start)).max(rounding)
    }

    /// Halves of the pieces that are off, and the numbers of those that are kept.
    pub(super) fn split(&self, pieces: &[Piece], off: impl Fn(usize) -> bool) -> (Vec<Piece>, Vec<usize>) {
        let (mut halves, mut kept) = (Vec::new(), Vec::new());
        for (p, &(start, end)) in pieces.iter().enumerate() {
            let middle = 0.5 * (start + end);
            if self.times < HALVINGS
                && pieces.len() < self.precision.pieces
                && start < middle
                && middle < end
                && off(p)
            {
                halves.extend([(start, middle), (middle, end)]);
            } else {
                kept.push(p);
            }
        }
        (halves, kept)
    }
}

/// Largest Σ_i |slope_i x_i| of a column.
pub(super) fn gross(slopes: MatRef<'_, f64>, inputs: MatRef<'_, f64>) -> f64 {
    let of = |j: usize| -> f64 {
        slopes.col(j).iter().zip(inputs.col(j).iter()).map(|(slope, x)| (slope * x).abs()).sum()
    };
    (0..slopes.ncols()).map(of).fold(0.0, f64::max)
}

/// Units whose slope is not the same at two samples.
fn turned(slopes: &Mat<f64>, before: usize, after: usize) -> impl Iterator<Item = usize> + '_ {
    let pairs = slopes.col_as_slice(before).iter().zip(slopes.col_as_slice(after));
    pairs.enumerate().filter(|(_, (before, after))| before != after).map(|(unit, _)| unit)
}

/// Times at which pieces start and end, each once, and the place of every piece's start among them.
pub(super) fn ends_of(pieces: &[Piece]) -> (Vec<f64>, Vec<usize>) {
    let mut ends: Vec<f64> = Vec::with_capacity(pieces.len() + 1);
    let mut places = Vec::with_capacity(pieces.len());
    for &(start, end) in pieces {
        if ends.last() != Some(&start) {
            ends.push(start);
        }
        ends.push(end);
        places.push(ends.len() - 2);
    }
    (ends, places)
}

/// Times of the nodes of all pieces.
pub(super) fn node_times(pieces: &[Piece], rule: &[(f64, f64)]) -> Vec<f64> {
    let of_piece = |&(start, end): &Piece| rule.iter().map(move |(at, _)| start + at * (end - start));
    pieces.iter().flat_map(of_piece).collect()
}

/// Nodes and weights on (0, 1), exact for polynomials of degree 2n − 1; n = 1, 2 or 4.
pub(super) fn gauss_legendre(n: usize) -> &'static [(f64, f64)] {
    match n {
        1 => &[(0.5, 1.0)],
        2 => &[(0.211_324_865_405_187_1, 0.5), (0.788_675_134_594_812_9, 0.5)],
        _ => &[
            (0.069_431_844_202_973_71, 0.173_927_422_568_726_93),
            (0.330_009_478_207_571_87, 0.326_072_577_431_273_07),
            (0.669_990_521_792_428_1, 0.326_072_577_431_273_07),
            (0.930_568_155_797_026_3, 0.173_927_422_568_726_93),
        ],
    }
}
