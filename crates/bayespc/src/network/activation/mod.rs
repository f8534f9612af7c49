//! Activations f: the function itself, and the moments of f(z) for a Gaussian z.

mod function;
pub mod moments;
mod rectified;
mod smooth;

pub use function::Activation;
pub use moments::CovarianceRule;
