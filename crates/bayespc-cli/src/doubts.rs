//! Targets that may not be what they were taken for: a word about them, and which option changes it.

use std::collections::BTreeSet;

use bayespc_data::{Encoding, Table, TargetColumns};

use crate::output::note;

/// So many different whole numbers may be names of classes.
const FEW: usize = 10;
/// A value must occur so often on average for that.
const OFTEN: usize = 3;

/// Say what is odd about the targets; nothing of numbers as classes if the task was given.
pub fn tell(table: &Table, encoding: &Encoding, task_is_given: bool) {
    let Some(TargetColumns::Regression { columns, .. }) = &encoding.target else { return };
    for name in columns {
        let Ok(column) = table.column(name) else { continue };
        let mut values = BTreeSet::new();
        for i in 0..table.n_rows() {
            values.extend(column.number(i).ok().flatten().map(f64::to_bits));
            if values.len() > FEW {
                break;
            }
        }
        let mut values: Vec<f64> = values.into_iter().map(f64::from_bits).collect();
        values.sort_by(f64::total_cmp);
        match &values[..] {
            [only] if table.n_rows() > 1 => {
                note(&format!("note: target `{name}` is {only} in every row: there is nothing to learn"));
            }
            few if few.len() <= FEW
                && !task_is_given
                && few.iter().all(|x| x.fract() == 0.0)
                && table.n_rows() >= OFTEN * few.len() =>
            {
                let listed: Vec<String> = few.iter().map(f64::to_string).collect();
                note(&format!(
                    "note: target `{name}` has only the values {} and is taken for a number (--task regression); if they are classes, give --task classification",
                    listed.join(", ")
                ));
            }
            _ => {}
        }
    }
}
