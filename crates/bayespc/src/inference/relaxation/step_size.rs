//! How far an activity may step: one over the largest curvature of the energy.
//!
//! ```text
//! 1/α_l = λ_max( ⟨Σ_l⁻¹⟩ + b² [ M_{l+1}ᵀ ⟨Σ_{l+1}⁻¹⟩ M_{l+1} + τ d_{l+1} V_{l+1} ]_{without bias} ) ,   b = max(1, sup |f′|)
//! ```
//!
//! This is the paper's "optimal α". The input has no f, so b = 1 there, and its ⟨Σ_0⁻¹⟩ is I/σ_0². Where f bends, f″ adds
//! to the curvature: errors far beyond the weights may still raise the energy, and only step halving prevents that.

use faer::{Accum, Mat, MatRef};

use crate::base::linalg::{PowerIteration, checked_eigenvalue, product_into};
use crate::inference::energy::Precision;
use crate::real::Real;

/// The curvature that bounds the step of one activity.
pub(super) struct Curvature<'a, T: Real> {
    /// ⟨Σ⁻¹⟩ of the activity itself.
    pub own: &'a Precision<T>,
    /// What comes from the layer above; the output has none.
    pub above: Option<Above<'a, T>>,
}

/// The part of the curvature that the layer above adds, everything without the bias.
pub(super) struct Above<'a, T: Real> {
    /// b².
    pub slope_squared: T,
    /// M.
    pub weights: MatRef<'a, T>,
    /// ⟨Σ⁻¹⟩.
    pub precision: &'a Precision<T>,
    /// V, if it plays a part, and τ d.
    pub col_cov: Option<(MatRef<'a, T>, T)>,
}

impl<T: Real> Curvature<'_, T> {
    /// image ← curvature · vector, or of several vectors side by side.
    fn apply(&self, vector: MatRef<'_, T>, image: &mut Mat<T>, [lifted, weighted]: &mut [Mat<T>; 2]) {
        image.fill(T::zero());
        if let Some(above) = &self.above {
            product_into(lifted.as_mut(), Accum::Replace, above.weights, vector, T::one());
            let (lifted, p) = above.precision.weigh(lifted, weighted);
            let back = above.weights.transpose();
            product_into(image.as_mut(), Accum::Replace, back, lifted.as_ref(), above.slope_squared * p);
            if let Some((col_cov, factor)) = above.col_cov {
                product_into(image.as_mut(), Accum::Add, col_cov, vector, above.slope_squared * factor);
            }
        }
        match self.own {
            Precision::Scalar(p) => {
                faer::zip!(&mut *image, vector).for_each(|faer::unzip!(to, from)| *to += *p * *from);
            }
            Precision::Full(own) => product_into(image.as_mut(), Accum::Add, own.as_ref(), vector, T::one()),
        }
    }

    fn matrix(&self, d: usize) -> Mat<T> {
        let d_above = self.above.as_ref().map_or(0, |above| above.weights.nrows());
        let mut matrix = Mat::zeros(d, d);
        let mut room = [Mat::zeros(d_above, d), Mat::zeros(d_above, d)];
        self.apply(Mat::identity(d, d).as_ref(), &mut matrix, &mut room);
        matrix
    }
}

/// α of one activity, kept while weights move: power iteration then needs a few products of a matrix and a vector.
#[derive(Clone, Debug)]
pub(super) struct StepSize<T: Real> {
    iteration: PowerIteration<T>,
    /// Room for M v and ⟨Σ⁻¹⟩ M v.
    above: [Mat<T>; 2],
    d: usize,
    rate: f64,
    /// What the estimate fell short by when it was last checked.
    shortfall: f64,
}

impl<T: Real> StepSize<T> {
    /// For an activity of width `d` below one of width `d_above`.
    pub fn new(d: usize, d_above: usize) -> Self {
        Self {
            iteration: PowerIteration::new(d),
            above: [Mat::zeros(d_above, 1), Mat::zeros(d_above, 1)],
            d,
            rate: 1.0,
            shortfall: 1.0,
        }
    }

    /// α.
    pub fn rate(&self) -> f64 {
        self.rate
    }

    /// α is this number.
    pub fn fix(&mut self, rate: f64) {
        self.rate = rate;
    }

    /// α = 1/λ_max. Power iteration comes from below, but a step of 1/λ has room until 2/λ_max; `check` makes
    /// sure that it has not settled on another eigenvector.
    pub fn update(&mut self, curvature: &Curvature<'_, T>, check: bool) {
        let above = &mut self.above;
        let estimate = self.iteration.run(|vector, image| curvature.apply(vector, image, above));
        if !(estimate > T::zero()) {
            self.rate = 1.0;
            return;
        }
        if check {
            let largest = checked_eigenvalue(curvature.matrix(self.d).as_ref(), estimate);
            self.shortfall = (largest / estimate).as_f64().max(1.0);
        }
        self.rate = 1.0 / (self.shortfall * estimate.as_f64());
    }
}
