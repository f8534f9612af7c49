//! Predictions for the rows of a table, those the model is least sure of first.

use axum::http::header;
use axum::response::{IntoResponse, Response};
use bayespc_data::{Kind, Table};
use serde_json::{Value, json};

use crate::answer::{self, Quantity, answer};
use crate::app::json_response;
use crate::cells::csv;
use crate::output::Output;
use crate::problem::Problem;
use crate::request::Asked;
use crate::served::Served;

/// Rows that are given in JSON; CSV has all of them.
const MOST: usize = 1000;

/// Predictions of CSV text: JSON with the least sure rows first, or all rows in their order as CSV.
pub fn rows(
    served: &Served,
    body: &[u8],
    asked: &Asked,
    format: Option<&str>,
) -> Result<(Response, Vec<f64>), Problem> {
    let table = csv(served, body)?;
    let rows = served.rows(&table, asked.unseen)?;
    let mut asked = asked.clone();
    if served.is_classifier() {
        asked.outputs = Some(
            [
                Output::Class,
                Output::Probabilities,
                Output::Entropy,
                Output::AleatoricEntropy,
                Output::EpistemicEntropy,
                Output::OodScore,
            ]
            .into(),
        );
    }
    let answer = answer(served, &rows.features, &asked)?;
    match format {
        None | Some("json") => {}
        Some("csv") => {
            let text = answer::csv(&answer.quantities, table.n_rows());
            let response = ([(header::CONTENT_TYPE, "text/csv; charset=utf-8")], text).into_response();
            return Ok((response, answer.ood));
        }
        Some(other) => return Err(Problem::bad(format!("`format` is {other}: say json or csv")).value(other)),
    }
    let unsure = if served.is_classifier() { Output::Entropy } else { Output::Std };
    let sureness = answer.quantities.iter().find(|quantity| quantity.output == unsure);
    // Of several targets each in its own deviations.
    let scales = if served.is_classifier() { &[1.0][..] } else { &served.model.target_scaling().scale };
    let doubt = |i: usize| sureness.map_or(0.0, |quantity| quantity.largest(i, scales));
    let mut order: Vec<usize> = (0..table.n_rows()).collect();
    // Stable: of equals the first row comes first.
    order.sort_by(|&a, &b| doubt(b).total_cmp(&doubt(a)));
    order.truncate(MOST);
    let line = |&i: &usize| {
        let prediction: serde_json::Map<String, Value> =
            answer.quantities.iter().flat_map(|quantity| quantity.entries(i)).collect();
        json!({ "row": i + 1, "cells": cells(served, &table, i), "prediction": prediction })
    };
    let value = json!({
        "rows": table.n_rows(),
        "columns": served.column_names().collect::<Vec<_>>(),
        "quantities": answer.quantities.iter().flat_map(Quantity::titles).collect::<Vec<_>>(),
        "sorted_by": unsure.name(),
        "least_sure": order.iter().map(line).collect::<Vec<_>>(),
        "warnings": rows.warnings,
    });
    Ok((json_response(&value), answer.ood))
}

/// The cells of a row that the model has used, as a request for that row would have them.
fn cells(served: &Served, table: &Table, i: usize) -> Vec<Value> {
    let cell = |feature: &bayespc_data::FeatureColumn| {
        let Ok(column) = table.column(&feature.name) else { return Value::Null };
        match feature.kind() {
            Kind::Number(_) => json!(column.number(i).ok().flatten()),
            Kind::Bool => json!(column.boolean(i).ok().flatten()),
            Kind::Text | Kind::Time(_) => json!(column.text(i)),
        }
    };
    served.encoding.features.iter().map(cell).collect()
}
