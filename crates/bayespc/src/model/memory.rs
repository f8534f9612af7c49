//! Whether there is room for the networks, before anything is allocated.

use super::settings::ModelSettings;
use crate::data::{Codes, Samples};
use crate::distributions::Structure;
use crate::error::{Error, Result};

/// Matrices of the size of a layer's precisions that training holds at a time.
const COPIES: u128 = 6;

/// An error that names the sizes if the networks cannot be held in memory.
pub(super) fn check(settings: &ModelSettings, d_input: usize, d_output: usize) -> Result<()> {
    let hidden = &settings.network.hidden_layer_sizes;
    let d_input = d_input.saturating_add(Codes::most(settings.bins, d_input));
    let widths = std::iter::once(d_input).chain(hidden.iter().copied());
    let above = hidden.iter().copied().chain([d_output]);
    let columns = settings.network.wide_layers;
    let wide = columns.is_wide(d_input, hidden);
    let entries = |(below, above): (usize, usize)| {
        let (own, feedback) = (columns.structure(below), columns.feedback_directions(above) as u128);
        let (below, above) = (below as u128 + 1, above as u128);
        let squares =
            if wide { below * kept(own, below) + above * feedback } else { below * below + above * above };
        squares + 2 * below * above
    };
    let numbers: u128 = widths.zip(above).map(entries).sum();
    // Networks train on as many threads as there are, at least one at a time.
    let bytes = COPIES * numbers * size_of::<f64>() as u128;
    // Asking for room touches none of it, and fails where there cannot be as much.
    let room = usize::try_from(bytes).ok().filter(|&bytes| Vec::<u8>::new().try_reserve_exact(bytes).is_ok());
    if room.is_none() {
        let gigabytes = bytes as f64 / 1e9;
        return Err(Error::TooLarge { what: "a network with these hidden_layer_sizes", gigabytes });
    }
    Ok(())
}

/// The same for a table that is fitted at once, of which networks may keep less.
pub(super) fn check_table(settings: &ModelSettings, samples: &Samples<'_>) -> Result<()> {
    let (d, n) = (samples.n_features(), samples.n_samples());
    let mut kept = settings.clone();
    if let Some(wide_layers) = settings.wide_layers_of(&settings.network, d, n) {
        kept.network.wide_layers = wide_layers;
    }
    check(&kept, d, samples.n_outputs())
}

/// Numbers kept for each activity of a layer's input.
fn kept(structure: Structure, d: u128) -> u128 {
    match structure {
        Structure::Dense => d,
        Structure::Blocks(size) => size as u128,
        Structure::Sketch(k) => 2 * k as u128,
    }
}
