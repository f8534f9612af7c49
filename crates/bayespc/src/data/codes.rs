//! Numeric columns as piecewise-linear codes between their quantiles, beside the columns themselves.
//!
//! ```text
//! ψ_b(x) = clip((x − e_{b−1}) / (e_b − e_{b−1}), 0, 1)       quantiles e_0 < e_1 < … < e_B of the column
//! ```
//!
//! The first code is not clipped below and the last one not above: outside the data a network goes on as a straight line
//! and grows less sure. Inside the data such a code is often steep, being a small part of its column. Outside it goes on
//! no faster than the column does, both in their deviations; else the last bin alone would say how everything goes on. A
//! code bends a column for free; what is left to the hidden units is how columns act together. Every code is
//! standardised like a column. It is a fixed map of the input, so that nothing changes in what a network learns from it.
//!
//! A bin that is far wider than the others is halved until it is not. Where it has no values in it, as in a gap of the
//! data, its parts are the same in all samples: what lies between them is left to the prior, so that a network is
//! unsure there instead of drawing a straight line across. Together the k parts of a bin have the variance that it would
//! have alone, each a k-th of it: samples tell no difference.
//!
//! Quantiles that coincide are merged: integers get a bin per value if there are few. A column that has no two bins has no
//! code. Quantiles are values of the column, without interpolation, and count weights: a sample of weight 2 is two samples.
//! e_0 and e_B have at least half a sample's weight at or beyond them. A bin of less weight would have so small a variance
//! that its standardised code is huge, and a network would fit samples that hardly count.

use serde::{Deserialize, Serialize};

use super::inputs::Inputs;
use super::scaling::Standardiser;
use crate::error::{Error, Result};
use crate::real::Real;

/// Codes of all columns at most. More of them would cost more than they tell; columns then get fewer bins each.
const MOST: usize = 1000;

/// Codes of all samples together at most: long tables get fewer, so that they fit in memory (128 MB in single precision).
/// They have the samples from which hidden units learn to bend a column.
const ALL: usize = 1 << 25;

/// Bins are halved that are wider than this share of the column's range, and this many times the median bin.
const WIDEST: (f64, f64) = (0.2, 4.0);

/// The codes of a table's columns.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Codes {
    /// Bins that were asked for.
    bins: usize,
    /// e_0 … e_B of every column; fewer than three for a column without a code.
    edges: Vec<Vec<f64>>,
    /// Mean and deviation of every code.
    scaling: Standardiser,
    /// How fast the first and the last code of every column go on outside the data, as a share of how fast they rise
    /// inside.
    ends: Vec<[f64; 2]>,
}

impl Codes {
    /// How many codes there may be of `d` columns.
    pub(crate) fn most(bins: usize, d: usize) -> usize {
        // Those of which some are halved until none is a fifth of the range: at most eight more.
        let halves = |bins: usize| if bins > 0 { bins + 8 } else { 0 };
        halves(Self::bins_each(bins, d, 1)).saturating_mul(d)
    }

    /// Bins of each of `d` columns of `n` samples; none rather than one.
    fn bins_each(bins: usize, d: usize, n: usize) -> usize {
        let most = MOST.min(ALL / n.max(1));
        Some(bins.min(most / d.max(1))).filter(|&bins| bins > 1).unwrap_or(0)
    }

    /// Codes of at most `bins` bins for every column.
    pub(crate) fn fit(inputs: Inputs<'_>, weights: Option<&[f64]>, bins: usize) -> Self {
        let d = inputs.n_features();
        let most = Self::bins_each(bins, d, inputs.n_samples());
        let mut codes =
            Self { bins, edges: Vec::with_capacity(d), scaling: Standardiser::identity(0), ends: Vec::new() };
        for column in 0..d {
            let mut values: Vec<(f64, f64)> = (0..inputs.n_samples())
                .map(|j| (inputs.value(column, j), weights.map_or(1.0, |weights| weights[j])))
                .filter(|&(_, weight)| weight > 0.0)
                .collect();
            values.sort_by(|a, b| a.0.total_cmp(&b.0));
            let edges = if most == 0 { Vec::new() } else { quantiles(&values, most) };
            let (edges, parts) = halved(&edges);
            codes.add(edges, &parts, &values);
        }
        codes
    }

    /// Append a column with these edges, whose bins are each one of so many parts of a wider one; its sorted values and
    /// weights say how its codes are standardised.
    fn add(&mut self, edges: Vec<f64>, parts: &[usize], values: &[(f64, f64)]) {
        if edges.len() > 2 {
            let total: f64 = values.iter().map(|(_, weight)| weight).sum();
            let mean = |f: &dyn Fn(f64) -> f64| -> f64 {
                values.iter().map(|&(x, weight)| weight / total * f(x)).sum()
            };
            for b in 1..edges.len() {
                let offset = mean(&|x| code(&edges, b, x, [1.0; 2]));
                let variance = mean(&|x| (code(&edges, b, x, [1.0; 2]) - offset).powi(2));
                self.scaling.offset.push(offset);
                let whole = if variance > 0.0 { variance } else { 1.0 };
                self.scaling.scale.push((parts[b - 1] as f64 * whole).sqrt());
            }
            // Its own deviation over that of its column, both in widths of the bin.
            let rate = |b: usize, scale: f64| {
                let half = 0.5 * edges[b] - 0.5 * edges[b - 1];
                let along = |x: f64| (0.5 * x - 0.5 * edges[b - 1]) / half;
                let centre = mean(&along);
                let deviation = mean(&|x| (along(x) - centre).powi(2)).sqrt();
                (scale / deviation).min(1.0)
            };
            let last = edges.len() - 1;
            let scales = &self.scaling.scale[self.scaling.scale.len() - last..];
            self.ends.push([rate(1, scales[0]), rate(last, scales[last - 1])]);
        } else {
            self.ends.push([1.0; 2]);
        }
        self.edges.push(edges);
    }

    /// Bins that were asked for.
    pub fn bins(&self) -> usize {
        self.bins
    }

    /// e_0 … e_B of every column; fewer than three for a column without a code.
    pub fn edges(&self) -> &[Vec<f64>] {
        &self.edges
    }

    /// Codes of all columns together.
    pub fn width(&self) -> usize {
        self.scaling.dim()
    }

    /// The column of each code.
    pub(crate) fn columns(&self) -> impl Iterator<Item = usize> + '_ {
        let codes = |edges: &Vec<f64>| if edges.len() > 2 { edges.len() - 1 } else { 0 };
        self.edges.iter().enumerate().flat_map(move |(i, edges)| std::iter::repeat_n(i, codes(edges)))
    }

    /// Standardised columns and codes, sample after sample.
    pub(crate) fn encode<T: Real>(&self, inputs: Inputs<'_>, columns: &Standardiser) -> Vec<T> {
        let (d, n) = (self.edges.len(), inputs.n_samples());
        let mut packed = Vec::with_capacity((d + self.width()) * n);
        for j in 0..n {
            let value = |i: usize| inputs.value(i, j);
            packed.extend((0..d).map(|i| T::lit((value(i) - columns.offset[i]) / columns.scale[i])));
            let mut place = 0;
            for (i, edges) in self.edges.iter().enumerate().filter(|(_, edges)| edges.len() > 2) {
                let ends = self.ends[i];
                for b in 1..edges.len() {
                    let (offset, scale) = (self.scaling.offset[place], self.scaling.scale[place]);
                    packed.push(T::lit((code(edges, b, value(i), ends) - offset) / scale));
                    place += 1;
                }
            }
        }
        packed
    }

    /// Codes for `d` columns, with rising finite edges and a scaling for each.
    pub(crate) fn validate(&self, d: usize) -> Result<()> {
        if self.edges.len() != d {
            return Err(Error::Shape {
                what: "edges",
                axis: "columns",
                found: self.edges.len(),
                expected: d,
            });
        }
        for edges in &self.edges {
            if let Some(pair) = edges.windows(2).find(|pair| !(pair[0] < pair[1])) {
                return Err(Error::Setting { name: "edges", value: pair[1], must_be: "rising" });
            }
            if let Some(&value) = edges.iter().find(|edge| !edge.is_finite()) {
                return Err(Error::Setting { name: "edges", value, must_be: "finite" });
            }
        }
        if self.ends.len() != d {
            let found = self.ends.len();
            return Err(Error::Shape { what: "ends", axis: "columns", found, expected: d });
        }
        if let Some(&value) = self.ends.iter().flatten().find(|share| !(0.0..=1.0).contains(*share)) {
            return Err(Error::Setting { name: "ends", value, must_be: "between 0 and 1" });
        }
        let coded = self.edges.iter().filter(|edges| edges.len() > 2);
        self.scaling.validate(coded.map(|edges| edges.len() - 1).sum())
    }
}

/// ψ_b(x).
fn code(edges: &[f64], b: usize, x: f64, [first, last]: [f64; 2]) -> f64 {
    // Halves, because the distance of two huge edges of opposite sign overflows.
    let along = (0.5 * x - 0.5 * edges[b - 1]) / (0.5 * edges[b] - 0.5 * edges[b - 1]);
    let below = if b == 1 { first * along.min(0.0) } else { 0.0 };
    let above = if b + 1 == edges.len() { last * (along - 1.0).max(0.0) } else { 0.0 };
    below + along.clamp(0.0, 1.0) + above
}

/// The values at which a share 1/B, 2/B … of the weight is reached, between the first and the last value beyond which less
/// than half a sample lies; each value once.
fn quantiles(sorted: &[(f64, f64)], bins: usize) -> Vec<f64> {
    let total: f64 = sorted.iter().map(|(_, weight)| weight).sum();
    // Weights that sum to one, or to any other number below n, are shares: their mean is a sample.
    let half = 0.5 * (total / sorted.len() as f64).min(1.0);
    let reached = |share: &mut f64, weight: f64| {
        *share += weight;
        *share >= half
    };
    let (mut from_below, mut from_above) = (0.0, 0.0);
    let lowest = sorted.iter().find(|&&(_, weight)| reached(&mut from_below, weight));
    let highest = sorted.iter().rev().find(|&&(_, weight)| reached(&mut from_above, weight));
    let (Some(&(lowest, _)), Some(&(highest, _))) = (lowest, highest) else { return Vec::new() };
    let mut edges = vec![lowest];
    let (mut below, mut b) = (0.0, 1);
    for &(x, weight) in sorted {
        below += weight;
        while b < bins && below >= total * b as f64 / bins as f64 {
            edges.push(x.max(lowest).min(highest));
            b += 1;
        }
    }
    edges.push(highest);
    edges.dedup();
    edges
}

/// The same with wide bins halved, if there are two bins at all; and of how many parts each bin is one.
fn halved(edges: &[f64]) -> (Vec<f64>, Vec<usize>) {
    // Half widths, because the distance of two huge edges of opposite sign overflows.
    let halves: Vec<f64> = edges.windows(2).map(|pair| 0.5 * pair[1] - 0.5 * pair[0]).collect();
    let mut sorted = halves.clone();
    sorted.sort_by(f64::total_cmp);
    let median = sorted.get(sorted.len() / 2).copied().unwrap_or(0.0);
    let widest = (WIDEST.0 * halves.iter().sum::<f64>()).max(WIDEST.1 * median);
    let mut finer: Vec<f64> = edges.first().copied().into_iter().collect();
    let mut parts = Vec::new();
    for (pair, half) in edges.windows(2).zip(halves) {
        let halvings = (half / widest).log2().ceil().max(0.0);
        let n = if widest > 0.0 && edges.len() > 2 { halvings.exp2() as usize } else { 1 };
        let inner = |k: usize| {
            let share = k as f64 / n as f64;
            (1.0 - share) * pair[0] + share * pair[1]
        };
        // Values that are next to each other have nothing in between.
        let inside: Vec<f64> = (1..n).map(inner).filter(|&x| pair[0] < x && x < pair[1]).collect();
        parts.extend(std::iter::repeat_n(inside.len() + 1, inside.len() + 1));
        finer.extend(inside);
        finer.push(pair[1]);
    }
    (finer, parts)
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use faer::Mat;

    use super::*;

    fn fitted(values: &[f64], bins: usize) -> Codes {
        Codes::fit((&Mat::from_fn(1, values.len(), |_, j| values[j])).into(), None, bins)
    }

    fn encoded(codes: &Codes, x: f64) -> Vec<f64> {
        let identity = Standardiser::identity(1);
        codes.encode::<f64>((&Mat::from_fn(1, 1, |_, _| x)).into(), &identity)
    }

    #[test]
    fn codes_are_standardised_and_their_steps_are_the_column() {
        let values: Vec<f64> = (0..101).map(|i| (f64::from(i) / 10.0).powi(2)).collect();
        let codes = fitted(&values, 4);
        let edges = &codes.edges()[0];
        assert_eq!(edges.len(), 5);
        assert_eq!((edges[0], edges[4]), (0.0, 100.0));
        let all: Vec<Vec<f64>> = values.iter().map(|&x| encoded(&codes, x)).collect();
        for b in 1..=4 {
            let mean = all.iter().map(|code| code[b]).sum::<f64>() / 101.0;
            let square = all.iter().map(|code| code[b] * code[b]).sum::<f64>() / 101.0;
            assert_relative_eq!(mean, 0.0, epsilon = 1e-12);
            assert_relative_eq!(square, 1.0, epsilon = 1e-12);
        }
        // Σ_b (e_b − e_{b−1}) ψ_b(x) = x − e_0 inside the data.
        for x in [0.0, 3.3, 71.0, 100.0] {
            let code = encoded(&codes, x);
            let sum: f64 = (1..=4)
                .map(|b| {
                    let psi = code[b] * codes.scaling.scale[b - 1] + codes.scaling.offset[b - 1];
                    psi * (edges[b] - edges[b - 1])
                })
                .sum();
            assert_relative_eq!(sum, x, epsilon = 1e-9);
        }
    }

    #[test]
    fn a_gap_is_halved_until_its_bins_are_not_far_wider_than_the_rest() {
        let values: Vec<f64> = (0..60).map(|i| [0.0, 1.0, 2.0, 9.0, 10.0, 11.0][i % 6]).collect();
        let codes = fitted(&values, 6);
        let edges = &codes.edges()[0];
        // The gap from 2 to 9 is more than four times as wide as the median bin: it has two.
        assert_eq!(edges[..], [0.0, 1.0, 2.0, 5.5, 9.0, 10.0, 11.0]);
        // In all samples the codes of the gap are the same, and amid it they are not.
        let difference = |x: f64| (encoded(&codes, x)[3] - encoded(&codes, x)[4]).abs();
        assert!(values.iter().all(|&x| difference(x) < 1e-9));
        assert!(difference(5.5) > 0.5);
        // Together they are as large as the gap's one code would be.
        let squares = |x: f64| encoded(&codes, x)[3..5].iter().map(|c| c * c).sum::<f64>();
        let mean = values.iter().map(|&x| squares(x)).sum::<f64>() / 60.0;
        assert_relative_eq!(mean, 1.0, epsilon = 1e-9);
    }

    #[test]
    fn outside_the_data_the_outer_codes_go_on_as_fast_as_their_column() {
        let values: Vec<f64> = (0..400).map(|i| (f64::from(i) / 50.0).exp()).collect();
        let (codes, column) = (fitted(&values, 20), Mat::from_fn(1, 400, |_, j| values[j]));
        let columns = Standardiser::fit(column.as_ref()).unwrap();
        let at = |x: f64| codes.encode::<f64>((&Mat::from_fn(1, 1, |_, _| x)).into(), &columns);
        let last = codes.width();
        let (end, one_on, two_on) = (values[399], values[399] + 50.0, values[399] + 100.0);
        let step = |i: usize, from: f64, to: f64| at(to)[i] - at(from)[i];
        assert_relative_eq!(step(last, end, one_on), step(0, end, one_on), max_relative = 1e-9);
        assert_relative_eq!(step(last, one_on, two_on), step(last, end, one_on), max_relative = 1e-9);
        // Inside it is far steeper.
        assert!(step(last, end - 50.0, end) > 2.0 * step(0, end - 50.0, end));
        // The first bin is so narrow that it is steeper still; below the data it goes on as its column does, too.
        assert_relative_eq!(step(1, -50.0, values[0]), step(0, -50.0, values[0]), max_relative = 1e-9);
    }

    #[test]
    fn outside_the_data_only_the_outer_codes_move() {
        let codes = fitted(&(0..50).map(f64::from).collect::<Vec<_>>(), 5);
        let (inside, outside) = (encoded(&codes, 49.0), encoded(&codes, 490.0));
        assert_eq!(inside[1..5], outside[1..5]);
        assert!(outside[5] > 5.0 * inside[5]);
        let (inside, outside) = (encoded(&codes, 0.0), encoded(&codes, -490.0));
        assert_eq!(inside[2..6], outside[2..6]);
        assert!(outside[1] < inside[1]);
    }

    #[test]
    fn ties_merge_and_columns_without_two_bins_have_no_code() {
        // Constant, two values, three values, many ties at one.
        assert_eq!(fitted(&[3.0; 9], 8).width(), 0);
        assert_eq!(fitted(&[0.0, 1.0, 1.0, 0.0], 8).width(), 0);
        assert_eq!(fitted(&[1.0, 2.0, 3.0, 3.0, 1.0, 2.0], 8).edges()[0], [1.0, 2.0, 3.0]);
        let mut zeros = vec![0.0; 90];
        zeros.extend((1..=10).map(f64::from));
        assert_eq!(fitted(&zeros, 10).edges()[0], [0.0, 10.0]);
        assert_eq!(fitted(&zeros, 20).edges()[0], [0.0, 5.0, 10.0]);
        assert_eq!(fitted(&[1.0], 8).width(), 0);
    }

    #[test]
    fn weights_count_as_repetition() {
        let x = Mat::from_fn(1, 6, |_, j| [5.0, 1.0, 2.0, 9.0, 4.0, 7.0][j]);
        let weights = [2.0, 1.0, 3.0, 1.0, 0.0, 2.0];
        let repeated = [5.0, 5.0, 1.0, 2.0, 2.0, 2.0, 9.0, 7.0, 7.0];
        let (one, other) = (Codes::fit((&x).into(), Some(&weights), 3), fitted(&repeated, 3));
        assert_eq!(one.edges(), other.edges());
        for (a, b) in one.scaling.offset.iter().zip(&other.scaling.offset) {
            assert_relative_eq!(*a, *b, epsilon = 1e-14);
        }
    }

    #[test]
    fn samples_that_hardly_count_make_no_bins_and_have_no_huge_codes() {
        let x = Mat::from_fn(1, 60, |_, j| j as f64);
        let weights: Vec<f64> = (0..60).map(|j| if (20..40).contains(&j) { 1000.0 } else { 1e-4 }).collect();
        let codes = Codes::fit((&x).into(), Some(&weights), 10);
        let edges = &codes.edges()[0];
        assert_eq!((edges[0], edges[edges.len() - 1]), (20.0, 39.0));
        // A code between 0 and 1 that differs in a share p of the weight is (1 − p)/√(p (1 − p)) at most: here p is 1/20.
        // Outside it goes on as its column, whose deviation is √((20² − 1)/12): up to 20 further.
        let most = 19f64.sqrt() + 20.0 / (399.0f64 / 12.0).sqrt();
        for j in 0..60 {
            assert!(encoded(&codes, f64::from(j))[1..].iter().all(|code| code.abs() <= most), "{j}");
        }
    }

    #[test]
    fn weights_that_are_all_the_same_change_no_bin() {
        let x = Mat::from_fn(1, 60, |_, j| (j as f64).powi(2));
        for weight in [1e-9, 1.0 / 60.0, 0.1, 3.0] {
            let same = Codes::fit((&x).into(), Some(&[weight; 60]), 7);
            assert_eq!(same.edges(), Codes::fit((&x).into(), None, 7).edges(), "{weight}");
        }
    }

    #[test]
    fn many_columns_or_samples_get_fewer_bins_and_very_many_none() {
        let many = Mat::from_fn(200, 40, |i, j| ((i + 1) * j) as f64);
        assert_eq!(Codes::fit((&many).into(), None, 20).width(), 200 * 5);
        let long = Mat::from_fn(2, 1 << 22, |_, j| (j % 1000) as f64);
        assert_eq!(Codes::fit((&long).into(), None, 20).width(), 2 * 4);
        let very_many = Mat::from_fn(10_000, 3, |i, j| (i * j) as f64);
        assert_eq!(Codes::fit((&very_many).into(), None, 20).width(), 0);
    }

    #[test]
    fn huge_columns_stay_finite() {
        let codes = fitted(&[-1e308, -1.0, 0.0, 2.0, 1e308], 4);
        assert!(
            encoded(&codes, 1e308)[1..].iter().chain(&encoded(&codes, -1e308)[1..]).all(|x| x.is_finite())
        );
    }

    #[test]
    fn edges_that_do_not_rise_are_refused() {
        let mut codes = fitted(&(0..50).map(f64::from).collect::<Vec<_>>(), 5);
        assert!(codes.validate(1).is_ok());
        assert!(codes.validate(2).is_err());
        let mut fast = codes.clone();
        fast.ends[0][1] = 2.0;
        assert!(fast.validate(1).is_err());
        fast.ends = vec![[1.0; 2]; 3];
        assert!(fast.validate(1).is_err());
        codes.edges[0][2] = codes.edges[0][1];
        assert!(codes.validate(1).is_err());
    }
}
