//! Which path leads where, and what handlers share.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use axum::Router;
use axum::body::{Bytes, to_bytes};
use axum::extract::{MatchedPath, Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde::Serialize;
use tokio::time::timeout;

use crate::error::Error;
use crate::event::Event;
use crate::file::ModelFile;
use crate::guard::{self, Guard};
use crate::metrics::Metrics;
use crate::options::Options;
use crate::problem::Problem;
use crate::registry::Registry;
use crate::served::Served;
use crate::work::{Admitted, Work};
use crate::{explore, mlflow, oip, openapi, page};

/// What handlers share.
#[derive(Clone)]
pub struct App(Arc<Shared>);

struct Shared {
    registry: Registry,
    options: Options,
    work: Work,
    guard: Guard,
    metrics: Metrics,
    stopping: AtomicBool,
}

impl App {
    /// Read the model files.
    pub fn new(models: &[ModelFile], options: Options) -> Result<Self, Error> {
        let registry = Registry::load(models)?;
        let metrics = Metrics::new(&registry);
        let work = Work::new(options.computations, options.queue, options.timeout);
        let guard = Guard::new(options.token.as_deref(), options.host.is_loopback() && !options.allow_anyone);
        Ok(Self(Arc::new(Shared {
            registry,
            options,
            work,
            guard,
            metrics,
            stopping: AtomicBool::new(false),
        })))
    }

    pub(crate) fn registry(&self) -> &Registry {
        &self.0.registry
    }

    pub(crate) fn options(&self) -> &Options {
        &self.0.options
    }

    pub(crate) fn guard(&self) -> &Guard {
        &self.0.guard
    }

    pub(crate) fn metrics(&self) -> &Metrics {
        &self.0.metrics
    }

    /// No longer ready: whoever sends requests here should send them elsewhere.
    pub(crate) fn stop(&self) {
        self.0.stopping.store(true, Ordering::Release);
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::Acquire)
    }

    /// The model of this name.
    pub(crate) fn model(&self, name: &str) -> Result<Arc<Served>, Problem> {
        self.0.registry.find(name)
    }

    /// The model, where there is but one.
    pub(crate) fn only_model(&self) -> Result<Arc<Served>, Problem> {
        let names = self.0.registry.names();
        match &names[..] {
            [name] => self.model(name),
            _ => Err(Problem::bad(format!("say which model: ?model= one of {}", names.join(", ")))),
        }
    }

    /// The head and body of a request, which must find room, not be too long and arrive in time.
    pub(crate) async fn body(&self, request: Request) -> Result<(HeaderMap, Body), Problem> {
        let admitted = self.0.work.admit()?;
        let most = self.0.options.max_body;
        let too_long = || {
            let message = format!("the body is longer than {most} bytes: send fewer rows at a time");
            Problem::new(StatusCode::PAYLOAD_TOO_LARGE, message)
        };
        let (head, body) = request.into_parts();
        let said = head
            .headers
            .get(header::CONTENT_LENGTH)
            .and_then(|length| length.to_str().ok()?.parse::<u64>().ok());
        if said.is_some_and(|length| length > most as u64) {
            return Err(too_long());
        }
        match timeout(self.0.options.timeout, to_bytes(body, most)).await {
            Ok(Ok(bytes)) => Ok((head.headers, Body { bytes, admitted })),
            Ok(Err(error)) if is_length(&error) => Err(too_long()),
            Ok(Err(error)) => Err(Problem::bad(format!("the body did not arrive: {error}"))),
            Err(_) => Err(Problem::new(StatusCode::REQUEST_TIMEOUT, "the body did not arrive in time")),
        }
    }

    /// Compute an answer from a body, and count the rows by how unlike the training rows they are.
    pub(crate) async fn compute(
        &self,
        served: &Arc<Served>,
        body: Body,
        answer: impl FnOnce(&Bytes) -> Result<(Response, Vec<f64>), Problem> + Send + 'static,
    ) -> Result<Response, Problem> {
        let Body { bytes, admitted } = body;
        let (response, ood) = self.0.work.run(admitted, move || answer(&bytes)).await??;
        self.0.metrics.predicted(served, &ood);
        Ok(response)
    }

    /// The text of the metrics.
    pub(crate) fn metrics_text(&self) -> String {
        self.0.metrics.text(&self.0.registry, self.0.work.inside())
    }
}

/// A body that has arrived, and its place inside.
pub struct Body {
    bytes: Bytes,
    admitted: Admitted,
}

fn is_length(error: &axum::Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if error.to_string().contains("length limit exceeded") {
            return true;
        }
        cause = error.source();
    }
    false
}

/// An answer in JSON.
pub fn json_response(value: &impl Serialize) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => {
            ([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))], bytes).into_response()
        }
        Err(error) => Problem::defect(&error.to_string()).into_response(),
    }
}

/// All paths.
pub fn router(app: App) -> Router {
    let versions = |suffix: &str| format!("/v2/models/{{model}}/versions/{{version}}{suffix}");
    Router::new()
        .route("/", get(page::index))
        .route("/page/{file}", get(page::file))
        .route("/login", post(guard::login))
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
        .layer(middleware::from_fn_with_state(app.clone(), guard::check))
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
    response
}
