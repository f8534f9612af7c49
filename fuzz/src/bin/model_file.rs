//! A model file: it is refused, or it predicts and can be written again.

#![no_main]

use bayespc::{Mat, Model};
use bayespc_fuzz::with_right_checksum;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    try_it(bytes);
    if let Some(fixed) = with_right_checksum(bytes) {
        try_it(&fixed);
    }
});

fn try_it(bytes: &[u8]) {
    let Ok(model) = Model::from_bytes(bytes) else { return };
    let row = Mat::<f64>::zeros(model.n_features(), 1);
    if let Ok(predictive) = model.predict(&row) {
        let _ = predictive.interval(0.9);
    }
    if let Ok(again) = model.to_bytes() {
        assert!(Model::from_bytes(&again).is_ok(), "what was written can be read");
    }
}
