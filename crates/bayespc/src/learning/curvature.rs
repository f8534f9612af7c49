//! How the output bends with the hidden layers: F_l, the curvature of the log-likelihood in the activities.
//!
//! ```text
//! F_l = mean of G_lᵀ Λ G_l ,   G_l = ∂a/∂z_l ,   Λ the curvature of the head's log-likelihood
//! ```

use std::ops::Range;

use faer::{Accum, Mat};

use super::finalise::add_lower;
use super::packed::{Packer, Unpacker};
use crate::base::check;
use crate::base::linalg::{Cholesky, cast, mirror_lower, symmetric_product_into};
use crate::base::parallel::{PASS, over_spans, pieces};
use crate::data::Dataset;
use crate::error::Result;
use crate::network::{Activities, Layer, Network, back_one, block_diagonal, slopes};
use crate::real::Real;

/// F_l for every hidden layer: backward sweeps of the columns of a root of Λ.
pub(super) fn hidden_curvature<T: Real>(
    network: &Network<T>,
    data: &Dataset<'_, T>,
) -> Result<Vec<Mat<f64>>> {
    let root = curvature_root(network)?;
    let parts = over_spans(data.len(), |span| CurvatureSums::over(network, &root, data, span));
    let mut total = CurvatureSums::zero(network);
    for part in parts {
        for (sum, part) in total.hidden.iter_mut().zip(part.hidden) {
            *sum += part;
        }
        total.weight += part.weight;
    }
    Ok(total.mean())
}

/// Root of the output layer's ⟨Σ_L⁻¹⟩.
pub(crate) fn curvature_root<T: Real>(network: &Network<T>) -> Result<Cholesky> {
    let precision = if network.is_wide() {
        // Without the column precisions, which would be whole.
        let blocks = network.output().blocks().iter();
        let parts =
            blocks.map(|block| Ok(block.noise()?.expected_precision())).collect::<Result<Vec<_>>>()?;
        block_diagonal(&parts)
    } else {
        network.posteriors()?.output_precision()
    };
    Cholesky::new(precision.as_ref(), "the output precision")
}

/// Σ w G_lᵀ Λ G_l of the hidden layers, lower triangles, and Σ w.
pub(crate) struct CurvatureSums {
    hidden: Vec<Mat<f64>>,
    weight: f64,
}

impl CurvatureSums {
    /// Of no samples.
    pub(crate) fn zero<T: Real>(network: &Network<T>) -> Self {
        let square = |layer: &Layer<T>| Mat::zeros(layer.d_post(), layer.d_post());
        Self { hidden: network.hidden().iter().map(square).collect(), weight: 0.0 }
    }

    /// F_l.
    pub(super) fn mean(self) -> Vec<Mat<f64>> {
        let share = 1.0 / self.weight;
        let mut hidden = self.hidden;
        for sum in &mut hidden {
            faer::zip!(&mut *sum).for_each(|faer::unzip!(f)| *f *= share);
            mirror_lower(sum.as_mut());
        }
        hidden
    }

    /// As plain numbers, of which those of two parts of the data add up one by one.
    pub(crate) fn values(&self) -> Vec<f64> {
        let mut packer = Packer::default();
        packer.number(self.weight);
        self.hidden.iter().for_each(|sum| packer.lower(sum));
        packer.into_values()
    }

    /// Settle the hidden metric by the plain numbers of all the data.
    pub(crate) fn settle<T: Real>(network: &mut Network<T>, values: &[f64]) -> Result<()> {
        let mut sums = Self::zero(network);
        check::same_length("curvature", values.len(), sums.values().len())?;
        let mut unpacker = Unpacker::new(values);
        sums.weight = unpacker.number();
        sums.hidden.iter_mut().for_each(|sum| unpacker.lower(sum));
        super::finalise::settle_metric(network, sums.mean())
    }

    /// Of the samples `span` of `data`; `root` is [`curvature_root`].
    pub(crate) fn over<T: Real>(
        network: &Network<T>,
        root: &Cholesky,
        data: &Dataset<'_, T>,
        span: Range<usize>,
    ) -> Self {
        let means = network.means();
        let activation = network.settings().activation;
        let head = network.settings().head.head();
        let d_activity = network.output().d_activity();
        let Self { hidden: mut sums, mut weight } = Self::zero(network);
        let mut outer: Vec<Mat<T>> = sums.iter().map(|sum| Mat::zeros(sum.nrows(), sum.nrows())).collect();
        for samples in pieces(span, PASS) {
            let (start, n) = (samples.start, samples.len());
            weight += data.weights().map_or(n as f64, |w| w[samples.clone()].iter().sum());
            let mut activities = Activities::new(&network.widths(), n);
            activities.forward(&means, activation, data.input().subcols(start, n));
            let output: Mat<f64> = cast(activities.post[means.len() - 1].as_ref());
            let slopes = slopes(&activities, activation);
            let mut seed = Mat::zeros(d_activity, n);
            for k in 0..d_activity {
                head.curvature_root(output.as_ref(), root.lower(), k, seed.as_mut());
                if let Some(weights) = data.weights() {
                    for (j, weight) in weights[samples.clone()].iter().enumerate() {
                        seed.as_mut().col_mut(j).iter_mut().for_each(|s| *s *= weight.sqrt());
                    }
                }
                let mut feedback: Mat<T> = cast(seed.as_ref());
                for l in (0..sums.len()).rev() {
                    feedback = back_one(means[l + 1], &slopes[l], &feedback);
                    let (feedback, outer) = (feedback.as_ref(), outer[l].as_mut());
                    let accum = if k == 0 { Accum::Replace } else { Accum::Add };
                    symmetric_product_into(outer, accum, feedback, feedback, T::one());
                }
            }
            sums.iter_mut().zip(&outer).for_each(|(sum, outer)| add_lower(sum, outer));
        }
        Self { hidden: sums, weight }
    }
}
