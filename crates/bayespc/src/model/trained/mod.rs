//! Networks that were trained elsewhere: their weights from named tensors, and a posterior around them.

mod named;
mod posterior;

pub use named::{NamedTensor, layers, read_safetensors};
