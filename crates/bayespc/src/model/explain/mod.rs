//! Why a model says what it says: attributions of single rows, curves along a column, importance of columns.
//!
//! `reading` and `classes` say what is read off a network and how it changes with what the network says; `attribution` adds up, over
//! networks, what each column has to do with it; `curve` and `importance` look at a model from outside.

mod attribution;
mod classes;
mod curve;
mod importance;
mod reading;

pub use attribution::{Explanation, Quantity};
pub use curve::{Curve, CurveSettings};
pub use importance::{ColumnImportance, Loss, PermutationSettings};
