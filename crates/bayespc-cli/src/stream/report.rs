//! What `fit --stream` says in the end.

use std::path::Path;

use anyhow::Result;
use serde_json::{Map, json};

use super::Learned;
use crate::output::{note, print, print_json, two_columns};
use crate::scores::Scores;

/// Print scores, of all rows and of the last tenth, and say what is odd.
pub fn report(learned: &Learned, written: Option<&Path>, as_json: bool) -> Result<()> {
    let Learned { seconds, problem, sums, left_out, bad, .. } = learned;
    let rate = learned.new_rows as f64 / seconds;
    let scores = sums.whole();
    let last = sums.last_tenth();
    let remark = learned.order.remark(&scores, last.as_ref().map(|(_, scores)| scores));
    if let Some(first) = &bad.first {
        let rows = if bad.count == 1 { "row" } else { "rows" };
        note(&format!("warning: {} bad {rows} left out; the first: {first}", bad.count));
    }
    if let Some(remark) = &remark {
        note(&format!("warning: {remark}"));
    }
    if as_json {
        let mut result = Map::new();
        result.insert("dataset".into(), json!(problem.source.name));
        result.insert("targets".into(), json!(problem.targets));
        result.insert("rows".into(), json!(sums.rows));
        result.insert("new_rows".into(), json!(learned.new_rows));
        result.insert("interrupted".into(), json!(learned.interrupted));
        result.insert("seconds".into(), json!(seconds));
        result.insert("rows_per_second".into(), json!(rate));
        result.insert("scored_rows".into(), json!(sums.scored()));
        result.insert("rows_without_target".into(), json!(left_out.without_target));
        result.insert("rows_with_holes_dropped".into(), json!(left_out.with_holes));
        result.insert("bad_rows".into(), json!(bad.count));
        result.insert("first_bad_row".into(), json!(bad.first));
        result.insert("columns".into(), json!(problem.columns()));
        result.extend(scores.to_json());
        let last = last.map(|(rows, scores)| {
            let mut last = scores.to_json();
            last.insert("rows".into(), json!(rows));
            last
        });
        result.insert("last_tenth".into(), json!(last));
        result.insert("remark".into(), json!(remark));
        result.insert("model".into(), json!(written));
        return print_json(&result.into());
    }
    let (rows, now) = (sums.rows, learned.new_rows);
    let rows = if rows == now { format!("{rows} rows") } else { format!("{rows} rows, {now} of them now,") };
    let heading = format!(
        "{}: learned from {rows} in {seconds:.1} s, {rate:.0} rows per second; scores on a sample of {} rows before they were learned",
        problem.source.name,
        sums.scored()
    );
    print(&format!("{heading}\n\n{}", two_columns(&lines(&scores, last.as_ref()))))
}

/// Scores of all rows, and of the last beside them.
fn lines(whole: &Scores, last: Option<&(usize, Scores)>) -> Vec<(String, String)> {
    let Some((rows, last)) = last else { return whole.rows() };
    let beside = |a: &str, b: &str| format!("{a:>12}  {b:>12}");
    let mut lines = vec![(String::new(), beside("all", &format!("last {rows}")))];
    for ((name, all), (_, last)) in whole.rows().into_iter().zip(last.rows()) {
        lines.push((name, beside(&all, &last)));
    }
    lines
}
