//! Which path leads where.

use std::time::Instant;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};

use crate::app::App;
use crate::event::Event;
use crate::problem::Problem;
use crate::{entrance, explore, mlflow, oip, openapi, page};

/// All paths.
pub fn router(app: App) -> Router {
    let versions = |suffix: &str| format!("/v2/models/{{model}}/versions/{{version}}{suffix}");
    Router::new()
        .route("/", get(page::index))
        .route("/page/{file}", get(page::file))
        .route("/login", post(entrance::login))
        .route("/v2", get(oip::server))
        .route("/v2/", get(oip::server))
        .route("/v2/health/live", get(oip::live))
        .route("/v2/health/ready", get(oip::ready))
        .route("/v2/models/{model}", get(oip::metadata))
        .route(&versions(""), get(oip::metadata))
        .route("/v2/models/{model}/ready", get(oip::model_ready))
        .route(&versions("/ready"), get(oip::model_ready))
        .route("/v2/models/{model}/infer", post(oip::infer))
        .route(&versions("/infer"), post(oip::infer))
        .route("/ping", get(mlflow::ping))
        .route("/health", get(mlflow::ping))
        .route("/version", get(mlflow::version))
        .route("/invocations", post(mlflow::invocations))
        .route("/openapi.json", get(openapi::document))
        .route("/api/models", get(explore::models))
        .route("/api/models/{model}", get(explore::model))
        .route("/api/models/{model}/row", post(explore::row))
        .route("/api/models/{model}/curves", post(explore::curves))
        .route("/api/models/{model}/drivers", post(explore::drivers))
        .route("/api/models/{model}/table", post(explore::rows))
        .fallback(nothing)
        .method_not_allowed_fallback(wrong_method)
        .layer(middleware::from_fn_with_state(app.clone(), entrance::check))
        .layer(middleware::from_fn_with_state(app.clone(), observe))
        .with_state(app)
}

/// Paths of the metrics, which have a port of their own.
pub fn metrics_router(app: App) -> Router {
    async fn metrics(State(app): State<App>) -> impl IntoResponse {
        ([(header::CONTENT_TYPE, crate::metrics::CONTENT_TYPE)], app.metrics_text())
    }
    Router::new().route("/metrics", get(metrics)).fallback(nothing).with_state(app)
}

async fn nothing(request: Request) -> Problem {
    Problem::missing(format!("there is nothing at {}: /openapi.json lists all paths", request.uri().path()))
}

async fn wrong_method(request: Request) -> Problem {
    let message = format!("{} does not take {}", request.uri().path(), request.method());
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, message)
}

/// Counts and tells what was answered.
async fn observe(State(app): State<App>, request: Request, next: Next) -> Response {
    let start = Instant::now();
    // The pattern, not the path: names that lead nowhere must not become a time series each.
    let route = request.extensions().get::<MatchedPath>().map_or("other", MatchedPath::as_str).to_owned();
    let (method, path) = (request.method().to_string(), request.uri().path().to_owned());
    let mut response = next.run(request).await;
    let time = start.elapsed();
    let status = response.status().as_u16();
    app.metrics().answered(&route, status, time);
    app.options().tell(&Event::Request { method, path, status, milliseconds: 1e3 * time.as_secs_f64() });
    response.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    if app.is_stopping() {
        // A kept connection would be closed between two requests: its client is to take another one now.
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    response
}
