//! Which columns make a prediction what it is: attributions of the mean, the noise and the ignorance that add up, from
//! the average training row to this one.

use bayespc::model::Quantity;
use serde_json::{Value, json};

use super::RowRequest;
use crate::answer::likeliest;
use crate::cells::table;
use crate::problem::Problem;
use crate::served::Served;

/// The part of each column in each quantity, largest first. For classes these are the probability of one of them and both parts
/// of the entropy of all.
pub fn drivers(served: &Served, request: &RowRequest) -> Result<Value, Problem> {
    let rows = served.rows(&table(served, &request.columns()?)?, false)?;
    let features = &rows.features;
    let of = match request.of {
        Some(of) => of,
        None if served.is_classifier() => likeliest(&served.model.predict_probabilities(features)?, 0),
        None => 0,
    };
    // The column of each input.
    let columns = served.columns.iter().enumerate();
    let owners: Vec<usize> = columns.flat_map(|(k, column)| std::iter::repeat_n(k, column.width)).collect();
    let of_quantity = |quantity: Quantity| -> Result<Value, Problem> {
        let explanation = served.model.explain(features, quantity, of)?.by_column(&owners)?;
        let value = |k: usize| explanation.values[(k, 0)];
        let mut order: Vec<usize> = (0..served.columns.len()).collect();
        order.sort_by(|&a, &b| value(b).abs().total_cmp(&value(a).abs()));
        let part = |&k: &usize| json!({ "column": served.columns[k].name, "value": value(k) });
        Ok(json!({
            "quantity": quantity.name(),
            "base": explanation.base[0],
            "total": explanation.totals()[0],
            "columns": order.iter().map(part).collect::<Vec<_>>(),
        }))
    };
    let drivers = Quantity::ALL.into_iter().map(of_quantity).collect::<Result<Vec<_>, _>>()?;
    Ok(json!({ "of": of, "drivers": drivers }))
}
