//! The sums of a batch: one forward and one backward sweep, and of each sample only what adds up.

use std::ops::Range;

use faer::{Accum, Mat, MatRef};

use super::sweep::squared_error;
use crate::base::linalg::{cast_into, product_into, symmetric_product_into};
use crate::base::parallel::{PASS, pieces};
use crate::data::Dataset;
use crate::heads::Response;
use crate::learning::{BatchStatistics, Hebbian, add_lower};
use crate::network::{Activities, Network, back_one_into};
use crate::real::Real;

/// The sums of the samples `span` of `data`, one pass after the other. A network must not change in between.
pub(crate) fn gather<T: Real>(
    network: &Network<T>,
    data: &Dataset<'_, T>,
    span: Range<usize>,
) -> BatchStatistics {
    let mut sums = BatchStatistics::zero(network);
    let mut output = Hebbian::of_output(network);
    let mut room: Option<Room<T>> = None;
    for samples in pieces(span, PASS) {
        let room = match &mut room {
            Some(room) if room.activities.capacity() == samples.len() => room,
            other => other.insert(Room::new(network, samples.len())),
        };
        room.add(network, data, samples, &mut sums, &mut output);
    }
    sums.output = output.into_output();
    sums
}

/// Buffers of one pass.
struct Room<T: Real> {
    activities: Activities<T>,
    /// g_1 … g_L, and room for products on the way to them.
    feedback: Vec<Mat<T>>,
    products: Vec<Mat<T>>,
    /// Σ w φφᵀ, Σ w g φᵀ and Σ w g gᵀ of a pass, per hidden layer.
    pre_pre: Vec<Mat<T>>,
    feedback_pre: Vec<Mat<T>>,
    feedback_outer: Vec<Mat<T>>,
    activity: Mat<f64>,
    target: Mat<f64>,
    response: Response,
}

impl<T: Real> Room<T> {
    fn new(network: &Network<T>, n: usize) -> Self {
        let widths = network.widths();
        let (d_activity, blocks) = (network.output().d_activity(), network.output().blocks().len());
        let hidden = network.hidden();
        let square = |d: usize| Mat::zeros(d, d);
        Self {
            activities: Activities::new(&widths, n),
            feedback: widths[1..].iter().map(|&d| Mat::zeros(d, n)).collect(),
            products: hidden.iter().map(|layer| Mat::zeros(layer.d_post(), n)).collect(),
            pre_pre: hidden.iter().map(|layer| square(layer.d_pre())).collect(),
            feedback_pre: hidden.iter().map(|layer| Mat::zeros(layer.d_post(), layer.d_pre())).collect(),
            feedback_outer: hidden.iter().map(|layer| square(layer.d_post())).collect(),
            activity: Mat::zeros(d_activity, n),
            target: Mat::zeros(network.n_targets(), n),
            response: Response::zeros(d_activity, blocks, n),
        }
    }

    fn add(
        &mut self,
        network: &Network<T>,
        data: &Dataset<'_, T>,
        samples: Range<usize>,
        sums: &mut BatchStatistics,
        output: &mut Hebbian,
    ) {
        let (start, n) = (samples.start, samples.len());
        let weights = data.weights().map(|w| &w[samples]);
        let means = network.means();
        let activation = network.settings().activation;
        self.activities.forward(&means, activation, data.input().subcols(start, n));
        let last = means.len() - 1;
        cast_into(&mut self.activity, self.activities.post[last].as_ref());
        cast_into(&mut self.target, data.target().subcols(start, n));
        let head = network.settings().head.head();
        head.respond(self.activity.as_ref(), self.target.as_ref(), &mut self.response);
        sums.square += squared_error(self.activity.as_ref(), self.target.as_ref(), weights);
        sums.weight += weights.map_or(n as f64, |w| w.iter().sum());
        output.accumulate_output(&self.activities, &self.response, 0, weights);
        cast_into(&mut self.feedback[last], self.response.feedback.as_ref());
        for l in (0..last).rev() {
            let (below, above) = self.feedback.split_at_mut(l + 1);
            let (z, above) = (self.activities.post[l].as_ref(), above[0].as_ref());
            back_one_into(means[l + 1], activation, z, above, &mut self.products[l], &mut below[l]);
        }
        for (l, sums) in sums.hidden.iter_mut().enumerate() {
            // Roots of the weights on both sides of each product: every sum then is one of symmetric terms.
            if let Some(weights) = weights {
                scale_columns(&mut self.activities.pre[l], weights);
                scale_columns(&mut self.feedback[l], weights);
            }
            let (pre, feedback) = (self.activities.pre[l].as_ref(), self.feedback[l].as_ref());
            let one = T::one();
            symmetric_product_into(self.pre_pre[l].as_mut(), Accum::Replace, pre, pre, one);
            product_into(self.feedback_pre[l].as_mut(), Accum::Replace, feedback, pre.transpose(), one);
            symmetric_product_into(self.feedback_outer[l].as_mut(), Accum::Replace, feedback, feedback, one);
            add_lower(&mut sums.pre_pre, &self.pre_pre[l]);
            add_whole(&mut sums.feedback_pre, self.feedback_pre[l].as_ref());
            add_lower(&mut sums.feedback_outer, &self.feedback_outer[l]);
            if weights.is_some() {
                // The row of ones is written once for all passes.
                let bias = self.activities.pre[l].nrows() - 1;
                self.activities.pre[l].as_mut().row_mut(bias).iter_mut().for_each(|x| *x = one);
            }
        }
    }
}

/// Every column times the root of its sample's weight.
fn scale_columns<T: Real>(columns: &mut Mat<T>, weights: &[f64]) {
    for (j, weight) in weights.iter().enumerate() {
        let root = T::lit(weight.sqrt());
        columns.col_as_slice_mut(j).iter_mut().for_each(|x| *x *= root);
    }
}

/// A sum in working precision joins one in f64.
fn add_whole<T: Real>(sum: &mut Mat<f64>, part: MatRef<'_, T>) {
    faer::zip!(sum, part).for_each(|faer::unzip!(sum, part)| *sum += part.as_f64());
}
