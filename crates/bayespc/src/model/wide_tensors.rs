//! Layers of a wide network in a model file: what they keep, and no matrix of width².
//!
//! | tensor                    | what it is                                                              |
//! |---------------------------|-------------------------------------------------------------------------|
//! | `mean`                    | M                                                                       |
//! | `columns.prior`           | diagonal of V⁰⁻¹                                                        |
//! | `columns.dense`           | Σ w φφᵀ, lower triangle; of layers that are kept whole                  |
//! | `columns.blocks.{b}`      | Σ w φφᵀ of block b, lower triangle; the size of a block beside          |
//! | `columns.shared`          | B of what blocks share, a row for each direction; k, δ, the trace beside |
//! | `columns.sketch`          | B, a row for each direction; k, δ and the trace beside                  |
//! | `noise.inv_scale`         | Ψ⁻¹ of an output block                                                  |
//! | `noise.basis`, `.values`  | U, a row for each direction, and λ of a hidden layer; r beside          |
//! | `numbers`                 | η₄, η⁰₄, Ψ⁰⁻¹, and what stands beside the above                         |

use faer::Mat;

use super::tensors::{Reader, Tensors};
use crate::distributions::{ColumnPrecision, ColumnSums, Directions, FrequentDirections};
use crate::error::{Error, ModelFileError, Result};
use crate::network::{Layer, Metric, WideLayer, WideNoise, WideParts};

impl Tensors {
    /// A layer of a wide network.
    pub(super) fn put_wide(&mut self, name: &str, layer: &WideLayer<f64>) {
        let mut numbers = vec![layer.count(), layer.prior_count(), layer.prior_inv_scale()];
        self.put(&format!("{name}.mean"), &layer.mean().to_owned());
        self.put_row(&format!("{name}.columns.prior"), layer.columns().prior());
        match layer.columns().sums() {
            ColumnSums::Dense(sum) => self.put(&format!("{name}.columns.dense"), sum),
            ColumnSums::Blocks(sums) => {
                for (b, block) in sums.blocks().iter().enumerate() {
                    self.put(&format!("{name}.columns.blocks.{b}"), block);
                }
                numbers.push(sums.size() as f64);
                numbers.extend(self.put_sketch(&format!("{name}.columns.shared"), sums.shared()));
            }
            ColumnSums::Sketch(sketch) => {
                numbers.extend(self.put_sketch(&format!("{name}.columns.sketch"), sketch));
            }
        }
        match layer.wide_noise() {
            WideNoise::InvScale(inv_scale) => self.put(&format!("{name}.noise.inv_scale"), inv_scale),
            WideNoise::Metric(Metric { ridge, directions }) => {
                self.put(&format!("{name}.noise.basis"), &directions.basis.transpose().to_owned());
                self.put_row(&format!("{name}.noise.values"), &directions.values);
                numbers.push(*ridge);
            }
        }
        self.put_row(&format!("{name}.numbers"), &numbers);
    }

    /// B, a row for each direction; returns k, δ and the trace.
    fn put_sketch(&mut self, name: &str, sketch: &FrequentDirections) -> [f64; 3] {
        self.put(name, &sketch.columns().transpose().to_owned());
        [sketch.k() as f64, sketch.shrunk(), sketch.trace()]
    }
}

impl Reader<'_> {
    /// Whether a layer is one of a wide network.
    pub(super) fn is_wide(&self, name: &str) -> bool {
        self.rows(&format!("{name}.numbers")).is_some()
    }

    /// The first entry of a tensor's shape, if there is such a tensor.
    fn rows(&self, name: &str) -> Option<usize> {
        self.file.tensor(name).ok().and_then(|tensor| tensor.shape().first().copied())
    }

    /// A sketch of `d` activities by its k, δ and trace; none if these cannot be.
    fn sketch(
        &self,
        name: &str,
        d: usize,
        [k, shrunk, trace]: [f64; 3],
    ) -> Option<Result<FrequentDirections>> {
        let rows = self.rows(name)?;
        let possible = k >= 1.0 && k <= d as f64 && rows as f64 <= 2.0 * k && shrunk >= 0.0 && trace >= 0.0;
        possible.then(|| {
            let columns = self.matrix(name, rows, d)?;
            FrequentDirections::from_parts(k as usize, columns.transpose(), shrunk, trace)
        })
    }

    /// A layer of a wide network.
    pub(super) fn wide(&self, name: &str, d_post: usize, d_pre: usize) -> Result<Layer<f64>> {
        let key = format!("{name}.numbers");
        let malformed = || Error::from(ModelFileError::Metadata { key: key.clone() });
        let numbers = self.values(&key, &[self.rows(&key).unwrap_or(0)])?;
        let mut numbers = numbers.into_iter();
        let mut number = || numbers.next().ok_or_else(malformed);
        let (count, prior_count, prior_inv_scale) = (number()?, number()?, number()?);
        let prior = self.values(&format!("{name}.columns.prior"), &[d_pre])?;
        if !prior.iter().chain([&prior_inv_scale]).all(|&precision| precision > 0.0) {
            return Err(malformed());
        }
        let columns = |part: &str| format!("{name}.columns.{part}");
        let sums = if self.rows(&columns("dense")).is_some() {
            ColumnSums::Dense(self.matrix(&columns("dense"), d_pre, d_pre)?)
        } else if self.rows(&columns("sketch")).is_some() {
            let numbers = [number()?, number()?, number()?];
            ColumnSums::Sketch(self.sketch(&columns("sketch"), d_pre, numbers).ok_or_else(malformed)??)
        } else {
            let size = number()?;
            if !(size >= 1.0 && size <= d_pre as f64) {
                return Err(malformed());
            }
            let size = size as usize;
            let block = |start: usize| {
                let width = size.min(d_pre - start);
                self.matrix(&columns(&format!("blocks.{}", start / size)), width, width)
            };
            let blocks = (0..d_pre).step_by(size).map(block).collect::<Result<Vec<_>>>()?;
            let numbers = [number()?, number()?, number()?];
            let shared = self.sketch(&columns("shared"), d_pre, numbers).ok_or_else(malformed)??;
            ColumnSums::blocks(size, blocks, shared)
        };
        let noise = |part: &str| format!("{name}.noise.{part}");
        let noise = if let Some(r) = self.rows(&noise("basis")) {
            let ridge = number()?;
            let values = self.values(&noise("values"), &[r])?;
            if !(ridge > 0.0 && values.iter().all(|&value| value >= 0.0)) {
                return Err(malformed());
            }
            let basis = self.matrix(&noise("basis"), r, d_post)?.transpose().to_owned();
            WideNoise::Metric(Metric { ridge, directions: Directions { basis, values } })
        } else {
            WideNoise::InvScale(self.matrix(&noise("inv_scale"), d_post, d_post)?)
        };
        let mean: Mat<f64> = self.matrix(&format!("{name}.mean"), d_post, d_pre)?;
        Ok(Layer::of_wide(WideLayer::from_parts(WideParts {
            mean,
            columns: ColumnPrecision::from_sums(prior, sums),
            noise,
            count,
            prior_inv_scale,
            prior_count,
        })))
    }
}
