//! The part of each column in the entropy of what networks say on average.
//!
//! ```text
//! H(p̄) ,   p̄ = Σ_c w_c p_c          ∂H/∂x_i = Σ_c w_c Σ_k F_k(p̄) ∂p_c(k)/∂x_i ,   F_k = −log p̄_k − 1
//! ```
//!
//! F couples the networks, but only by their probabilities. So each network is asked at its own pieces only: there p_c is the
//! polynomial through its values at both ends and at the nodes, on pieces short enough for that. Then p̄ is known at all times,
//! and with b_n the polynomial that is 1 at node n and 0 at the others,
//!
//! ```text
//! ∫ F_k ∂p_c(k)/∂x_i dx_i = Σ_n ( ∂p_c(k)/∂x_i dx_i/dt at n ) · ∫ F_k(p̄(t)) b_n(t) dt
//! ```
//!
//! takes one backward sweep for each node. A jump of H at a cut belongs to the units that turn there, as in `path`.

use super::super::predictive::entropy;
use super::disagreement::{lagrange, polynomial};
use super::path::{Follow, Piece, SMOOTH_NODES, ends_of, gauss_legendre, node_times, turned_units};
use super::sweep::{Point, Sweep};

/// Error of a probability along a piece that is not worth halving it.
const TOLERANCE: f64 = 1e-8;

/// Pieces of a network at most: where so many are off it is by rounding.
const PIECES: usize = 1 << 10;

/// Halvings at most: of a piece with a kink that is not known, and of a time in which a probability is nearly 0.
const HALVINGS: usize = 24;

/// Ratio of the largest to the least p̄_k of some times within which its logarithm is as good as a polynomial.
const LIKE: f64 = 1.3;

/// Probabilities below this have no part in an entropy.
const NOTHING: f64 = 1e-14;

/// Several numbers read off each point of a network.
pub(crate) trait Readings: Sync {
    /// Outputs of which E and N are read.
    fn outputs(&self) -> &[usize];

    /// The numbers p.
    fn read(&self, point: &Point) -> Vec<f64>;

    /// Slopes of ⟨by, p⟩.
    fn slopes(&self, point: &Point, by: &[f64]) -> Point;
}

/// The part of each column in what H(p̄) changes along the line, of networks with weights that sum to 1.
pub(crate) fn entropy_of_mean(networks: &[(f64, Follow<'_>)], readings: &[impl Readings]) -> Vec<f64> {
    let rule = gauss_legendre(SMOOTH_NODES);
    let places: Vec<f64> = std::iter::once(0.0).chain(rule.iter().map(|node| node.0)).chain([1.0]).collect();
    let (values, basis) = (lagrange(&places), lagrange(&places[1..=SMOOTH_NODES]));
    let courses: Vec<Vec<Stretch>> = networks
        .iter()
        .zip(readings)
        .map(|((_, network), reading)| course(network, reading, &values))
        .collect();
    let mixture = Mixture { networks, courses: &courses, values: &values };
    let integrals = mixture.integrals(&basis);
    let pieces: Vec<Vec<Piece>> =
        courses.iter().map(|course| course.iter().map(|s| (s.start, s.end)).collect()).collect();
    let times: Vec<Vec<f64>> = pieces.iter().map(|pieces| node_times(pieces, rule)).collect();
    let sweeps: Vec<Sweep<'_>> = networks
        .iter()
        .zip(readings)
        .zip(&times)
        .map(|(((_, network), reading), times)| {
            let input = network.line.inputs(times);
            Sweep::new(network.network, network.factors, reading.outputs(), input.as_ref())
        })
        .collect();
    let mut sums = vec![0.0; networks[0].1.line.n_columns()];
    let shares = mixture.jump_shares(&sweeps);
    for (c, (_, network)) in networks.iter().enumerate() {
        let slopes: Vec<Point> = integrals[c]
            .iter()
            .enumerate()
            .map(|(node, by)| readings[c].slopes(&sweeps[c].point(node), by))
            .collect();
        let pulled = sweeps[c].pull_back(&slopes);
        for (node, &time) in times[c].iter().enumerate() {
            network.line.add_by_column(time, 1.0, pulled.col(node), &mut sums);
        }
        network.add_jumps(&pieces[c], &sweeps[c], &shares[c], &mut sums);
    }
    sums
}

/// One piece of a network's way.
struct Stretch {
    start: f64,
    end: f64,
    /// p at the start, the nodes and the end, all seen from the inside.
    values: Vec<Vec<f64>>,
}

impl Stretch {
    /// p at a time inside.
    fn at(&self, t: f64, polynomials: &[Vec<f64>]) -> Vec<f64> {
        let u = (t - self.start) / (self.end - self.start);
        let mut p = vec![0.0; self.values[0].len()];
        for (values, coefficients) in self.values.iter().zip(polynomials) {
            let factor = polynomial(coefficients, u);
            p.iter_mut().zip(values).for_each(|(p, value)| *p += factor * value);
        }
        p
    }

    /// How far slopes between the nodes may be from the polynomial through them: about the highest power of p times what
    /// is left of it where the polynomial is 0 at all nodes.
    fn error(&self, polynomials: &[Vec<f64>]) -> f64 {
        let highest = |k: usize| -> f64 {
            let each = self.values.iter().zip(polynomials);
            each.map(|(values, c)| values[k] * c.last().copied().unwrap_or(0.0)).sum()
        };
        0.02 * (0..self.values[0].len()).map(|k| highest(k).abs()).fold(0.0, f64::max)
    }
}

/// A network's way along the line, in pieces on which its p are polynomials.
fn course(network: &Follow<'_>, reading: &impl Readings, polynomials: &[Vec<f64>]) -> Vec<Stretch> {
    let rule = gauss_legendre(SMOOTH_NODES);
    let straight = network.is_piecewise_linear();
    let mut pieces: Vec<Piece> = network.cuts().windows(2).map(|ends| (ends[0], ends[1])).collect();
    let mut done = Vec::new();
    for halved in 0.. {
        if pieces.is_empty() {
            break;
        }
        let (ends, places) = ends_of(&pieces);
        let sweep = |times: &[f64]| {
            let input = network.line.inputs(times);
            Sweep::new(network.network, network.factors, reading.outputs(), input.as_ref())
        };
        let (at_ends, at_nodes) = (sweep(&ends), sweep(&node_times(&pieces, rule)));
        let mut halves = Vec::new();
        for (p, &(start, end)) in pieces.iter().enumerate() {
            let first = p * rule.len();
            let at_end = |k: usize| {
                // Ends of a piece lie on kinks, where only its inside says on which side.
                let beside = if straight { (&at_nodes, first) } else { (&at_ends, k) };
                reading.read(&at_ends.point_beside(k, beside))
            };
            let nodes = (first..first + rule.len()).map(|node| reading.read(&at_nodes.point(node)));
            let values =
                std::iter::once(at_end(places[p])).chain(nodes).chain([at_end(places[p] + 1)]).collect();
            let stretch = Stretch { start, end, values };
            let middle = 0.5 * (start + end);
            let few = done.len() + halves.len() + pieces.len() - p < PIECES;
            if few
                && halved < HALVINGS
                && start < middle
                && middle < end
                && stretch.error(polynomials) > TOLERANCE
            {
                halves.extend([(start, middle), (middle, end)]);
            } else {
                done.push(stretch);
            }
        }
        pieces = halves;
    }
    done.sort_by(|a, b| a.start.total_cmp(&b.start));
    done
}

/// All networks.
struct Mixture<'a> {
    networks: &'a [(f64, Follow<'a>)],
    courses: &'a [Vec<Stretch>],
    values: &'a [Vec<f64>],
}

impl Mixture<'_> {
    /// Times at which a piece of any network ends, both ends of the line included.
    fn ends(&self) -> Vec<f64> {
        let all = self.courses.iter().flatten().flat_map(|stretch| [stretch.start, stretch.end]);
        let mut ends: Vec<f64> = all.collect();
        ends.sort_by(f64::total_cmp);
        ends.dedup();
        ends
    }

    /// p̄ at a time, of the piece of each network that has this number.
    fn mean(&self, t: f64, pieces: &[usize]) -> Vec<f64> {
        let mut mean: Vec<f64> = Vec::new();
        for ((weight, _), (course, &piece)) in self.networks.iter().zip(self.courses.iter().zip(pieces)) {
            let p = course[piece].at(t, self.values);
            mean.resize(p.len(), 0.0);
            mean.iter_mut().zip(p).for_each(|(sum, p)| *sum += weight * p);
        }
        mean
    }

    /// w_c ∫ F_k(p̄(t)) b_n(t) dt of every network, node and class.
    fn integrals(&self, basis: &[Vec<f64>]) -> Vec<Vec<Vec<f64>>> {
        let n_classes = self.courses[0][0].values[0].len();
        let room = |course: &Vec<Stretch>| vec![vec![0.0; n_classes]; course.len() * basis.len()];
        let mut integrals: Vec<Vec<Vec<f64>>> = self.courses.iter().map(room).collect();
        let mut pieces = vec![0; self.courses.len()];
        for pair in self.ends().windows(2) {
            self.advance(&mut pieces, pair[0]);
            let mut parts = vec![(pair[0], pair[1], 0)];
            while let Some((start, end, halved)) = parts.pop() {
                let times = node_times(&[(start, end)], gauss_legendre(SMOOTH_NODES));
                let means: Vec<Vec<f64>> = times.iter().map(|&t| self.mean(t, &pieces)).collect();
                if halved < HALVINGS && !are_alike(&means) {
                    let middle = 0.5 * (start + end);
                    parts.extend([(start, middle, halved + 1), (middle, end, halved + 1)]);
                    continue;
                }
                for ((t, mean), (_, share)) in times.iter().zip(&means).zip(gauss_legendre(SMOOTH_NODES)) {
                    let slope = |p: &f64| if *p > NOTHING { -p.ln() - 1.0 } else { 0.0 };
                    let slopes: Vec<f64> = mean.iter().map(slope).collect();
                    for (c, (weight, _)) in self.networks.iter().enumerate() {
                        let piece = &self.courses[c][pieces[c]];
                        let u = (t - piece.start) / (piece.end - piece.start);
                        for (n, b) in basis.iter().enumerate() {
                            let factor = weight * share * (end - start) * polynomial(b, u);
                            let sums = &mut integrals[c][pieces[c] * basis.len() + n];
                            sums.iter_mut().zip(&slopes).for_each(|(sum, slope)| *sum += factor * slope);
                        }
                    }
                }
            }
        }
        integrals
    }

    /// By network and piece, the share in the jump of H at its start of every unit that turns there.
    fn jump_shares(&self, sweeps: &[Sweep<'_>]) -> Vec<Vec<f64>> {
        let mut shares: Vec<Vec<f64>> = self.courses.iter().map(|course| vec![0.0; course.len()]).collect();
        let mut before = vec![0; self.courses.len()];
        let mut after = before.clone();
        let ends = self.ends();
        for &t in &ends[1..ends.len() - 1] {
            self.advance(&mut after, t);
            let jump = entropy(&self.mean(t, &after)) - entropy(&self.mean(t, &before));
            let turning: Vec<usize> =
                (0..after.len())
                    .map(|c| {
                        if after[c] == before[c] {
                            0
                        } else {
                            turned_units(&sweeps[c], after[c], SMOOTH_NODES)
                        }
                    })
                    .collect();
            let n_turned: usize = turning.iter().sum();
            for (c, _) in turning.iter().enumerate().filter(|(_, n)| **n > 0) {
                shares[c][after[c]] = jump / n_turned as f64;
            }
            before.copy_from_slice(&after);
        }
        shares
    }

    /// Go on to the pieces that hold what follows time `t`.
    fn advance(&self, pieces: &mut [usize], t: f64) {
        for (course, piece) in self.courses.iter().zip(pieces) {
            while course[*piece].end <= t && *piece + 1 < course.len() {
                *piece += 1;
            }
        }
    }
}

/// Whether no probability changes so much between these times that its logarithm is not smooth.
fn are_alike(means: &[Vec<f64>]) -> bool {
    (0..means[0].len()).all(|k| {
        let all = || means.iter().map(|mean| mean[k].max(NOTHING));
        let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
        most <= LIKE * least
    })
}
