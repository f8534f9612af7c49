//! The Rust of README and pages, word for word: it compiles, it runs, and nothing stands there that is not here.

#![allow(clippy::items_after_statements, reason = "what a page has no room for comes before it")]

use std::path::Path;

use bayespc::Mat;

type Outcome = Result<(), Box<dyn std::error::Error>>;

/// Four columns and what depends on them; samples are columns.
fn table() -> (Mat<f64>, Mat<f64>) {
    let x = Mat::from_fn(4, 60, |i, j| (0.7 * ((i + 1) * (j + 1)) as f64).sin());
    let y = Mat::from_fn(1, 60, |_, j| x[(0, j)] + x[(1, j)] * x[(2, j)]);
    (x, y)
}

#[test]
#[rustfmt::skip]
fn readme() -> Outcome {
    /// Stands in for the real one: a test leaves no files.
    mod std {
        pub mod fs {
            pub fn write(name: &str, bytes: impl AsRef<[u8]>) -> bayespc::Result<()> {
                assert_eq!(name, "model.safetensors");
                bayespc::Model::from_bytes(bytes.as_ref()).map(|_| ())
            }
        }
    }
    let (x, y) = table();
    let (x_new, y_new) = (x.clone(), y.clone());

    use bayespc::{Model, ModelSettings, Samples};

    // x: d × n, y: 1 × n; samples are columns, in their own units. `Samples::from_rows` takes slices.
    let model = Model::fit(&Samples::new(&x, &y)?, &ModelSettings::default())?;
    let predictive = model.predict(&x_new)?;
    let (low, high) = predictive.interval(0.9)?;
    let (aleatoric, epistemic) = (predictive.aleatoric_variance(), predictive.epistemic_variance());
    let log_densities = predictive.log_density(y_new.as_ref())?;
    std::fs::write("model.safetensors", model.to_bytes()?)?;

    assert!((0..60).all(|j| low[(0, j)] < high[(0, j)] && aleatoric[(0, j)] > 0.0 && epistemic[(0, j)] > 0.0));
    assert!(log_densities.iter().all(|log| log.is_finite()));
    Ok(())
}

mod start {
    use bayespc::{Mat, Model, ModelSettings, Samples};

    fn main() -> bayespc::Result<()> {
        // Samples are columns.
        let x = Mat::from_fn(1, 200, |_, j| 6.0 * j as f64 / 199.0 - 3.0);
        let y = Mat::from_fn(1, 200, |_, j| x[(0, j)].sin() + 0.1 * (17.0 * j as f64).sin());
        let model = Model::fit(&Samples::new(&x, &y)?, &ModelSettings::default())?;
        let predictive = model.predict(&x)?;
        let (low, high) = predictive.interval(0.9)?;
        println!("{:.2} to {:.2}", low[(0, 0)], high[(0, 0)]);
        Ok(())
    }

    #[test]
    fn runs() {
        main().unwrap();
    }
}

#[test]
#[rustfmt::skip]
fn generative() -> Outcome {
    let (mut whole, seed) = (table().0, 0);
    whole[(1, 3)] = f64::NAN;
    let table = whole.as_ref();

    use bayespc::model::{LatentModel, LatentSettings};

    let model = LatentModel::fit(table, &LatentSettings::default(), &mut ())?;   // d × n, NaN where a cell is missing
    let completed = model.impute(table)?;                                        // values and std
    let tables = model.draw_missing(table, 5, seed)?;
    let rows = model.sample(1000, seed)?;
    let log_p = model.log_density(table)?;
    let bytes = model.to_bytes()?;                                               // safetensors, with a checksum

    assert!(completed.values[(1, 3)].is_finite() && completed.std[(1, 3)] > 0.0);
    assert_eq!((tables.len(), rows.ncols(), log_p.len()), (5, 1000, 60));
    assert_eq!(LatentModel::from_bytes(&bytes)?.to_bytes()?, bytes);
    Ok(())
}

#[test]
fn langevin() -> Outcome {
    use bayespc::inference::{LangevinSettings, draw_missing};
    use bayespc::network::{Network, NetworkSettings};

    let settings = NetworkSettings { hidden_layer_sizes: vec![3], ..NetworkSettings::default() };
    let network = Network::<f64>::new(&settings, 2, 1, &mut crate::common::rng(0))?;
    let (holed, known) = (Mat::from_fn(2, 1, |i, _| [f64::NAN, 0.5][i]), Mat::from_fn(1, 1, |_, _| 0.2));
    let (input, target) = (holed.as_ref(), known.as_ref());

    let drawn = draw_missing(&network, input, target, 100, &LangevinSettings::default())?;

    assert_eq!(drawn.input.len(), 100);
    Ok(())
}

#[test]
#[rustfmt::skip]
fn explaining() -> Outcome {
    use bayespc::model::{CurveSettings, PermutationSettings, Quantity};
    use bayespc::{Model, ModelSettings, Samples};

    let (x, y) = table();
    let samples = Samples::new(&x, &y)?;
    let model = Model::fit(&samples, &ModelSettings::fast())?;
    let (row, feature, grid) = (x.subcols(0, 1), 0, [-1.0, 0.0, 1.0]);
    let columns = [vec![0], vec![1], vec![2, 3]];

    let why = model.explain(&x, Quantity::Epistemic, 0)?;          // base (n), values (d × n)
    let line = model.curve(row, feature, &grid, CurveSettings::default())?;
    let lost = model.permutation_importance(&samples, &columns, PermutationSettings::default())?;

    assert_eq!((why.base.len(), why.values.shape(), lost.len()), (60, (4, 60), 3));
    assert_eq!(line.mean.len(), 3);
    Ok(())
}

#[test]
#[rustfmt::skip]
fn depth() {
    use bayespc::inference::{RelaxationSettings, Variables};
    use bayespc::learners::Rule;

    let rule = Rule::Relaxation(RelaxationSettings { variables: Variables::Errors, ..RelaxationSettings::tied() });

    assert!(matches!(rule, Rule::Relaxation(settings) if settings.variables == Variables::Errors));
}

/// The Rust blocks of a page.
fn blocks(page: &str) -> Vec<String> {
    let from_fences = page.split("```rust\n").skip(1);
    from_fences.filter_map(|rest| Some(rest.split_once("```")?.0.to_owned())).collect()
}

/// The lines of a text without what they are indented by, empty ones left out.
fn lines(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[test]
fn every_block_of_a_page_stands_above() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = [root.clone(), root.join("docs"), root.join("docs/guides")];
    let here = lines(include_str!("documented.rs"));
    let mut found = 0;
    for folder in &folders {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_none_or(|extension| extension != "md") {
                continue;
            }
            for block in blocks(&std::fs::read_to_string(&path).unwrap()) {
                assert!(here.contains(&lines(&block)), "{}: not tried anywhere:\n{block}", path.display());
                found += 1;
            }
        }
    }
    assert!(found >= 6, "{found} blocks");
}
