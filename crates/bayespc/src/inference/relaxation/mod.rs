//! Rule "relaxation": the paper's E-step (Eq. 6, Alg. 1). `descent` is the algorithm, `errors` the same in
//! other variables; `layers` says what it takes from the
//! network, `step_size` how far it may step. `batch` runs it in training, `relaxer` for those who watch.

mod batch;
mod descent;
mod errors;
mod halving;
mod layers;
mod optimiser;
mod relaxer;
mod settings;
mod step_size;

pub(crate) use batch::{RelaxedBatch, RelaxedChunk};
pub use descent::{RelaxationReport, Stop};
pub(crate) use layers::RelaxingLayers;
pub use optimiser::ActivityOptimiser;
pub use relaxer::Relaxer;
pub use settings::{HiddenPrecision, Presynaptic, RelaxationSettings, Sweep, Variables};
