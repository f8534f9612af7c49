//! A latent model of a table: fit it, ask for densities, fill in cells, generate rows.

use faer::{Mat, MatRef};
use rand::{Rng, RngExt};

use super::cells::{Cells, scaling};
use super::learn::step_cost;
use super::mixture::{RowView, cell, lenses, log_density, view};
use super::part::Part;
use super::search::{Chosen, LatentCandidate, choose, fit};
use super::settings::LatentSettings;
use crate::base::parallel::over_chunks;
use crate::base::random::stream;
use crate::data::Standardiser;
use crate::error::{Error, Result};
use crate::model::observer::{Observer, Stage, Work};

/// A table as a mixture of linear layers over latents, learned with holes.
#[derive(Clone, Debug, PartialEq)]
pub struct LatentModel {
    pub(super) settings: LatentSettings,
    pub(super) scaling: Standardiser,
    /// Least and largest value of each column, standardised.
    pub(super) range: Vec<[f64; 2]>,
    /// Share of the way from its column's mean to the mean of the parts that a filled cell goes.
    pub(super) shrinkage: f64,
    /// One layer of all rows: gives latents.
    pub(super) whole: Part,
    /// What rows come from.
    pub(super) parts: Vec<Part>,
    pub(super) candidates: Vec<LatentCandidate>,
    pub(super) iterations: usize,
    /// Names of columns and whatever else belongs to the model, as text.
    pub(super) notes: std::collections::BTreeMap<String, String>,
}

/// A table whose missing cells are filled in.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Completed {
    /// What is there, and the best guess of what is not, `d × n`.
    pub values: Mat<f64>,
    /// Root mean square deviation of each cell from its value here: 0 where it is there.
    pub std: Mat<f64>,
}

impl LatentModel {
    /// Fit to `table` (`d × n`, samples are columns), NaN where a cell is missing.
    pub fn fit(
        table: MatRef<'_, f64>,
        settings: &LatentSettings,
        observer: &mut dyn Observer,
    ) -> Result<Self> {
        settings.validate()?;
        for (what, size) in [("table: no columns", table.nrows()), ("table: no rows", table.ncols())] {
            if size == 0 {
                return Err(Error::Empty { what });
            }
        }
        let scaling = scaling(table)?;
        let cells = Cells::new(table, &scaling)?;
        let work = Work::new(observer);
        let Chosen { latents, parts, shrinkage, candidates } = choose(&cells, settings, &work)?;
        let cost =
            step_cost(cells.n(), cells.d(), latents, 1) + step_cost(cells.n(), cells.d(), latents, parts);
        work.replan(cost * settings.iterations as u64);
        work.enter(Stage::Training)?;
        let fitted = fit(&cells, latents, parts, settings, &work)?;
        Ok(Self {
            settings: settings.clone(),
            scaling,
            range: cells.range(),
            shrinkage,
            whole: fitted.whole,
            parts: fitted.parts,
            candidates,
            iterations: fitted.iterations,
            notes: std::collections::BTreeMap::new(),
        })
    }

    /// The settings it was asked for.
    pub fn settings(&self) -> &LatentSettings {
        &self.settings
    }

    /// Number of columns of the table.
    pub fn n_columns(&self) -> usize {
        self.scaling.dim()
    }

    /// Number of latents.
    pub fn n_latents(&self) -> usize {
        self.whole.loadings.ncols()
    }

    /// Number of linear parts.
    pub fn n_parts(&self) -> usize {
        self.parts.len()
    }

    /// What was tried, in order; none if both numbers were given.
    pub fn candidates(&self) -> &[LatentCandidate] {
        &self.candidates
    }

    /// Steps of learning it took.
    pub fn n_iterations(&self) -> usize {
        self.iterations
    }

    /// Texts that are kept with the model.
    pub fn notes(&self) -> &std::collections::BTreeMap<String, String> {
        &self.notes
    }

    /// Texts that are kept with the model, to be changed.
    pub fn notes_mut(&mut self) -> &mut std::collections::BTreeMap<String, String> {
        &mut self.notes
    }

    /// log p of the cells of each row that are there, in the units of the table; 0 of a row without any.
    pub fn log_density(&self, table: MatRef<'_, f64>) -> Result<Vec<f64>> {
        let cells = Cells::new(table, &self.scaling)?;
        let lenses = lenses(&self.parts);
        let units: Vec<f64> = self.scaling.scale.iter().map(|scale| scale.ln()).collect();
        let total: f64 = units.iter().sum();
        over_rows(&cells, |row| {
            let missing = &cells.missing[row];
            let standard = log_density(&lenses, cells.values.col_as_slice(row), missing)?;
            Ok(standard - (total - missing.iter().map(|&d| units[d]).sum::<f64>()))
        })
    }

    /// The best guess of every missing cell given the others of its row, and the root mean square deviation from it.
    ///
    /// The guess is the mean of the parts, cut off where the column's values ended when the model was fitted, and shrunk to
    /// the mean of the column as far as the search found.
    pub fn impute(&self, table: MatRef<'_, f64>) -> Result<Completed> {
        let cells = Cells::new(table, &self.scaling)?;
        let lenses = lenses(&self.parts);
        let filled = over_rows(&cells, |row| {
            if cells.missing[row].is_empty() {
                return Ok(Vec::new());
            }
            let view = view(&lenses, cells.values.col_as_slice(row), &cells.missing[row])?;
            Ok(cells.missing[row].iter().map(|&d| self.guess(d, &view)).collect())
        })?;
        let mut completed =
            Completed { values: table.to_owned(), std: Mat::zeros(table.nrows(), table.ncols()) };
        for (row, filled) in filled.into_iter().enumerate() {
            for (&d, (value, std)) in cells.missing[row].iter().zip(filled) {
                (completed.values[(d, row)], completed.std[(d, row)]) = (value, std);
            }
        }
        Ok(completed)
    }

    /// `n` tables with every missing cell drawn, those of a row together. Row i uses stream i of `seed`.
    pub fn draw_missing(&self, table: MatRef<'_, f64>, n: usize, seed: u64) -> Result<Vec<Mat<f64>>> {
        self.draw_from(0, table, n, seed)
    }

    /// The same of rows that come after `first` others.
    fn draw_from(&self, first: u64, table: MatRef<'_, f64>, n: usize, seed: u64) -> Result<Vec<Mat<f64>>> {
        let cells = Cells::new(table, &self.scaling)?;
        let lenses = lenses(&self.parts);
        let drawn = over_rows(&cells, |row| {
            if cells.missing[row].is_empty() {
                return Ok(Vec::new());
            }
            let view = view(&lenses, cells.values.col_as_slice(row), &cells.missing[row])?;
            let mut rng = stream(seed, first + row as u64);
            Ok((0..n).map(|_| self.draw_cells(&cells.missing[row], &view, &mut rng)).collect::<Vec<_>>())
        })?;
        let mut tables = vec![table.to_owned(); n];
        for (row, draws) in drawn.iter().enumerate() {
            for (table, draw) in tables.iter_mut().zip(draws) {
                for (&d, x) in cells.missing[row].iter().zip(draw) {
                    table[(d, row)] = self.scaling.offset[d] + self.scaling.scale[d] * x;
                }
            }
        }
        Ok(tables)
    }

    /// `n` rows drawn from the model, `d × n`. Row i uses stream i of `seed`.
    pub fn sample(&self, n: usize, seed: u64) -> Result<Mat<f64>> {
        self.sample_from(0, n, seed)
    }

    /// `n` rows that come after the `first` ones of the same seed.
    pub fn sample_from(&self, first: u64, n: usize, seed: u64) -> Result<Mat<f64>> {
        let nothing = Mat::from_fn(self.n_columns(), n, |_, _| f64::NAN);
        let mut tables = self.draw_from(first, nothing.as_ref(), 1, seed)?;
        Ok(tables.swap_remove(0))
    }

    /// Mean of the latents of each row under the one layer of the whole table, `k × n`.
    pub fn latents(&self, table: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let cells = Cells::new(table, &self.scaling)?;
        let lens = self.whole.lens();
        let means = over_rows(&cells, |row| {
            Ok(lens.infer(cells.values.col_as_slice(row), &cells.missing[row])?.mean)
        })?;
        Ok(Mat::from_fn(self.n_latents(), cells.n(), |i, j| means[j][(i, 0)]))
    }

    /// Probability that each row comes from each part, `parts × n`.
    pub fn memberships(&self, table: MatRef<'_, f64>) -> Result<Mat<f64>> {
        let cells = Cells::new(table, &self.scaling)?;
        let lenses = lenses(&self.parts);
        let views = over_rows(&cells, |row| {
            Ok(view(&lenses, cells.values.col_as_slice(row), &cells.missing[row])?.shares)
        })?;
        Ok(Mat::from_fn(self.n_parts(), cells.n(), |i, j| views[j][i]))
    }

    /// The value that fills cell `d` and the deviation from it, in the units of the table.
    fn guess(&self, d: usize, view: &RowView) -> (f64, f64) {
        let (mean, variance) = cell(&self.parts, d, view);
        let [least, most] = self.range[d];
        let value = self.shrinkage * mean.clamp(least, most);
        let (offset, scale) = (self.scaling.offset[d], self.scaling.scale[d]);
        (offset + scale * value, scale * (variance + (mean - value).powi(2)).sqrt())
    }

    fn draw_cells(&self, missing: &[usize], view: &RowView, rng: &mut dyn Rng) -> Vec<f64> {
        let mut left: f64 = rng.random();
        let found = view.shares.iter().position(|share| {
            left -= share;
            left < 0.0
        });
        // Shares add to one but for rounding.
        let part = found.unwrap_or(view.shares.len() - 1);
        let latents = Part::draw_latents(&view.inferred[part], rng);
        missing.iter().map(|&d| self.parts[part].draw_cell(d, &latents, rng)).collect()
    }
}

/// What `of` says of each row, in order.
fn over_rows<R: Send>(cells: &Cells, of: impl Fn(usize) -> Result<R> + Sync) -> Result<Vec<R>> {
    let chunks = over_chunks(cells.n(), |rows| rows.map(&of).collect::<Result<Vec<_>>>());
    Ok(chunks.into_iter().collect::<Result<Vec<_>>>()?.into_iter().flatten().collect())
}
