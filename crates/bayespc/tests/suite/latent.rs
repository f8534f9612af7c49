//! Latent models of tables: what they learn, what they fill in and what they generate.

use bayespc::model::{LatentModel, LatentSettings};
use bayespc::{Error, Mat};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use rand_distr::{Distribution, StandardNormal};

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    StandardNormal.sample(rng)
}

/// Rows of `latents` linear latents in `d` columns, noise 0.3, in other units for each column.
fn linear(d: usize, latents: usize, n: usize, seed: u64) -> Mat<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let loadings = Mat::from_fn(d, latents, |_, _| normal(&mut rng));
    let z = Mat::from_fn(latents, n, |_, _| normal(&mut rng));
    let signal = &loadings * z;
    Mat::from_fn(d, n, |i, j| {
        [1.0, 10.0, 100.0, 1000.0][i % 4] * (3.0 + signal[(i, j)] + 0.3 * normal(&mut rng))
    })
}

/// Rows on a circle, noise 0.05, and a column of noise.
fn circle(n: usize, seed: u64) -> Mat<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let angles: Vec<f64> = (0..n).map(|_| rng.random_range(0.0..std::f64::consts::TAU)).collect();
    Mat::from_fn(3, n, |i, j| {
        let shape = [angles[j].cos(), angles[j].sin(), 0.0][i];
        shape + [0.05, 0.05, 1.0][i] * normal(&mut rng)
    })
}

/// Rows on a rolled sheet: of one or two coordinates hardly anything follows for the mean of the others.
fn roll(n: usize, seed: u64) -> Mat<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let places: Vec<(f64, f64)> =
        (0..n).map(|_| (rng.random_range(4.7..14.1), rng.random_range(0.0..21.0))).collect();
    Mat::from_fn(3, n, |i, j| {
        let (angle, height) = places[j];
        [angle * angle.cos(), height, angle * angle.sin()][i] + 0.1 * normal(&mut rng)
    })
}

/// Columns that have nothing to do with each other: normal, uniform, skewed, two values, constant.
fn independent(n: usize, seed: u64) -> Mat<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    Mat::from_fn(5, n, |i, _| match i {
        0 => 5.0 + 2.0 * normal(&mut rng),
        1 => rng.random_range(0.0..1.0),
        2 => normal(&mut rng).exp(),
        3 => f64::from(rng.random::<f64>() < 0.3),
        _ => 4.0,
    })
}

/// The table with a share of its cells removed.
fn holes(table: &Mat<f64>, share: f64, seed: u64) -> Mat<f64> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    Mat::from_fn(table.nrows(), table.ncols(), |i, j| {
        if rng.random::<f64>() < share { f64::NAN } else { table[(i, j)] }
    })
}

fn fixed(latents: usize, parts: usize) -> LatentSettings {
    LatentSettings { latents: Some(latents), parts: Some(parts), ..LatentSettings::default() }
}

fn fit(table: &Mat<f64>, settings: &LatentSettings) -> LatentModel {
    LatentModel::fit(table.as_ref(), settings, &mut ()).unwrap()
}

/// Root mean square of (filled − truth)/deviation and of (filled − truth)/said, over the cells that were removed.
fn errors(truth: &Mat<f64>, given: &Mat<f64>, model: &LatentModel) -> (f64, f64) {
    let completed = model.impute(given.as_ref()).unwrap();
    let (mut squares, mut honest, mut n) = (0.0, 0.0, 0.0);
    for i in 0..truth.nrows() {
        let count = truth.ncols() as f64;
        let mean = (0..truth.ncols()).map(|j| truth[(i, j)]).sum::<f64>() / count;
        let variance = (0..truth.ncols()).map(|j| (truth[(i, j)] - mean).powi(2)).sum::<f64>() / count;
        for j in 0..truth.ncols() {
            if !given[(i, j)].is_nan() {
                assert_eq!((completed.values[(i, j)], completed.std[(i, j)]), (truth[(i, j)], 0.0));
                continue;
            }
            let error = completed.values[(i, j)] - truth[(i, j)];
            if variance == 0.0 {
                assert!(error.abs() < 1e-9, "{error}");
                continue;
            }
            squares += error * error / variance;
            honest += (error / completed.std[(i, j)]).powi(2);
            n += 1.0;
        }
    }
    ((squares / n).sqrt(), (honest / n).sqrt())
}

#[test]
fn a_linear_table_stays_linear_and_its_holes_are_filled_with_honest_deviations() {
    let table = linear(8, 2, 400, 0);
    let given = holes(&table, 0.2, 1);
    let model = fit(&given, &LatentSettings::default());
    assert_eq!((model.n_latents(), model.n_parts()), (2, 1), "{:?}", model.candidates());
    let (error, honest) = errors(&table, &given, &model);
    // The noise is 0.3 beside a signal of √2: knowing the latents exactly leaves 0.2.
    assert!(error < 0.35, "{error}");
    // About 640 cells: the root mean square of as many standard normals is 1 ± 0.03.
    assert!((honest - 1.0).abs() < 0.12, "{honest}");
}

/// Root mean square error of the removed cells with each at the mean of its column, in the units of `errors`.
fn error_of_means(truth: &Mat<f64>, given: &Mat<f64>) -> f64 {
    let (mut squares, mut n) = (0.0, 0.0);
    for i in 0..truth.nrows() {
        let all: Vec<f64> = (0..truth.ncols()).map(|j| truth[(i, j)]).collect();
        let left: Vec<f64> = (0..truth.ncols()).map(|j| given[(i, j)]).filter(|x| !x.is_nan()).collect();
        let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
        let centre = mean(&all);
        let variance = mean(&all.iter().map(|x| (x - centre).powi(2)).collect::<Vec<_>>());
        for j in (0..truth.ncols()).filter(|&j| given[(i, j)].is_nan() && variance > 0.0) {
            squares += (truth[(i, j)] - mean(&left)).powi(2) / variance;
            n += 1.0;
        }
    }
    (squares / n).sqrt()
}

/// The factor between the two errors, the mean over ten tables.
fn beside_means(table: impl Fn(u64) -> Mat<f64>) -> f64 {
    let ratio = |seed: u64| {
        let truth = table(seed);
        let given = holes(&truth, 0.25, 100 + seed);
        let model = fit(&given, &LatentSettings { seed, ..LatentSettings::default() });
        errors(&truth, &given, &model).0 / error_of_means(&truth, &given)
    };
    (0..10).map(ratio).sum::<f64>() / 10.0
}

#[test]
fn columns_that_nothing_can_be_said_of_are_filled_with_their_means() {
    let (own, rolled) = (beside_means(|seed| independent(300, seed)), beside_means(|seed| roll(400, seed)));
    // 2500 and 3000 cells. What is fitted to a table of noise costs some parameters of error, each a share of 1/n.
    assert!(own < 1.003 && rolled < 1.006, "{own} {rolled}");
}

#[test]
fn columns_that_are_constant_but_for_one_cell_do_not_decide_the_search() {
    let inner = linear(8, 2, 400, 0);
    let table =
        Mat::from_fn(
            28,
            400,
            |i, j| {
                if i < 8 { inner[(i, j)] } else { f64::from(u8::from(j == 17 * (i - 8))) }
            },
        );
    let model = fit(&table, &LatentSettings::default());
    let chosen = (model.n_latents(), model.n_parts());
    assert!(chosen.0 >= 2 && model.candidates().iter().all(|tried| tried.log_density > -10.0), "{chosen:?}");
    let new = Mat::from_fn(28, 1, |i, _| if i == 0 { f64::NAN } else { table[(i, 399)] });
    let filled = model.impute(new.as_ref()).unwrap().values[(0, 0)];
    // The deviation of the column is above 1 and its noise 0.3.
    assert!((filled - table[(0, 399)]).abs() < 1.0, "{filled} {}", table[(0, 399)]);
}

#[test]
fn a_filled_cell_is_one_that_its_column_may_have() {
    let table = linear(6, 2, 300, 7);
    let model = fit(&table, &fixed(2, 1));
    let least = |i: usize| (0..300).map(|j| table[(i, j)]).fold(f64::INFINITY, f64::min);
    let most = |i: usize| (0..300).map(|j| table[(i, j)]).fold(f64::NEG_INFINITY, f64::max);
    // Fifty deviations away: what is linear goes on without end.
    let strange = Mat::from_fn(6, 2, |i, j| if i == 0 { [-200.0, 200.0][j] } else { f64::NAN });
    let completed = model.impute(strange.as_ref()).unwrap();
    for j in 0..2 {
        for i in 1..6 {
            let (filled, std) = (completed.values[(i, j)], completed.std[(i, j)]);
            let rounding = 1e-12 * (most(i) - least(i));
            assert!((least(i) - rounding..=most(i) + rounding).contains(&filled), "{i} {j}: {filled}");
            assert!(std > 0.0 && std.is_finite());
        }
    }
}

#[test]
fn a_bent_table_gets_parts_and_a_higher_density() {
    let (table, new) = (circle(600, 0), circle(300, 1));
    let model = fit(&holes(&table, 0.1, 2), &LatentSettings::default());
    assert!(model.n_parts() >= 4, "{:?}", model.candidates());
    let flat = fit(&holes(&table, 0.1, 2), &fixed(2, 1));
    let mean = |model: &LatentModel| {
        model.log_density(new.as_ref()).unwrap().iter().sum::<f64>() / new.ncols() as f64
    };
    // A normal distribution of the plane has −2.1 nats on a circle, the ring itself about −0.2.
    assert!(mean(&model) > mean(&flat) + 1.0, "{} {}", mean(&model), mean(&flat));
    let inside = Mat::from_fn(3, 1, |_, _| 0.0);
    assert!(model.log_density(inside.as_ref()).unwrap()[0] < mean(&model) - 3.0);
}

#[test]
fn the_density_of_a_table_integrates_to_one() {
    let table = circle(200, 3);
    let two = Mat::from_fn(2, 200, |i, j| table[(i, j)]);
    let model = fit(&two, &fixed(1, 4));
    let (points, reach) = (161_usize, 4.0);
    let step = 2.0 * reach / (points - 1) as f64;
    let at = |i: usize| -reach + step * i as f64;
    let grid = Mat::from_fn(2, points * points, |i, j| at(if i == 0 { j % points } else { j / points }));
    let total: f64 =
        model.log_density(grid.as_ref()).unwrap().iter().map(|log| log.exp() * step * step).sum();
    assert!((total - 1.0).abs() < 1e-3, "{total}");
}

/// Draws of missing cells have the mean and deviation that imputing says: five standard errors of 4000 draws.
#[test]
fn draws_of_missing_cells_have_the_moments_of_imputing() {
    let table = circle(300, 4);
    let model = fit(&table, &fixed(2, 5));
    let row = Mat::from_fn(3, 1, |i, _| [0.6, f64::NAN, f64::NAN][i]);
    let completed = model.impute(row.as_ref()).unwrap();
    let n = 4000;
    let draws = model.draw_missing(row.as_ref(), n, 7).unwrap();
    assert_eq!(draws.len(), n);
    for d in 1..3 {
        let values: Vec<f64> = draws.iter().map(|draw| draw[(d, 0)]).collect();
        let mean = values.iter().sum::<f64>() / n as f64;
        let variance = values.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n as f64;
        let error = completed.std[(d, 0)] / (n as f64).sqrt();
        assert!((mean - completed.values[(d, 0)]).abs() < 5.0 * error, "{d}");
        // The standard error of a deviation is below σ/√n for tails no heavier than the normal's by far.
        assert!((variance.sqrt() - completed.std[(d, 0)]).abs() < 5.0 * error, "{d}");
    }
    assert!(draws.iter().all(|draw| draw[(0, 0)] == 0.6));
}

#[test]
fn generated_rows_have_the_spread_and_the_correlations_of_the_data() {
    let table = linear(6, 3, 500, 5);
    for latents in [1, 3, 5] {
        let model = fit(&table, &fixed(latents, 1));
        let drawn = model.sample(4000, 0).unwrap();
        let moments = |table: &Mat<f64>, i: usize, j: usize| {
            let n = table.ncols() as f64;
            let mean = |i: usize| (0..table.ncols()).map(|s| table[(i, s)]).sum::<f64>() / n;
            let (a, b) = (mean(i), mean(j));
            (0..table.ncols()).map(|s| (table[(i, s)] - a) * (table[(j, s)] - b)).sum::<f64>() / n
        };
        for i in 0..6 {
            let ratio = (moments(&drawn, i, i) / moments(&table, i, i)).sqrt();
            assert!((ratio - 1.0).abs() < 0.08, "{latents} latents, column {i}: {ratio}");
            for j in 0..i {
                let scale = |t: &Mat<f64>| moments(t, i, j) / (moments(t, i, i) * moments(t, j, j)).sqrt();
                let apart = (scale(&drawn) - scale(&table)).abs();
                assert!(latents < 3 || apart < 0.08, "{latents} latents, {i} {j}: {apart}");
            }
        }
    }
}

#[test]
fn latents_and_memberships_say_where_a_row_is() {
    let table = linear(5, 1, 200, 6);
    let model = fit(&table, &fixed(1, 1));
    let latents = model.latents(table.as_ref()).unwrap();
    assert_eq!((latents.nrows(), latents.ncols()), (1, 200));
    // Latents have variance 1: that of their means, and what is left unsure of each, here below a fifth.
    let square = (0..200).map(|j| latents[(0, j)].powi(2)).sum::<f64>() / 200.0;
    assert!((0.8..1.0).contains(&square), "{square}");
    let bent = fit(&circle(200, 0), &fixed(1, 4));
    let shares = bent.memberships(circle(50, 1).as_ref()).unwrap();
    assert_eq!(shares.nrows(), 4);
    for j in 0..50 {
        assert!(((0..4).map(|i| shares[(i, j)]).sum::<f64>() - 1.0).abs() < 1e-12);
    }
}

#[test]
fn the_number_of_threads_changes_nothing() {
    let given = holes(&circle(300, 8), 0.2, 9);
    let run = |threads: usize| {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build().unwrap();
        pool.install(|| {
            let model = fit(&given, &LatentSettings { iterations: 10, ..LatentSettings::default() });
            (model.sample(5, 1).unwrap(), model)
        })
    };
    assert!(run(1) == run(3));
}

#[test]
fn more_rows_of_a_seed_begin_with_the_same_ones() {
    let model = fit(&circle(100, 8), &fixed(1, 3));
    let all = model.sample(7, 4).unwrap();
    assert!(model.sample_from(3, 4, 4).unwrap() == all.subcols(3, 4).to_owned());
    assert!(model.sample(7, 5).unwrap() != all);
}

#[test]
fn a_file_gives_the_same_model_and_damage_is_an_error() {
    let given = holes(&circle(100, 8), 0.2, 9);
    let mut model = fit(&given, &fixed(2, 3));
    model.notes_mut().insert("columns".to_owned(), "a,b,c".to_owned());
    let bytes = model.to_bytes().unwrap();
    assert!(LatentModel::from_bytes(&bytes).unwrap() == model);
    for at in [0, 7, bytes.len() / 2, bytes.len() - 1] {
        let mut damaged = bytes.clone();
        damaged[at] ^= 0x10;
        assert!(LatentModel::from_bytes(&damaged).is_err(), "byte {at}");
    }
    assert!(LatentModel::from_bytes(&bytes[..bytes.len() - 3]).is_err());
    assert!(bayespc::Model::from_bytes(&bytes).is_err());
}

#[test]
fn the_kind_of_a_file_is_in_its_header_whatever_happened_to_the_rest() {
    let bytes = fit(&circle(100, 8), &fixed(2, 3)).to_bytes().unwrap();
    assert!(LatentModel::is_in(&bytes) && LatentModel::is_in(&bytes[..bytes.len() - 3]));
    assert!(!LatentModel::is_in(&bytes[..20]) && !LatentModel::is_in(b"no model"));
}

#[test]
fn odd_tables_are_learned_and_wrong_ones_are_errors_that_name_the_culprit() {
    let nan = f64::NAN;
    // One column, one row, constant columns, copies of a column, a row without any cell.
    for table in [
        Mat::from_fn(1, 30, |_, j| f64::from(j as u32 % 7)),
        Mat::from_fn(3, 1, |i, _| i as f64),
        Mat::from_fn(4, 40, |i, j| if i < 2 { 1.0 } else { (j as f64).sin() }),
        Mat::from_fn(3, 40, |i, j| if j == 5 { nan } else { i as f64 + (j as f64).cos() }),
    ] {
        let model = fit(&table, &LatentSettings::default());
        let completed = model.impute(table.as_ref()).unwrap();
        assert!((0..table.ncols()).all(|j| (0..table.nrows()).all(|i| completed.values[(i, j)].is_finite())));
        assert!(model.log_density(table.as_ref()).unwrap().iter().all(|log| log.is_finite()));
    }
    let wrong =
        |table: Mat<f64>| LatentModel::fit(table.as_ref(), &LatentSettings::default(), &mut ()).unwrap_err();
    assert!(matches!(wrong(Mat::zeros(2, 0)), Error::Empty { .. }));
    assert!(matches!(wrong(Mat::zeros(0, 2)), Error::Empty { .. }));
    let column = Mat::from_fn(2, 3, |i, _| if i == 1 { nan } else { 0.5 });
    assert!(matches!(wrong(column), Error::EmptyColumn { column: 1 }));
    let infinite = Mat::from_fn(2, 3, |i, j| if (i, j) == (1, 2) { f64::INFINITY } else { 0.5 });
    assert!(matches!(wrong(infinite), Error::NotFinite { row: 2, column: 1, .. }));
    let table = circle(20, 0);
    let settings = LatentSettings { parts: Some(0), ..LatentSettings::default() };
    assert!(matches!(
        LatentModel::fit(table.as_ref(), &settings, &mut ()),
        Err(Error::Setting { name: "parts", .. })
    ));
    let model = fit(&table, &fixed(1, 1));
    assert!(matches!(model.impute(Mat::zeros(2, 1).as_ref()), Err(Error::Shape { .. })));
}
