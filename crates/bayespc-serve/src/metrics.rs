//! What monitoring asks: counts and times, in the text format of Prometheus.

use std::fmt::Write as _;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::Registry as Metered;

use crate::registry::{Change, Registry};
use crate::served::Served;

/// Type of the text.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Answered {
    route: String,
    status: u16,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Route {
    route: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfModel {
    model: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Version {
    model: String,
    version: String,
}

#[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
struct Reload {
    model: String,
    result: &'static str,
}

/// Everything that is counted.
#[derive(Clone)]
pub struct Metrics {
    registry: Arc<Mutex<Metered>>,
    requests: Family<Answered, Counter>,
    seconds: Family<Route, Histogram>,
    rows: Family<OfModel, Counter>,
    unlike: Family<OfModel, Counter>,
    reloads: Family<Reload, Counter>,
    versions: Family<Version, Gauge>,
    inside: Gauge,
}

impl Metrics {
    pub fn new(models: &Registry) -> Self {
        // From half a millisecond to a quarter of a minute.
        fn times() -> Histogram {
            Histogram::new(exponential_buckets(0.0005, 2.0, 16))
        }
        let metrics = Self {
            registry: Arc::default(),
            requests: Family::default(),
            seconds: Family::new_with_constructor(times),
            rows: Family::default(),
            unlike: Family::default(),
            reloads: Family::default(),
            versions: Family::default(),
            inside: Gauge::default(),
        };
        let mut registry = Metered::with_prefix("bayespc");
        registry.register("requests", "Answered requests", metrics.requests.clone());
        registry.register("request_seconds", "Time from a request to its answer", metrics.seconds.clone());
        registry.register("rows", "Rows predicted", metrics.rows.clone());
        registry.register(
            "unlike_rows",
            "Rows predicted whose ood_score is above 1: less like the rows learned from than nearly all of those",
            metrics.unlike.clone(),
        );
        registry.register("reloads", "Model files that have changed", metrics.reloads.clone());
        registry.register("model_info", "Versions that are served", metrics.versions.clone());
        registry.register("requests_inside", "Requests that wait or are computed", metrics.inside.clone());
        *metrics.registry.lock().unwrap_or_else(PoisonError::into_inner) = registry;
        for served in models.all() {
            metrics.serves(&served);
        }
        metrics
    }

    fn serves(&self, served: &Served) {
        let version = Version { model: served.name.clone(), version: served.version.clone() };
        self.versions.get_or_create(&version).set(1);
    }

    /// A request was answered.
    pub fn answered(&self, route: &str, status: u16, time: Duration) {
        self.requests.get_or_create(&Answered { route: route.to_owned(), status }).inc();
        self.seconds.get_or_create(&Route { route: route.to_owned() }).observe(time.as_secs_f64());
    }

    /// Rows were predicted.
    pub fn predicted(&self, served: &Served, ood: &[f64]) {
        let model = OfModel { model: served.name.clone() };
        self.rows.get_or_create(&model).inc_by(ood.len() as u64);
        self.unlike.get_or_create(&model).inc_by(ood.iter().filter(|score| **score > 1.0).count() as u64);
    }

    /// A file has changed.
    pub fn changed(&self, change: &Change) {
        let (model, result) = match change {
            Change::Replaced(served) => {
                self.versions.clear();
                (served.name.clone(), "replaced")
            }
            Change::Refused(model, _) => (model.clone(), "refused"),
        };
        self.reloads.get_or_create(&Reload { model, result }).inc();
    }

    /// The text that Prometheus reads.
    pub fn text(&self, models: &Registry, inside: usize) -> String {
        self.inside.set(i64::try_from(inside).unwrap_or(i64::MAX));
        for served in models.all() {
            self.serves(&served);
        }
        let mut text = String::new();
        let registry = self.registry.lock().unwrap_or_else(PoisonError::into_inner);
        if encode(&mut text, &registry).is_err() {
            // Writing into memory does not fail.
            let _ = writeln!(text, "# EOF");
        }
        text
    }
}
