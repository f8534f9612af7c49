//! Probability distributions.

pub mod student_t;
