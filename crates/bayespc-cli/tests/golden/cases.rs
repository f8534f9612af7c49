//! Fits with seed 0 whose predictions a change of the code must keep, on tables that are the same bits on every machine.

use bayespc::model::rounds::{PartStatistics, RoundSettings, Rounds};
use bayespc::model::{Calibration, LatentModel, LatentSettings, Model, Quantity};
use bayespc::{Mat, MatRef, ModelSettings, Samples, Targets, Task};
use rand::rngs::ChaCha8Rng;
use rand::{Rng, SeedableRng};

/// Probabilities of the quantiles that are kept.
const QUANTILES: [f64; 5] = [0.05, 0.25, 0.5, 0.75, 0.95];

/// How large the tables are.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Size {
    /// As users have them; minutes. Compared bit for bit on one machine.
    Full,
    /// For every run of the tests; seconds. Compared within a tolerance on any machine.
    Small,
}

impl Size {
    fn of(self, full: usize, small: usize) -> usize {
        if self == Self::Full { full } else { small }
    }
}

/// Named numbers of a fit.
pub type Results = Vec<(&'static str, Vec<f64>)>;

/// A fit and what to read off it.
pub struct Case {
    /// Name in the record.
    pub name: &'static str,
    /// Whether nothing is chosen from the data and all is computed in double precision: then only rounding differs
    /// between machines.
    pub exact: bool,
    /// Named results of the fit with a seed.
    pub run: fn(Size, u64) -> Results,
}

/// All cases, in the order in which they run.
pub const CASES: [Case; 12] = [
    Case { name: "skewed positive target", exact: false, run: skewed },
    Case { name: "wine, values", exact: false, run: wine_values },
    Case { name: "wine, classes", exact: false, run: wine_classes },
    Case { name: "more columns than rows", exact: false, run: wide },
    Case { name: "stream of three chunks", exact: true, run: stream },
    Case { name: "paper's preset", exact: true, run: paper },
    Case { name: "one network", exact: true, run: fast },
    Case { name: "two targets", exact: true, run: two_targets },
    Case { name: "conformal intervals", exact: true, run: conformal },
    Case { name: "rounds over two shards", exact: true, run: rounds },
    Case { name: "explanation", exact: true, run: explanation },
    Case { name: "latent model", exact: true, run: latent },
];

/// Uniform in [−1, 1), by exact arithmetic: a table of it has the same bits, and hence the same folds, everywhere.
fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    (rng.next_u64() >> 11) as f64 / 2_f64.powi(52) - 1.0
}

/// Inputs `d × n` and targets made of each column of them and a number in [−1, 1).
fn table(d: usize, n: usize, seed: u64, target: impl Fn(&[f64], f64) -> f64) -> (Mat<f64>, Mat<f64>) {
    let rng = &mut ChaCha8Rng::seed_from_u64(seed);
    let rows: Vec<Vec<f64>> = (0..n).map(|_| (0..d).map(|_| uniform(rng)).collect()).collect();
    let y: Vec<f64> = rows.iter().map(|row| target(row, uniform(rng))).collect();
    (Mat::from_fn(d, n, |i, j| rows[j][i]), Mat::from_fn(1, n, |_, j| y[j]))
}

fn curved(x: &[f64], noise: f64) -> f64 {
    1.5 * x[0] * x[0] + x[1] * x[2] + 0.5 * x[1] + 0.2 * noise
}

fn seeded(mut settings: ModelSettings, seed: u64) -> ModelSettings {
    settings.training.seed = seed;
    settings
}

fn small_network(mut settings: ModelSettings, epochs: usize) -> ModelSettings {
    settings.network.hidden_layer_sizes = vec![8, 6];
    settings.training.epochs = epochs;
    settings
}

fn fitted(x: &Mat<f64>, y: &Mat<f64>, settings: &ModelSettings) -> Model {
    Model::fit(&Samples::new(x, y).unwrap(), settings).unwrap()
}

fn flat(matrix: MatRef<'_, f64>) -> Vec<f64> {
    matrix.col_iter().flat_map(|column| column.iter().copied().collect::<Vec<_>>()).collect()
}

/// Every twentieth row and one far from all.
fn probe(x: &Mat<f64>) -> Mat<f64> {
    let n = x.ncols();
    let step = n.div_ceil(40);
    let kept = n.div_ceil(step);
    Mat::from_fn(x.nrows(), kept + 1, |i, j| if j < kept { x[(i, step * j)] } else { 3.0 * x[(i, 0)] + 1.0 })
}

/// Predictions of values. The model that comes back from its file makes the same, bit for bit.
fn values(model: &Model, x: &Mat<f64>) -> Results {
    let read = |model: &Model| {
        let predictive = model.predict(&probe(x)).unwrap();
        let quantiles = predictive.quantile(&QUANTILES).unwrap();
        vec![
            ("mean", flat(predictive.mean().as_ref())),
            ("aleatoric variance", flat(predictive.aleatoric_variance().as_ref())),
            ("epistemic variance", flat(predictive.epistemic_variance().as_ref())),
            ("quantiles", quantiles.iter().flat_map(|q| flat(q.as_ref())).collect()),
        ]
    };
    same_after_loading(model, read)
}

fn same_after_loading(model: &Model, read: impl Fn(&Model) -> Results) -> Results {
    let loaded = Model::from_bytes(&model.to_bytes().unwrap()).unwrap();
    let (before, after) = (read(model), read(&loaded));
    assert_eq!(before, after, "a model predicts otherwise after saving and loading");
    before
}

fn skewed(size: Size, seed: u64) -> Results {
    let (x, y) = table(6, size.of(300, 80), 1, |x, u| {
        let positive = 2.0 + x[0] + x[1] * x[1] + 0.5 * x[0] * x[2];
        let skewed = 1.0 + 0.9 * (0.5 + 0.5 * u).powi(4);
        positive * positive * positive * skewed
    });
    values(&fitted(&x, &y, &seeded(ModelSettings::default(), seed)), &x)
}

fn wine(size: Size) -> (Mat<f64>, Mat<f64>) {
    let wine = bayespc_data::builtin("wine").unwrap();
    let n = size.of(wine.targets.ncols(), 100);
    (wine.features.subcols(0, n).to_owned(), wine.targets.subcols(0, n).to_owned())
}

fn wine_values(size: Size, seed: u64) -> Results {
    let (x, y) = wine(size);
    values(&fitted(&x, &y, &seeded(ModelSettings::default(), seed)), &x)
}

fn wine_classes(size: Size, seed: u64) -> Results {
    let (x, y) = wine(size);
    // Good, ordinary and poor ones: a class of few rows is kept in the full table.
    let labels: Vec<usize> = flat(y.as_ref()).iter().map(|&q| (q as usize).clamp(4, 7) - 4).collect();
    let samples = Samples::new(&x, Targets::classes(&labels)).unwrap();
    let model = Model::fit(&samples, &seeded(ModelSettings::default(), seed)).unwrap();
    let read = |model: &Model| {
        vec![("probabilities", flat(model.predict_probabilities(&probe(&x)).unwrap().as_ref()))]
    };
    same_after_loading(&model, read)
}

fn wide(size: Size, seed: u64) -> Results {
    let (x, y) = table(size.of(3000, 520), size.of(200, 50), 2, curved);
    values(&fitted(&x, &y, &seeded(ModelSettings::default(), seed)), &x)
}

fn stream(size: Size, seed: u64) -> Results {
    let n = size.of(200, 60);
    let (x, y) = table(4, 3 * n, 3, curved);
    let settings = seeded(small_network(ModelSettings::fast(), 100), seed);
    let chunk = |k: usize| -> (Mat<f64>, Mat<f64>) {
        (x.subcols(k * n, n).to_owned(), y.subcols(k * n, n).to_owned())
    };
    let (first_x, first_y) = chunk(0);
    let mut model = Model::for_stream(&Samples::new(&first_x, &first_y).unwrap(), &settings).unwrap();
    for k in 0..3 {
        let (x, y) = chunk(k);
        model.partial_fit(&Samples::new(&x, &y).unwrap()).unwrap();
    }
    values(&model, &x)
}

fn paper(size: Size, seed: u64) -> Results {
    let (x, y) = table(4, size.of(200, 60), 4, curved);
    values(&fitted(&x, &y, &seeded(small_network(ModelSettings::paper(), size.of(10, 4)), seed)), &x)
}

fn fast(size: Size, seed: u64) -> Results {
    let (x, y) = table(4, size.of(200, 60), 5, curved);
    values(&fitted(&x, &y, &seeded(small_network(ModelSettings::fast(), size.of(100, 20)), seed)), &x)
}

fn two_targets(size: Size, seed: u64) -> Results {
    let (x, y) = table(4, size.of(200, 60), 6, curved);
    let y = Mat::from_fn(2, y.ncols(), |i, j| if i == 0 { y[(0, j)] } else { y[(0, j)] * x[(3, j)] });
    values(&fitted(&x, &y, &seeded(small_network(ModelSettings::fast(), size.of(100, 20)), seed)), &x)
}

fn conformal(size: Size, seed: u64) -> Results {
    let (x, y) = table(4, size.of(200, 120), 7, curved);
    let settings = ModelSettings { calibration: Calibration::Conformal, ..ModelSettings::fast() };
    values(&fitted(&x, &y, &seeded(small_network(settings, size.of(100, 20)), seed)), &x)
}

/// Everything goes through bytes, as between machines.
fn rounds(size: Size, seed: u64) -> Results {
    let n = size.of(2000, 300);
    let (x, y) = table(4, n, 8, curved);
    let settings = seeded(small_network(ModelSettings::fast(), 100), seed);
    let plan = RoundSettings { rounds: 5, batch_rows: n as u64 / 2, ..RoundSettings::default() };
    let mut state = Rounds::begin(&settings, &plan, Task::Regression).unwrap();
    while state.next_pass().is_some() {
        let shard = |first: usize, rows: usize| {
            let samples =
                Samples::new(x.subcols(first, rows), Targets::Values(y.subcols(first, rows))).unwrap();
            let statistics = state.statistics(Some(&samples), first as u64).unwrap();
            PartStatistics::from_bytes(&statistics.to_bytes().unwrap()).unwrap()
        };
        let shards = vec![shard(0, n / 3), shard(n / 3, n - n / 3)];
        state = Rounds::from_bytes(&state.absorb(shards).unwrap().to_bytes().unwrap()).unwrap();
    }
    values(&state.into_model().unwrap(), &x)
}

fn explanation(size: Size, seed: u64) -> Results {
    let (x, y) = table(4, size.of(200, 60), 9, curved);
    let model = fitted(&x, &y, &seeded(small_network(ModelSettings::fast(), size.of(100, 20)), seed));
    let read = |model: &Model| {
        let of = |quantity: Quantity| model.explain(&probe(&x), quantity, 0).unwrap();
        let parts = Quantity::ALL.map(|quantity| (quantity.name(), flat(of(quantity).values.as_ref())));
        parts.to_vec()
    };
    same_after_loading(&model, read)
}

fn latent(size: Size, seed: u64) -> Results {
    let (mut x, _) = table(5, size.of(300, 80), 10, curved);
    for j in 0..x.ncols() {
        x[(3, j)] = x[(0, j)] + 0.5 * x[(1, j)] + 0.1 * x[(3, j)];
        if j % 3 == 0 {
            x[(j % 5, j)] = f64::NAN;
        }
    }
    let settings = LatentSettings { latents: Some(2), parts: Some(1), seed, ..LatentSettings::default() };
    let model = LatentModel::fit(x.as_ref(), &settings, &mut ()).unwrap();
    let read = |model: &LatentModel| {
        let completed = model.impute(x.as_ref()).unwrap();
        vec![
            ("mean", flat(completed.values.as_ref())),
            // Zero where the value is known.
            (
                "standard deviation",
                flat(completed.std.as_ref()).into_iter().filter(|&std| std > 0.0).collect(),
            ),
            ("log density", model.log_density(x.as_ref()).unwrap()),
        ]
    };
    let loaded = LatentModel::from_bytes(&model.to_bytes().unwrap()).unwrap();
    assert_eq!(read(&model), read(&loaded), "a latent model imputes otherwise after saving and loading");
    read(&model)
}
