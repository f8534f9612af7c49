//! What the linearised predictor says of samples, and how that changes with their inputs.
//!
//! ```text
//! a = ẑ_L ,   E = Σ_l h_l R_l ,   N = Σ_l ρ_l R_l          h_l = φ̂ᵀVφ̂ ,   R_l = G_l ⟨Σ_l⁻¹⟩⁻¹ G_lᵀ
//! ```
//!
//! A reading Q(a, E, N) has slopes Q_a, Q_E, Q_N. They pass back to the inputs by the chain rule:
//!
//! ```text
//! h_l           ⟨Q_E, R_l⟩ ,  from where 2 V φ̂ goes to φ̂
//! G_l           2 (h_l Q_E + ρ_l Q_N) G_l ⟨Σ_l⁻¹⟩⁻¹ , and on to the layers above, since G_l = G_{l+1} M diag(f′)
//! f′(ẑ_l)       from G_l, and by f″ to ẑ_l; a piecewise-linear f has no f″, and G_l jumps where a unit turns on
//! ẑ_l, φ̂_{l−1}  Q_a and all the above, layer by layer down
//! ```

use faer::{Accum, Mat, MatRef};

use super::path::Precision;
use super::{Factors, column_squares};
use crate::base::linalg::product_into;
use crate::network::{Activities, Network, back_one, slopes};

/// What is known of one sample, or the slopes of a reading by each of these.
#[derive(Clone, Debug)]
pub(crate) struct Point {
    /// a, all of it.
    pub(crate) activity: Vec<f64>,
    /// E of the outputs that are read, column by column; empty if only a is.
    pub(crate) epistemic: Vec<f64>,
    /// N of the same.
    pub(crate) hidden_noise: Vec<f64>,
}

/// A number read off each point of a network.
pub(crate) trait Reading: Sync {
    /// Outputs of which E and N are read; none: only a is.
    fn outputs(&self) -> &[usize];

    /// Nodes by which its slopes are integrated between two kinks of a piecewise-linear network.
    fn nodes(&self) -> usize;

    /// How exactly parts are to add up to it.
    fn precision(&self) -> Precision {
        Precision::default()
    }

    /// The number, and its slopes.
    fn read(&self, point: &Point) -> (f64, Point);
}

/// A forward pass of some samples, and the backward sweeps of the outputs that are read.
pub(crate) struct Sweep<'a> {
    network: &'a Network<f64>,
    factors: &'a Factors<f64>,
    outputs: &'a [usize],
    activities: Activities<f64>,
    /// f′(ẑ_l) of every hidden layer.
    slopes: Vec<Mat<f64>>,
    /// C⁻¹ φ̂ of every layer and output block; none if only a is read.
    rooted: Vec<Mat<f64>>,
    /// h of the same.
    leverages: Vec<Vec<f64>>,
    /// Rows of G_l, by hidden layer and output.
    feedback: Vec<Vec<Mat<f64>>>,
    /// Lᵀ/√ν times these.
    white: Vec<Vec<Mat<f64>>>,
}

impl<'a> Sweep<'a> {
    /// The samples `input` (`d × n`), with what `outputs` need.
    pub(super) fn new(
        network: &'a Network<f64>,
        factors: &'a Factors<f64>,
        outputs: &'a [usize],
        input: MatRef<'_, f64>,
    ) -> Self {
        let (n, n_hidden) = (input.ncols(), network.hidden().len());
        let (means, activation) = (network.means(), network.settings().activation);
        let mut activities = Activities::new(&network.widths(), n);
        activities.forward(&means, activation, input);
        let slopes = slopes(&activities, activation);
        let (mut rooted, mut feedback, mut white) = (Vec::new(), Vec::new(), Vec::new());
        if !outputs.is_empty() {
            let pre = |k: usize| &activities.pre[k.min(n_hidden)];
            let roots = factors.inv_col_roots.iter().enumerate();
            rooted = roots.map(|(k, root)| root * pre(k)).collect();
            let d = network.output().d_activity();
            let unit = |&o: &usize| Mat::from_fn(d, n, |i, _| f64::from(u8::from(i == o)));
            let mut above: Vec<Mat<f64>> = outputs.iter().map(unit).collect();
            for l in (0..n_hidden).rev() {
                let own: Vec<_> = above.iter().map(|g| back_one(means[l + 1], &slopes[l], g)).collect();
                white.push(own.iter().map(|g| &factors.metric_roots[l] * g).collect());
                feedback.push(own.clone());
                above = own;
            }
            feedback.reverse();
            white.reverse();
        }
        let leverages = rooted.iter().map(column_squares).collect();
        Self { network, factors, outputs, activities, slopes, rooted, leverages, feedback, white }
    }

    pub(super) fn n_samples(&self) -> usize {
        self.activities.capacity()
    }

    /// f′(ẑ_l) of every hidden layer.
    pub(super) fn slopes(&self) -> &[Mat<f64>] {
        &self.slopes
    }

    /// What is known of sample `j`.
    pub(super) fn point(&self, j: usize) -> Point {
        self.point_beside(j, (self, j))
    }

    /// The same with G_l of another sample, as it is on one side of a kink that sample `j` lies on.
    pub(super) fn point_beside(&self, j: usize, (other, k): (&Self, usize)) -> Point {
        let m = self.outputs.len();
        let activity = self.activities.post[self.slopes.len()].col_as_slice(j).to_vec();
        let (mut epistemic, mut hidden_noise) = (vec![0.0; m * m], vec![0.0; m * m]);
        if m == 0 {
            return Point { activity, epistemic, hidden_noise };
        }
        for l in 0..self.slopes.len() {
            for (entry, reach) in other.reach(l, k).into_iter().enumerate() {
                epistemic[entry] += self.leverages[l][j] * reach;
                if self.network.hidden_noise() {
                    hidden_noise[entry] += self.factors.noise_ratio[l] * reach;
                }
            }
        }
        self.each_block_entry(|b, entry, noise| epistemic[entry] += self.block_leverage(b, j) * noise);
        Point { activity, epistemic, hidden_noise }
    }

    /// h of an output block.
    fn block_leverage(&self, b: usize, j: usize) -> f64 {
        self.leverages[self.slopes.len() + b][j]
    }

    /// R_l of one sample.
    fn reach(&self, l: usize, j: usize) -> Vec<f64> {
        let m = self.outputs.len();
        let dot = |p: usize, q: usize| -> f64 {
            let (p, q) = (self.white[l][p].col_as_slice(j), self.white[l][q].col_as_slice(j));
            p.iter().zip(q).map(|(a, b)| a * b).sum()
        };
        (0..m * m).map(|entry| dot(entry % m, entry / m)).collect()
    }

    /// Block, entry of E and ⟨Σ⟩ of the outputs that are in one block.
    fn each_block_entry(&self, mut visit: impl FnMut(usize, usize, f64)) {
        let m = self.outputs.len();
        for (b, (start, rows)) in self.network.output().row_ranges().enumerate() {
            let place = |o: usize| (start..start + rows).contains(&o).then(|| o - start);
            for (entry, (p, q)) in (0..m * m).map(|e| (e, (self.outputs[e % m], self.outputs[e / m]))) {
                if let (Some(p), Some(q)) = (place(p), place(q)) {
                    visit(b, entry, self.factors.block_noise[b][(p, q)]);
                }
            }
        }
    }

    /// Slopes by the inputs, `d × n`, of readings that have these slopes by what is known of each sample.
    pub(super) fn pull_back(&self, slopes: &[Point]) -> Mat<f64> {
        let (n_hidden, means) = (self.slopes.len(), self.network.means());
        let n = slopes.len();
        let d = self.network.output().d_activity();
        let bends = self.through_slopes(slopes);
        let mut post = Mat::from_fn(d, n, |i, j| slopes[j].activity[i]);
        for l in (0..=n_hidden).rev() {
            let mut pre = Mat::zeros(means[l].ncols(), n);
            product_into(pre.as_mut(), Accum::Replace, means[l].transpose(), post.as_ref(), 1.0);
            if !self.outputs.is_empty() {
                self.add_leverages(l, slopes, &mut pre);
            }
            if l == 0 {
                return pre.subrows(0, self.network.d_input()).to_owned();
            }
            let (slope, bend) = (&self.slopes[l - 1], bends.get(l - 1));
            post = Mat::from_fn(slope.nrows(), n, |i, j| {
                slope[(i, j)] * pre[(i, j)] + bend.map_or(0.0, |bend| bend[(i, j)])
            });
        }
        post
    }

    /// 2 ⟨Q_E, R⟩ V φ̂ of layer `l`, or of all output blocks.
    fn add_leverages(&self, l: usize, slopes: &[Point], pre: &mut Mat<f64>) {
        let n_hidden = self.slopes.len();
        let mut by_leverage =
            vec![vec![0.0; slopes.len()]; if l == n_hidden { self.rooted.len() - l } else { 1 }];
        for (j, slope) in slopes.iter().enumerate() {
            if l < n_hidden {
                let pairs = slope.epistemic.iter().zip(self.reach(l, j));
                by_leverage[0][j] = pairs.map(|(s, r)| s * r).sum();
            } else {
                self.each_block_entry(|b, entry, noise| by_leverage[b][j] += slope.epistemic[entry] * noise);
            }
        }
        for (b, factor) in by_leverage.iter().enumerate() {
            let rooted = &self.rooted[l + b];
            let scaled =
                Mat::from_fn(rooted.nrows(), rooted.ncols(), |i, j| 2.0 * factor[j] * rooted[(i, j)]);
            let root = self.factors.inv_col_roots[l + b].transpose();
            product_into(pre.as_mut(), Accum::Add, root, scaled.as_ref(), 1.0);
        }
    }

    /// What reaches ẑ_l by f″, for every hidden layer; nothing where f has none.
    fn through_slopes(&self, slopes: &[Point]) -> Vec<Mat<f64>> {
        let activation = self.network.settings().activation;
        if self.outputs.is_empty() || activation.is_piecewise_linear() {
            return Vec::new();
        }
        let (m, n, means) = (self.outputs.len(), slopes.len(), self.network.means());
        // Slopes by the rows of G_l, which pass from the first layer up.
        let mut passed: Vec<Option<Mat<f64>>> = vec![None; m];
        let mut bends = Vec::with_capacity(self.slopes.len());
        for l in 0..self.slopes.len() {
            let slope = &self.slopes[l];
            let ratio = if self.network.hidden_noise() { self.factors.noise_ratio[l] } else { 0.0 };
            let mut bend = Mat::<f64>::zeros(slope.nrows(), n);
            for o in 0..m {
                let mut mixed = Mat::<f64>::zeros(slope.nrows(), n);
                for (j, at) in slopes.iter().enumerate() {
                    for q in 0..m {
                        let weight = 2.0
                            * (self.leverages[l][j] * at.epistemic[q * m + o]
                                + ratio * at.hidden_noise[q * m + o]);
                        let white = self.white[l][q].col_as_slice(j);
                        mixed.col_as_slice_mut(j).iter_mut().zip(white).for_each(|(x, w)| *x += weight * w);
                    }
                }
                let mut by_row = self.factors.metric_roots[l].transpose() * &mixed;
                if let Some(passed) = &passed[o] {
                    by_row += passed;
                }
                // G_l = f′ ⊙ (Mᵀ G_{l+1}): to f′, and to the rows above.
                let above = self.row_above(l, o);
                let without_bias = means[l + 1].subcols(0, slope.nrows());
                let up = without_bias.transpose() * &above;
                for j in 0..n {
                    for i in 0..slope.nrows() {
                        bend[(i, j)] += by_row[(i, j)] * up[(i, j)];
                        by_row[(i, j)] *= slope[(i, j)];
                    }
                }
                passed[o] = Some(without_bias * &by_row);
            }
            let z = &self.activities.post[l];
            bends.push(Mat::from_fn(z.nrows(), n, |i, j| {
                bend[(i, j)] * activation.second_derivative(z[(i, j)])
            }));
        }
        bends
    }

    /// Row `o` of G_{l+1}.
    fn row_above(&self, l: usize, o: usize) -> Mat<f64> {
        if let Some(rows) = self.feedback.get(l + 1) {
            return rows[o].clone();
        }
        let (d, n) = (self.network.output().d_activity(), self.activities.capacity());
        Mat::from_fn(d, n, |i, _| f64::from(u8::from(i == self.outputs[o])))
    }

    /// Slopes by the inputs of ẑ_l of one unit each, at the sample of this number, `d × n`.
    pub(super) fn unit_slopes(&self, l: usize, units: &[(usize, usize)]) -> Mat<f64> {
        let means = self.network.means();
        let without_bias = |l: usize| means[l].subcols(0, means[l].ncols() - 1);
        let top = without_bias(l);
        let mut slopes = Mat::from_fn(top.ncols(), units.len(), |i, k| top[(units[k].0, i)]);
        for below in (0..l).rev() {
            let through = Mat::from_fn(slopes.nrows(), units.len(), |i, k| {
                slopes[(i, k)] * self.slopes[below][(i, units[k].1)]
            });
            slopes = without_bias(below).transpose() * &through;
        }
        slopes
    }
}
