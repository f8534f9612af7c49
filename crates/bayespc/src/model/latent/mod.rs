//! A table as a generative model learns it: rows come from latents, and holes are cells nobody saw.
//!
//! ```text
//! part        c ~ π                                  which linear layer a row comes from
//! latents     z ~ N(0, I_k)
//! cell        x_d = w_cdᵀ [z; 1] + ε_d ,  ε_d ~ N(0, σ_cd²)
//! posterior   w_cd, σ_cd⁻² ~ MNW(M, V, Ψ, ν) of one output, by η = η⁰ + T, T over the rows where cell d is there
//! ```
//!
//! One part is factor analysis with a posterior over its weights. Several parts bend: each is linear where it holds, and
//! what is asked of a row (density, missing cells) is still a mixture of exact conditionals of normal distributions.
//! How many latents and parts there are is chosen by the density of cells taken out.
//!
//! | file       | idea                                                       |
//! |------------|------------------------------------------------------------|
//! | `settings` | what can be set                                            |
//! | `cells`    | standardised values and which of them are missing          |
//! | `lens`     | latents of a row given the cells that are there (E-step)   |
//! | `sums`     | expected statistics of a part, and its posterior (M-step)  |
//! | `part`     | a part as it predicts: its exact mean and covariance       |
//! | `mixture`  | what the parts say of one row together                     |
//! | `learn`    | the two steps in turn                                      |
//! | `start`    | where they start: principal axes, and rows in clusters     |
//! | `search`   | number of latents and parts by held-out cells              |
//! | `model`    | what a user asks                                           |
//! | `file`     | bytes and back                                             |

mod cells;
mod file;
mod learn;
mod lens;
mod mixture;
mod model;
mod part;
mod search;
mod settings;
mod start;
mod sums;

pub use model::{Completed, LatentModel};
pub use search::LatentCandidate;
pub use settings::LatentSettings;
