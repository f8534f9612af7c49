//! Matrix-normal-Wishart: the joint posterior of one layer's weights and noise precision (paper App. A).
//!
//! ```text
//! W | Σ ~ MN(M, Σ⁻¹, V) ,   Σ⁻¹ ~ Wishart(Ψ, ν)
//! ⟨Σ⁻¹⟩ = νΨ    ⟨Σ⟩ = Ψ⁻¹/(ν−d_y−1)    ⟨Σ⁻¹W⟩ = νΨM    ⟨WᵀΣ⁻¹W⟩ = Mᵀ νΨ M + d_y V
//! predictive given φ:  t_{ν−d_y+1}( Mφ , (1 + φᵀVφ) Ψ⁻¹/(ν−d_y+1) )
//! ```
//!
//! The paper's log density drops −(ν/2) log|Ψ|; without it KL and evidence are wrong.

use std::f64::consts::PI;

use faer::{Mat, MatRef};
use rand::Rng;

use super::stats::{NaturalParams, SufficientStats};
use super::student_t::MultivariateT;
use super::wishart::{PrecisionDraw, Wishart};
use crate::base::linalg::{Cholesky, inner, symmetrised};
use crate::base::random::standard_normal;
use crate::error::{Error, Result};

/// q(W, Σ⁻¹) = MN(W | M, Σ⁻¹, V) Wishart(Σ⁻¹ | Ψ, ν) over `d_post × d_pre` weights.
#[derive(Clone, Debug)]
pub struct MatrixNormalWishart {
    mean: Mat<f64>,
    col_precision: Mat<f64>,
    col_precision_chol: Cholesky,
    noise: Wishart,
}

/// A draw of one layer: weights and the noise they were drawn with.
#[derive(Clone, Debug)]
pub struct LayerDraw {
    /// W, `d_post × d_pre`.
    pub weights: Mat<f64>,
    /// Σ⁻¹.
    pub precision: PrecisionDraw,
}

impl MatrixNormalWishart {
    /// From M, V⁻¹, Ψ⁻¹ and ν > d_post − 1.
    pub fn new(mean: Mat<f64>, col_precision: Mat<f64>, inv_scale: Mat<f64>, dof: f64) -> Result<Self> {
        for (what, found, expected) in [
            ("the inverse scale", inv_scale.nrows(), mean.nrows()),
            ("the column precision", col_precision.nrows(), mean.ncols()),
        ] {
            if found != expected {
                return Err(Error::Shape { what, axis: "rows", found, expected });
            }
        }
        let col_precision_chol = Cholesky::new(col_precision.as_ref(), "the column precision")?;
        let noise = Wishart::from_inv_scale(inv_scale, dof)?;
        Ok(Self { mean, col_precision, col_precision_chol, noise })
    }

    /// M = η₂ η₁⁻¹, Ψ⁻¹ = η₃ − M η₂ᵀ, ν = η₄ + d_y − d_x + 1 (inverse of paper Eq. 8).
    pub fn from_natural(natural: &NaturalParams) -> Result<Self> {
        let col_precision_chol = Cholesky::new(natural.pre_pre.as_ref(), "the column precision")?;
        let mean = col_precision_chol.solve(natural.post_pre.transpose()).transpose().to_owned();
        let noise = noise(&natural.post_post, &natural.post_pre, mean.as_ref(), natural.dof())?;
        Ok(Self { mean, col_precision: symmetrised(natural.pre_pre.as_ref()), col_precision_chol, noise })
    }

    /// η = (V⁻¹, M V⁻¹, Ψ⁻¹ + M V⁻¹ Mᵀ, ν − d_y + d_x − 1).
    pub fn to_natural(&self) -> NaturalParams {
        let post_pre = &self.mean * &self.col_precision;
        let post_post = self.noise.inv_scale() + &post_pre * self.mean.transpose();
        NaturalParams {
            pre_pre: self.col_precision.clone(),
            post_post: symmetrised(post_post.as_ref()),
            post_pre,
            count: self.noise.dof() - self.d_post() as f64 + self.d_pre() as f64 - 1.0,
        }
    }

    /// Width of z.
    pub fn d_post(&self) -> usize {
        self.mean.nrows()
    }

    /// Width of φ, bias included.
    pub fn d_pre(&self) -> usize {
        self.mean.ncols()
    }

    /// M.
    pub fn mean(&self) -> MatRef<'_, f64> {
        self.mean.as_ref()
    }

    /// ν.
    pub fn dof(&self) -> f64 {
        self.noise.dof()
    }

    /// V⁻¹.
    pub fn col_precision(&self) -> MatRef<'_, f64> {
        self.col_precision.as_ref()
    }

    /// Factor C of V⁻¹ = C Cᵀ.
    pub fn col_precision_chol(&self) -> &Cholesky {
        &self.col_precision_chol
    }

    /// V.
    pub fn col_cov(&self) -> Mat<f64> {
        self.col_precision_chol.inverse()
    }

    /// Ψ.
    pub fn scale(&self) -> Mat<f64> {
        self.noise.inv_scale_chol().inverse()
    }

    /// The Wishart marginal of Σ⁻¹.
    pub fn noise(&self) -> &Wishart {
        &self.noise
    }

    /// ⟨Σ⁻¹⟩ = νΨ.
    pub fn expected_precision(&self) -> Mat<f64> {
        self.noise.expected_precision()
    }

    /// ⟨Σ⟩ = Ψ⁻¹/(ν−d_y−1).
    pub fn expected_covariance(&self) -> Result<Mat<f64>> {
        self.noise.expected_covariance()
    }

    /// ⟨Σ⁻¹W⟩ = νΨM.
    pub fn expected_precision_weights(&self) -> Mat<f64> {
        self.expected_precision() * &self.mean
    }

    /// ⟨WᵀΣ⁻¹W⟩ = Mᵀ νΨ M + d_y V.
    pub fn expected_weights_precision_weights(&self) -> Mat<f64> {
        self.mean.transpose() * self.expected_precision_weights()
            + self.col_cov() * faer::Scale(self.d_post() as f64)
    }

    /// ⟨log|Σ⁻¹|⟩.
    pub fn expected_log_det_precision(&self) -> f64 {
        self.noise.expected_log_det()
    }

    /// log MNW(W, Σ⁻¹).
    pub fn log_density(&self, weights: MatRef<'_, f64>, precision: MatRef<'_, f64>) -> Result<f64> {
        let (d_post, d_pre) = (self.d_post() as f64, self.d_pre() as f64);
        let centred = weights - &self.mean;
        let square = inner((precision * &centred * &self.col_precision).as_ref(), centred.as_ref());
        let log_det = Cholesky::new(precision, "the precision")?.log_det();
        let weights_given_noise =
            -0.5 * square + 0.5 * d_pre * log_det + 0.5 * d_post * self.col_precision_chol.log_det()
                - 0.5 * d_pre * d_post * (2.0 * PI).ln();
        Ok(weights_given_noise + self.noise.log_density(precision)?)
    }

    /// −⟨log MNW⟩.
    pub fn entropy(&self) -> f64 {
        let (d_post, d_pre) = (self.d_post() as f64, self.d_pre() as f64);
        0.5 * d_pre * d_post * (1.0 + (2.0 * PI).ln())
            - 0.5 * d_pre * self.expected_log_det_precision()
            - 0.5 * d_post * self.col_precision_chol.log_det()
            + self.noise.entropy()
    }

    /// KL(self ‖ other).
    pub fn kl_divergence(&self, other: &Self) -> Result<f64> {
        if (self.d_post(), self.d_pre()) != (other.d_post(), other.d_pre()) {
            return Err(Error::Shape {
                what: "the other distribution",
                axis: "weights",
                found: other.d_post() * other.d_pre(),
                expected: self.d_post() * self.d_pre(),
            });
        }
        let (d_post, d_pre) = (self.d_post() as f64, self.d_pre() as f64);
        let shift = &self.mean - &other.mean;
        // Σ cancels between the two conditionals, but for the distance between their means.
        let distance =
            inner((self.expected_precision() * &shift * &other.col_precision).as_ref(), shift.as_ref());
        let mut ratio = other.col_precision_chol.lower().to_owned();
        self.col_precision_chol.solve_lower_in_place(ratio.as_mut());
        let weights = 0.5
            * (d_post * inner(ratio.as_ref(), ratio.as_ref()) + distance - d_pre * d_post
                + d_post * (self.col_precision_chol.log_det() - other.col_precision_chol.log_det()));
        Ok(weights + self.noise.kl_divergence(&other.noise))
    }

    /// Σ_n ⟨log N(z_n | Wφ_n, Σ)⟩ for data with statistics T.
    pub fn expected_log_likelihood(&self, stats: &SufficientStats) -> f64 {
        let d_post = self.d_post() as f64;
        // Σ_n ε_n ε_nᵀ = T₃ − M T₂ᵀ − T₂ Mᵀ + M T₁ Mᵀ
        let cross = &self.mean * stats.post_pre.transpose();
        let errors = &stats.post_post - &cross - cross.transpose()
            + &self.mean * &stats.pre_pre * self.mean.transpose();
        let weight_uncertainty = d_post * inner(self.col_cov().as_ref(), stats.pre_pre.as_ref());
        0.5 * stats.count * (self.expected_log_det_precision() - d_post * (2.0 * PI).ln())
            - 0.5 * (inner(self.expected_precision().as_ref(), errors.as_ref()) + weight_uncertainty)
    }

    /// φᵀVφ: how far a presynaptic vector reaches into directions the weights are unsure about.
    pub fn leverage(&self, pre: MatRef<'_, f64>) -> Vec<f64> {
        let mut white = pre.to_owned();
        self.col_precision_chol.solve_lower_in_place(white.as_mut());
        (0..white.ncols()).map(|j| white.col_as_slice(j).iter().map(|x| x * x).sum()).collect()
    }

    /// The exact predictive of z given one presynaptic vector φ (`d_pre × 1`, bias included).
    pub fn predictive(&self, pre: MatRef<'_, f64>) -> Result<MultivariateT> {
        if (pre.nrows(), pre.ncols()) != (self.d_pre(), 1) {
            return Err(Error::Shape {
                what: "pre",
                axis: "rows",
                found: pre.nrows(),
                expected: self.d_pre(),
            });
        }
        let dof = self.dof() - self.d_post() as f64 + 1.0;
        let spread = (1.0 + self.leverage(pre)[0]) / dof;
        MultivariateT::new(dof, &self.mean * pre, (self.noise.inv_scale() * faer::Scale(spread)).as_ref())
    }

    /// Draw (W, Σ⁻¹): Bartlett for the precision, then W = M + Σ^½ E V^½ᵀ.
    pub fn sample(&self, rng: &mut dyn Rng) -> LayerDraw {
        let precision = self.noise.sample(rng);
        let rows = precision.covariance_root_times(standard_normal(self.d_post(), self.d_pre(), rng));
        let mut transposed = rows.transpose().to_owned();
        self.col_precision_chol.solve_upper_in_place(transposed.as_mut());
        LayerDraw { weights: &self.mean + transposed.transpose(), precision }
    }
}

/// Σ⁻¹ ~ Wishart(Ψ, ν) of natural parameters whose mean M = η₂ η₁⁻¹ is known: Ψ⁻¹ = η₃ − M η₂ᵀ.
pub(crate) fn noise(
    post_post: &Mat<f64>,
    post_pre: &Mat<f64>,
    mean: MatRef<'_, f64>,
    dof: f64,
) -> Result<Wishart> {
    let mut inv_scale = symmetrised((post_post - mean * post_pre.transpose()).as_ref());
    // The difference cancels when the fit is exact to rounding; what is left of the diagonal cannot be
    // trusted below a few units in the last place of its terms.
    for i in 0..inv_scale.nrows() {
        let floor = 8.0 * f64::EPSILON * post_post[(i, i)].abs();
        inv_scale[(i, i)] = inv_scale[(i, i)].max(floor);
    }
    Wishart::from_inv_scale(inv_scale, dof)
}
