//! Hebbian sufficient statistics and the natural parameters they add to (paper Eq. 7 and 8).
//!
//! ```text
//! T(φ, z) = ( Σ φφᵀ ,  Σ zφᵀ ,  Σ zzᵀ ,  n )
//! η       = ( V⁻¹ ,  M V⁻¹ ,  Ψ⁻¹ + M V⁻¹ Mᵀ ,  ν − d_y + d_x − 1 )
//! full batch:  η ← η⁰ + T          mini-batch:  η ← (1−κ) η + κ (η⁰ + (N/|B|) T_B)
//! ```
//!
//! The paper prints the second statistic transposed. Statistics are a commutative monoid (zero, add,
//! scale), so batching, streaming, merging and distributing are all additions.

use faer::{Accum, Mat, MatRef, unzip, zip};

use crate::base::linalg::{mirror_lower, product_into, symmetric_product_into, update, without_dust};
use crate::error::{Error, Result};

/// Sums over samples of pre- and post-synaptic outer products (paper Eq. 7).
#[derive(Clone, Debug, PartialEq)]
pub struct SufficientStats {
    /// Σ φφᵀ, `d_pre × d_pre`.
    pub pre_pre: Mat<f64>,
    /// Σ zφᵀ, `d_post × d_pre`.
    pub post_pre: Mat<f64>,
    /// Σ zzᵀ, `d_post × d_post`.
    pub post_post: Mat<f64>,
    /// Number of samples, or the sum of their weights.
    pub count: f64,
}

impl SufficientStats {
    /// The statistics of no data.
    pub fn zero(d_post: usize, d_pre: usize) -> Self {
        Self {
            pre_pre: Mat::zeros(d_pre, d_pre),
            post_pre: Mat::zeros(d_post, d_pre),
            post_post: Mat::zeros(d_post, d_post),
            count: 0.0,
        }
    }

    /// T(φ, z) of samples in columns; `pre` is `d_pre × n` with its row of ones, `post` is `d_post × n`.
    pub fn of(pre: MatRef<'_, f64>, post: MatRef<'_, f64>) -> Result<Self> {
        check_samples(pre, post)?;
        let mut stats = Self::zero(post.nrows(), pre.nrows());
        stats.accumulate(pre, pre, post, post.ncols() as f64);
        Ok(stats)
    }

    /// T with a weight per sample: weight 2 counts a sample twice.
    pub fn weighted(pre: MatRef<'_, f64>, post: MatRef<'_, f64>, weights: &[f64]) -> Result<Self> {
        check_samples(pre, post)?;
        if weights.len() != pre.ncols() {
            return Err(Error::Shape {
                what: "weights",
                axis: "entries",
                found: weights.len(),
                expected: pre.ncols(),
            });
        }
        let weighted = Mat::from_fn(pre.nrows(), pre.ncols(), |i, j| weights[j] * pre[(i, j)]);
        let mut stats = Self::zero(post.nrows(), pre.nrows());
        stats.accumulate(pre, weighted.as_ref(), post, 0.0);
        let weighted_post = Mat::from_fn(post.nrows(), post.ncols(), |i, j| weights[j] * post[(i, j)]);
        symmetric_product_into(stats.post_post.as_mut(), Accum::Replace, post, weighted_post.as_ref(), 1.0);
        mirror_lower(stats.post_post.as_mut());
        stats.count = weights.iter().sum();
        Ok(stats)
    }

    fn accumulate(
        &mut self,
        pre: MatRef<'_, f64>,
        weighted_pre: MatRef<'_, f64>,
        post: MatRef<'_, f64>,
        count: f64,
    ) {
        symmetric_product_into(self.pre_pre.as_mut(), Accum::Add, pre, weighted_pre, 1.0);
        product_into(self.post_pre.as_mut(), Accum::Add, post, weighted_pre.transpose(), 1.0);
        symmetric_product_into(self.post_post.as_mut(), Accum::Add, post, post, 1.0);
        mirror_lower(self.pre_pre.as_mut());
        mirror_lower(self.post_post.as_mut());
        self.count += count;
    }

    /// Width of z.
    pub fn d_post(&self) -> usize {
        self.post_pre.nrows()
    }

    /// Width of φ, bias included.
    pub fn d_pre(&self) -> usize {
        self.post_pre.ncols()
    }

    /// T ← T + other.
    pub fn add(&mut self, other: &Self) -> Result<()> {
        check_widths("statistics", (other.d_post(), other.d_pre()), (self.d_post(), self.d_pre()))?;
        self.pre_pre += &other.pre_pre;
        self.post_pre += &other.post_pre;
        self.post_post += &other.post_post;
        self.count += other.count;
        Ok(())
    }

    /// T ← factor · T.
    pub fn scale(&mut self, factor: f64) {
        for part in [&mut self.pre_pre, &mut self.post_pre, &mut self.post_post] {
            zip!(part).for_each(|unzip!(x)| *x *= factor);
        }
        self.count *= factor;
    }
}

/// Natural parameters η of a matrix-normal-Wishart distribution (paper Eq. 8).
#[derive(Clone, Debug, PartialEq)]
pub struct NaturalParams {
    /// V⁻¹, `d_pre × d_pre`.
    pub pre_pre: Mat<f64>,
    /// M V⁻¹, `d_post × d_pre`.
    pub post_pre: Mat<f64>,
    /// Ψ⁻¹ + M V⁻¹ Mᵀ, `d_post × d_post`.
    pub post_post: Mat<f64>,
    /// ν − d_post + d_pre − 1.
    pub count: f64,
}

impl NaturalParams {
    /// Width of z.
    pub fn d_post(&self) -> usize {
        self.post_pre.nrows()
    }

    /// Width of φ, bias included.
    pub fn d_pre(&self) -> usize {
        self.post_pre.ncols()
    }

    /// ν = count + d_post − d_pre + 1.
    pub fn dof(&self) -> f64 {
        self.count + self.d_post() as f64 - self.d_pre() as f64 + 1.0
    }

    /// η ← η + T: the exact Bayesian update.
    pub fn add(&mut self, stats: &SufficientStats) -> Result<()> {
        check_widths("statistics", (stats.d_post(), stats.d_pre()), (self.d_post(), self.d_pre()))?;
        self.pre_pre += &stats.pre_pre;
        self.post_pre += &stats.post_pre;
        self.post_post += &stats.post_post;
        self.count += stats.count;
        Ok(())
    }

    /// η ← (1−κ) η + κ (η⁰ + scale · T): a natural-gradient step of size κ.
    pub fn blend(&mut self, prior: &Self, stats: &SufficientStats, rate: f64, scale: f64) -> Result<()> {
        check_widths("prior", (prior.d_post(), prior.d_pre()), (self.d_post(), self.d_pre()))?;
        check_widths("statistics", (stats.d_post(), stats.d_pre()), (self.d_post(), self.d_pre()))?;
        let keep = 1.0 - rate;
        let parts = [
            (&mut self.pre_pre, &prior.pre_pre, &stats.pre_pre),
            (&mut self.post_pre, &prior.post_pre, &stats.post_pre),
            (&mut self.post_post, &prior.post_post, &stats.post_post),
        ];
        for (eta, eta0, t) in parts {
            update(eta, eta0, t, |eta, eta0, t| without_dust(keep * eta + rate * (eta0 + scale * t)));
        }
        self.count = keep * self.count + rate * (prior.count + scale * stats.count);
        Ok(())
    }
}

fn check_samples(pre: MatRef<'_, f64>, post: MatRef<'_, f64>) -> Result<()> {
    if post.ncols() == pre.ncols() {
        Ok(())
    } else {
        Err(Error::Shape { what: "post", axis: "samples", found: post.ncols(), expected: pre.ncols() })
    }
}

fn check_widths(what: &'static str, found: (usize, usize), expected: (usize, usize)) -> Result<()> {
    if found.0 != expected.0 {
        return Err(Error::Shape { what, axis: "post-synaptic rows", found: found.0, expected: expected.0 });
    }
    if found.1 != expected.1 {
        return Err(Error::Shape {
            what,
            axis: "pre-synaptic columns",
            found: found.1,
            expected: expected.1,
        });
    }
    Ok(())
}
