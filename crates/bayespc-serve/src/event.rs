//! What a server has to tell whoever runs it.

use std::fmt;
use std::net::SocketAddr;

use serde::Serialize;

/// Something that has happened. Its [`Display`](fmt::Display) is a line for people; serde gives one for machines.
#[derive(Clone, Debug, Serialize)]
#[serde(tag = "event", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Event {
    /// The server listens.
    Listening {
        /// Where.
        address: SocketAddr,
        /// Where it tells its metrics.
        metrics: Option<SocketAddr>,
        /// The models it serves.
        models: Vec<String>,
    },
    /// A request was answered.
    Request {
        /// GET, POST …
        method: String,
        /// Path, without what follows a question mark.
        path: String,
        /// Status of the answer.
        status: u16,
        /// From the last byte of the request's head to the first of the answer.
        milliseconds: f64,
    },
    /// A model file has changed, and the new model is served.
    Replaced {
        /// Name of the model.
        model: String,
        /// Its new version.
        version: String,
    },
    /// A model file has changed and cannot be used; the old model is still served.
    Refused {
        /// Name of the model.
        model: String,
        /// Why.
        error: String,
    },
    /// The server is no longer ready, and still answers requests for the drain delay.
    Draining {
        /// The drain delay.
        seconds: f64,
    },
    /// The server takes no more requests and finishes those it has.
    Stopping {
        /// Connections that are still open.
        open: usize,
    },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Listening { address, metrics, models } => {
                write!(f, "serving {} on http://{address}", models.join(", "))?;
                metrics.map_or(Ok(()), |metrics| write!(f, ", metrics on http://{metrics}/metrics"))
            }
            Self::Request { method, path, status, milliseconds } => {
                write!(f, "{method} {path} {status} {milliseconds:.1} ms")
            }
            Self::Replaced { model, version } => {
                write!(f, "model `{model}`: its file has changed; version {version} is served now")
            }
            Self::Refused { model, error } => {
                write!(
                    f,
                    "model `{model}`: its file has changed and cannot be used, the old one is still served: {error}"
                )
            }
            Self::Draining { seconds } => {
                write!(
                    f,
                    "draining: not ready, requests are still answered for {seconds} s; another signal ends this"
                )
            }
            Self::Stopping { open } => {
                write!(f, "stopping: {open} open connections finish what they have")
            }
        }
    }
}
