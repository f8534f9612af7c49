//! The M-step of hidden layers as a natural-gradient step of their means, for column precisions that are renewed
//! only now and then.

mod error_chunk;
mod noise;
mod step;
mod whitening;
mod wide;
mod window;

pub use error_chunk::ErrorChunk;
pub use step::{Blend, NaturalGradient};
