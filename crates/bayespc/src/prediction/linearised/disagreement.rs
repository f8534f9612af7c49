//! The part of each column in how far networks are apart.
//!
//! ```text
//! D = Σ_c w_c (m_c − m̄)² ,   m̄ = Σ_c w_c m_c ,   Σ_c w_c = 1           ∂D/∂x_i = Σ_c 2 w_c (m_c − m̄) ∂m_c/∂x_i
//! ```
//!
//! Each network is asked at its own pieces only. On a piece its ∂m_c/∂x_i is the polynomial through a few nodes: a constant
//! where the network is piecewise linear, a cubic elsewhere, on pieces short enough that m_c follows from it. Then m_c − m̄ is
//! a polynomial between the ends of all pieces, and the integral of the product is exact.

use faer::{Mat, MatRef};

use super::path::{Follow, Halving, Piece, Precision, SMOOTH_NODES, gauss_legendre, gross, node_times};
use super::sweep::{Point, Sweep};
use crate::data::LogCurve;

/// The part of each column in what D of this output changes along the line; weights sum to 1. `curves` are those that
/// networks see the target through.
pub(crate) fn disagreement(
    networks: &[(f64, Follow<'_>)],
    curves: &[Option<LogCurve>],
    output: usize,
) -> Vec<f64> {
    let courses: Vec<Course> = networks
        .iter()
        .zip(curves)
        .map(|((_, network), curve)| Course::new(network, curve.as_ref(), output))
        .collect();
    let mut ends: Vec<f64> =
        courses.iter().flat_map(|course| course.pieces.iter().flat_map(|p| [p.start, p.end])).collect();
    ends.sort_by(f64::total_cmp);
    ends.dedup();
    let mut sums = vec![0.0; networks[0].1.line.n_columns()];
    let rule = gauss_legendre(SMOOTH_NODES);
    // The piece of each network that holds the times at hand, which rise.
    let mut places = vec![0; courses.len()];
    // Σ over times of weight · 2 w_c (m_c − m̄) · (polynomial that is 1 at the node, 0 at the others), by node.
    let mut at_nodes: Vec<Vec<f64>> =
        courses.iter().map(|course| vec![0.0; course.pieces.len() * course.basis.len()]).collect();
    for pair in ends.windows(2) {
        for (course, place) in courses.iter().zip(&mut places) {
            while course.pieces[*place].end <= pair[0] {
                *place += 1;
            }
        }
        for (at, share) in rule {
            let t = pair[0] + at * (pair[1] - pair[0]);
            let means: Vec<f64> =
                courses.iter().zip(&places).map(|(course, &place)| course.value(place, t)).collect();
            let centre: f64 = networks.iter().zip(&means).map(|((weight, _), mean)| weight * mean).sum();
            for (c, course) in courses.iter().enumerate() {
                let factor = share * (pair[1] - pair[0]) * 2.0 * networks[c].0 * (means[c] - centre);
                let piece = &course.pieces[places[c]];
                let u = (t - piece.start) / (piece.end - piece.start);
                for (k, basis) in course.basis.iter().enumerate() {
                    at_nodes[c][places[c] * course.basis.len() + k] += factor * polynomial(basis, u);
                }
            }
        }
    }
    for (course, weights) in courses.iter().zip(&at_nodes) {
        let rates = course.pieces.iter().flat_map(|piece| &piece.rates);
        for (weight, rates) in weights.iter().zip(rates) {
            sums.iter_mut().zip(rates).for_each(|(sum, rate)| *sum += weight * rate);
        }
    }
    sums
}

/// The mean of a network along the line.
struct Course {
    pieces: Vec<Stretch>,
    /// Coefficients, from the constant up, of the polynomials that are 1 at one node and 0 at the others.
    basis: Vec<Vec<f64>>,
    /// Those of their integrals from 0.
    integrals: Vec<Vec<f64>>,
}

/// One piece of it.
struct Stretch {
    start: f64,
    end: f64,
    /// m at the start.
    first: f64,
    /// (∂m/∂x_i) dx_i/dt of each column, at each node.
    rates: Vec<Vec<f64>>,
}

impl Course {
    fn new(network: &Follow<'_>, curve: Option<&LogCurve>, output: usize) -> Self {
        let nodes = if network.is_piecewise_linear() && curve.is_none() { 1 } else { SMOOTH_NODES };
        let mean = |activity: f64| curve.map_or(activity, |curve| curve.unbend(activity).0);
        let rule = gauss_legendre(nodes);
        let mut pieces: Vec<Piece> = network.cuts().windows(2).map(|ends| (ends[0], ends[1])).collect();
        let (mut done, mut halving) = (Vec::new(), Halving::new(Precision::default()));
        while !pieces.is_empty() {
            let ends: Vec<f64> = pieces.iter().flat_map(|&(start, end)| [start, end]).collect();
            let means = network.activities(&ends);
            let changes: Vec<(f64, f64)> = (0..pieces.len())
                .map(|p| (mean(means[(output, 2 * p)]), mean(means[(output, 2 * p + 1)])))
                .collect();
            let times = node_times(&pieces, rule);
            let inputs = network.line.inputs(&times);
            let bends: Vec<f64> = match curve {
                Some(curve) => {
                    let activities = network.activities(&times);
                    (0..times.len()).map(|j| curve.unbend(activities[(output, j)]).1).collect()
                }
                None => vec![1.0; times.len()],
            };
            let slopes = mean_slopes(network, inputs.as_ref(), output, &bends);
            halving.see(&changes, gross(slopes.as_ref(), inputs.as_ref()));
            let rates = |p: usize| -> Vec<Vec<f64>> {
                let at = |node: usize| {
                    let mut rates = vec![0.0; network.line.n_columns()];
                    network.line.add_by_column(times[node], 1.0, slopes.col(node), &mut rates);
                    rates
                };
                (p * nodes..(p + 1) * nodes).map(at).collect()
            };
            let off = |p: usize| {
                let (start, end) = pieces[p];
                let rates = rates(p);
                let nodes = rule.iter().zip(&rates);
                let parts: Vec<f64> =
                    nodes.map(|((_, share), r)| share * (end - start) * r.iter().sum::<f64>()).collect();
                halving.is_off(&parts, changes[p], pieces[p])
            };
            let (halves, kept) = halving.split(&pieces, off);
            for p in kept {
                let (start, end) = pieces[p];
                done.push(Stretch { start, end, first: changes[p].0, rates: rates(p) });
            }
            pieces = halves;
            halving.times += 1;
        }
        done.sort_by(|a, b| a.start.total_cmp(&b.start));
        let nodes: Vec<f64> = rule.iter().map(|node| node.0).collect();
        let basis = lagrange(&nodes);
        let integral = |basis: &Vec<f64>| {
            let raised = basis.iter().enumerate().map(|(power, c)| c / (power + 1) as f64);
            std::iter::once(0.0).chain(raised).collect()
        };
        let integrals = basis.iter().map(integral).collect();
        Self { pieces: done, basis, integrals }
    }

    /// m at time `t` in this piece: its start and the integral of its rate.
    fn value(&self, place: usize, t: f64) -> f64 {
        let piece = &self.pieces[place];
        let u = (t - piece.start) / (piece.end - piece.start);
        let each = self.integrals.iter().zip(&piece.rates);
        let gained: f64 =
            each.map(|(integral, rates)| polynomial(integral, u) * rates.iter().sum::<f64>()).sum();
        piece.first + (piece.end - piece.start) * gained
    }
}

/// ∂m/∂φ_0 of these inputs, `d × n`, where ∂m/∂a is `bends`.
fn mean_slopes(network: &Follow<'_>, inputs: MatRef<'_, f64>, output: usize, bends: &[f64]) -> Mat<f64> {
    let sweep = Sweep::new(network.network, network.factors, &[], inputs);
    let d = network.network.output().d_activity();
    let point = |&bend: &f64| Point {
        activity: (0..d).map(|i| if i == output { bend } else { 0.0 }).collect(),
        epistemic: Vec::new(),
        hidden_noise: Vec::new(),
    };
    sweep.pull_back(&bends.iter().map(point).collect::<Vec<_>>())
}

/// Coefficients, from the constant up, of the polynomials that are 1 at one of these places and 0 at the others.
pub(super) fn lagrange(places: &[f64]) -> Vec<Vec<f64>> {
    let of_node = |k: usize| {
        let mut coefficients = vec![1.0];
        for (_, at) in places.iter().enumerate().filter(|(other, _)| *other != k) {
            // Times (u − at)/(own − at).
            let distance = places[k] - at;
            let mut product = vec![0.0; coefficients.len() + 1];
            for (power, c) in coefficients.iter().enumerate() {
                product[power] -= c * at / distance;
                product[power + 1] += c / distance;
            }
            coefficients = product;
        }
        coefficients
    };
    (0..places.len()).map(of_node).collect()
}

/// A polynomial by its coefficients, from the constant up.
pub(super) fn polynomial(coefficients: &[f64], u: f64) -> f64 {
    coefficients.iter().rev().fold(0.0, |value, c| value * u + c)
}
