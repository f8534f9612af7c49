//! Model files of earlier versions are read, and predict what they did.

use crate::support::Sandbox;

/// Two networks that `bayespc fit` of 0.1.0 made of forty flats.
const FLATS: &[u8] = include_bytes!("../fixtures/flats-0.1.0.safetensors");

/// What 0.1.0 said of two flats: mean, std, both parts of it, and the interval of 90 %.
const SAID: [[f64; 6]; 2] = [
    [531.070_322_28, 42.830_857_907_1, 39.345_673_818_1, 16.923_366_711_6, 462.064_936_323, 602.638_980_078],
    [372.192_164_731, 45.225_441_391_6, 39.345_673_818_1, 22.299_293_730_1, 299.119_103_357, 447.444_828_703],
];

#[test]
fn a_model_of_the_first_version_predicts_as_it_did() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.safetensors", FLATS);
    sandbox.write("new.csv", "size,city\n50,Bern\n30,Chur\n");
    let printed = sandbox.ok("predict flats.safetensors new.csv --digits 12");
    let rows: Vec<Vec<f64>> = printed
        .lines()
        .skip(1)
        .map(|row| row.split(',').map(|cell| cell.parse().unwrap()).collect())
        .collect();
    assert_eq!(rows.len(), SAID.len());
    for (now, then) in rows.iter().flatten().zip(SAID.iter().flatten()) {
        // Quantiles are found by steps that end at about this distance.
        assert!((now - then).abs() <= 1e-8 * then.abs(), "{now} was {then}");
    }
    sandbox.ok("inspect flats.safetensors");
}
