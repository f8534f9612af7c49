//! Rule "relaxation": the paper's E-step (Eq. 6, Alg. 1).

mod batch;
mod descent;
mod layers;
mod optimiser;

pub(crate) use batch::RelaxedBatch;
pub use descent::{HiddenPrecision, Presynaptic, RelaxationReport, RelaxationSettings, Relaxer, Stop, Sweep};
pub use optimiser::ActivityOptimiser;
