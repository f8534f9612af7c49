//! `bayespc serve`: models over HTTP, and a page for people.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use bayespc_serve::{Error, Event, Listener, ModelFile, Options, Shutdown};
use clap::{Args, ValueEnum};

use crate::failure::usage;
use crate::output::note;
use crate::{interrupt, threads};

/// Shortest token that is taken for one.
const LEAST_TOKEN: usize = 8;

/// Longest drain delay, in seconds.
const MOST_DELAY: f64 = 3600.0;

/// Serve models over HTTP.
#[derive(Args, Debug)]
#[command(after_help = "Examples:
  bayespc serve rent.safetensors
  bayespc serve rent.safetensors wine=models/wine-3.safetensors --port 8000
  bayespc serve rent.safetensors --host 0.0.0.0 --token-file token --metrics-port 9100 --log json

Then open http://127.0.0.1:8080 in a browser, or ask by program:
  curl http://127.0.0.1:8080/invocations -H 'content-type: text/csv' --data-binary @new-flats.csv
  curl http://127.0.0.1:8080/v2/models/rent/infer -d '{\"inputs\": [{\"name\": \"size\", \"datatype\": \"FP64\", \"shape\": [1], \"data\": [70]}, …]}'

It speaks the Open Inference Protocol v2 (/v2/models/NAME/infer, as KServe, Triton and MLServer do) and MLflow's
protocol (/invocations); /openapi.json lists all paths. A model file that is replaced is served from then on; one
that cannot be used is not.

SIGTERM and Ctrl-C close the port and finish the requests in progress. Behind a load balancer, as in Kubernetes:
  bayespc serve rent.safetensors --host 0.0.0.0 --token-file token --drain-delay 10
Then SIGTERM makes /v2/health/ready and /v2/models/NAME/ready answer 503 for 10 seconds, in which all other requests
are answered, on new connections too, before the port is closed. A second signal ends the delay. Ctrl-C starts none.")]
pub struct ServeArgs {
    /// Model files that `bayespc fit` or Python's `save` wrote, as FILE or NAME=FILE
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<OsString>,
    /// Address to listen on; others than this machine reach it only if this says so
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    host: IpAddr,
    /// Port to listen on; 0 takes any that is free
    #[arg(long, value_name = "N", default_value_t = 8080)]
    port: u16,
    /// File whose first line callers must know: `Authorization: Bearer TOKEN`
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,
    /// Let whoever reaches the address ask, without a token
    #[arg(long, conflicts_with = "token_file")]
    allow_anyone: bool,
    /// Tell Prometheus at /metrics of this port, on the same address
    #[arg(long, value_name = "N")]
    metrics_port: Option<u16>,
    /// What to log on standard error
    #[arg(long, value_enum, default_value_t = Log::Events)]
    log: Log,
    /// Largest request, in megabytes
    #[arg(long, value_name = "MB", default_value_t = 32)]
    max_body: usize,
    /// Requests that may wait; more are answered 503
    #[arg(long, value_name = "N", default_value_t = 64)]
    queue: usize,
    /// Seconds a request may take
    #[arg(long, value_name = "S", default_value_t = 30.0)]
    timeout: f64,
    /// Seconds from SIGTERM to the closing of the port, in which the server is not ready but answers
    #[arg(long, value_name = "SECONDS", default_value_t = 0.0)]
    drain_delay: f64,
    /// Computations at once, and threads of each; as many as there are cores if not given
    #[arg(long, value_name = "N")]
    threads: Option<usize>,
}

/// What to log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Log {
    /// Start, end and changes of models
    Events,
    /// Those and every request
    Requests,
    /// Everything, a JSON object in each line
    Json,
    /// Nothing
    Off,
}

/// Run the command.
pub fn run(args: &ServeArgs) -> Result<()> {
    threads::set(args.threads)?;
    if !(args.timeout > 0.0 && args.timeout <= 86_400.0) {
        return Err(usage(format!(
            "--timeout {}: give more than 0 and at most a day of seconds",
            args.timeout
        )));
    }
    if !(0.0..=MOST_DELAY).contains(&args.drain_delay) {
        return Err(usage(format!("--drain-delay {}: give 0 to {MOST_DELAY} seconds", args.drain_delay)));
    }
    if args.max_body == 0 || args.max_body > 1 << 20 {
        return Err(usage(format!("--max-body {}: give 1 to {} megabytes", args.max_body, 1 << 20)));
    }
    let models = args.models.iter().map(|text| ModelFile::parse(text)).collect::<Result<Vec<_>, _>>();
    let models = models.map_err(|error| usage(error.to_string()))?;
    let default = Options::default();
    let options = Options {
        host: args.host,
        port: args.port,
        metrics_port: args.metrics_port,
        token: args.token_file.as_deref().map(token).transpose()?,
        allow_anyone: args.allow_anyone,
        max_body: args.max_body << 20,
        computations: args.threads.unwrap_or(default.computations),
        queue: args.queue,
        timeout: Duration::from_secs_f64(args.timeout),
        drain_delay: Duration::from_secs_f64(args.drain_delay),
        listener: listener(args.log),
        ..default
    };
    // Whoever has a request open is given time to hear the answer.
    interrupt::drain(options.drain_delay);
    let shutdown = || match (interrupt::interrupted(), interrupt::drains()) {
        (false, _) => Shutdown::No,
        (true, true) => Shutdown::AfterDelay,
        (true, false) => Shutdown::Now,
    };
    bayespc_serve::serve(&models, options, shutdown).map_err(|error| match error {
        Error::Open { .. } | Error::SameName { .. } => usage(error.to_string()),
        other => other.into(),
    })
}

/// The first line of a file.
fn token(path: &Path) -> Result<String> {
    let text = std::fs::read_to_string(path)
        .with_context(|| format!("cannot read the token in {}", path.display()))?;
    let token = text.lines().next().unwrap_or_default().trim();
    if token.len() < LEAST_TOKEN {
        let name = path.display();
        return Err(usage(format!(
            "{name}: a token has at least {LEAST_TOKEN} letters, this one has {}",
            token.len()
        )));
    }
    Ok(token.to_owned())
}

fn listener(log: Log) -> Option<Listener> {
    let text = |event: &Event| note(&event.to_string());
    match log {
        Log::Off => None,
        Log::Requests => Some(Arc::new(text)),
        Log::Events => Some(Arc::new(move |event| {
            if !matches!(event, Event::Request { .. }) {
                text(event);
            }
        })),
        Log::Json => Some(Arc::new(|event| {
            let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
            if let Ok(serde_json::Value::Object(mut line)) = serde_json::to_value(event) {
                line.insert("time".to_owned(), now.as_secs_f64().into());
                note(&serde_json::Value::Object(line).to_string());
            }
        })),
    }
}
