//! MLflow's scoring protocol: `/invocations` and `/ping`.
//!
//! ```text
//! {"dataframe_split": {"columns": […], "data": [[…], …]}}        {"dataframe_records": [{…}, …]}
//! {"instances": [{…}, …] or [[…], …]}                            {"inputs": {"column": […], …}}
//! text/csv with a header
//! ```
//!
//! `params` are those of [`Asked`]. The answer is `{"predictions": [{"mean": …, "lower": …}, …]}`. Columns that the model
//! does not know are left aside, as `bayespc predict` does.

use axum::body::Bytes;
use axum::extract::{Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::answer::{Records, answer};
use crate::app::{App, json_response};
use crate::cells::{Cell, Columns, csv, table};
use crate::problem::Problem;
use crate::request::Asked;
use crate::served::Served;

const FORMS: [&str; 4] = ["dataframe_split", "dataframe_records", "instances", "inputs"];

pub async fn ping() -> &'static str {
    "\n"
}

pub async fn version() -> &'static str {
    env!("CARGO_PKG_VERSION")
}

/// Which model, where there are several, and the level of a request in CSV.
#[derive(Deserialize)]
pub struct Choice {
    model: Option<String>,
    level: Option<String>,
}

pub async fn invocations(
    State(app): State<App>,
    Query(choice): Query<Choice>,
    request: axum::extract::Request,
) -> Response {
    let result = async {
        let served = match &choice.model {
            Some(name) => app.model(name)?,
            None => app.only_model()?,
        };
        let (headers, body) = app.body(request).await?;
        let asked = served.clone();
        app.compute(&served, body, move |body| invoke(&asked, &headers, body, choice.level.as_deref())).await
    };
    result.await.unwrap_or_else(|problem: Problem| in_mlflow_words(&problem))
}

/// An error as MLflow's server writes it.
fn in_mlflow_words(problem: &Problem) -> Response {
    let code = match problem.status {
        StatusCode::NOT_FOUND => "RESOURCE_DOES_NOT_EXIST",
        StatusCode::SERVICE_UNAVAILABLE => "TEMPORARILY_UNAVAILABLE",
        status if status.is_client_error() => "BAD_REQUEST",
        _ => "INTERNAL_ERROR",
    };
    let mut body = json!({ "error_code": code, "message": problem.message });
    if let (Value::Object(body), Ok(Value::Object(culprit))) =
        (&mut body, serde_json::to_value(&problem.culprit))
    {
        body.extend(culprit);
    }
    problem.with_body(&body)
}

#[derive(Serialize)]
struct Reply<'a> {
    predictions: Records<'a>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    warnings: &'a [String],
}

fn invoke(
    served: &Served,
    headers: &HeaderMap,
    body: &Bytes,
    level: Option<&str>,
) -> Result<(Response, Vec<f64>), Problem> {
    let kind = headers.get(header::CONTENT_TYPE).map_or("", |kind| kind.to_str().unwrap_or("?"));
    let kind = kind.split(';').next().unwrap_or_default().trim();
    let (table, asked) = match kind {
        "text/csv" => (csv(served, body)?, Asked::default()),
        "application/json" | "" => {
            let (columns, asked) = parse(served, body)?;
            (table(served, &columns)?, asked)
        }
        other => {
            let message = format!("content type `{other}` is not read: send application/json or text/csv");
            return Err(Problem::new(StatusCode::UNSUPPORTED_MEDIA_TYPE, message).value(other));
        }
    };
    let asked = asked.with_level(level)?;
    let rows = served.rows(&table, asked.unseen)?;
    let answer = answer(served, &rows.features, &asked)?;
    let reply = Reply { predictions: Records(&answer.quantities), warnings: &rows.warnings };
    Ok((json_response(&reply), answer.ood))
}

fn parse(served: &Served, body: &Bytes) -> Result<(Columns, Asked), Problem> {
    let parsed: Value = serde_json::from_slice(body)
        .map_err(|error| Problem::bad(format!("the body is not JSON: {error}")))?;
    let Value::Object(mut body) = parsed else {
        return Err(Problem::bad(format!("the body is no JSON object with one of {}", FORMS.join(", "))));
    };
    let asked = match body.remove("params") {
        None | Some(Value::Null) => Asked::default(),
        Some(Value::Object(parameters)) => Asked::of(Some(&parameters))?,
        Some(_) => return Err(Problem::bad("`params` is no object")),
    };
    let given: Vec<&str> = FORMS.into_iter().filter(|form| body.contains_key(*form)).collect();
    let [form] = given[..] else {
        return Err(Problem::bad(format!(
            "the body has {} of {}: give exactly one",
            if given.is_empty() { "none".to_owned() } else { given.join(" and ") },
            FORMS.join(", ")
        )));
    };
    let data = body.remove(form).unwrap_or_default();
    let columns = match (form, data) {
        ("dataframe_split", Value::Object(split)) => of_split(split)?,
        ("dataframe_split", _) => {
            return Err(Problem::bad("`dataframe_split` is no object with columns and data"));
        }
        ("dataframe_records" | "instances", Value::Array(rows)) if rows.iter().all(Value::is_object) => {
            of_records(form, rows)?
        }
        ("dataframe_records", _) => return Err(Problem::bad("`dataframe_records` is no list of objects")),
        (_, Value::Array(rows)) if rows.iter().all(Value::is_array) => {
            of_rows(form, served.column_names().map(str::to_owned).collect(), rows)?
        }
        (_, Value::Object(columns)) => of_columns(form, columns)?,
        _ => return Err(Problem::bad(format!("`{form}` is no list of rows and no object of columns"))),
    };
    Ok((columns, asked))
}

fn of_split(mut split: Map<String, Value>) -> Result<Columns, Problem> {
    let Some(Value::Array(names)) = split.remove("columns") else {
        return Err(Problem::bad("`dataframe_split` has no list of `columns`"));
    };
    let name = |(i, name): (usize, Value)| match name {
        Value::String(name) => Ok(name),
        other => Err(Problem::bad(format!(
            "`dataframe_split`: column {} is called {other}, which is no text",
            i + 1
        ))),
    };
    let names = names.into_iter().enumerate().map(name).collect::<Result<Vec<_>, _>>()?;
    let Some(Value::Array(rows)) = split.remove("data") else {
        return Err(Problem::bad("`dataframe_split` has no list of rows called `data`"));
    };
    of_rows("dataframe_split", names, rows)
}

fn of_rows(form: &str, names: Vec<String>, rows: Vec<Value>) -> Result<Columns, Problem> {
    let mut columns: Columns = names.into_iter().map(|name| (name, Vec::with_capacity(rows.len()))).collect();
    for (i, row) in rows.into_iter().enumerate() {
        let Value::Array(cells) = row else {
            return Err(Problem::bad(format!("`{form}`: row {} is no list", i + 1)).row(i + 1));
        };
        if cells.len() != columns.len() {
            let text =
                format!("`{form}`: row {} has {} values for {} columns", i + 1, cells.len(), columns.len());
            return Err(Problem::bad(text).row(i + 1));
        }
        for ((name, column), value) in columns.iter_mut().zip(cells) {
            column.push(cell(name, i, value)?);
        }
    }
    Ok(columns)
}

/// A column that a record lacks has a missing cell there.
fn of_records(form: &str, rows: Vec<Value>) -> Result<Columns, Problem> {
    let mut columns = Columns::new();
    let n = rows.len();
    for (i, row) in rows.into_iter().enumerate() {
        let Value::Object(record) = row else {
            return Err(Problem::bad(format!("`{form}`: row {} is no object", i + 1)).row(i + 1));
        };
        // Records of one table have their keys in one order: the next column is nearly always the one that is meant.
        for (at, (key, value)) in record.into_iter().enumerate() {
            let known = if columns.get(at).is_some_and(|(name, _)| *name == key) {
                Some(at)
            } else {
                columns.iter().position(|(name, _)| *name == key)
            };
            let k = known.unwrap_or_else(|| {
                let mut cells = Vec::with_capacity(n);
                cells.resize(i, Cell::Missing);
                columns.push((key.clone(), cells));
                columns.len() - 1
            });
            let cell = cell(&key, i, value)?;
            columns[k].1.push(cell);
        }
        for (_, cells) in &mut columns {
            cells.resize(i + 1, Cell::Missing);
        }
    }
    Ok(columns)
}

fn of_columns(form: &str, columns: Map<String, Value>) -> Result<Columns, Problem> {
    let mut read = Columns::new();
    for (name, values) in columns {
        let Value::Array(values) = values else {
            return Err(Problem::bad(format!("`{form}`: column `{name}` is no list")).column(&name));
        };
        let cells = values.into_iter().enumerate().map(|(i, value)| {
            // A column of shape [n, 1], as tensors have it.
            let value = match value {
                Value::Array(mut one) if one.len() == 1 => one.remove(0),
                other => other,
            };
            cell(&name, i, value)
        });
        let cells = cells.collect::<Result<Vec<_>, _>>()?;
        read.push((name, cells));
    }
    Ok(read)
}

fn cell(name: &str, i: usize, value: Value) -> Result<Cell, Problem> {
    Cell::of(value).map_err(|what| {
        Problem::bad(format!("row {}, column `{name}`: {what}, where one value is needed", i + 1))
            .column(name)
            .row(i + 1)
    })
}
