//! All paths in the words of OpenAPI 3.1, with the columns of the models that are served.

use axum::Json;
use axum::extract::State;
use serde_json::{Map, Value, json};

use crate::app::App;
use crate::columns::{ColumnInfo, Values};
use crate::output::Output;
use crate::served::Served;

pub async fn document(State(app): State<App>) -> Json<Value> {
    let served = app.registry().all();
    let names: Vec<&str> = served.iter().map(|served| served.name.as_str()).collect();
    let mut schemas = schemas();
    for served in &served {
        schemas.insert(format!("Row.{}", served.name), row(served));
        schemas.insert(format!("Prediction.{}", served.name), prediction(served));
    }
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "bayespc serve",
            "version": env!("CARGO_PKG_VERSION"),
            "summary": "Predictions that say how sure they are, and why not",
            "license": { "name": "MIT OR Apache-2.0", "identifier": "MIT OR Apache-2.0" },
        },
        "paths": paths(&served, &names),
        "components": { "schemas": schemas },
    });
    if app.options().token.is_some() {
        document["components"]["securitySchemes"] =
            json!({ "token": { "type": "http", "scheme": "bearer" } });
        document["security"] = json!([{ "token": [] }]);
    }
    Json(document)
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn in_json(schema: &Value) -> Value {
    json!({ "application/json": { "schema": schema } })
}

/// An operation with its answers: what was asked for, and what can go wrong.
fn operation(id: &str, summary: &str, answer: &Value) -> Value {
    json!({
        "operationId": id,
        "summary": summary,
        "responses": {
            "200": { "description": "The answer", "content": in_json(answer) },
            "default": { "description": "What is wrong", "content": in_json(&reference("Problem")) },
        },
    })
}

/// The same with a body, and what a body can bring about.
fn with_body(mut operation: Value, content: &Value) -> Value {
    operation["requestBody"] = json!({ "required": true, "content": content });
    for (status, description) in [
        ("400", "The request is wrong; the culprit is named"),
        ("413", "The body is too long"),
        ("503", "Too many requests at once, or too much work in one; Retry-After says when to come back"),
    ] {
        operation["responses"][status] =
            json!({ "description": description, "content": in_json(&reference("Problem")) });
    }
    operation
}

fn paths(served: &[std::sync::Arc<Served>], names: &[&str]) -> Value {
    let model = json!({ "name": "model", "in": "path", "required": true, "schema": { "type": "string", "enum": names } });
    let version =
        json!({ "name": "version", "in": "path", "required": true, "schema": { "type": "string" } });
    let level = json!({
        "name": "level", "in": "query", "description": "Probability of the interval",
        "schema": { "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1, "default": 0.9 },
    });
    let any = json!({ "type": "object" });
    let of_model = |mut operation: Value| {
        operation["parameters"] = json!([model]);
        operation
    };
    let infer = |id: &str| {
        with_body(
            operation(id, "Predict tensors", &reference("InferenceResponse")),
            &in_json(&reference("InferenceRequest")),
        )
    };
    let versioned = |mut operation: Value| {
        operation["parameters"] = json!([model, version]);
        operation
    };
    let rows: Vec<Value> = names.iter().map(|name| reference(&format!("Row.{name}"))).collect();
    let predictions: Vec<Value> = names.iter().map(|name| reference(&format!("Prediction.{name}"))).collect();
    let mut invocations = with_body(
        operation(
            "invocations",
            "Predict rows, in the protocol of MLflow",
            &json!({
                "type": "object",
                "properties": { "predictions": { "type": "array", "items": { "anyOf": predictions } } },
            }),
        ),
        &json!({
            "application/json": { "schema": {
                "type": "object",
                "properties": {
                    "dataframe_split": any,
                    "dataframe_records": { "type": "array", "items": { "anyOf": rows } },
                    "instances": { "type": "array" },
                    "inputs": any,
                    "params": reference("Parameters"),
                },
            } },
            "text/csv": { "schema": { "type": "string" } },
        }),
    );
    let which = json!({ "name": "model", "in": "query", "required": served.len() > 1, "schema": { "type": "string", "enum": names } });
    invocations["parameters"] = json!([which, level]);
    let row_body = in_json(&reference("RowRequest"));
    let mut table = with_body(
        operation("exploreTable", "Predict a table, least sure rows first", &any),
        &json!({ "text/csv": { "schema": { "type": "string" } } }),
    );
    let format =
        json!({ "name": "format", "in": "query", "schema": { "type": "string", "enum": ["json", "csv"] } });
    table["parameters"] = json!([model, level, format]);
    json!({
        "/v2": { "get": operation("serverMetadata", "Name and version of the server", &any) },
        "/v2/health/live": { "get": operation("live", "Whether the server runs", &any) },
        "/v2/health/ready": { "get": operation("ready", "Whether it takes requests", &any) },
        "/v2/models/{model}": { "get": of_model(operation("modelMetadata", "What a model takes and gives", &any)) },
        "/v2/models/{model}/ready": { "get": of_model(operation("modelReady", "Whether a model is served", &any)) },
        "/v2/models/{model}/infer": { "post": of_model(infer("infer")) },
        "/v2/models/{model}/versions/{version}": {
            "get": versioned(operation("versionMetadata", "What a version of a model takes and gives", &any))
        },
        "/v2/models/{model}/versions/{version}/ready": {
            "get": versioned(operation("versionReady", "Whether a version is served", &any))
        },
        "/v2/models/{model}/versions/{version}/infer": { "post": versioned(infer("versionInfer")) },
        "/invocations": { "post": invocations },
        "/ping": { "get": plain("ping", "Whether the server runs") },
        "/health": { "get": plain("health", "Whether the server runs") },
        "/version": { "get": plain("version", "Version of the server") },
        "/api/models": { "get": operation("exploreModels", "All models", &any) },
        "/api/models/{model}": { "get": of_model(operation("exploreModel", "A model with its columns", &any)) },
        "/api/models/{model}/row": {
            "post": of_model(with_body(operation("exploreRow", "One row, with its density", &any), &row_body))
        },
        "/api/models/{model}/curves": {
            "post": of_model(with_body(operation("exploreCurves", "A prediction along each column", &any), &row_body))
        },
        "/api/models/{model}/drivers": {
            "post": of_model(with_body(operation("exploreDrivers", "Which columns drive a prediction", &any), &row_body))
        },
        "/api/models/{model}/table": { "post": table },
    })
}

fn plain(id: &str, summary: &str) -> Value {
    json!({
        "operationId": id,
        "summary": summary,
        "responses": { "200": { "description": "Yes", "content": { "text/plain": { "schema": { "type": "string" } } } } },
    })
}

/// Schemas that do not depend on a model.
fn schemas() -> Map<String, Value> {
    let text = json!({ "type": "string" });
    let probability = json!({ "type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1 });
    let extents = json!({ "type": "array", "items": { "type": "integer", "minimum": 0 } });
    let tensor = json!({
        "type": "object",
        "required": ["name", "shape", "datatype", "data"],
        "properties": {
            "name": text,
            "shape": extents,
            "datatype": { "type": "string", "enum": [
                "BOOL", "UINT8", "UINT16", "UINT32", "UINT64", "INT8", "INT16", "INT32", "INT64",
                "FP16", "FP32", "FP64", "BYTES",
            ] },
            "data": { "type": "array", "description": "Row-major, flat or nested; null is a missing value" },
        },
    });
    let all = json!({
        "Problem": {
            "type": "object",
            "properties": {
                "error": text,
                "column": text,
                "row": { "type": "integer", "minimum": 1 },
                "value": text,
            },
        },
        "Parameters": {
            "type": "object",
            "properties": {
                "level": probability,
                "quantiles": { "type": "array", "items": probability },
                "unseen": { "type": "string", "enum": ["allow", "refuse"], "default": "refuse" },
            },
        },
        "Tensor": tensor,
        "InferenceRequest": {
            "type": "object",
            "required": ["inputs"],
            "properties": {
                "id": text,
                "parameters": reference("Parameters"),
                "inputs": { "type": "array", "items": reference("Tensor") },
                "outputs": { "type": "array", "items": {
                    "type": "object", "required": ["name"], "properties": { "name": text },
                } },
            },
        },
        "InferenceResponse": {
            "type": "object",
            "required": ["model_name", "model_version", "outputs"],
            "properties": {
                "model_name": text,
                "model_version": text,
                "id": text,
                "outputs": { "type": "array", "items": reference("Tensor") },
            },
        },
        "RowRequest": {
            "type": "object",
            "required": ["row"],
            "properties": {
                "row": { "type": "object" },
                "level": probability,
                "of": { "type": "integer", "minimum": 0, "description": "Which target, or which class" },
                "columns": { "type": "array", "items": text },
            },
        },
    });
    if let Value::Object(all) = all { all } else { Map::new() }
}

/// A row of a model.
fn row(served: &Served) -> Value {
    let property = |column: &ColumnInfo| {
        let mut schema = match &column.values {
            Values::Number { .. } => json!({ "type": ["number", "null"] }),
            Values::Bool { .. } => json!({ "type": ["boolean", "null"] }),
            Values::Category { .. } | Values::Time { .. } | Values::Text => {
                json!({ "type": ["string", "null"] })
            }
        };
        schema["examples"] = json!([column.typical]);
        (column.name.clone(), schema)
    };
    json!({
        "type": "object",
        "required": served.column_names().collect::<Vec<_>>(),
        "properties": served.columns.iter().map(property).collect::<Map<_, _>>(),
    })
}

/// What a model says of a row.
fn prediction(served: &Served) -> Value {
    let names = Output::all(served).iter().map(|output| output.name()).collect::<Vec<_>>().join(", ");
    json!({ "type": "object", "description": format!("Outputs by name: {names}; one key for each target, class and level") })
}
