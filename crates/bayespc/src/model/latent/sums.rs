//! Expected statistics of one part, and the posterior of its columns: the M-step, exact.
//!
//! ```text
//! T_d = ( Σ r ⟨φφᵀ⟩ ,  Σ r x_d ⟨φᵀ⟩ ,  Σ r (x_d² + ρ²) ,  Σ r )      over the rows where cell d is there
//! ⟨φφᵀ⟩ = [ H⁻¹ + μμᵀ , μ ; μᵀ , 1 ] ,   r: how much a row belongs to the part
//! η_d = η⁰_d + T_d
//! ```
//!
//! The sum over all rows is kept once, and for each column the sum over the rows where it is missing: these are few.
//! ρ is how exactly a cell is known. Without it a column that others determine has no noise, and learning stands still.
//!
//! *Folding*. Before the update the latents are moved and stretched so that over the rows of the part they have mean 0 and
//! covariance I, as their prior says; weights take the opposite. It changes no prediction of the part, learning is much
//! faster (it is parameter expansion, Liu, Rubin and Wu 1998), and rows that are generated have the spread of the data.

use faer::Mat;

use super::lens::{Column, Inferred, Lens};
use crate::base::linalg::Cholesky;
use crate::distributions::{MatrixNormalWishart, NaturalParams};
use crate::error::Result;

/// ρ²: a cell is known to one percent of the deviation of its column.
const ROUNDING: f64 = 1e-4;

/// Rows that belong to a part by less than this are not worth their arithmetic.
const NEGLIGIBLE: f64 = 1e-9;

/// Sums over the rows of one part.
#[derive(Clone, Debug)]
pub(super) struct Sums {
    /// k + 1.
    width: usize,
    /// Σ r ⟨φφᵀ⟩ over all rows, flat.
    all: Vec<f64>,
    /// The same over the rows where a column is missing, `(k + 1)² × d`.
    absent: Mat<f64>,
    /// Σ r over the rows where a column is missing.
    absent_count: Vec<f64>,
    /// Σ r x_d ⟨φ⟩, `(k + 1) × d`.
    post_pre: Mat<f64>,
    /// Σ r x_d².
    post_post: Vec<f64>,
    /// Σ r.
    pub count: f64,
}

impl Sums {
    /// Of no rows.
    pub fn zero(n_latents: usize, d: usize) -> Self {
        let width = n_latents + 1;
        Self {
            width,
            all: vec![0.0; width * width],
            absent: Mat::zeros(width * width, d),
            absent_count: vec![0.0; d],
            post_pre: Mat::zeros(width, d),
            post_post: vec![0.0; d],
            count: 0.0,
        }
    }

    /// Add a row that belongs to the part by `share` r.
    pub fn add_row(&mut self, share: f64, values: &[f64], missing: &[usize], row: &Inferred) {
        if share < NEGLIGIBLE {
            return;
        }
        let (width, k) = (self.width, self.width - 1);
        let covariance = row.precision.inverse();
        let pre = |a: usize| if a < k { row.mean[(a, 0)] } else { 1.0 };
        let mut own = vec![0.0; width * width];
        for a in 0..width {
            for b in 0..width {
                let spread = if a < k && b < k { covariance[(a, b)] } else { 0.0 };
                own[a * width + b] = share * (spread + pre(a) * pre(b));
            }
        }
        add(&mut self.all, &own);
        self.count += share;
        for &d in missing {
            add(self.absent.col_as_slice_mut(d), &own);
            self.absent_count[d] += share;
        }
        for (d, &x) in values.iter().enumerate() {
            for (a, sum) in self.post_pre.col_as_slice_mut(d).iter_mut().enumerate() {
                *sum += share * x * pre(a);
            }
            self.post_post[d] += share * x * x;
        }
    }

    /// T ← T + other.
    pub fn add(&mut self, other: &Self) {
        add(&mut self.all, &other.all);
        self.absent += &other.absent;
        add(&mut self.absent_count, &other.absent_count);
        self.post_pre += &other.post_pre;
        add(&mut self.post_post, &other.post_post);
        self.count += other.count;
    }

    /// T of latents folded back to mean 0 and covariance I.
    pub fn folded(&self) -> Result<Self> {
        let (width, k) = (self.width, self.width - 1);
        // One row more, of a latent as its prior has it, keeps a part without rows in place.
        let n = self.count + 1.0;
        let mean: Vec<f64> = (0..k).map(|a| self.all[a * width + k] / n).collect();
        let second = |a: usize, b: usize| (self.all[a * width + b] + f64::from(a == b)) / n;
        let spread = Mat::from_fn(k, k, |a, b| second(a, b) - mean[a] * mean[b]);
        let inverse = Cholesky::new(spread.as_ref(), "the covariance of the latents")?.inverse_lower();
        // φ ↦ Gφ with G = [L⁻¹, −L⁻¹m; 0, 1].
        let shift = |a: usize| -(0..k).map(|b| inverse[(a, b)] * mean[b]).sum::<f64>();
        let fold = Mat::from_fn(width, width, |a, b| match (a < k, b < k) {
            (true, true) => inverse[(a, b)],
            (true, false) => shift(a),
            (false, _) => f64::from(b == k),
        });
        let folded = |flat: &[f64]| -> Vec<f64> {
            let matrix = Mat::from_fn(width, width, |a, b| flat[a * width + b]);
            let image = &fold * matrix * fold.transpose();
            (0..width * width).map(|i| image[(i / width, i % width)]).collect()
        };
        let mut absent = Mat::zeros(width * width, self.absent.ncols());
        for d in (0..absent.ncols()).filter(|&d| self.absent_count[d] > 0.0) {
            absent.col_as_slice_mut(d).copy_from_slice(&folded(self.absent.col_as_slice(d)));
        }
        Ok(Self {
            width,
            all: folded(&self.all),
            absent,
            absent_count: self.absent_count.clone(),
            post_pre: &fold * &self.post_pre,
            post_post: self.post_post.clone(),
            count: self.count,
        })
    }

    /// η⁰ + factor · T of each column.
    pub fn natural(&self, prior: &[NaturalParams], factor: f64) -> Vec<NaturalParams> {
        let column = |(d, prior): (usize, &NaturalParams)| {
            let width = self.width;
            let absent = self.absent.col_as_slice(d);
            let pre_pre = |a: usize, b: usize| self.all[a * width + b] - absent[a * width + b];
            let count = self.count - self.absent_count[d];
            NaturalParams {
                pre_pre: Mat::from_fn(width, width, |a, b| prior.pre_pre[(a, b)] + factor * pre_pre(a, b)),
                post_pre: Mat::from_fn(1, width, |_, a| {
                    prior.post_pre[(0, a)] + factor * self.post_pre[(a, d)]
                }),
                post_post: Mat::from_fn(1, 1, |_, _| {
                    prior.post_post[(0, 0)] + factor * (self.post_post[d] + ROUNDING * count)
                }),
                count: prior.count + factor * count,
            }
        };
        prior.iter().enumerate().map(column).collect()
    }
}

/// η⁰ of every column before any data: weights of any size that matters, and noise that one row overrules.
pub(super) fn vague_prior(n_latents: usize, d: usize) -> Result<Vec<NaturalParams>> {
    /// V⁰⁻¹: a hundredth of a row.
    const PRECISION: f64 = 1e-2;
    /// Three degrees of freedom, the fewest with which the mean noise exists.
    const DOF: f64 = 3.0;
    /// Ψ⁰⁻¹.
    const NOISE: f64 = 1e-3;
    let width = n_latents + 1;
    let prior = MatrixNormalWishart::new(
        Mat::zeros(1, width),
        crate::base::linalg::scaled_identity(width, PRECISION),
        crate::base::linalg::scaled_identity(1, NOISE),
        DOF,
    )?;
    Ok(vec![prior.to_natural(); d])
}

/// What the cells of a row say of latents under the posterior of each column.
pub(super) fn expected_lens(columns: &[MatrixNormalWishart]) -> Lens {
    let flat = |column: &MatrixNormalWishart| -> (Vec<f64>, Vec<f64>) {
        let (width, covariance) = (column.d_pre(), column.col_cov());
        let mean = (0..width).map(|a| column.mean()[(0, a)]).collect();
        (mean, (0..width * width).map(|i| covariance[(i / width, i % width)]).collect())
    };
    let weights: Vec<_> = columns.iter().map(flat).collect();
    let column = |d: usize| Column {
        mean: &weights[d].0,
        covariance: &weights[d].1,
        precision: columns[d].expected_precision()[(0, 0)],
        log_precision: columns[d].expected_log_det_precision(),
    };
    Lens::new(columns.first().map_or(0, |column| column.d_pre() - 1), (0..columns.len()).map(column))
}

fn add(sum: &mut [f64], other: &[f64]) {
    sum.iter_mut().zip(other).for_each(|(sum, x)| *sum += x);
}
