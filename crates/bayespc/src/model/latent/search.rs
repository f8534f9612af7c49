//! Number of latents and parts by the density of cells taken out: a tenth of those that are there.
//!
//! ```text
//! score = Σ log( (1 − ε) p(cells taken out of a row | cells left in it) + ε Π Cauchy(cell) )
//! a     = Σ x m / Σ m² less its standard error, from 0 to 1      x: cells taken out, m: their means given the cells left
//! ```
//!
//! The second term bounds what a single cell can weigh. The density says where cells may be; it may be far better than that
//! of a normal distribution where hardly anything is known of their mean, as on a spiral, and then m is mostly the error of
//! many weights. So a cell is filled in by a m, between the mean of its column (a = 0) and that of the parts (a = 1).
//!
//! First one linear layer with more and more latents, then twice and twice as many parts, each with as many latents as
//! the best so far and with the next fewer and more. A model with more of either is taken only if its gain is larger
//! than the standard error of that gain over rows: a table that is linear stays linear.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde::{Deserialize, Serialize};

use super::cells::Cells;
use super::learn::{Learned, Weighted, learn, normalised, step_cost};
use super::mixture::{cell, lenses, log_density, view};
use super::part::Part;
use super::settings::LatentSettings;
use super::start::{clusters, principal};
use super::sums::{Sums, vague_prior};
use crate::base::parallel::over_chunks;
use crate::base::random::{of_row, stream};
use crate::error::Result;
use crate::model::observer::{Stage, Work};

/// Rows a candidate learns from at most.
const ROWS: usize = 4000;

/// Steps of learning of a candidate at most: which is better shows before they have settled.
const ITERATIONS: usize = 40;

/// Rows each part should have on average.
const ROWS_PER_PART: usize = 20;

/// Parts at most.
const MOST_PARTS: usize = 64;

/// Rows of the whole table that the prior of a part counts as: a part with few rows is like the whole. The noise of the
/// whole counts as well, so that more would keep parts from being sharp.
const PRIOR_ROWS: f64 = 0.3;

/// Steps without gain after which more latents, or more parts, are not tried.
const PATIENCE: usize = 2;

/// Share of rows whose cells may be anything: without it a single cell that a candidate finds impossible, such as the one
/// value of a column that is otherwise constant, would decide the search.
const STRAY: f64 = 0.01;

/// Uses of chance.
const TAKE: u64 = 1;
const CHOOSE: u64 = 2;
const CLUSTERS: u64 = 3;

/// One number of latents and parts, and how well cells taken out were predicted.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct LatentCandidate {
    /// Number of latents.
    pub latents: usize,
    /// Number of parts.
    pub parts: usize,
    /// Mean log density of a cell taken out, in standardised units.
    pub log_density: f64,
}

/// One layer of the whole table, and the parts.
pub(super) struct Fitted {
    pub whole: Part,
    pub parts: Vec<Part>,
    /// Steps the last layers took.
    pub iterations: usize,
}

/// Learn one layer of the whole table, then parts of it.
pub(super) fn fit(
    cells: &Cells,
    latents: usize,
    parts: usize,
    settings: &LatentSettings,
    work: &Work<'_>,
) -> Result<Fitted> {
    let whole = fit_whole(cells, latents, settings, work)?;
    let fitted = fit_parts(cells, &whole, parts, settings, work)?;
    Ok(Fitted { whole: whole.part, parts: fitted.parts, iterations: fitted.iterations })
}

/// One layer of all rows: every number of parts starts from it.
struct Whole {
    part: Part,
    sums: Sums,
    iterations: usize,
}

/// Parts and the steps they took.
struct Parts {
    parts: Vec<Part>,
    iterations: usize,
}

fn fit_whole(cells: &Cells, latents: usize, settings: &LatentSettings, work: &Work<'_>) -> Result<Whole> {
    let prior = vague_prior(latents, cells.d())?;
    let start: Vec<Weighted> = vec![(0.0, principal(cells, latents)?.lens())];
    let Learned { mut parts, mut sums, iterations } = learn(cells, start, None, &prior, settings, work)?;
    let mut part = parts.swap_remove(0);
    part.log_weight = 0.0;
    Ok(Whole { part, sums: sums.swap_remove(0), iterations })
}

fn fit_parts(
    cells: &Cells,
    whole: &Whole,
    parts: usize,
    settings: &LatentSettings,
    work: &Work<'_>,
) -> Result<Parts> {
    if parts == 1 {
        return Ok(Parts { parts: vec![whole.part.clone()], iterations: whole.iterations });
    }
    let memberships = clusters(cells, &whole.part, parts, &mut stream(settings.seed, CLUSTERS))?;
    let vague = vague_prior(whole.part.loadings.ncols(), cells.d())?;
    let prior = whole.sums.natural(&vague, PRIOR_ROWS / cells.n() as f64);
    let start = vec![(-(parts as f64).ln(), whole.part.lens()); parts];
    let learned = learn(cells, start, Some(&memberships), &prior, settings, work)?;
    Ok(Parts { parts: learned.parts, iterations: learned.iterations })
}

/// What the search found.
pub(super) struct Chosen {
    pub latents: usize,
    pub parts: usize,
    pub shrinkage: f64,
    /// All candidates in the order they were tried.
    pub candidates: Vec<LatentCandidate>,
}

/// The settings with both numbers chosen.
pub(super) fn choose(cells: &Cells, settings: &LatentSettings, work: &Work<'_>) -> Result<Chosen> {
    let latents = settings.latents.map_or_else(|| numbers_of_latents(cells.d()), |k| vec![k]);
    let most_parts = MOST_PARTS.min(cells.n() / ROWS_PER_PART).max(1);
    let doubling: Vec<usize> =
        std::iter::successors(Some(2), |c| Some(2 * c)).take_while(|&c| c <= most_parts).collect();
    let parts = settings.parts.map_or(doubling, |c| if c > 1 { vec![c] } else { Vec::new() });
    if latents.len() == 1 && settings.parts.is_some() {
        let parts = settings.parts.unwrap_or(1);
        return Ok(Chosen { latents: latents[0], parts, shrinkage: 1.0, candidates: Vec::new() });
    }
    work.enter(Stage::Search)?;
    let mut race = Race::new(cells, settings);
    let most = latents.last().copied().unwrap_or(0);
    let widest = race.left.n().max(1);
    let planned =
        parts.iter().copied().chain([1]).map(|c| step_cost(widest, cells.d(), most / 2, c)).sum::<u64>();
    work.plan(2 * planned * ITERATIONS as u64);
    let mut best: Option<Scored> = None;
    let mut tried = Vec::new();
    let mut consider = |rank: usize, c: usize, best: &mut Option<Scored>| -> Result<bool> {
        let scored = race.run(rank, latents[rank], c, work)?;
        tried.push(scored.candidate.clone());
        work.hold_out(scored.candidate.log_density);
        let better = best.as_ref().is_none_or(|best| scored.beats(best));
        if better {
            *best = Some(scored);
        }
        Ok(better)
    };
    // With a given number of parts there is nothing to say about one layer.
    let first_parts = settings.parts.unwrap_or(1);
    let mut without_gain = 0;
    for rank in 0..latents.len() {
        let gained = consider(rank, first_parts, &mut best)?;
        without_gain = if gained { 0 } else { without_gain + 1 };
        if without_gain == PATIENCE {
            break;
        }
    }
    if settings.parts.is_none() {
        let mut without_gain = 0;
        for &c in &parts {
            let rank = best.as_ref().map_or(0, |best| best.rank);
            let mut gained = false;
            for rank in rank.saturating_sub(1)..(rank + 2).min(latents.len()) {
                gained |= consider(rank, c, &mut best)?;
            }
            without_gain = if gained { 0 } else { without_gain + 1 };
            if without_gain == PATIENCE {
                break;
            }
        }
    }
    let best = best.expect("at least one number of latents is tried");
    let LatentCandidate { latents, parts, .. } = best.candidate;
    Ok(Chosen { latents, parts, shrinkage: race.shrinkage(&best.fitted)?, candidates: tried })
}

/// 0, 1, 2, 3, 5, 8, 12, 18, … below the number of columns.
fn numbers_of_latents(d: usize) -> Vec<usize> {
    let more = std::iter::successors(Some(3usize), |k| Some((k * 3).div_ceil(2)));
    [0, 1, 2].into_iter().chain(more).take_while(|&k| k == 0 || k < d).collect()
}

/// What every candidate runs on.
struct Race<'a> {
    settings: &'a LatentSettings,
    /// The rows, with all their cells.
    full: Cells,
    /// The same rows without the cells taken out.
    left: Cells,
    /// Rows that lost cells.
    judged: Vec<usize>,
    n_taken: usize,
    /// One layer of all rows for each number of latents tried.
    wholes: BTreeMap<usize, Whole>,
}

/// A candidate and how it did on each row that lost cells.
struct Scored {
    rank: usize,
    candidate: LatentCandidate,
    fitted: Vec<Part>,
    rows: Vec<f64>,
}

impl Scored {
    /// Better by more than the standard error of the difference.
    fn beats(&self, other: &Self) -> bool {
        let n = self.rows.len() as f64;
        let gains = || self.rows.iter().zip(&other.rows).map(|(own, other)| own - other);
        let mean = gains().sum::<f64>() / n;
        let square = gains().map(|gain| (gain - mean).powi(2)).sum::<f64>() / n;
        mean > (square / n).sqrt()
    }
}

impl<'a> Race<'a> {
    fn new(cells: &Cells, settings: &'a LatentSettings) -> Self {
        let mut order: Vec<usize> = (0..cells.n()).collect();
        if order.len() > ROWS {
            order.sort_by_key(|&row| of_row(settings.seed, CHOOSE, row as u64));
            order.truncate(ROWS);
        }
        let full = cells.rows(&order);
        let d = cells.d() as u64;
        let left = full.without(|row, column| {
            of_row(settings.seed, TAKE, row as u64 * d + column as u64).is_multiple_of(10)
        });
        let judged: Vec<usize> =
            (0..full.n()).filter(|&row| left.missing[row] != full.missing[row]).collect();
        let n_taken = judged.iter().map(|&row| left.missing[row].len() - full.missing[row].len()).sum();
        Self { settings, full, left, judged, n_taken, wholes: BTreeMap::new() }
    }

    fn run(&mut self, rank: usize, latents: usize, parts: usize, work: &Work<'_>) -> Result<Scored> {
        let settings =
            LatentSettings { iterations: self.settings.iterations.min(ITERATIONS), ..self.settings.clone() };
        if let Entry::Vacant(place) = self.wholes.entry(latents) {
            place.insert(fit_whole(&self.left, latents, &settings, work)?);
        }
        let fitted = fit_parts(&self.left, &self.wholes[&latents], parts, &settings, work)?.parts;
        let lenses = lenses(&fitted);
        let score = |&row: &usize| -> Result<f64> {
            let values = self.full.values.col_as_slice(row);
            let full = log_density(&lenses, values, &self.full.missing[row])?;
            let left = log_density(&lenses, self.left.values.col_as_slice(row), &self.left.missing[row])?;
            let stray = self.taken(row).map(|d| log_cauchy(values[d])).sum::<f64>();
            Ok(normalised(vec![(1.0 - STRAY).ln() + full - left, STRAY.ln() + stray]).0)
        };
        let rows = over_chunks(self.judged.len(), |part| {
            self.judged[part].iter().map(score).collect::<Result<Vec<_>>>()
        });
        let rows = rows.into_iter().collect::<Result<Vec<_>>>()?.concat();
        let log_density = rows.iter().sum::<f64>() / self.n_taken.max(1) as f64;
        Ok(Scored { rank, candidate: LatentCandidate { latents, parts, log_density }, fitted, rows })
    }

    /// Cells taken out of a row.
    fn taken(&self, row: usize) -> impl Iterator<Item = usize> {
        self.left.missing[row].iter().copied().filter(move |d| !self.full.missing[row].contains(d))
    }

    /// Least squares of x on m over the cells taken out, less its standard error.
    fn shrinkage(&self, parts: &[Part]) -> Result<f64> {
        let (lenses, range) = (lenses(parts), self.left.range());
        let mut pairs = Vec::with_capacity(self.n_taken);
        for &row in &self.judged {
            let view = view(&lenses, self.left.values.col_as_slice(row), &self.left.missing[row])?;
            let mean = |d: usize| cell(parts, d, &view).0.clamp(range[d][0], range[d][1]);
            pairs.extend(self.taken(row).map(|d| (self.full.values[(d, row)], mean(d))));
        }
        let power: f64 = pairs.iter().map(|(_, m)| m * m).sum();
        if power == 0.0 {
            return Ok(1.0);
        }
        let slope = pairs.iter().map(|(x, m)| x * m).sum::<f64>() / power;
        let square: f64 = pairs.iter().map(|(x, m)| (m * (x - slope * m)).powi(2)).sum();
        Ok((slope - square.sqrt() / power).clamp(0.0, 1.0))
    }
}

/// log of the standard Cauchy density.
fn log_cauchy(x: f64) -> f64 {
    -(std::f64::consts::PI * (1.0 + x * x)).ln()
}
