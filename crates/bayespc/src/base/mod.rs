//! Ground: linear algebra on faer, work in fixed parts, streams of random numbers, checks of input.

pub(crate) mod check;
pub mod linalg;
pub(crate) mod parallel;
pub(crate) mod random;
