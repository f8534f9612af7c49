//! A pass under way: the model, where it stands, and what becomes of the next chunk.

use std::path::Path;

use anyhow::{Context, Result};
use bayespc::model::{Model, ModelSettings};

use super::Pass;
use super::checkpoint::{self, State};
use crate::fit::{DATA_NOTE, ENCODING_NOTE};
use crate::input::{Part, Problem};
use crate::scores::{Predictions, Scores};

/// Of so many rows of a chunk one is scored.
pub const SCORED_OF: usize = 8;

/// A pass under way.
pub struct Progress<'a> {
    /// What was learned so far; none before the first rows.
    pub model: Option<Model>,
    /// Where it stands in the file.
    pub state: State,
    /// Rows learned by this process.
    pub new_rows: usize,
    /// Where an earlier process stood; rows up to there are passed over.
    before: Option<State>,
    since_checkpoint: usize,
    problem: &'a Problem,
    settings: &'a ModelSettings,
    pass: &'a Pass,
}

impl<'a> Progress<'a> {
    /// Nothing read yet; with the model of the checkpoint, or the one to begin with, if there is one.
    pub fn begin(problem: &'a Problem, settings: &'a ModelSettings, pass: &'a Pass) -> Result<Self> {
        let from = pass.from.as_ref();
        let settings = from.map_or(settings, |from| from.model.settings());
        let state = State { from: from.map(|from| from.digest), ..State::default() };
        let kept = pass.checkpoint.as_ref();
        let kept = kept.map(|checkpoint| checkpoint.read(problem.encoding(), settings, state.from));
        let (mut model, before) = kept.transpose()?.flatten().unzip();
        if let (None, Some(from)) = (&model, from) {
            let mut first = from.model.clone();
            first.notes_mut().insert(DATA_NOTE.to_owned(), problem.source.name.clone());
            model = Some(first);
        }
        Ok(Self { model, state, new_rows: 0, before, since_checkpoint: 0, problem, settings, pass })
    }

    /// Rows of a chunk that are scored: scores cost more than learning, and a sample tells as much.
    fn scored(part: &Part) -> Part {
        let rows: Vec<usize> = (0..part.len()).step_by(SCORED_OF).collect();
        part.select(&rows)
    }

    /// Score and learn the next rows, or pass over them if they are learned already.
    pub fn chunk(&mut self, part: &Part) -> Result<()> {
        if let Some(checkpoint) = &self.pass.checkpoint
            && self.since_checkpoint >= checkpoint.every
        {
            self.keep()?;
        }
        self.state.digest.add(part);
        self.state.chunks += 1;
        match &self.before {
            Some(before) if self.state.chunks < before.chunks => Ok(()),
            Some(before) if self.state.chunks == before.chunks => {
                if self.state.digest != before.digest {
                    return Err(self.changed());
                }
                self.state.clone_from(before);
                if let Some(model) = &self.model {
                    // Scores of rows it knows, for their names alone.
                    self.state.sums.name(&self.scores(model, &Self::scored(part))?);
                }
                Ok(())
            }
            _ => self.learn(part),
        }
    }

    fn learn(&mut self, part: &Part) -> Result<()> {
        let samples = part.samples(self.problem.classes())?;
        let mut model = if let Some(model) = self.model.take() {
            let scored = Self::scored(part);
            self.state.sums.add(&self.scores(&model, &scored)?, scored.len());
            model
        } else {
            let mut model = Model::for_stream(&samples, self.settings)?;
            let notes = model.notes_mut();
            notes.insert(ENCODING_NOTE.to_owned(), serde_json::to_string(self.problem.encoding())?);
            notes.insert(DATA_NOTE.to_owned(), self.problem.source.name.clone());
            model
        };
        model.partial_fit(&samples).context("training failed")?;
        self.state.order.add(&part.targets);
        self.state.sums.rows += part.len();
        self.new_rows += part.len();
        self.since_checkpoint += part.len();
        self.model = Some(model);
        Ok(())
    }

    /// Write the checkpoint, if there is to be one. Only once there are further rows: the last chunk of a file is
    /// shorter than it will be when rows are added.
    fn keep(&mut self) -> Result<()> {
        if let (Some(checkpoint), Some(model)) = (&self.pass.checkpoint, &mut self.model) {
            checkpoint.write(model, &self.state)?;
            self.since_checkpoint = 0;
        }
        Ok(())
    }

    fn scores(&self, model: &Model, part: &Part) -> Result<Scores> {
        let predictions = Predictions::of(model, part)?;
        Scores::of(&predictions, &part.targets, &model.target_scaling().scale, &self.problem.targets)
    }

    /// End here: what an earlier process had learned stays learned, though its rows were not all passed over.
    pub fn stop(&mut self) -> Result<()> {
        if let Some(before) = self.before.take_if(|before| self.state.chunks < before.chunks) {
            self.state = before;
        }
        if self.since_checkpoint > 0 { self.keep() } else { Ok(()) }
    }

    /// The file must not have ended before its checkpoint.
    pub fn check_caught_up(&self) -> Result<()> {
        match &self.before {
            Some(before) if self.state.chunks < before.chunks => Err(self.changed()),
            _ => Ok(()),
        }
    }

    fn changed(&self) -> anyhow::Error {
        let path = self.pass.checkpoint.as_ref().map_or(Path::new(""), |checkpoint| checkpoint.out.path());
        checkpoint::other(path, "another file, or this one has changed in rows that were learned")
    }
}
