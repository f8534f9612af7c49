//! Ground: linear algebra on faer, a small minimiser, work in fixed parts, streams of random numbers, sums along a tree, checks of input, files under a checksum.

pub(crate) mod check;
pub(crate) mod container;
pub(crate) mod exp;
pub mod linalg;
pub(crate) mod nelder_mead;
pub(crate) mod parallel;
pub(crate) mod random;
pub(crate) mod tree;
