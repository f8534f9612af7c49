//! How to serve.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use crate::event::Event;

/// Whoever is told what happens.
pub type Listener = Arc<dyn Fn(&Event) + Send + Sync>;

/// How to serve.
#[derive(Clone)]
pub struct Options {
    /// Address to listen on; loopback by default.
    pub host: IpAddr,
    /// Port; 0 takes any that is free.
    pub port: u16,
    /// Port of the metrics, on the same address; none: no metrics are told.
    pub metrics_port: Option<u16>,
    /// What a caller must know; none: whoever reaches the port may ask.
    pub token: Option<String>,
    /// Whether an address that others can reach needs no token.
    pub allow_anyone: bool,
    /// Largest body of a request, in bytes.
    pub max_body: usize,
    /// Computations at once.
    pub computations: usize,
    /// Requests that may wait beside those being computed; more are told to come back later.
    pub queue: usize,
    /// How long a body may take to arrive, and a computation to be done.
    pub timeout: Duration,
    /// Time between "not ready" and the end of listening, in which load balancers send requests to other servers.
    pub drain_delay: Duration,
    /// How long open requests may take once the server no longer listens.
    pub grace: Duration,
    /// Open connections at most.
    pub connections: usize,
    /// Time between two looks at the model files.
    pub watch_every: Duration,
    /// Whoever is told what happens; nobody if there is none.
    pub listener: Option<Listener>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            host: Ipv4Addr::LOCALHOST.into(),
            port: 8080,
            metrics_port: None,
            token: None,
            allow_anyone: false,
            max_body: 32 << 20,
            computations: std::thread::available_parallelism().map_or(1, std::num::NonZero::get),
            queue: 64,
            timeout: Duration::from_secs(30),
            drain_delay: Duration::ZERO,
            grace: Duration::from_secs(30),
            connections: 1024,
            watch_every: Duration::from_secs(1),
            listener: None,
        }
    }
}

impl Options {
    /// Tell whoever wants to know.
    pub(crate) fn tell(&self, event: &Event) {
        if let Some(listener) = &self.listener {
            listener(event);
        }
    }
}

/// Without the token.
impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Options")
            .field("host", &self.host)
            .field("port", &self.port)
            .field("metrics_port", &self.metrics_port)
            .field("has_token", &self.token.is_some())
            .field("max_body", &self.max_body)
            .field("computations", &self.computations)
            .field("queue", &self.queue)
            .field("timeout", &self.timeout)
            .finish_non_exhaustive()
    }
}
