//! Parts with only the rows that a round uses: who has read a part once need not read it again for each of them.
//!
//! A round of a long table uses few of its rows, and which ones is known beforehand. So the rows of the next rounds may be
//! taken from a part at once, and the part be dropped.

use std::ops::Range;

use super::part::{Edge, PartStatistics};
use super::plan::{Pass, Plan};
use super::rows::Rows;
use super::{Rounds, member_seed};
use crate::data::Samples;
use crate::error::{Error, Result, RoundsError};

/// The rows of a part that one round uses.
#[derive(Clone, Debug, PartialEq)]
pub struct ThinPart(PartStatistics);

impl ThinPart {
    /// The bytes of it.
    pub fn to_bytes(&self) -> Result<Vec<u8>> {
        self.0.to_bytes()
    }

    /// Read it from its bytes.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        PartStatistics::from_bytes(bytes).map(Self)
    }
}

impl Rounds {
    /// The rows of a part that are used by the round that is due, by the one behind it, and so on: `ahead` rounds or as
    /// many as there are. None at all where every round uses all rows, or another pass is due.
    ///
    /// `samples` are none of a part whose rows, `n_rows` of them, have no weight.
    pub fn thin(
        &self,
        samples: Option<&Samples<'_>>,
        (first_row, n_rows): (u64, u64),
        ahead: u64,
    ) -> Result<Vec<ThinPart>> {
        let plan = self.plan.as_ref().ok_or(RoundsError::Finished)?;
        let Some(rounds) = coming(plan, ahead) else { return Ok(Vec::new()) };
        samples.map_or(Ok(()), |samples| self.check(plan, samples))?;
        let all = samples.map_or_else(Rows::default, |samples| Rows::of(samples, first_row, |_| true));
        let mut thin = vec![Rows::default(); (rounds.end - rounds.start) as usize];
        let seeds: Vec<u64> = (0..plan.members).map(|m| member_seed(plan.seed, m)).collect();
        for (j, &row) in all.numbers.iter().enumerate() {
            let held_out = plan.held_out_of(row);
            for (_, &seed) in seeds.iter().enumerate().filter(|(m, _)| held_out != Some(*m)) {
                for round in plan.rounds_of(seed, row, rounds.clone()) {
                    let rows = &mut thin[(round - rounds.start) as usize];
                    // Several networks may use it.
                    if rows.numbers.last() != Some(&row) {
                        rows.push(&all, j);
                    }
                }
            }
        }
        let covers = first_row..first_row + n_rows;
        let widths = samples.map(|samples| (samples.n_features(), samples.targets().n_keys()));
        let part = |(rows, round): (Rows, u64)| {
            let edges = vec![Edge { covers: covers.clone(), rows }];
            ThinPart(PartStatistics { pass: name(round), widths, edges, ..PartStatistics::default() })
        };
        Ok(thin.into_iter().zip(rounds).map(part).collect())
    }

    /// What the rows of a part say in the round that is due, for which they must have been taken.
    pub fn statistics_of_thin(&self, part: &ThinPart) -> Result<PartStatistics> {
        let plan = self.plan.as_ref().ok_or(RoundsError::Finished)?;
        let due = coming(plan, 1).map(|due| name(due.start));
        let ([edge], true) = (&part.0.edges[..], due.as_ref() == Some(&part.0.pass)) else {
            return Err(Error::Conflict { first: "rows of another round", second: "the pass that is due" });
        };
        self.check_widths(plan, 0, part.0.widths)?;
        if edge.covers.end > plan.rows {
            return Err(RoundsError::Beyond { rows: plan.rows }.into());
        }
        let (covers, numbers) = (&edge.covers, &edge.rows.numbers);
        let of = |range: &Range<u64>| {
            let mut rows = Rows::default();
            (numbers.partition_point(|row| *row < range.start)..numbers.len())
                .take_while(|&j| numbers[j] < range.end)
                .for_each(|j| rows.push(&edge.rows, j));
            rows
        };
        let gatherer = self.gatherer(plan)?;
        let n_rows = covers.end - covers.start;
        let mut found = self.of_rows(plan, gatherer.as_ref(), (covers.start, n_rows), of)?;
        found.widths = part.0.widths;
        Ok(found)
    }
}

/// The rounds from the one that is due, counted from 0, if each uses some of the rows only.
fn coming(plan: &Plan, ahead: u64) -> Option<Range<u64>> {
    let Pass::Round { index, of } = plan.pass else { return None };
    let first = index - 1;
    (plan.rounds_of_a_sweep() > 1).then(|| first..first.saturating_add(ahead).min(of))
}

fn name(round: u64) -> String {
    format!("rows of round {}", round + 1)
}

#[cfg(test)]
mod tests {
    use faer::Mat;

    use super::{Pass, Rounds, ThinPart};
    use crate::data::{Samples, Task};
    use crate::model::ModelSettings;
    use crate::model::rounds::RoundSettings;

    fn table(n: usize) -> (Mat<f64>, Mat<f64>) {
        let x = Mat::from_fn(2, n, |i, j| ((3 * i + 2) as f64 * j as f64).sin());
        let y = Mat::from_fn(1, n, |_, j| x[(0, j)] * x[(1, j)]);
        (x, y)
    }

    /// Two networks, each with its own draws, and parts that begin and end inside chunks.
    #[test]
    fn rows_that_were_taken_before_say_what_the_part_would() {
        let (x, y) = table(3000);
        let weights: Vec<f64> = (0..3000).map(|j| f64::from(j % 4)).collect();
        let mut settings = ModelSettings { members: 2, ..ModelSettings::fast() };
        settings.network.hidden_layer_sizes = vec![4];
        let rounds = RoundSettings { rounds: 5, batch_rows: 700, ..RoundSettings::default() };
        let mut rounds = Rounds::begin(&settings, &rounds, Task::Regression).unwrap();
        let part = |start: usize, n: usize| {
            let samples = Samples::new(x.subcols(start, n), y.subcols(start, n)).unwrap();
            samples.weighted(&weights[start..start + n]).unwrap()
        };
        let cuts = [(0, 1301), (1301, 1), (1302, 1698)];
        let whole = |rounds: &Rounds| {
            cuts.map(|(start, n)| rounds.statistics(Some(&part(start, n)), start as u64).unwrap())
        };
        rounds = rounds.absorb(whole(&rounds).to_vec()).unwrap();
        let thin = cuts.map(|(start, n)| {
            let all = rounds.thin(Some(&part(start, n)), (start as u64, n as u64), 4).unwrap();
            all.iter().map(|p| ThinPart::from_bytes(&p.to_bytes().unwrap()).unwrap()).collect::<Vec<_>>()
        });
        assert!(thin.iter().all(|part| part.len() == 4));
        for round in 0..4 {
            assert!(matches!(rounds.next_pass(), Some(Pass::Round { .. })));
            let expected = whole(&rounds);
            for (part, expected) in thin.iter().zip(&expected) {
                assert_eq!(&rounds.statistics_of_thin(&part[round]).unwrap(), expected);
                assert!(rounds.statistics_of_thin(&part[(round + 1) % 4]).is_err(), "rows of another round");
            }
            rounds = rounds.absorb(expected.to_vec()).unwrap();
        }
        let (start, n) = cuts[0];
        let left = rounds.thin(Some(&part(start, n)), (start as u64, n as u64), 4).unwrap();
        assert_eq!(left.len(), 1, "there is one round left");
        rounds = rounds.absorb(whole(&rounds).to_vec()).unwrap();
        assert!(
            rounds.thin(Some(&part(start, n)), (0, n as u64), 4).unwrap().is_empty(),
            "another pass is due"
        );
    }
}
