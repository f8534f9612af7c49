//! Settings as JSON: refused, or they fit a tiny table or say why not.

#![no_main]

use bayespc::{Mat, Model, ModelSettings, Samples};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some(mut settings) = serde_json::from_slice::<ModelSettings>(bytes).ok() else {
        return;
    };
    if settings.validate().is_err() {
        return;
    }
    // What is allowed to take long is cut short; what is refused for its size is tried as it is.
    settings.training.epochs = settings.training.epochs.min(1);
    settings.search.enabled = false;
    let small = settings.members <= 4
        && settings.bins <= 64
        && settings.network.hidden_layer_sizes.iter().product::<usize>() <= 4096
        && settings.network.hidden_layer_sizes.len() <= 4;
    let x = Mat::from_fn(2, 6, |i, j| ((i + 1) * j % 5) as f64);
    let y = Mat::from_fn(1, 6, |_, j| j as f64);
    let samples = Samples::new(&x, &y).expect("samples");
    if small {
        let _ = Model::fit(&samples, &settings);
    }
});
