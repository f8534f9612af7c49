//! The backward sweep: feedback from one layer to the one below.
//!
//! ```text
//! g_l = f′(z_l) ⊙ (M_{l+1}ᵀ g_{l+1})_{without bias}
//! ```
//!
//! The same step carries feedback in the E-step, gradients in the learners by descent, and rows of ∂a/∂z_l in
//! finalisation and prediction.

use faer::{Accum, Mat, MatMut, MatRef};

use super::activation::Activation;
use super::point::Activities;
use crate::base::linalg::product_into;
use crate::real::Real;

/// f′(z_1) … f′(z_{L−1}), where several sweeps share them.
pub(crate) fn slopes<T: Real>(activities: &Activities<T>, activation: Activation) -> Vec<Mat<T>> {
    let hidden = &activities.post[..activities.post.len() - 1];
    hidden
        .iter()
        .map(|z| {
            let mut slope = Mat::zeros(z.nrows(), z.ncols());
            activation.derivative_into(z.as_ref(), slope.as_mut());
            slope
        })
        .collect()
}

/// g_l from g_{l+1}, where f′(z_l) is known.
pub(crate) fn back_one<T: Real>(mean_above: MatRef<'_, T>, slope: &Mat<T>, above: &Mat<T>) -> Mat<T> {
    let mut feedback = Mat::zeros(slope.nrows(), slope.ncols());
    pull_back(mean_above, above.as_ref(), feedback.as_mut());
    faer::zip!(&mut feedback, slope).for_each(|faer::unzip!(g, s)| *g *= *s);
    feedback
}

/// g_l from g_{l+1} into `feedback`, with `room` for the product; both `d_l × n`.
pub(crate) fn back_one_into<T: Real>(
    mean_above: MatRef<'_, T>,
    activation: Activation,
    z: MatRef<'_, T>,
    above: MatRef<'_, T>,
    room: &mut Mat<T>,
    feedback: &mut Mat<T>,
) {
    pull_back(mean_above, above, room.as_mut());
    activation.derivative_into(z, feedback.as_mut());
    faer::zip!(feedback, room).for_each(|faer::unzip!(g, up)| *g *= *up);
}

/// (M_{l+1}ᵀ g_{l+1})_{without bias}.
fn pull_back<T: Real>(mean_above: MatRef<'_, T>, above: MatRef<'_, T>, product: MatMut<'_, T>) {
    let without_bias = mean_above.subcols(0, product.nrows());
    product_into(product, Accum::Replace, without_bias.transpose(), above, T::one());
}
