//! Sums as plain numbers in a row, symmetric ones as their lower triangles.

use faer::Mat;

use crate::distributions::SufficientStats;

/// Numbers on their way into a row.
#[derive(Default)]
pub(crate) struct Packer {
    values: Vec<f64>,
}

impl Packer {
    pub(crate) fn number(&mut self, x: f64) {
        self.values.push(x);
    }

    /// All entries, column after column.
    pub(crate) fn whole(&mut self, matrix: &Mat<f64>) {
        for j in 0..matrix.ncols() {
            self.values.extend_from_slice(matrix.col_as_slice(j));
        }
    }

    /// The lower triangle, column after column.
    pub(crate) fn lower(&mut self, matrix: &Mat<f64>) {
        for j in 0..matrix.ncols() {
            self.values.extend_from_slice(&matrix.col_as_slice(j)[j..]);
        }
    }

    pub(crate) fn statistics(&mut self, stats: &SufficientStats) {
        self.lower(&stats.pre_pre);
        self.whole(&stats.post_pre);
        self.lower(&stats.post_post);
        self.number(stats.count);
    }

    pub(crate) fn into_values(self) -> Vec<f64> {
        self.values
    }
}

/// Numbers on their way out of a row that is long enough.
pub(crate) struct Unpacker<'a> {
    rest: &'a [f64],
}

impl<'a> Unpacker<'a> {
    pub(crate) fn new(values: &'a [f64]) -> Self {
        Self { rest: values }
    }

    fn take(&mut self, n: usize) -> &'a [f64] {
        let (first, rest) = self.rest.split_at(n);
        self.rest = rest;
        first
    }

    pub(crate) fn number(&mut self) -> f64 {
        self.take(1)[0]
    }

    pub(crate) fn whole(&mut self, matrix: &mut Mat<f64>) {
        for j in 0..matrix.ncols() {
            let column = matrix.col_as_slice_mut(j);
            column.copy_from_slice(self.take(column.len()));
        }
    }

    pub(crate) fn lower(&mut self, matrix: &mut Mat<f64>) {
        for j in 0..matrix.ncols() {
            let column = &mut matrix.col_as_slice_mut(j)[j..];
            column.copy_from_slice(self.take(column.len()));
        }
    }

    pub(crate) fn statistics(&mut self, stats: &mut SufficientStats) {
        self.lower(&mut stats.pre_pre);
        self.whole(&mut stats.post_pre);
        self.lower(&mut stats.post_post);
        stats.count = self.number();
    }
}
