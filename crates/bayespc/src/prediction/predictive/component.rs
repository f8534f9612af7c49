//! One elliptical distribution per sample: normal or Student-t with a mean, and a covariance in two
//! parts that add.
//!
//! ```text
//! Cov(y_i) = A_i + E_i            aleatoric + epistemic
//! y_i ~ N(μ_i, Cov)               or t_k(μ_i, scale = Cov (k − 2)/k),  k > 2
//! ```
//!
//! A single Bayesian layer given its input is exactly Student-t with k = ν − d_y + 1, A = ⟨Σ⟩ and
//! E = (φᵀVφ)⟨Σ⟩. Both parts are stored as sparsely as they are known: shared by all samples,
//! diagonal, or full.

use faer::Mat;

use super::skew::{Part, Skew, WHOLE};
use crate::base::check::{check_finite, check_shape};
use crate::error::{Error, Result};

/// Covariances of d targets for n samples.
#[derive(Clone, Debug)]
pub enum Covariance {
    /// No uncertainty of this kind.
    Zero,
    /// The same for every sample, `d × d`.
    Shared(Mat<f64>),
    /// Variances of independent targets, `d × n`.
    Diagonal(Mat<f64>),
    /// One matrix per sample, `d² × n`: each column holds the columns of a `d × d` matrix.
    Full(Mat<f64>),
}

/// Degrees of freedom of the samples' distributions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Dof {
    /// Normal: infinitely many.
    Normal,
    /// Student-t with this k > 2.
    Shared(f64),
}

/// A normal or Student-t distribution for each of n samples.
#[derive(Clone, Debug)]
pub struct Component {
    /// Means μ, `d × n`.
    pub mean: Mat<f64>,
    /// Covariance of the noise in the targets.
    pub aleatoric: Covariance,
    /// Covariance that more data would take away.
    pub epistemic: Covariance,
    /// Degrees of freedom k.
    pub dof: Dof,
    /// How the noise leans to one side, if it does; of one target only.
    pub skew: Option<Skew>,
}

impl Covariance {
    /// Cov(y_row, y_column) of one sample.
    pub fn entry(&self, row: usize, column: usize, sample: usize) -> f64 {
        match self {
            Self::Shared(matrix) => matrix[(row, column)],
            Self::Diagonal(variances) if row == column => variances[(row, sample)],
            Self::Zero | Self::Diagonal(_) => 0.0,
            // A full column is d² long and d is its root; the caller knows no other width.
            Self::Full(columns) => columns[(row + column * columns.nrows().isqrt(), sample)],
        }
    }

    /// Var(y_target) of one sample.
    pub fn variance(&self, target: usize, sample: usize) -> f64 {
        self.entry(target, target, sample)
    }

    /// The covariance of the first `d` targets.
    pub(crate) fn leading(&self, d: usize) -> Self {
        match self {
            Self::Zero => Self::Zero,
            Self::Shared(matrix) => Self::Shared(matrix.submatrix(0, 0, d, d).to_owned()),
            Self::Diagonal(variances) => Self::Diagonal(variances.subrows(0, d).to_owned()),
            Self::Full(columns) => {
                let whole = columns.nrows().isqrt();
                Self::Full(Mat::from_fn(d * d, columns.ncols(), |k, j| columns[(k / d * whole + k % d, j)]))
            }
        }
    }

    /// This plus one matrix for every sample.
    pub(crate) fn plus_shared(&self, matrix: &Mat<f64>) -> Self {
        let d = matrix.nrows();
        match self {
            Self::Zero => Self::Shared(matrix.clone()),
            Self::Shared(own) => Self::Shared(own + matrix),
            Self::Diagonal(variances) if d == 1 => {
                Self::Diagonal(Mat::from_fn(1, variances.ncols(), |_, j| variances[(0, j)] + matrix[(0, 0)]))
            }
            Self::Diagonal(_) | Self::Full(_) => {
                let n = if let Self::Diagonal(m) | Self::Full(m) = self { m.ncols() } else { 0 };
                Self::Full(Mat::from_fn(d * d, n, |k, j| {
                    self.entry(k % d, k / d, j) + matrix[(k % d, k / d)]
                }))
            }
        }
    }

    /// Covariances of `d` targets for the samples of all parts, one after the other; each with its number of samples.
    fn concat(d: usize, parts: &[(&Self, usize)]) -> Self {
        if parts.iter().all(|(part, _)| matches!(part, Self::Zero)) {
            return Self::Zero;
        }
        let samples: Vec<(&Self, usize)> =
            parts.iter().flat_map(|&(part, n)| (0..n).map(move |j| (part, j))).collect();
        let n = samples.len();
        if parts.iter().all(|(part, _)| part.is_diagonal(d)) {
            return Self::Diagonal(Mat::from_fn(d, n, |i, j| samples[j].0.variance(i, samples[j].1)));
        }
        Self::Full(Mat::from_fn(d * d, n, |k, j| samples[j].0.entry(k % d, k / d, samples[j].1)))
    }

    /// Whether covariances between targets are zero by construction.
    pub(crate) fn is_diagonal(&self, d: usize) -> bool {
        d == 1 || matches!(self, Self::Zero | Self::Diagonal(_))
    }

    /// Whether all samples have the same covariance.
    pub(crate) fn is_shared(&self) -> bool {
        matches!(self, Self::Zero | Self::Shared(_))
    }

    /// Shapes for `d` targets and `n` samples; finite, with variances that are not negative.
    fn validate(&self, d: usize, n: usize, what: &'static str) -> Result<()> {
        let (values, rows, columns) = match self {
            Self::Zero => return Ok(()),
            Self::Shared(matrix) => (matrix, d, d),
            Self::Diagonal(variances) => (variances, d, n),
            Self::Full(matrices) => (matrices, d * d, n),
        };
        check_shape(what, values.as_ref(), rows, columns)?;
        check_finite(what, values.as_ref())?;
        for sample in 0..if self.is_shared() { 1 } else { n } {
            if let Some(pivot) = (0..d).find(|&target| self.variance(target, sample) < 0.0) {
                return Err(Error::NotPositiveDefinite { what, pivot });
            }
        }
        Ok(())
    }

    /// D Cov D for the diagonal D of `scale`.
    pub(super) fn scaled(&self, scale: &[f64]) -> Self {
        let d = scale.len();
        match self {
            Self::Zero => Self::Zero,
            Self::Shared(matrix) => {
                Self::Shared(Mat::from_fn(d, d, |i, j| matrix[(i, j)] * scale[i] * scale[j]))
            }
            Self::Diagonal(variances) => Self::Diagonal(Mat::from_fn(d, variances.ncols(), |i, sample| {
                variances[(i, sample)] * scale[i] * scale[i]
            })),
            Self::Full(matrices) => Self::Full(Mat::from_fn(d * d, matrices.ncols(), |ij, sample| {
                matrices[(ij, sample)] * scale[ij % d] * scale[ij / d]
            })),
        }
    }

    /// D_j Cov_j D_j for the diagonals D_j in the columns of `scale`.
    pub(super) fn scaled_each(&self, scale: &Mat<f64>) -> Self {
        let d = scale.nrows();
        match self {
            Self::Zero => Self::Zero,
            Self::Diagonal(_) => Self::Diagonal(Mat::from_fn(d, scale.ncols(), |i, j| {
                self.variance(i, j) * scale[(i, j)] * scale[(i, j)]
            })),
            Self::Shared(_) | Self::Full(_) => Self::Full(Mat::from_fn(d * d, scale.ncols(), |ij, j| {
                self.entry(ij % d, ij / d, j) * scale[(ij % d, j)] * scale[(ij / d, j)]
            })),
        }
    }

    fn select(&self, samples: &[usize]) -> Self {
        match self {
            Self::Zero => Self::Zero,
            Self::Shared(matrix) => Self::Shared(matrix.clone()),
            Self::Diagonal(variances) => Self::Diagonal(columns(variances, samples)),
            Self::Full(matrices) => Self::Full(columns(matrices, samples)),
        }
    }
}

impl Dof {
    /// The number of degrees of freedom; ∞ is normal.
    pub fn value(self) -> f64 {
        match self {
            Self::Normal => f64::INFINITY,
            Self::Shared(dof) => dof,
        }
    }

    fn validate(self) -> Result<()> {
        let dof = self.value();
        if dof > 2.0 {
            Ok(())
        } else {
            Err(Error::DegreesOfFreedom { what: "the predictive", dof, bound: 2.0 })
        }
    }
}

impl Component {
    /// Number of targets d.
    pub fn n_targets(&self) -> usize {
        self.mean.nrows()
    }

    /// Number of samples n.
    pub fn n_samples(&self) -> usize {
        self.mean.ncols()
    }

    /// Var(y_target) of one sample, aleatoric and epistemic together.
    pub fn variance(&self, target: usize, sample: usize) -> f64 {
        self.aleatoric.variance(target, sample) + self.epistemic.variance(target, sample)
    }

    /// Cov(y_row, y_column) of one sample, aleatoric and epistemic together.
    pub fn covariance_entry(&self, row: usize, column: usize, sample: usize) -> f64 {
        self.aleatoric.entry(row, column, sample) + self.epistemic.entry(row, column, sample)
    }

    /// Shapes agree, values are finite, variances are not negative, degrees of freedom exceed 2.
    pub fn validate(&self) -> Result<()> {
        let (d, n) = (self.n_targets(), self.n_samples());
        if d == 0 {
            return Err(Error::Empty { what: "predicted mean" });
        }
        check_finite("predicted mean", self.mean.as_ref())?;
        self.aleatoric.validate(d, n, "aleatoric covariance")?;
        self.epistemic.validate(d, n, "epistemic covariance")?;
        if let Some(skew) = &self.skew {
            if d > 1 {
                return Err(Error::Conflict { first: "noise that leans", second: "several targets" });
            }
            skew.validate()?;
        }
        self.dof.validate()
    }

    /// The parts of the noise: two if it leans.
    pub(crate) fn parts(&self) -> impl Iterator<Item = Part> + use<> {
        let (leaning, whole) = (self.skew.map(|skew| skew.parts()), self.skew.is_none().then_some(WHOLE));
        leaning.into_iter().flatten().chain(whole.into_iter().flatten())
    }

    /// Mean and variance of one target of one sample in a part of the noise.
    #[inline]
    pub(crate) fn within(&self, part: &Part, target: usize, sample: usize) -> (f64, f64) {
        let (mean, noise) = (self.mean[(target, sample)], self.aleatoric.variance(target, sample));
        if self.skew.is_none() {
            return (mean, noise + self.epistemic.variance(target, sample));
        }
        (mean + part.shift * noise.sqrt(), part.variance * noise + self.epistemic.variance(target, sample))
    }

    pub(crate) fn is_diagonal(&self) -> bool {
        let d = self.n_targets();
        self.aleatoric.is_diagonal(d) && self.epistemic.is_diagonal(d)
    }

    pub(crate) fn is_shared(&self) -> bool {
        self.aleatoric.is_shared() && self.epistemic.is_shared()
    }

    /// Total covariance of one sample, `d × d`, into `into`.
    pub(crate) fn covariance_into(&self, sample: usize, into: &mut Mat<f64>) {
        for column in 0..self.n_targets() {
            for row in 0..self.n_targets() {
                into[(row, column)] = self.covariance_entry(row, column, sample);
            }
        }
    }

    pub(crate) fn unscaled(&self, offset: &[f64], scale: &[f64]) -> Self {
        Self {
            mean: Mat::from_fn(self.n_targets(), self.n_samples(), |i, sample| {
                offset[i] + scale[i] * self.mean[(i, sample)]
            }),
            aleatoric: self.aleatoric.scaled(scale),
            epistemic: self.epistemic.scaled(scale),
            dof: self.dof,
            skew: self.skew,
        }
    }

    /// The same of one target through a curve, to first order: its value at the mean, and its slope there.
    pub(crate) fn through(&self, curve: &dyn Fn(f64) -> (f64, f64)) -> Self {
        let n = self.n_samples();
        let slopes = Mat::from_fn(1, n, |_, j| curve(self.mean[(0, j)]).1);
        let carried = |covariance: &Covariance| match covariance {
            Covariance::Zero => Covariance::Zero,
            own => Covariance::Diagonal(Mat::from_fn(1, n, |_, j| {
                own.variance(0, j) * slopes[(0, j)] * slopes[(0, j)]
            })),
        };
        Self {
            mean: Mat::from_fn(1, n, |_, j| curve(self.mean[(0, j)]).0),
            aleatoric: carried(&self.aleatoric),
            epistemic: carried(&self.epistemic),
            dof: self.dof,
            skew: self.skew,
        }
    }

    /// One component for the samples of all parts, one after the other. They have the same shape of distribution, else
    /// there is none.
    pub(crate) fn concat(parts: &[&Self]) -> Option<Self> {
        let (first, d) = (parts.first()?, parts[0].n_targets());
        if parts.iter().any(|c| c.n_targets() != d || c.dof != first.dof || c.skew != first.skew) {
            return None;
        }
        let means: Vec<_> = parts.iter().flat_map(|component| component.mean.col_iter()).collect();
        let covariances = |of: &dyn Fn(&Self) -> &Covariance| {
            Covariance::concat(d, &parts.iter().map(|c| (of(c), c.n_samples())).collect::<Vec<_>>())
        };
        Some(Self {
            mean: Mat::from_fn(d, means.len(), |i, j| means[j][i]),
            aleatoric: covariances(&|component| &component.aleatoric),
            epistemic: covariances(&|component| &component.epistemic),
            dof: first.dof,
            skew: first.skew,
        })
    }

    pub(crate) fn select(&self, samples: &[usize]) -> Self {
        Self {
            mean: columns(&self.mean, samples),
            aleatoric: self.aleatoric.select(samples),
            epistemic: self.epistemic.select(samples),
            dof: self.dof,
            skew: self.skew,
        }
    }
}

fn columns(matrix: &Mat<f64>, samples: &[usize]) -> Mat<f64> {
    Mat::from_fn(matrix.nrows(), samples.len(), |i, j| matrix[(i, samples[j])])
}
