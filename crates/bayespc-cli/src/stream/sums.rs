//! Scores summed over chunks of rows: of all of them, and of the last tenth.
//!
//! Chunks are kept in blocks. As blocks grow many they are joined in pairs, and from then on twice as many chunks make
//! a block. There are then always between 100 and 200 of one size, so that the last tenth is known to about one in a
//! hundred rows, whatever the length of the stream.

use serde::{Deserialize, Serialize};

use crate::scores::Scores;

/// Blocks at which pairs are joined.
const MANY: usize = 200;

/// Scores summed over chunks.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Sums {
    /// Rows learned from.
    pub rows: usize,
    blocks: Vec<Block>,
    /// Chunks in a block, in powers of two.
    doublings: u32,
    /// Names of the scores; the values mean nothing.
    #[serde(skip)]
    names: Option<Scores>,
}

/// Sums over consecutive rows.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
struct Block {
    chunks: usize,
    rows: usize,
    /// In the order of the scores, as bits: a score may be no number, for which JSON has no word.
    totals: Vec<u64>,
}

impl Sums {
    /// What the scores are called; known from the first chunk that is scored, or said by whoever goes on.
    pub fn name(&mut self, scores: &Scores) {
        self.names.get_or_insert_with(|| scores.clone());
    }

    /// Add the scores of a chunk.
    pub fn add(&mut self, scores: &Scores, rows: usize) {
        self.name(scores);
        // Squares of the root mean square add up, everything else does as it is.
        let total = |&(name, value): &(&str, f64)| {
            (rows as f64 * if name == "rmse" { value * value } else { value }).to_bits()
        };
        let chunk = Block { chunks: 1, rows, totals: scores.values().map(total).collect() };
        match self.blocks.last_mut() {
            Some(last) if last.chunks < 1 << self.doublings => *last = Block::join(&[last.clone(), chunk]),
            _ => self.blocks.push(chunk),
        }
        if self.blocks.len() > MANY {
            self.blocks = self.blocks.chunks(2).map(Block::join).collect();
            self.doublings += 1;
        }
    }

    /// Rows that were scored.
    pub fn scored(&self) -> usize {
        self.blocks.iter().map(|block| block.rows).sum()
    }

    /// Scores of all rows.
    pub fn whole(&self) -> Scores {
        self.means(&self.blocks)
    }

    /// The last tenth of the rows, or somewhat more, and their scores; none if there are too few chunks to tell.
    pub fn last_tenth(&self) -> Option<(usize, Scores)> {
        let scored = self.scored();
        let (mut start, mut rows) = (self.blocks.len(), 0);
        while start > 0 && 10 * rows < scored {
            start -= 1;
            rows += self.blocks[start].rows;
        }
        (2 * rows <= scored && rows > 0).then(|| (rows, self.means(&self.blocks[start..])))
    }

    fn means(&self, blocks: &[Block]) -> Scores {
        let none = || Scores { joint: Vec::new(), each: Vec::new() };
        let (Some(names), false) = (&self.names, blocks.is_empty()) else { return none() };
        let all = Block::join(blocks);
        let mut totals = names.clone();
        totals.values_mut().zip(&all.totals).for_each(|(slot, total)| *slot = f64::from_bits(*total));
        totals.map(|name, total| {
            let mean = total / all.rows as f64;
            if name == "rmse" { mean.sqrt() } else { mean }
        })
    }
}

impl Block {
    fn join(blocks: &[Self]) -> Self {
        let width = blocks.first().map_or(0, |block| block.totals.len());
        let total = |k: usize| {
            let values = blocks.iter().filter_map(|block| block.totals.get(k));
            values.map(|bits| f64::from_bits(*bits)).sum::<f64>().to_bits()
        };
        let chunks = blocks.iter().map(|block| block.chunks).sum();
        Self {
            chunks,
            rows: blocks.iter().map(|block| block.rows).sum(),
            totals: (0..width).map(total).collect(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scores(rmse: f64, coverage: f64) -> Scores {
        Scores { joint: vec![("rmse", rmse), ("coverage_90", coverage)], each: Vec::new() }
    }

    fn close(scores: &Scores, expected: &[f64]) -> bool {
        scores.values().zip(expected).all(|((_, a), b)| (a - b).abs() < 1e-12)
    }

    #[test]
    fn squares_are_averaged_and_the_last_tenth_is_the_last() {
        let mut sums = Sums::default();
        assert!(sums.whole().joint.is_empty() && sums.last_tenth().is_none());
        for i in 0..20 {
            sums.add(&if i < 18 { scores(3.0, 0.5) } else { scores(1.0, 1.0) }, 10);
        }
        assert!(close(&sums.whole(), &[8.2_f64.sqrt(), 0.55]), "{:?}", sums.whole());
        let (rows, last) = sums.last_tenth().unwrap();
        assert!(rows == 20 && close(&last, &[1.0, 1.0]), "{rows} {last:?}");
    }

    #[test]
    fn a_long_stream_keeps_few_blocks_and_its_last_tenth() {
        let mut sums = Sums::default();
        for i in 0..100_000 {
            sums.add(&scores(1.0, f64::from(u8::from(i >= 95_000))), 7);
        }
        assert!((MANY / 2..=MANY).contains(&sums.blocks.len()) && sums.scored() == 700_000);
        let (rows, last) = sums.last_tenth().unwrap();
        assert!((70_000..78_000).contains(&rows), "{rows}");
        assert!(close(&last, &[1.0, 35_000.0 / rows as f64]), "{last:?}");
    }

    #[test]
    fn a_score_that_is_no_number_survives_a_file() {
        let mut sums = Sums::default();
        sums.add(&scores(f64::NAN, 0.1), 3);
        let text = serde_json::to_string(&sums).unwrap();
        let mut back: Sums = serde_json::from_str(&text).unwrap();
        back.name(&scores(0.0, 0.0));
        assert!(back.whole().joint[0].1.is_nan() && back.blocks == sums.blocks);
    }
}
