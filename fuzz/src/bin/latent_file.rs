//! A file of a latent model: it is refused, or it completes a table and can be written again.

#![no_main]

use bayespc::Mat;
use bayespc::model::LatentModel;
use bayespc_fuzz::with_right_checksum;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    try_it(bytes);
    if let Some(fixed) = with_right_checksum(bytes) {
        try_it(&fixed);
    }
});

fn try_it(bytes: &[u8]) {
    let Ok(model) = LatentModel::from_bytes(bytes) else { return };
    let table = Mat::from_fn(model.n_columns(), 2, |i, j| if (i + j) % 2 == 0 { f64::NAN } else { 0.5 });
    let _ = model.impute(table.as_ref());
    if let Ok(again) = model.to_bytes() {
        assert!(LatentModel::from_bytes(&again).is_ok(), "what was written can be read");
    }
}
