//! Learning a table that is in many places: passes over its parts, each of which says what it has as sums.
//!
//! ```text
//! let mut rounds = Rounds::begin(settings, …)?;
//! while rounds.next_pass().is_some() {
//!     let parts = …each part, anywhere: rounds.statistics(rows, number of the first row)…;
//!     rounds = rounds.absorb(parts)?;
//! }
//! let model = rounds.into_model()?;
//! ```
//!
//! Both [`Rounds`] and [`PartStatistics`] go through bytes without a change. What kind of pass is due stands in them
//! (`plan`), so that the loop is all that a driver needs, be it a thread pool, Dask, Make or Slurm. A part's rows
//! are no longer needed once its statistics exist. However a table is cut, in whatever order its parts come and
//! whoever adds them up, the model has the same bits (`part`). Statistics of another model or pass are refused,
//! and so are rows that are missing or come twice.

mod bytes;
mod calibrate;
mod file;
mod learn;
mod part;
mod plan;
mod rows;
mod table;
mod thin;

use std::collections::BTreeMap;
use std::ops::Range;

use rayon::prelude::*;

pub use part::PartStatistics;
pub use plan::{Pass, RoundSettings};
pub use thin::ThinPart;

use self::learn::Gatherer;
use self::part::{Chunks, Edge, MOST_ROWS, cut};
use self::plan::{DRAW, Plan};
use self::rows::Rows;
use self::table::Columns;
use super::calibration::Calibration;
use super::ensemble::{Ensemble, Member, MemberPlan, member_seed};
use super::fit::check_task;
use super::model::Model;
use super::settings::{InputScaling, ModelSettings, REFRESH_EVERY};
use crate::base::random::of_row;
use crate::base::tree;
use crate::data::{Samples, Standardiser, Task};
use crate::error::{Error, Result, RoundsError};
use crate::inference::FeedbackSettings;
use crate::learners::Rule;
use crate::training::TrainingSettings;

/// Numbers of drawn rows at most, and rows at least and at most.
const DRAWN: (usize, usize, usize) = (1 << 21, 256, 8192);

/// No table has as many inputs or targets.
const MOST_COLUMNS: usize = 1 << 40;

/// What settings conflict with that rounds do not obey.
const NOT_IN_ROUNDS: &str = "learning in rounds";

/// Chunks whose sums exist at the same time.
const AT_ONCE: usize = 16;

/// A model in the making.
#[derive(Clone, Debug)]
pub struct Rounds {
    settings: ModelSettings,
    /// What is still to be done; none of a finished model.
    plan: Option<Plan>,
    /// None before the first pass.
    model: Option<Model>,
    /// Notes for the model to be; later they are the model's own.
    notes: BTreeMap<String, String>,
    digest: u64,
}

impl Rounds {
    /// Nothing known yet. Networks are as the settings have them: nothing is searched. Other settings that rounds do not
    /// obey are an error where they are not the default.
    pub fn begin(settings: &ModelSettings, rounds: &RoundSettings, task: Task) -> Result<Self> {
        Self::check_settings(settings, rounds, task)?;
        let plan = Plan {
            task,
            settings: rounds.clone(),
            seed: settings.training.seed,
            members: settings.members,
            pass: Pass::Table,
            rows: 0,
            weight: 0.0,
        };
        Self::sealed(settings.clone(), Some(plan), None, BTreeMap::new())
    }

    fn check_settings(settings: &ModelSettings, rounds: &RoundSettings, task: Task) -> Result<()> {
        settings.validate()?;
        rounds.validate()?;
        check_task(task, settings)?;
        check_obeyed(settings, rounds)?;
        settings.network.wide_layers.or_dense(NOT_IN_ROUNDS).map(|_| ())
    }

    /// The same for a table that is known to have so many rows: a part that is missing at its end is then missed in the
    /// first pass too.
    pub fn expecting(mut self, rows: u64) -> Result<Self> {
        if let (Some(plan), None) = (&mut self.plan, &self.model) {
            plan.rows = rows;
        }
        Self::sealed(self.settings, self.plan, self.model, self.notes)
    }

    /// The pass that is due; none if the model is finished.
    pub fn next_pass(&self) -> Option<Pass> {
        self.plan.as_ref().map(|plan| plan.pass)
    }

    /// What the model is to be.
    pub fn settings(&self) -> &ModelSettings {
        &self.settings
    }

    /// Real values, or how many classes.
    pub fn task(&self) -> Option<Task> {
        self.plan.as_ref().map(|plan| plan.task).or_else(|| self.model.as_ref().map(Model::task))
    }

    /// The model as it is now; none before the first pass.
    pub fn model(&self) -> Option<&Model> {
        self.model.as_ref()
    }

    /// The model, finished.
    pub fn into_model(self) -> Result<Model> {
        if self.plan.is_some() {
            return Err(Error::NotFitted);
        }
        self.model.ok_or(Error::NotFitted)
    }

    /// Notes kept with the model.
    pub fn notes(&self) -> &BTreeMap<String, String> {
        self.model.as_ref().map_or(&self.notes, Model::notes)
    }

    /// The same with one more note. It is part of what statistics belong to.
    pub fn with_note(mut self, name: &str, text: String) -> Result<Self> {
        let notes = self.model.as_mut().map_or(&mut self.notes, Model::notes_mut);
        notes.insert(name.to_owned(), text);
        Self::sealed(self.settings, self.plan, self.model, self.notes)
    }

    /// What the rows of a part say in the pass that is due; `samples` are none of a part without rows, and
    /// `first_row` is the number of its first row in the whole table.
    pub fn statistics(&self, samples: Option<&Samples<'_>>, first_row: u64) -> Result<PartStatistics> {
        let plan = self.plan.as_ref().ok_or(RoundsError::Finished)?;
        let Some(samples) = samples else { return Ok(self.nothing(plan)) };
        self.check(plan, samples)?;
        let gatherer = self.gatherer(plan)?;
        let wanted = |row: u64| match &gatherer {
            Some(gatherer) => gatherer.uses(row),
            None => plan.pass == Pass::Table,
        };
        let of = |rows: &Range<u64>| {
            let (start, n) = ((rows.start - first_row) as usize, (rows.end - rows.start) as usize);
            // No rows of a span that has no weight.
            samples.span(start, n).map_or_else(Rows::default, |span| Rows::of(&span, rows.start, wanted))
        };
        let mut part = self.of_rows(plan, gatherer.as_ref(), (first_row, samples.n_samples() as u64), of)?;
        part.widths = Some((samples.n_features(), samples.targets().n_keys()));
        part.drawn = self.draw(plan, samples, first_row);
        Ok(part)
    }

    /// The same of `n_rows` rows that all have weight 0: they say nothing, but nobody need wait for them.
    pub fn statistics_of_weightless(&self, n_rows: u64, first_row: u64) -> Result<PartStatistics> {
        let plan = self.plan.as_ref().ok_or(RoundsError::Finished)?;
        self.of_rows(plan, self.gatherer(plan)?.as_ref(), (first_row, n_rows), |_| Rows::default())
    }

    fn nothing(&self, plan: &Plan) -> PartStatistics {
        PartStatistics { digest: self.digest, pass: plan.pass.to_string(), ..PartStatistics::default() }
    }

    /// Sums of whole chunks, and rows of those that are not; `of` gives the rows with these numbers that are used.
    fn of_rows(
        &self,
        plan: &Plan,
        gatherer: Option<&Gatherer<'_>>,
        (first_row, n_rows): (u64, u64),
        of: impl Fn(&Range<u64>) -> Rows + Sync,
    ) -> Result<PartStatistics> {
        let mut part = self.nothing(plan);
        if first_row.saturating_add(n_rows) > MOST_ROWS {
            let (name, must_be) = ("first_row", "below 2⁴⁸");
            return Err(Error::Setting { name, value: first_row as f64, must_be });
        }
        with_chunks(plan, gatherer, |chunks| {
            let pieces: Vec<(Range<u64>, bool)> = cut(first_row, n_rows, chunks.length).collect();
            for group in pieces.chunks(AT_ONCE) {
                let leaves = group
                    .par_iter()
                    .filter(|(_, whole)| *whole)
                    .map(|(rows, _)| Ok((rows.start / chunks.length, (chunks.leaf)(&of(rows))?)))
                    .collect::<Result<Vec<_>>>()?;
                for (chunk, leaf) in leaves {
                    part.tree
                        .insert((0, chunk), leaf, chunks.join)
                        .map_err(|_| RoundsError::Twice { row: chunk * chunks.length })?;
                }
                for (rows, _) in group.iter().filter(|(_, whole)| !whole) {
                    part.edges.push(Edge { covers: rows.clone(), rows: of(rows) });
                }
            }
            Ok(())
        })?;
        Ok(part)
    }

    /// What several parts say together, to be sent on: whoever gets few statistics instead of many has less to do.
    pub fn combine(&self, parts: Vec<PartStatistics>) -> Result<PartStatistics> {
        let plan = self.plan.as_ref().ok_or(RoundsError::Finished)?;
        let gatherer = self.gatherer(plan)?;
        let mut all = self.nothing(plan);
        let sums = gatherer.as_ref().map(Gatherer::length);
        with_chunks(plan, gatherer.as_ref(), |chunks| {
            for (i, mut part) in parts.into_iter().enumerate() {
                self.check_part(plan, (i, &part), sums, chunks.length)?;
                let drawn = std::mem::take(&mut part.drawn);
                all.join(i, part, chunks)?;
                all.drawn = least_drawn(plan, &[&all.drawn, &drawn], all.widths);
            }
            let rows = (plan.rows > 0).then_some(plan.rows);
            all.complete(rows, chunks)
        })?;
        Ok(all)
    }

    /// What becomes of the model by a pass over all parts.
    pub fn absorb(&self, parts: Vec<PartStatistics>) -> Result<Self> {
        let plan = self.plan.as_ref().ok_or(RoundsError::Finished)?;
        let mut all = self.combine(parts)?;
        let drawn = std::mem::take(&mut all.drawn);
        let (widths, gatherer) = (all.widths, self.gatherer(plan)?);
        let end = all.end(plan.chunk());
        let n_rows = if plan.rows == 0 { end } else { plan.rows };
        if end > n_rows.next_multiple_of(plan.chunk()) {
            return Err(RoundsError::Beyond { rows: n_rows }.into());
        }
        let sums = with_chunks(plan, gatherer.as_ref(), |chunks| {
            all.complete(Some(n_rows), chunks)?;
            all.total(n_rows, chunks)
        })?;
        let (Some(sums), Some(widths)) = (sums, widths) else {
            return Err(Error::Empty { what: "the table" });
        };
        let mut plan = plan.clone();
        let mut model = match (&self.model, plan.pass) {
            (None, _) => {
                (plan.rows, plan.weight) = (n_rows, Columns::new(&sums).weight());
                self.untrained(&plan, &sums, widths, &drawn)?
            }
            (Some(model), Pass::Calibration) => {
                let calibrated = calibrate::calibrate(&plan, model, &drawn)?;
                Model { calibrated, ..model.clone() }
            }
            (Some(model), _) => {
                let mut next = model.clone();
                next.ensemble.members = learn::absorb(&plan, model, &sums)?;
                next.n_seen = plan.weight;
                next
            }
        };
        let after = plan.after();
        let plan = after.map(|pass| Plan { pass, ..plan });
        if plan.is_none() {
            for member in &mut model.ensemble.members {
                member.report.epochs = 1;
            }
        }
        Self::sealed(self.settings.clone(), plan, Some(model), BTreeMap::new())
    }

    /// Whether statistics are of the model and the pass that is due, and what they hold has the sizes that these imply;
    /// `sums` is how many numbers the networks have of a chunk.
    fn check_part(
        &self,
        plan: &Plan,
        (part, statistics): (usize, &PartStatistics),
        sums: Option<usize>,
        length: u64,
    ) -> Result<()> {
        if statistics.digest != self.digest {
            return Err(RoundsError::OtherModel { part, pass: statistics.pass.clone() }.into());
        }
        self.check_widths(plan, part, statistics.widths)?;
        for (_, values) in statistics.tree.nodes() {
            let expected = match (sums, plan.pass) {
                (Some(sums), _) => sums,
                (None, Pass::Table) => table::length(values, statistics.widths),
                (None, _) => 0,
            };
            same_size(part, "numbers in a sum", values.len(), expected)?;
        }
        for Edge { covers, .. } in &statistics.edges {
            let (start, end) = (covers.start, covers.end - 1);
            if plan.rows > 0 && end >= plan.rows {
                return Err(RoundsError::Beyond { rows: plan.rows }.into());
            }
            if start / length != end / length {
                return Err(RoundsError::Chunk { part, start, end, length }.into());
            }
        }
        Ok(())
    }

    /// Whether rows have the columns of the model, or before there is one, columns at all.
    fn check_widths(&self, plan: &Plan, part: usize, widths: Option<(usize, usize)>) -> Result<()> {
        let Some((d, k)) = widths else { return Ok(()) };
        let targets = match (plan.task, &self.model) {
            (Task::Classification { .. }, _) => 1,
            (Task::Regression, Some(model)) => model.n_targets(),
            (Task::Regression, None) => k.clamp(1, MOST_COLUMNS),
        };
        same_size(part, "targets", k, targets)?;
        let inputs = self.model.as_ref().map_or(d.clamp(1, MOST_COLUMNS), Model::n_features);
        same_size(part, "inputs", d, inputs)
    }

    /// The networks, in passes that need them for every row.
    fn gatherer<'a>(&'a self, plan: &'a Plan) -> Result<Option<Gatherer<'a>>> {
        match (&self.model, plan.pass) {
            (Some(model), Pass::Round { .. } | Pass::Weights | Pass::Curvature) => {
                Gatherer::new(plan, model).map(Some)
            }
            _ => Ok(None),
        }
    }

    fn check(&self, plan: &Plan, samples: &Samples<'_>) -> Result<()> {
        if let Some(model) = &self.model {
            return model.check_goes_on(samples);
        }
        if samples.task() == plan.task {
            return Ok(());
        }
        Err(Error::Conflict { first: "these targets", second: "the task that was begun" })
    }

    /// Rows that stand for the whole table: those for which the least numbers are drawn. In the first pass they tell
    /// the edges of codes; in the last they are rows that networks have not seen.
    fn draw(&self, plan: &Plan, samples: &Samples<'_>, first_row: u64) -> Rows {
        let wanted = |row: u64| match plan.pass {
            Pass::Table => self.settings.bins > 0,
            Pass::Calibration => plan.held_out_of(row).is_some(),
            _ => false,
        };
        let all = Rows::of(samples, first_row, wanted);
        let widths = (samples.n_features(), samples.targets().n_keys());
        least_drawn(plan, &[&all], Some(widths))
    }

    /// Networks that have learned nothing yet, with the scaling and the codes of the table.
    fn untrained(&self, plan: &Plan, sums: &[f64], widths: (usize, usize), drawn: &Rows) -> Result<Model> {
        let settings = &self.settings;
        let (columns, (d, k)) = (Columns::new(sums), widths);
        crate::base::check::same_length("columns of the table", columns.len(), d + k)?;
        let n_outputs = match plan.task {
            Task::Regression => k,
            Task::Classification { classes } => classes,
        };
        let mut whole = settings.clone();
        whole.network.wide_layers = settings.network.wide_layers.or_dense(NOT_IN_ROUNDS)?;
        super::memory::check(&whole, d, n_outputs)?;
        let mut ensemble = Ensemble {
            task: plan.task,
            input_scaling: match settings.input_scaling {
                InputScaling::Auto | InputScaling::Features => columns.scaling(0, d),
                InputScaling::Whole => columns.whole_scaling(d),
            },
            target_scaling: match plan.task {
                Task::Regression => columns.scaling(d, d + k),
                Task::Classification { classes } => Standardiser::identity(classes),
            },
            codes: BTreeMap::new(),
            members: Vec::new(),
        };
        let plans = whole.plans();
        if !drawn.is_empty() {
            drawn.with_samples(plan.task, |samples| {
                ensemble.add_codes(samples, &plans);
                Ok(())
            })?;
        }
        let member = |(m, own): (usize, &MemberPlan)| {
            let width = ensemble.width(own.bins);
            Member::untrained(own, &settings.rule, width, n_outputs, member_seed(settings.training.seed, m))
        };
        ensemble.members = plans.iter().enumerate().map(member).collect::<Result<_>>()?;
        Ok(Model { notes: self.notes.clone(), ..Model::of(settings, ensemble, 0.0) })
    }
}

fn same_size(part: usize, what: &'static str, found: usize, expected: usize) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    Err(RoundsError::Columns { part, what, found, expected }.into())
}

/// An error if a setting is not obeyed by rounds and is not the default. The search is left out: nothing is searched, as
/// with `search.enabled = false`.
fn check_obeyed(settings: &ModelSettings, rounds: &RoundSettings) -> Result<()> {
    let refused = |first, second| Err(Error::Conflict { first, second });
    let Rule::Feedback(rule) = &settings.rule else {
        return refused("rule = relaxation", NOT_IN_ROUNDS);
    };
    match settings.calibration {
        Calibration::Conformal => return refused("calibration = conformal", NOT_IN_ROUNDS),
        Calibration::Holdout if rounds.held_out == 0.0 => {
            return refused("calibration = holdout", "rounds.held_out = 0");
        }
        _ => {}
    }
    let (training, usual) = (&settings.training, TrainingSettings::default());
    // Python has one number for both and gives it twice.
    let epochs_are_rounds = training.epochs as u64 == rounds.rounds;
    let batches_are_rounds = match training.batch_size {
        Some(rows) => rows as u64 == rounds.batch_rows,
        None => rounds.batch_rows >= MOST_ROWS,
    };
    let of_rule = FeedbackSettings::default();
    let is_refreshed_as_usual = [of_rule.refresh_every, REFRESH_EVERY].contains(&rule.refresh_every);
    let not_obeyed = [
        ("time_limit", settings.time_limit.is_some()),
        ("training.epochs", training.epochs != usual.epochs && !epochs_are_rounds),
        ("training.batch_size", training.batch_size != usual.batch_size && !batches_are_rounds),
        ("training.validation_fraction", training.validation_fraction > 0.0),
        ("rule.gain", rule.gain != of_rule.gain),
        ("rule.damping", rule.damping != of_rule.damping),
        ("rule.trust", rule.trust != of_rule.trust),
        ("rule.rate", rule.rate != of_rule.rate),
        ("rule.schedule", rule.schedule != of_rule.schedule),
        ("rule.refresh_every", !is_refreshed_as_usual),
        ("rule.whiten_input", rule.whiten_input),
    ];
    match not_obeyed.into_iter().find(|(_, is_set)| *is_set) {
        Some((name, _)) => refused(name, NOT_IN_ROUNDS),
        None => Ok(()),
    }
}

/// `work` with the chunks of the pass that is due.
fn with_chunks<R>(
    plan: &Plan,
    gatherer: Option<&Gatherer<'_>>,
    work: impl FnOnce(&Chunks<'_>) -> Result<R>,
) -> Result<R> {
    let leaf = |rows: &Rows| match (gatherer, plan.pass) {
        (Some(gatherer), _) => gatherer.leaf(rows),
        (None, Pass::Table) => Ok(table::leaf(rows)),
        (None, _) => Ok(Vec::new()),
    };
    let join = if plan.pass == Pass::Table { table::join } else { tree::add };
    work(&Chunks { length: plan.chunk(), leaf: &leaf, join })
}

/// The rows for which the least numbers are drawn.
fn least_drawn(plan: &Plan, rows: &[&Rows], widths: Option<(usize, usize)>) -> Rows {
    let width = widths.map_or(1, |(d, k)| d + k);
    let most = (DRAWN.0 / width.max(1)).clamp(DRAWN.1, DRAWN.2);
    let mut places: Vec<(u64, usize, usize)> = rows
        .iter()
        .enumerate()
        .flat_map(|(i, rows)| {
            let draw = |&row: &u64| of_row(plan.seed, DRAW, row);
            rows.numbers.iter().map(draw).enumerate().map(move |(j, draw)| (draw, i, j))
        })
        .collect();
    places.sort_unstable_by_key(|&(draw, i, j)| (draw, rows[i].numbers[j]));
    let mut least = Rows::default();
    places.iter().take(most).for_each(|&(_, i, j)| least.push(rows[i], j));
    least
}
