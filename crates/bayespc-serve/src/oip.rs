//! Open Inference Protocol v2 over HTTP: what is served, what a model takes and gives, and inference.
//!
//! A model of a table takes one tensor per column, of shape [n]: numbers, booleans, or BYTES for text and dates. A model
//! of an array takes one tensor `X` of shape [n, d], as does every model whose columns are all numbers. Tensors are lists
//! in row-major order, flat or nested; the binary extension is not offered.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use bayespc_data::Kind;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::answer::{Answer, answer};
use crate::app::{App, json_response};
use crate::cells::{Cell, Columns, table};
use crate::nearest::nearest;
use crate::output::Output;
use crate::problem::Problem;
use crate::request::Asked;
use crate::served::Served;

/// The tensor of all columns.
const WHOLE: &str = "X";

/// Header of requests in the binary extension.
const BINARY: &str = "inference-header-content-length";

/// Types that a tensor may have.
const DATATYPES: [&str; 13] = [
    "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64", "FP16", "FP32", "FP64",
    "BYTES",
];

pub async fn server() -> Json<Value> {
    Json(json!({ "name": "bayespc", "version": env!("CARGO_PKG_VERSION"), "extensions": [] }))
}

pub async fn live() -> Json<Value> {
    Json(json!({ "live": true }))
}

pub async fn ready(State(app): State<App>) -> (StatusCode, Json<Value>) {
    let (status, ready) = readiness(&app);
    (status, Json(json!({ "ready": ready })))
}

/// 503 from the order to stop on, also while requests are still answered.
fn readiness(app: &App) -> (StatusCode, bool) {
    if app.is_stopping() { (StatusCode::SERVICE_UNAVAILABLE, false) } else { (StatusCode::OK, true) }
}

/// `name`, or `name` and `version`.
#[derive(Deserialize)]
pub struct ModelPath {
    model: String,
    version: Option<String>,
}

impl ModelPath {
    fn find(&self, app: &App) -> Result<std::sync::Arc<Served>, Problem> {
        let served = app.model(&self.model)?;
        match &self.version {
            Some(version) if *version != served.version => Err(Problem::missing(format!(
                "model `{}` has no version `{version}`: {} is served",
                served.name, served.version
            ))),
            _ => Ok(served),
        }
    }
}

pub async fn model_ready(
    State(app): State<App>,
    Path(path): Path<ModelPath>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let served = path.find(&app)?;
    let (status, ready) = readiness(&app);
    Ok((status, Json(json!({ "name": served.name, "ready": ready }))))
}

pub async fn metadata(State(app): State<App>, Path(path): Path<ModelPath>) -> Result<Json<Value>, Problem> {
    Ok(Json(describe(&*path.find(&app)?)))
}

/// What a model takes and gives.
pub fn describe(served: &Served) -> Value {
    // What a request decides is −1.
    let extent = |extent: Option<usize>| extent.map_or_else(|| json!(-1), |extent| json!(extent));
    let shape =
        |output: &Output| std::iter::once(None).chain(output.extents(served)).map(extent).collect::<Vec<_>>();
    let inputs: Vec<Value> = if served.is_array {
        vec![json!({ "name": WHOLE, "datatype": "FP64", "shape": [-1, served.encoding.features.len()] })]
    } else {
        let column = |feature: &bayespc_data::FeatureColumn| json!({ "name": feature.name, "datatype": datatype(feature.kind()), "shape": [-1] });
        served.encoding.features.iter().map(column).collect()
    };
    let output = |output: &Output| json!({ "name": output.name(), "datatype": output.datatype(), "shape": shape(output) });
    json!({
        "name": served.name,
        "versions": [served.version],
        "platform": "bayespc",
        "inputs": inputs,
        "outputs": Output::all(served).iter().map(output).collect::<Vec<_>>(),
        "parameters": { "targets": served.targets, "classes": served.classes },
    })
}

fn datatype(kind: Kind) -> &'static str {
    match kind {
        Kind::Number(_) => "FP64",
        Kind::Bool => "BOOL",
        Kind::Text | Kind::Time(_) => "BYTES",
    }
}

pub async fn infer(
    State(app): State<App>,
    Path(path): Path<ModelPath>,
    request: axum::extract::Request,
) -> Result<Response, Problem> {
    let served = path.find(&app)?;
    let (headers, body) = app.body(request).await?;
    let asked = served.clone();
    app.compute(&served, body, move |body| infer_now(&asked, &headers, body)).await
}

#[derive(Deserialize)]
struct InferRequest {
    id: Option<String>,
    parameters: Option<Map<String, Value>>,
    inputs: Vec<Tensor>,
    outputs: Option<Vec<Wanted>>,
}

#[derive(Deserialize)]
struct Tensor {
    name: String,
    shape: Vec<usize>,
    datatype: String,
    parameters: Option<Map<String, Value>>,
    data: Option<Value>,
}

#[derive(Deserialize)]
struct Wanted {
    name: String,
    parameters: Option<Map<String, Value>>,
}

fn infer_now(served: &Served, headers: &HeaderMap, body: &Bytes) -> Result<(Response, Vec<f64>), Problem> {
    if headers.contains_key(BINARY) {
        return Err(no_binary("the request"));
    }
    let request: InferRequest = serde_json::from_slice(body)
        .map_err(|error| Problem::bad(format!("the body is no inference request: {error}")))?;
    let mut asked = Asked::of(request.parameters.as_ref())?;
    if let Some(outputs) = &request.outputs {
        let has = |wanted: &Wanted, key: &str| {
            wanted.parameters.as_ref().is_some_and(|parameters| parameters.contains_key(key))
        };
        if let Some(wanted) = outputs.iter().find(|wanted| has(wanted, "classification")) {
            return Err(Problem::bad(format!(
                "output `{}`: the classification extension is not offered",
                wanted.name
            )));
        }
        let named = outputs.iter().map(|wanted| Output::named(served, &wanted.name));
        asked.outputs = Some(named.collect::<Result<_, _>>()?);
    }
    let columns = columns(served, request.inputs)?;
    let rows = served.rows(&table(served, &columns)?, asked.unseen)?;
    let Answer { quantities, ood } = answer(served, &rows.features, &asked)?;
    let mut reply = Reply {
        model_name: &served.name,
        model_version: &served.version,
        id: request.id,
        parameters: Map::new(),
        outputs: &quantities,
    };
    if !rows.warnings.is_empty() {
        reply.parameters.insert("warnings".to_owned(), json!(rows.warnings));
    }
    Ok((json_response(&reply), ood))
}

#[derive(serde::Serialize)]
struct Reply<'a> {
    model_name: &'a str,
    model_version: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<String>,
    #[serde(skip_serializing_if = "Map::is_empty")]
    parameters: Map<String, Value>,
    outputs: &'a [crate::answer::Quantity],
}

fn no_binary(what: &str) -> Problem {
    Problem::bad(format!(
        "{what} has binary tensors, which are not offered: send them as JSON (in tritonclient, binary_data=False)"
    ))
}

/// The tensors of a request as columns of a table.
fn columns(served: &Served, tensors: Vec<Tensor>) -> Result<Columns, Problem> {
    let d = served.encoding.features.len();
    if let [whole] = &tensors[..]
        && !served.column_names().any(|name| name == whole.name)
        && whole.shape.len() == 2
    {
        if !served.is_numeric() {
            let text = "takes a tensor per column, since not all of its columns are numbers";
            return Err(Problem::bad(format!("model `{}` {text}", served.name)).column(&whole.name));
        }
        if whole.shape[1] != d {
            return Err(Problem::bad(format!(
                "input `{}` has shape {:?}: the model has {d} columns, so it must be [n, {d}]",
                whole.name, whole.shape
            ))
            .column(&whole.name));
        }
        let n = whole.shape[0];
        let cells = cells(tensors.into_iter().next().ok_or_else(|| Problem::defect("no tensor"))?)?;
        let mut columns: Columns =
            served.column_names().map(|name| (name.to_owned(), Vec::with_capacity(n))).collect();
        for (i, cell) in cells.into_iter().enumerate() {
            columns[i % d].1.push(cell);
        }
        return Ok(columns);
    }
    let mut columns = Columns::new();
    let mut n_rows: Option<(String, usize)> = None;
    for tensor in tensors {
        let name = tensor.name.clone();
        if !served.column_names().any(|column| column == name) {
            let meant = nearest(&name, served.column_names())
                .map_or_else(String::new, |meant| format!(": is `{meant}` meant?"));
            let needs = served.column_names().collect::<Vec<_>>().join(", ");
            return Err(Problem::bad(format!(
                "the model has no input `{name}`{meant} (its inputs: {needs})"
            ))
            .column(&name));
        }
        if !matches!(tensor.shape[..], [_] | [_, 1]) {
            return Err(Problem::bad(format!(
                "input `{name}` has shape {:?}: a column has [n] or [n, 1]",
                tensor.shape
            ))
            .column(&name));
        }
        let n = tensor.shape[0];
        match &n_rows {
            Some((first, expected)) if *expected != n => {
                return Err(Problem::bad(format!("input `{name}` has {n} rows, `{first}` has {expected}"))
                    .column(&name));
            }
            _ => n_rows = Some((name.clone(), n)),
        }
        columns.push((name, cells(tensor)?));
    }
    Ok(columns)
}

/// The values of a tensor, in row-major order, checked against its shape and type.
fn cells(tensor: Tensor) -> Result<Vec<Cell>, Problem> {
    let name = &tensor.name;
    if tensor.parameters.is_some_and(|parameters| parameters.contains_key("binary_data_size")) {
        return Err(no_binary(&format!("input `{name}`")));
    }
    if !DATATYPES.contains(&tensor.datatype.as_str()) {
        return Err(
            Problem::bad(format!("input `{name}`: there is no datatype `{}`", tensor.datatype)).column(name)
        );
    }
    let Some(data) = tensor.data else {
        return Err(Problem::bad(format!("input `{name}` has no data")).column(name));
    };
    let expected = tensor.shape.iter().try_fold(1_usize, |product, &extent| product.checked_mul(extent));
    let mut flat = Vec::new();
    flatten(data, &tensor.shape, 0, &mut flat).map_err(|what| {
        Problem::bad(format!("input `{name}`: {what}, which its shape {:?} does not have", tensor.shape))
            .column(name)
    })?;
    if expected != Some(flat.len()) {
        return Err(Problem::bad(format!(
            "input `{name}` has {} values, its shape {:?} has another number",
            flat.len(),
            tensor.shape
        ))
        .column(name));
    }
    let inner = tensor.shape.get(1).copied().unwrap_or(1).max(1);
    let check = |(i, value): (usize, Value)| {
        let fits = match (tensor.datatype.as_str(), &value) {
            ("FP16" | "FP32" | "FP64", Value::Number(_))
            | ("BOOL", Value::Bool(_))
            | ("BYTES", Value::String(_))
            // A missing value, whatever the others are.
            | (_, Value::Null) => true,
            (datatype, Value::Number(x)) if datatype.contains("INT") => x.is_i64() || x.is_u64(),
            _ => false,
        };
        // Only if it is needed: there may be millions of values.
        let wrong = |text: String| {
            let row = i / inner + 1;
            Problem::bad(format!("input `{name}`, row {row}: {text} is not of datatype {}", tensor.datatype))
                .column(name)
                .row(row)
                .value(text)
        };
        if fits {
            Cell::of(value).map_err(|what| wrong(what.to_owned()))
        } else {
            Err(wrong(value.to_string()))
        }
    };
    flat.into_iter().enumerate().map(check).collect()
}

/// Appends what is in a list, flat or nested as the shape says.
fn flatten(data: Value, shape: &[usize], depth: usize, into: &mut Vec<Value>) -> Result<(), String> {
    let Value::Array(list) = data else {
        return Err(if depth == 0 {
            "its data is no list".to_owned()
        } else {
            "lists and values beside each other".to_owned()
        });
    };
    if !list.first().is_some_and(Value::is_array) {
        if depth > 0 && (depth + 1 != shape.len() || list.len() != shape[depth]) {
            return Err(format!("a list of {} values {depth} deep", list.len()));
        }
        if list.iter().any(Value::is_array) {
            return Err("lists and values beside each other".to_owned());
        }
        into.extend(list);
        return Ok(());
    }
    if depth >= shape.len() || list.len() != shape[depth] {
        return Err(format!("a list of {} lists {depth} deep", list.len()));
    }
    list.into_iter().try_for_each(|inner| flatten(inner, shape, depth + 1, into))
}
