//! The output layer: blocks of rows of the output activity, each a Bayesian layer of its own.

use faer::{Mat, MatRef};

use super::layer::Layer;
use crate::error::Result;
use crate::heads::Block;
use crate::real::Real;

/// The output layer: blocks of rows, each with a posterior of its own.
#[derive(Clone, Debug)]
pub struct OutputLayer<T: Real> {
    blocks: Vec<Layer<T>>,
    specs: Vec<Block>,
    working_mean: Mat<T>,
}

impl<T: Real> OutputLayer<T> {
    pub(super) fn from_blocks(blocks: Vec<Layer<T>>, specs: Vec<Block>) -> Self {
        let d_pre = blocks[0].d_pre();
        let rows = blocks.iter().map(Layer::d_post).sum();
        let mut layer = Self { blocks, specs, working_mean: Mat::zeros(rows, d_pre) };
        layer.stack_means();
        layer
    }

    /// The blocks, top rows first.
    pub fn blocks(&self) -> &[Layer<T>] {
        &self.blocks
    }

    /// What the head asked of each block.
    pub fn specs(&self) -> &[Block] {
        &self.specs
    }

    /// Change the blocks, then bring the stacked mean up to date.
    pub fn update(&mut self, mut change: impl FnMut(usize, &mut Layer<T>) -> Result<()>) -> Result<()> {
        for (b, block) in self.blocks.iter_mut().enumerate() {
            change(b, block)?;
        }
        self.stack_means();
        Ok(())
    }

    /// Means of all blocks, stacked: `d_activity × d_pre`.
    pub fn working_mean(&self) -> MatRef<'_, T> {
        self.working_mean.as_ref()
    }

    /// Width of the output activity.
    pub fn d_activity(&self) -> usize {
        self.working_mean.nrows()
    }

    /// First row and number of rows of each block.
    pub fn row_ranges(&self) -> impl Iterator<Item = (usize, usize)> + '_ {
        self.blocks.iter().scan(0, |start, block| {
            let range = (*start, block.d_post());
            *start += block.d_post();
            Some(range)
        })
    }

    fn stack_means(&mut self) {
        let mut start = 0;
        for block in &self.blocks {
            self.working_mean.as_mut().subrows_mut(start, block.d_post()).copy_from(block.working_mean());
            start += block.d_post();
        }
    }
}
