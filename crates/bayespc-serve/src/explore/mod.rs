//! What the page asks of a model: what it is, what it says of a row, how that changes along each column, and which rows
//! of a table it is least sure of.

mod curves;
mod density;
mod drivers;
mod row;
mod rows;

use axum::Json;
use axum::extract::{Path, Query, Request, State};
use axum::response::Response;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::app::{App, json_response};
use crate::cells::{Cell, Columns};
use crate::oip;
use crate::problem::Problem;
use crate::request::{Asked, LEVEL};
use crate::served::Served;

/// All models, in a line each.
pub async fn models(State(app): State<App>) -> Json<Value> {
    let line = |served: &Served| {
        json!({
            "name": served.name,
            "version": served.version,
            "task": task(served),
            "targets": served.targets,
            "columns": served.columns.len(),
            "rows": served.model.n_seen(),
            "data": served.data,
        })
    };
    Json(json!({ "models": app.registry().all().iter().map(|served| line(served)).collect::<Vec<_>>() }))
}

fn task(served: &Served) -> &'static str {
    if served.is_classifier() { "classification" } else { "regression" }
}

/// A model with its columns.
pub async fn model(State(app): State<App>, Path(name): Path<String>) -> Result<Json<Value>, Problem> {
    let served = app.model(&name)?;
    Ok(Json(json!({
        "name": served.name,
        "version": served.version,
        "task": task(&served),
        "targets": served.targets,
        "classes": served.classes,
        "data": served.data,
        "rows": served.model.n_seen(),
        "networks": served.model.members().len(),
        "columns": served.columns,
        "level": LEVEL,
        "ood_reference": if served.model.reference().is_some() { "epistemic variance of the rows learned from" } else { "distance of the inputs" },
        "warnings": served.model.warnings(),
        "protocol": oip::describe(&served),
    })))
}

/// A row, and what to look at.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RowRequest {
    row: Map<String, Value>,
    level: Option<f64>,
    /// Which target, or which class; by default the first target, the likeliest class.
    of: Option<usize>,
    /// Along which columns; by default all.
    columns: Option<Vec<String>>,
}

impl RowRequest {
    fn parse(served: &Served, body: &[u8]) -> Result<Self, Problem> {
        let request: Self = serde_json::from_slice(body)
            .map_err(|error| Problem::bad(format!("the body is no request for a row: {error}")))?;
        let most = served.model.n_targets();
        if let Some(of) = request.of.filter(|of| *of >= most) {
            return Err(Problem::bad(format!("`of` is {of}, and there are {most} targets or classes"))
                .value(of.to_string()));
        }
        Ok(request)
    }

    fn asked(&self) -> Result<Asked, Problem> {
        let mut parameters = Map::new();
        if let Some(level) = self.level {
            parameters.insert("level".to_owned(), json!(level));
        }
        Asked::of(Some(&parameters))
    }

    /// The row's cells, by column.
    fn cells(&self) -> Result<Vec<(String, Cell)>, Problem> {
        let cell = |(name, value): (&String, &Value)| {
            let cell = Cell::of(value.clone()).map_err(|what| {
                Problem::bad(format!("column `{name}`: {what}, where one value is needed")).column(name)
            })?;
            Ok((name.clone(), cell))
        };
        self.row.iter().map(cell).collect()
    }

    fn columns(&self) -> Result<Columns, Problem> {
        Ok(self.cells()?.into_iter().map(|(name, cell)| (name, vec![cell])).collect())
    }
}

/// Read the body and compute, each in its turn: what all of the following do.
async fn answered(
    app: App,
    name: &str,
    request: Request,
    answer: impl FnOnce(&Served, &[u8]) -> Result<(Response, Vec<f64>), Problem> + Send + 'static,
) -> Result<Response, Problem> {
    let served = app.model(name)?;
    let (_, body) = app.body(request).await?;
    let asked = served.clone();
    app.compute(&served, body, move |body| answer(&asked, body)).await
}

/// What a model says of a row.
pub async fn row(
    State(app): State<App>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    answered(app, &name, request, |served, body| {
        let (value, ood) = row::row(served, &RowRequest::parse(served, body)?)?;
        Ok((json_response(&value), ood))
    })
    .await
}

/// How what a model says of a row changes along each column.
pub async fn curves(
    State(app): State<App>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    answered(app, &name, request, |served, body| {
        let value = curves::curves(served, &RowRequest::parse(served, body)?)?;
        // Rows that nobody has are not counted.
        Ok((json_response(&value), Vec::new()))
    })
    .await
}

/// Which columns make a prediction what it is.
pub async fn drivers(
    State(app): State<App>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    answered(app, &name, request, |served, body| {
        let value = drivers::drivers(served, &RowRequest::parse(served, body)?)?;
        Ok((json_response(&value), Vec::new()))
    })
    .await
}

/// How a table is to be answered.
#[derive(Deserialize)]
pub struct TableQuery {
    level: Option<String>,
    format: Option<String>,
}

/// Predictions for a table in CSV, least sure first; or all of them as CSV.
pub async fn rows(
    State(app): State<App>,
    Path(name): Path<String>,
    Query(query): Query<TableQuery>,
    request: Request,
) -> Result<Response, Problem> {
    answered(app, &name, request, move |served, body| {
        let parameters = Asked::default().with_level(query.level.as_deref())?;
        rows::rows(served, body, &parameters, query.format.as_deref())
    })
    .await
}
