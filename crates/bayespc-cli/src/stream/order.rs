//! Whether the rows of a stream are in an order that learning in one pass cannot bear.
//!
//! ```text
//! share = Σ_b n_b (m_b − m)² / Σ_i (y_i − m)²      blocks b of rows in a row, of size n_b and mean m_b
//! ```
//!
//! Of shuffled rows the share is about one in the number of rows of a block; of rows sorted by the target it is
//! nearly 1. Of classes, both sums are over the classes' indicators too.

use bayespc_data::Targets;
use serde::{Deserialize, Serialize};

use crate::scores::Scores;

/// Rows of a block.
const BLOCK: usize = 512;
/// Fewer rows tell nothing about their order.
const ENOUGH: f64 = 2.0 * BLOCK as f64;
/// A share beyond which rows are called sorted. A season that is longer than the blocks may have as much.
const SORTED: f64 = 0.5;
/// By so many nats per row the last tenth may be worse than the whole.
const NATS: f64 = 1.0;

/// Sums over the targets.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Order {
    n: f64,
    /// For each target or class.
    each: Vec<Spread>,
    classes: bool,
}

/// Sums over one target.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
struct Spread {
    /// The first value, from which others are counted: squares of large numbers would lose their digits.
    origin: f64,
    sum: f64,
    squares: f64,
    /// Σ (sum of a block)² / rows of the block.
    blocks: f64,
}

impl Order {
    /// Rows that follow in the stream.
    pub fn add(&mut self, targets: &Targets) {
        match targets {
            Targets::Regression(values) => {
                for k in 0..values.nrows() {
                    self.spread(k, values[(k, 0)]).add(values.ncols(), |j| values[(k, j)]);
                }
                self.n += values.ncols() as f64;
            }
            Targets::Classification(labels) => {
                self.classes = true;
                let most = labels.iter().max().map_or(0, |label| label + 1);
                // A class that comes late was not there before: its sums so far are nought.
                for k in 0..most.max(self.each.len()) {
                    self.spread(k, 0.0).add(labels.len(), |j| f64::from(u8::from(labels[j] == k)));
                }
                self.n += labels.len() as f64;
            }
        }
    }

    fn spread(&mut self, k: usize, origin: f64) -> &mut Spread {
        while self.each.len() <= k {
            self.each.push(Spread { origin, ..Spread::default() });
        }
        &mut self.each[k]
    }

    /// The share of the variance that is between blocks, of the target where it is largest.
    fn share(&self) -> f64 {
        let sums = self.each.iter().map(|spread| {
            let mean = spread.sum * spread.sum / self.n;
            (spread.blocks - mean, spread.squares - mean)
        });
        let ratio = |(between, total): (f64, f64)| if total > 0.0 { between / total } else { 0.0 };
        if self.classes {
            return ratio(sums.fold((0.0, 0.0), |(a, b), (c, d)| (a + c, b + d)));
        }
        sums.map(ratio).fold(0.0, f64::max)
    }

    /// A word to whoever believes the scores, if rows are sorted or change.
    pub fn remark(&self, whole: &Scores, last: Option<&Scores>) -> Option<String> {
        if self.n >= ENOUGH && self.share() > SORTED {
            return Some(
                "rows look sorted by the target: shuffle the file; what is learned last outweighs the rest, and \
                 neither scores nor model can be relied on"
                    .to_owned(),
            );
        }
        let loss = |scores: &Scores| {
            let value = |name| scores.joint.iter().find(|(own, _)| *own == name).map(|(_, value)| *value);
            value("log_density").map(|density| -density).or(value("nll"))
        };
        (loss(last?)? - loss(whole)? > NATS).then(|| {
            "the last tenth is predicted far worse than the whole: rows are sorted by some column (shuffle the file), \
             or what they say has changed"
                .to_owned()
        })
    }
}

impl Spread {
    fn add(&mut self, n: usize, value: impl Fn(usize) -> f64) {
        for start in (0..n).step_by(BLOCK) {
            let rows = start..n.min(start + BLOCK);
            let size = rows.len() as f64;
            let (mut sum, mut squares) = (0.0, 0.0);
            for y in rows.map(&value) {
                sum += y - self.origin;
                squares += (y - self.origin) * (y - self.origin);
            }
            self.sum += sum;
            self.squares += squares;
            self.blocks += sum * sum / size;
        }
    }
}

#[cfg(test)]
mod tests {
    use faer::Mat;

    use super::*;

    fn share(values: &[f64]) -> f64 {
        let mut order = Order::default();
        for part in values.chunks(3000) {
            order.add(&Targets::Regression(Mat::from_fn(1, part.len(), |_, j| part[j])));
        }
        order.share()
    }

    #[test]
    fn sorted_rows_have_their_variance_between_blocks_and_mixed_ones_within() {
        let mut values: Vec<f64> = (0..10_000).map(|i| 1e9 + f64::from(i * 7919 % 10_007)).collect();
        assert!(share(&values) < 0.01, "{}", share(&values));
        values.sort_by(f64::total_cmp);
        assert!(share(&values) > 0.99, "{}", share(&values));
        assert!(share(&vec![5.0; 3000]) < SORTED);
    }

    #[test]
    fn classes_that_come_one_after_another_are_sorted() {
        let remark = |labels: Vec<usize>| {
            let none = Scores { joint: Vec::new(), each: Vec::new() };
            let mut order = Order::default();
            labels.chunks(1000).for_each(|part| order.add(&Targets::Classification(part.to_vec())));
            order.remark(&none, None)
        };
        assert_eq!(remark((0..6000).map(|i| i % 3).collect()), None);
        assert!(remark((0..6000).map(|i| i / 2000).collect()).unwrap().contains("shuffle"));
    }

    #[test]
    fn a_last_tenth_far_worse_than_the_whole_is_told() {
        let scores = |density: f64| Scores { joint: vec![("log_density", density)], each: Vec::new() };
        let order = Order::default();
        assert!(order.remark(&scores(-1.0), Some(&scores(-2.5))).is_some());
        assert_eq!(order.remark(&scores(-1.0), Some(&scores(-1.5))), None);
        assert_eq!(order.remark(&scores(-1.0), None), None);
    }
}
