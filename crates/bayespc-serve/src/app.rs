//! What handlers share: models, room, metrics, and the way of a request's body.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use axum::body::{Bytes, to_bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use tokio::time::timeout;

use crate::error::Error;
use crate::file::ModelFile;
use crate::guard::Guard;
use crate::metrics::Metrics;
use crate::options::Options;
use crate::problem::Problem;
use crate::registry::Registry;
use crate::served::Served;
use crate::work::{Admitted, Work};

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
