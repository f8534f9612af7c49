//! Codes of one sample as its component knows them, and the mean entropy of what they say of the class.
//!
//! ```text
//! a ~ q ,   p(· | a) = softmax(ℓ/τ) ,   ℓ = C⁻¹μ − ½ diag A⁻¹ + D e_j + √τ L ξ      with class j ~ p_c and ξ ~ N(0, I)
//! D = A⁻¹ − C⁻¹ = A⁻¹ E C⁻¹ = L Lᵀ ,   C = A + E
//! ```
//!
//! That is q of `class_decomposition`, seen in the logits: given class j, a has the mean μ + E C⁻¹ (e_j − μ) and the covariance
//! E − E C⁻¹ E = A D A, and the logits of a code are A⁻¹a − ½ diag A⁻¹.
//!
//! The draws ξ are the same for all samples. So the mean over them is a smooth function of μ, A and E, and has slopes:
//!
//! ```text
//! f = Σ_j p_c(j) h_j ,   h_j = mean of H(softmax(ℓ/τ))            g = ∂H/∂ℓ = −p (log p + H)/τ
//! by ℓ           to C⁻¹μ − ½ diag A⁻¹, to column j of D, and as g ξᵀ √τ to L, from there to D
//! by p_c         h, and by the logits C⁻¹μ − ½ diag C⁻¹ of p_c
//! by A⁻¹, C⁻¹    from D and from these; X̄ = −X⁻¹ Ȳ X⁻¹ for Y = X⁻¹, and C = A + E
//! ```

use faer::Mat;
use rand_distr::{Distribution, StandardNormal};

use super::classes::{WHAT, softmax};
use super::draws::{root_slopes, semidefinite_root};
use crate::base::linalg::Cholesky;
use crate::base::random::stream;
use crate::error::{Error, Result};

/// Probability of a class below which its share of the entropy is not worth its draws.
const NEGLIGIBLE: f64 = 1e-12;

/// Standard normal draws for codes of K classes; each is used with both signs.
#[derive(Clone, Debug)]
pub(crate) struct CodeDraws {
    n_classes: usize,
    half: Vec<f64>,
}

impl CodeDraws {
    pub(crate) fn new(n_classes: usize, draws: usize, seed: u64) -> Result<Self> {
        if draws == 0 {
            return Err(Error::Setting { name: "draws", value: 0.0, must_be: "at least 1" });
        }
        let mut rng = stream(seed, 0);
        let half = (0..n_classes * draws.div_ceil(2)).map(|_| StandardNormal.sample(&mut rng)).collect();
        Ok(Self { n_classes, half })
    }

    /// 1 over their number, both signs counted.
    fn share(&self) -> f64 {
        0.5 * self.n_classes as f64 / self.half.len() as f64
    }
}

/// μ, A and E of one sample, or slopes by each of these.
#[derive(Clone, Debug)]
pub(crate) struct CodeMoments {
    pub(crate) mean: Vec<f64>,
    pub(crate) aleatoric: Mat<f64>,
    pub(crate) epistemic: Mat<f64>,
}

/// The probabilities of one sample's classes.
#[derive(Debug)]
pub(crate) struct Logits {
    /// C⁻¹.
    precision: Mat<f64>,
    /// C⁻¹μ.
    scaled_mean: Vec<f64>,
}

/// The codes of one sample.
#[derive(Debug)]
pub(crate) struct Codes {
    logits: Logits,
    /// A⁻¹.
    noise_precision: Mat<f64>,
    /// D.
    shift: Mat<f64>,
    /// L, lower triangular.
    root: Mat<f64>,
}

/// One draw of p(· | a).
pub(crate) struct Draw<'a> {
    class: usize,
    /// ξ without its sign.
    normal: &'a [f64],
    sign: f64,
    /// How much it counts; all of a sample sum to 1.
    pub(crate) share: f64,
    pub(crate) probabilities: &'a [f64],
}

impl Logits {
    pub(crate) fn new(moments: &CodeMoments) -> Result<Self> {
        let total = &moments.aleatoric + &moments.epistemic;
        let precision = Cholesky::new(total.as_ref(), WHAT)?.inverse();
        let scaled_mean = times(&precision, &moments.mean);
        Ok(Self { precision, scaled_mean })
    }

    /// p_c.
    pub(crate) fn probabilities(&self, temperature: f64) -> Vec<f64> {
        let logit = |(i, m): (usize, &f64)| m - 0.5 * self.precision[(i, i)];
        let mut p: Vec<f64> = self.scaled_mean.iter().enumerate().map(logit).collect();
        softmax(&mut p, temperature);
        p
    }

    /// Slopes of Σ_k by_k p_c(k), given p_c.
    pub(crate) fn slopes(&self, mean: &[f64], p: &[f64], by: &[f64], temperature: f64) -> CodeMoments {
        let by_logits = softmax_slopes(p, by, temperature);
        let mut by_precision = Mat::zeros(p.len(), p.len());
        add_logit_slopes(mean, &by_logits, &mut by_precision);
        let by_total = through_inverse(&self.precision, &by_precision);
        CodeMoments {
            mean: times(&self.precision, &by_logits),
            aleatoric: by_total.clone(),
            epistemic: by_total,
        }
    }
}

impl Codes {
    pub(crate) fn new(moments: &CodeMoments) -> Result<Self> {
        let k = moments.mean.len();
        let logits = Logits::new(moments)?;
        let noise_precision = Cholesky::new(moments.aleatoric.as_ref(), WHAT)?.inverse();
        // By the product: a difference of inverses is all rounding where E is small.
        let product = &noise_precision * &moments.epistemic * &logits.precision;
        let shift = Mat::from_fn(k, k, |i, j| 0.5 * (product[(i, j)] + product[(j, i)]));
        let mut root = shift.clone();
        semidefinite_root(&mut root);
        for j in 1..k {
            (0..j).for_each(|i| root[(i, j)] = 0.0);
        }
        Ok(Self { logits, noise_precision, shift, root })
    }

    /// Every draw, class by class, given p_c.
    pub(crate) fn each(
        &self,
        p: &[f64],
        temperature: f64,
        draws: &CodeDraws,
        mut visit: impl FnMut(&Draw<'_>),
    ) {
        let k = p.len();
        let (mut logits, scale) = (vec![0.0; k], temperature.sqrt());
        for class in (0..k).filter(|&class| p[class] >= NEGLIGIBLE) {
            let share = p[class] * draws.share();
            for normal in draws.half.chunks_exact(k) {
                for sign in [1.0, -1.0] {
                    for (i, logit) in logits.iter_mut().enumerate() {
                        *logit = self.logits.scaled_mean[i] - 0.5 * self.noise_precision[(i, i)]
                            + self.shift[(i, class)];
                    }
                    for (j, xi) in normal.iter().enumerate() {
                        let column = self.root.col_as_slice(j);
                        let by = sign * scale * xi;
                        logits.iter_mut().zip(column).skip(j).for_each(|(logit, l)| *logit += by * l);
                    }
                    softmax(&mut logits, temperature);
                    visit(&Draw { class, normal, sign, share, probabilities: &logits });
                }
            }
        }
    }

    /// Mean entropy of the draws, and its slopes.
    pub(crate) fn noise_entropy_slopes(
        &self,
        mean: &[f64],
        temperature: f64,
        draws: &CodeDraws,
    ) -> (f64, CodeMoments) {
        let p = self.logits.probabilities(temperature);
        let k = p.len();
        let scale = temperature.sqrt();
        let (mut sum, mut of_class, mut by_centre) = (0.0, vec![0.0; k], vec![0.0; k]);
        let (mut by_shift, mut by_root) = (Mat::<f64>::zeros(k, k), Mat::<f64>::zeros(k, k));
        let mut by_logits = vec![0.0; k];
        self.each(&p, temperature, draws, |draw| {
            let own = entropy(draw.probabilities);
            sum += draw.share * own;
            of_class[draw.class] += draws.share() * own;
            for ((by, p), i) in by_logits.iter_mut().zip(draw.probabilities).zip(0..) {
                *by = if *p > 0.0 { -draw.share * p * (p.ln() + own) / temperature } else { 0.0 };
                by_centre[i] += *by;
            }
            let column = by_shift.col_as_slice_mut(draw.class);
            column.iter_mut().zip(&by_logits).for_each(|(sum, by)| *sum += by);
            for (j, xi) in draw.normal.iter().enumerate() {
                let factor = draw.sign * scale * xi;
                let column = by_root.col_as_slice_mut(j);
                column.iter_mut().zip(&by_logits).skip(j).for_each(|(sum, by)| *sum += factor * by);
            }
        });
        root_slopes(&self.root, &mut by_root);
        // D is symmetric, and its root is made of the lower triangle.
        let by_shift = Mat::from_fn(k, k, |i, j| {
            let lower = if i >= j { by_root[(i, j)] } else { by_root[(j, i)] };
            0.5 * (by_shift[(i, j)] + by_shift[(j, i)]) + if i == j { lower } else { 0.5 * lower }
        });
        let by_own_logits = softmax_slopes(&p, &of_class, temperature);
        let mut by_noise_precision = by_shift.clone();
        let mut by_precision = Mat::from_fn(k, k, |i, j| -by_shift[(i, j)]);
        (0..k).for_each(|i| by_noise_precision[(i, i)] -= 0.5 * by_centre[i]);
        add_logit_slopes(mean, &by_own_logits, &mut by_precision);
        add_mean_slopes(mean, &by_centre, &mut by_precision);
        let by_scaled_mean: Vec<f64> = by_centre.iter().zip(&by_own_logits).map(|(a, b)| a + b).collect();
        let precision = &self.logits.precision;
        let by_total = through_inverse(precision, &by_precision);
        let slopes = CodeMoments {
            mean: times(precision, &by_scaled_mean),
            aleatoric: through_inverse(&self.noise_precision, &by_noise_precision) + &by_total,
            epistemic: by_total,
        };
        (sum, slopes)
    }
}

/// What slopes by C⁻¹μ − ½ diag C⁻¹ are by C⁻¹.
fn add_logit_slopes(mean: &[f64], by_logits: &[f64], by_precision: &mut Mat<f64>) {
    by_logits.iter().enumerate().for_each(|(i, by)| by_precision[(i, i)] -= 0.5 * by);
    add_mean_slopes(mean, by_logits, by_precision);
}

/// What slopes by C⁻¹μ are by C⁻¹.
fn add_mean_slopes(mean: &[f64], by_scaled_mean: &[f64], by_precision: &mut Mat<f64>) {
    for j in 0..mean.len() {
        for i in 0..mean.len() {
            by_precision[(i, j)] += 0.5 * (by_scaled_mean[i] * mean[j] + mean[i] * by_scaled_mean[j]);
        }
    }
}

/// −Σ p log p.
pub(crate) fn entropy(probabilities: &[f64]) -> f64 {
    -probabilities.iter().map(|&p| if p > 0.0 { p * p.ln() } else { 0.0 }).sum::<f64>()
}

/// Slopes by the logits of Σ_k by_k p_k, p = softmax(logits/τ).
fn softmax_slopes(p: &[f64], by: &[f64], temperature: f64) -> Vec<f64> {
    let mean: f64 = p.iter().zip(by).map(|(p, by)| p * by).sum();
    p.iter().zip(by).map(|(p, by)| p * (by - mean) / temperature).collect()
}

/// Slopes by X of what has the slopes `by` by Y = X⁻¹.
fn through_inverse(inverse: &Mat<f64>, by: &Mat<f64>) -> Mat<f64> {
    let product = inverse * by * inverse;
    Mat::from_fn(by.nrows(), by.ncols(), |i, j| -0.5 * (product[(i, j)] + product[(j, i)]))
}

fn times(a: &Mat<f64>, x: &[f64]) -> Vec<f64> {
    (0..a.nrows()).map(|i| x.iter().enumerate().map(|(j, x)| a[(i, j)] * x).sum()).collect()
}

#[cfg(test)]
mod tests {
    use approx::assert_relative_eq;
    use rand::RngExt;

    use super::*;

    fn example(k: usize, spread: f64, seed: u64) -> CodeMoments {
        let mut rng = stream(seed, 0);
        let mut positive = |scale: f64| {
            let a = Mat::from_fn(k, k, |_, _| rng.random::<f64>() - 0.5);
            (&a * a.transpose() + Mat::<f64>::identity(k, k) * faer::Scale(0.1)) * faer::Scale(scale)
        };
        let (aleatoric, epistemic) = (positive(1.0), positive(spread));
        let mean = (0..k).map(|_| rng.random::<f64>()).collect();
        CodeMoments { mean, aleatoric, epistemic }
    }

    /// Slopes against central differences, symmetric entries together.
    fn check(at: &CodeMoments, slopes: &CodeMoments, value: impl Fn(&CodeMoments) -> f64) {
        let h = 1e-6;
        let difference = |change: &dyn Fn(&mut CodeMoments, f64)| {
            let moved = |h: f64| {
                let mut moved = at.clone();
                change(&mut moved, h);
                value(&moved)
            };
            (moved(h) - moved(-h)) / (2.0 * h)
        };
        let close = |found: f64, expected: f64| {
            assert_relative_eq!(found, expected, epsilon = 2e-8, max_relative = 1e-6);
        };
        for i in 0..at.mean.len() {
            close(slopes.mean[i], difference(&|m, h| m.mean[i] += h));
            for j in 0..at.mean.len() {
                let both = |a: &mut Mat<f64>, h: f64| {
                    a[(i, j)] += 0.5 * h;
                    a[(j, i)] += 0.5 * h;
                };
                close(slopes.aleatoric[(i, j)], difference(&|m, h| both(&mut m.aleatoric, h)));
                close(slopes.epistemic[(i, j)], difference(&|m, h| both(&mut m.epistemic, h)));
            }
        }
    }

    #[test]
    fn slopes_of_the_mean_entropy_and_of_probabilities_are_their_derivatives() {
        for (k, spread, temperature) in [(2, 1.0, 1.0), (3, 0.02, 0.6), (4, 3.0, 1.7)] {
            let draws = CodeDraws::new(k, 10, 3).unwrap();
            let at = example(k, spread, k as u64);
            let entropy_of = |m: &CodeMoments| {
                let codes = Codes::new(m).unwrap();
                let mut sum = 0.0;
                codes.each(&codes.logits.probabilities(temperature), temperature, &draws, |draw| {
                    sum += draw.share * entropy(draw.probabilities);
                });
                sum
            };
            let codes = Codes::new(&at).unwrap();
            let (value, slopes) = codes.noise_entropy_slopes(&at.mean, temperature, &draws);
            assert_relative_eq!(value, entropy_of(&at), max_relative = 1e-14);
            check(&at, &slopes, entropy_of);
            let by: Vec<f64> = (0..k).map(|i| 1.0 + (i * i) as f64).collect();
            let logits = Logits::new(&at).unwrap();
            let p = logits.probabilities(temperature);
            check(&at, &logits.slopes(&at.mean, &p, &by, temperature), |m| {
                let p = Logits::new(m).unwrap().probabilities(temperature);
                p.iter().zip(&by).map(|(p, by)| p * by).sum()
            });
        }
    }

    /// In the logits as in the codes themselves: A (ℓ + ½ diag A⁻¹) has the moments of a given class j.
    #[test]
    fn given_a_class_the_logits_have_the_moments_of_its_codes() {
        let at = example(3, 0.7, 9);
        let codes = Codes::new(&at).unwrap();
        let a = &at.aleatoric;
        let gain = &at.epistemic * &codes.logits.precision;
        let left = &at.epistemic - &gain * &at.epistemic;
        let spread = a * &codes.root * codes.root.transpose() * a;
        for class in 0..3 {
            let centre: Vec<f64> =
                (0..3).map(|i| codes.logits.scaled_mean[i] + codes.shift[(i, class)]).collect();
            let code = times(a, &centre);
            let residual: Vec<f64> = (0..3).map(|i| f64::from(u8::from(i == class)) - at.mean[i]).collect();
            let expected = times(&gain, &residual);
            for i in 0..3 {
                assert_relative_eq!(code[i], at.mean[i] + expected[i], epsilon = 1e-12);
                for j in 0..3 {
                    assert_relative_eq!(spread[(i, j)], left[(i, j)], epsilon = 1e-12);
                }
            }
        }
    }
}
