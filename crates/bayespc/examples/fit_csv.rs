//! Fit a table of numbers by the default settings and predict its own rows.
//!
//! `cargo run --release -p bayespc --example fit_csv -- table.csv [classes]`
//!
//! The first line names the columns. The last column is the target, a number or with `classes` the number of a class; a
//! column named `weight` weights the rows. Printed are mean and standard deviation, or the probabilities of the classes,
//! with all their digits.

use std::error::Error;

use bayespc::{Mat, Model, ModelSettings, Samples, Targets};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which table?")?;
    let classes = arguments.next().is_some_and(|word| word == "classes");

    let text = std::fs::read_to_string(path)?;
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().ok_or("the table is empty")?.split(',').collect();
    let rows = lines
        .map(|line| line.split(',').map(|cell| Ok(cell.trim().parse()?)).collect())
        .collect::<Result<Vec<Vec<f64>>, Box<dyn Error>>>()?;

    let target = names.len() - 1;
    let weight = names.iter().position(|&name| name == "weight");
    let features: Vec<usize> = (0..target).filter(|&column| Some(column) != weight).collect();
    let x = Mat::from_fn(features.len(), rows.len(), |i, j| rows[j][features[i]]);
    let y = Mat::from_fn(1, rows.len(), |_, j| rows[j][target]);
    let labels: Vec<usize> = rows.iter().map(|row| row[target] as usize).collect();
    let weights: Vec<f64> = rows.iter().map(|row| weight.map_or(1.0, |column| row[column])).collect();

    let targets = if classes { Targets::classes(&labels) } else { y.as_ref().into() };
    let mut samples = Samples::new(&x, targets)?;
    if weight.is_some() {
        samples = samples.weighted(&weights)?;
    }
    let model = Model::fit(&samples, &ModelSettings::default())?;

    let columns = if classes {
        model.predict_probabilities(&x)?
    } else {
        let predictive = model.predict(&x)?;
        let (mean, variance) = (predictive.mean(), predictive.variance());
        Mat::from_fn(2, rows.len(), |i, j| if i == 0 { mean[(0, j)] } else { variance[(0, j)].sqrt() })
    };
    for column in columns.col_iter() {
        let cells: Vec<String> = column.iter().map(f64::to_string).collect();
        println!("{}", cells.join(","));
    }
    Ok(())
}
