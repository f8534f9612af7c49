//! The column precision of a layer, η₁ = V⁻¹ = V⁰⁻¹ + Σ w φφᵀ, whole or in a form that is linear in the layer's width.
//!
//! | structure   | kept of Σ w φφᵀ                          | adds up         | memory       |
//! |-------------|------------------------------------------|-----------------|--------------|
//! | `Dense`     | everything                               | exactly         | d²           |
//! | `Blocks(b)` | blocks of b units, and directions they share | blocks exactly | d · b    |
//! | `Sketch(k)` | k directions, and a bound on the rest    | within the bound | d · 2k      |
//!
//! A sketch is in units of the prior, φ̃ = V⁰^½ φ, so that a prior of any diagonal is the identity beside it:
//!
//! ```text
//! V⁻¹ = V⁰^−½ ( I + B Bᵀ + ρ I ) V⁰^−½         ρ = 0 for leverages,  δ/2 for steps
//! ```
//!
//! With ρ = 0 it is a lower bound of the precision: no leverage, and so no epistemic variance, is understated. With
//! ρ = δ/2 it is in the middle of what the precision can be.

use faer::{Accum, Mat, MatRef};

use super::blocks::{BlockInverse, BlockSums};
use super::sketch::{Directions, FrequentDirections};
use crate::base::linalg::{Cholesky, cast, inner, mirror_lower, product_into, symmetric_product_into};
use crate::base::parallel::{for_each_block_if, splits_product};
use crate::error::{Error, Result};
use crate::real::Real;

/// What is kept of a column precision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Structure {
    /// All of it.
    Dense,
    /// Blocks of so many units.
    Blocks(usize),
    /// So many directions.
    Sketch(usize),
}

/// What a precision is wanted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Leverages: no precision that the data may not have.
    Leverage,
    /// Steps of the mean: the precision in the middle of what the data may have.
    Step,
}

/// V⁻¹ = V⁰⁻¹ + Σ w φφᵀ, with a diagonal V⁰.
#[derive(Clone, Debug)]
pub struct ColumnPrecision {
    /// Diagonal of V⁰⁻¹.
    prior: Vec<f64>,
    sums: ColumnSums,
}

/// What is kept of Σ w φφᵀ.
#[derive(Clone, Debug)]
pub enum ColumnSums {
    /// The lower triangle.
    Dense(Mat<f64>),
    /// Blocks, and what they share.
    Blocks(BlockSums),
    /// Directions, in units of the prior.
    Sketch(FrequentDirections),
}

impl ColumnSums {
    /// Blocks that were kept: their lower triangles, and what they share.
    pub(crate) fn blocks(size: usize, blocks: Vec<Mat<f64>>, shared: FrequentDirections) -> Self {
        Self::Blocks(BlockSums::from_parts(size, blocks, shared))
    }
}

impl ColumnPrecision {
    /// That of the prior alone; the last activity is the bias.
    pub fn new(structure: Structure, prior: Vec<f64>) -> Self {
        let d = prior.len();
        let sums = match structure {
            Structure::Dense => ColumnSums::Dense(Mat::zeros(d, d)),
            Structure::Blocks(size) => ColumnSums::Blocks(BlockSums::new(d, size)),
            Structure::Sketch(k) => ColumnSums::Sketch(FrequentDirections::new(d, k)),
        };
        Self { prior, sums }
    }

    /// That of samples whose sums were kept.
    pub(crate) fn from_sums(prior: Vec<f64>, sums: ColumnSums) -> Self {
        Self { prior, sums }
    }

    /// What is kept of the samples.
    pub fn sums(&self) -> &ColumnSums {
        &self.sums
    }

    /// The same prior and structure without any samples.
    pub fn emptied(&self) -> Self {
        Self::new(self.structure(), self.prior.clone())
    }

    /// What is kept.
    pub fn structure(&self) -> Structure {
        match &self.sums {
            ColumnSums::Dense(_) => Structure::Dense,
            ColumnSums::Blocks(sums) => Structure::Blocks(sums.size()),
            ColumnSums::Sketch(sketch) => Structure::Sketch(sketch.k()),
        }
    }

    /// Width of φ, bias included.
    pub fn d(&self) -> usize {
        self.prior.len()
    }

    /// Diagonal of V⁰⁻¹.
    pub fn prior(&self) -> &[f64] {
        &self.prior
    }

    /// Add factor · ΦΦᵀ, samples in columns, each times the root of its weight.
    pub fn absorb<T: Real>(&mut self, pre: MatRef<'_, T>, factor: f64) -> Result<()> {
        match &mut self.sums {
            ColumnSums::Dense(sum) => {
                let mut outer = Mat::<T>::zeros(sum.nrows(), sum.nrows());
                symmetric_product_into(outer.as_mut(), Accum::Replace, pre, pre, T::one());
                for j in 0..sum.ncols() {
                    let (to, from) = (&mut sum.col_as_slice_mut(j)[j..], &outer.col_as_slice(j)[j..]);
                    to.iter_mut().zip(from).for_each(|(to, from)| *to += factor * from.as_f64());
                }
                Ok(())
            }
            ColumnSums::Blocks(sums) => sums.absorb(pre, factor),
            ColumnSums::Sketch(sketch) => {
                let own = Mat::from_fn(pre.nrows(), pre.ncols(), |i, j| {
                    pre[(i, j)].as_f64() / self.prior[i].sqrt()
                });
                sketch.absorb(own.as_ref(), factor)
            }
        }
    }

    /// The samples times a factor; the prior stays.
    pub fn scale(&mut self, factor: f64) {
        match &mut self.sums {
            ColumnSums::Dense(sum) => faer::zip!(sum).for_each(|faer::unzip!(x)| *x *= factor),
            ColumnSums::Blocks(sums) => sums.scale(factor),
            ColumnSums::Sketch(sketch) => sketch.scale(factor),
        }
    }

    /// Add the samples of another precision of the same prior and structure.
    pub fn add(&mut self, other: &Self) -> Result<()> {
        let (found, expected) = (other.d(), self.d());
        if found != expected {
            return Err(Error::Shape { what: "a column precision", axis: "rows", found, expected });
        }
        match (&mut self.sums, &other.sums) {
            (ColumnSums::Dense(own), ColumnSums::Dense(other)) => {
                *own += other;
                Ok(())
            }
            (ColumnSums::Blocks(own), ColumnSums::Blocks(other)) => own.add(other),
            (ColumnSums::Sketch(own), ColumnSums::Sketch(other)) => own.add(other),
            _ => Err(Error::Conflict { first: "a column precision", second: "one of another structure" }),
        }
    }

    /// V⁻¹ as a matrix, of a sketch the lower bound. It takes memory of width².
    pub fn dense(&self) -> Result<Mat<f64>> {
        let root = |i: usize| self.prior[i].sqrt();
        Ok(match &self.sums {
            ColumnSums::Dense(sum) => {
                let mut whole = sum.clone();
                self.prior.iter().enumerate().for_each(|(i, precision)| whole[(i, i)] += precision);
                mirror_lower(whole.as_mut());
                whole
            }
            ColumnSums::Blocks(sums) => sums.dense(&self.prior)?,
            ColumnSums::Sketch(sketch) => {
                let columns = Mat::from_fn(self.d(), sketch.columns().ncols(), |i, j| {
                    root(i) * sketch.columns()[(i, j)]
                });
                let mut whole = &columns * columns.transpose();
                self.prior.iter().enumerate().for_each(|(i, precision)| whole[(i, i)] += precision);
                mirror_lower(whole.as_mut());
                whole
            }
        })
    }

    /// V, ready to multiply with.
    pub fn covariance<T: Real>(&self, purpose: Purpose) -> Result<ColumnCovariance<T>> {
        Ok(match &self.sums {
            ColumnSums::Dense(_) => {
                let factor = Cholesky::new(self.dense()?.as_ref(), "the column precision")?;
                ColumnCovariance::Dense(cast(factor.inverse().as_ref()))
            }
            ColumnSums::Blocks(sums) => ColumnCovariance::Blocks(sums.inverse(&self.prior)?),
            ColumnSums::Sketch(sketch) => {
                let Directions { basis, values } = sketch.directions()?;
                let rest = 1.0
                    + match purpose {
                        Purpose::Leverage => 0.0,
                        Purpose::Step => 0.5 * sketch.shrunk(),
                    };
                ColumnCovariance::Sketch(SketchInverse {
                    roots: self.prior.iter().map(|precision| T::lit(1.0 / precision.sqrt())).collect(),
                    basis: cast(basis.as_ref()),
                    along: values.iter().map(|value| T::lit(1.0 / (value + rest))).collect(),
                    rest: T::lit(1.0 / rest),
                })
            }
        })
    }

    /// d − tr(V V⁰⁻¹): of how many activities the samples have decided what weights they get, by the lower bound of a
    /// sketch.
    pub fn effective(&self) -> Result<f64> {
        let d = self.d() as f64;
        if let ColumnSums::Sketch(sketch) = &self.sums {
            let values = sketch.directions()?.values;
            return Ok(values.iter().map(|value| value / (1.0 + value)).sum());
        }
        let kept: f64 = match self.covariance::<f64>(Purpose::Leverage)? {
            ColumnCovariance::Blocks(inverse) => {
                inverse.diagonal().iter().zip(&self.prior).map(|(v, p)| v * p).sum()
            }
            ColumnCovariance::Dense(inverse) => (0..self.d()).map(|i| inverse[(i, i)] * self.prior[i]).sum(),
            ColumnCovariance::Sketch(_) => 0.0,
        };
        Ok(d - kept)
    }

    /// log |V⁻¹| − log |V⁰⁻¹|: how much the samples have said, by the lower bound of a sketch.
    pub fn log_det_gain(&self) -> Result<f64> {
        if let ColumnSums::Sketch(sketch) = &self.sums {
            return Ok(sketch.directions()?.values.iter().map(|value| value.ln_1p()).sum());
        }
        let whole = Cholesky::new(self.dense()?.as_ref(), "the column precision")?;
        Ok(whole.log_det() - self.prior.iter().map(|precision| precision.ln()).sum::<f64>())
    }

    /// How much the precision may exceed its lower bound in any direction, in units of the prior: 0 where nothing is left
    /// out of the sums that are kept.
    pub fn slack(&self) -> f64 {
        if let ColumnSums::Sketch(sketch) = &self.sums { sketch.shrunk() } else { 0.0 }
    }
}

/// V in a form that multiplies at the cost of what is kept.
#[derive(Clone, Debug)]
pub enum ColumnCovariance<T: Real> {
    /// V itself.
    Dense(Mat<T>),
    /// Inverses of blocks, and what they share.
    Blocks(BlockInverse<T>),
    /// Inverse along the directions of a sketch, and across them.
    Sketch(SketchInverse<T>),
}

/// V = V⁰^½ ( U diag(1/(λ+1+ρ)) Uᵀ + (I − U Uᵀ)/(1+ρ) ) V⁰^½.
#[derive(Clone, Debug)]
pub struct SketchInverse<T: Real> {
    /// Diagonal of V⁰^½.
    roots: Vec<T>,
    /// U.
    basis: Mat<T>,
    /// 1/(λ+1+ρ), and 1/(1+ρ).
    along: Vec<T>,
    rest: T,
}

impl<T: Real> ColumnCovariance<T> {
    /// V Φ, of any matrix with a row for each activity.
    pub fn times(&self, pre: MatRef<'_, T>) -> Mat<T> {
        let mut product = Mat::zeros(pre.nrows(), pre.ncols());
        let parallel = splits_product(self.cost() * pre.ncols());
        for_each_block_if(parallel, product.as_mut(), |start, block| {
            let pre = pre.subcols(start, block.ncols());
            match self {
                Self::Dense(inverse) => {
                    product_into(block.as_mut(), Accum::Replace, inverse.as_ref(), pre, T::one());
                }
                Self::Blocks(inverse) => inverse.times(pre, block.as_mut()),
                Self::Sketch(inverse) => inverse.times(pre, block.as_mut()),
            }
        });
        product
    }

    /// φᵀVφ of every sample.
    pub fn leverage(&self, pre: MatRef<'_, T>) -> Vec<f64> {
        if let Self::Sketch(inverse) = self {
            return inverse.leverage(pre);
        }
        let product = self.times(pre);
        (0..pre.ncols()).map(|j| inner(pre.subcols(j, 1), product.subcols(j, 1)).as_f64()).collect()
    }

    /// Whether it is that of parts of a precision.
    pub fn leaves_out(&self) -> bool {
        !matches!(self, Self::Dense(_))
    }

    /// Multiply-adds of a sample.
    fn cost(&self) -> usize {
        match self {
            Self::Dense(inverse) => inverse.nrows() * inverse.nrows(),
            Self::Blocks(inverse) => inverse.cost(),
            Self::Sketch(inverse) => 2 * inverse.basis.nrows() * inverse.basis.ncols(),
        }
    }
}

impl<T: Real> SketchInverse<T> {
    /// V⁰^½ Φ, and its coordinates along U.
    fn coordinates(&self, pre: MatRef<'_, T>) -> (Mat<T>, Mat<T>) {
        let own = Mat::from_fn(pre.nrows(), pre.ncols(), |i, j| self.roots[i] * pre[(i, j)]);
        let mut along = Mat::zeros(self.basis.ncols(), pre.ncols());
        product_into(along.as_mut(), Accum::Replace, self.basis.transpose(), own.as_ref(), T::one());
        (own, along)
    }

    fn times(&self, pre: MatRef<'_, T>, mut product: faer::MatMut<'_, T>) {
        let (own, mut along) = self.coordinates(pre);
        for j in 0..pre.ncols() {
            for (x, own) in along.col_as_slice_mut(j).iter_mut().zip(&self.along) {
                *x *= *own - self.rest;
            }
        }
        product_into(product.as_mut(), Accum::Replace, self.basis.as_ref(), along.as_ref(), T::one());
        for j in 0..pre.ncols() {
            for i in 0..pre.nrows() {
                product[(i, j)] = self.roots[i] * (product[(i, j)] + self.rest * own[(i, j)]);
            }
        }
    }

    /// Along U and across it apart: a difference of both would lose what is small.
    fn leverage(&self, pre: MatRef<'_, T>) -> Vec<f64> {
        let (mut across, along) = self.coordinates(pre);
        product_into(across.as_mut(), Accum::Add, self.basis.as_ref(), along.as_ref(), -T::one());
        (0..pre.ncols())
            .map(|j| {
                let rest: f64 = across.col_as_slice(j).iter().map(|x| (*x * *x).as_f64()).sum();
                let pairs = along.col_as_slice(j).iter().zip(&self.along);
                self.rest.as_f64() * rest + pairs.map(|(x, v)| (*x * *x * *v).as_f64()).sum::<f64>()
            })
            .collect()
    }
}
