//! The server under load, on loopback: one row per request at a steady rate, and many rows in one.
//!
//! Requests are due at fixed times whether or not earlier ones are answered, and the time of an answer counts from when
//! its request was due: a server that falls behind is not spared. Server and clients share the machine.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail};
use bayespc::{Mat, Model, ModelSettings, Samples};
use bayespc_cli::progress::bar;
use bayespc_serve::{Event, ModelFile, Options, Shutdown};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt, SeedableRng};
use serde_json::json;

use crate::{BenchArgs, Outcome, table};

const COLUMNS: usize = 20;
/// Networks of the ensemble.
const NETWORKS: usize = 5;
/// Rows they learn from.
const LEARNED: usize = 512;
/// Connections that requests go over in turn.
const CONNECTIONS: usize = 8;
/// Requests before the clock counts.
const WARM_UP: usize = 50;

/// Run the benchmark.
pub fn run(args: &BenchArgs) -> Result<Outcome> {
    let (rate, seconds) = (args.rate, args.seconds);
    let rows = args.rows.unwrap_or(100_000);
    let folder = tempfile::tempdir()?;
    let path = folder.path().join("bench.safetensors");
    std::fs::write(&path, model()?.to_bytes()?)?;
    let server = Server::start(ModelFile { name: "bench".to_owned(), path })?;
    let mut one = Connection::open(server.address)?;
    for _ in 0..WARM_UP {
        one.ask(&request(1, 0))?;
    }
    let bar = bar("serve", (rate * seconds) as u64);
    let mut times = load(server.address, rate, seconds, &bar)?;
    bar.finish_and_clear();
    times.sort_by(f64::total_cmp);
    let at = |p: f64| times[((p * times.len() as f64) as usize).min(times.len() - 1)];
    let (p50, p99, most) = (at(0.5), at(0.99), at(1.0));
    let body = request(rows, 1);
    let start = Instant::now();
    let answer = one.ask(&body)?;
    let whole = start.elapsed().as_secs_f64();
    server.stop()?;
    let text = format!(
        "serve: {NETWORKS} networks of {COLUMNS} columns, on loopback beside the clients\n\n{}",
        table(
            &["", "", ""],
            &[
                vec!["one row each".to_owned(), format!("{rate} requests/s, {seconds} s"), String::new()],
                vec!["  p50".to_owned(), format!("{:.2} ms", 1e3 * p50), String::new()],
                vec!["  p99".to_owned(), format!("{:.2} ms", 1e3 * p99), "goal: below 10".to_owned()],
                vec!["  longest".to_owned(), format!("{:.2} ms", 1e3 * most), String::new()],
                vec![
                    format!("{rows} rows in one"),
                    format!("{whole:.2} s"),
                    format!("{:.1} MB in, {:.1} out", body.len() as f64 / 1e6, answer as f64 / 1e6)
                ],
            ]
        )
    );
    let json = json!({
        "networks": NETWORKS, "columns": COLUMNS, "rate": rate, "seconds": seconds, "requests": times.len(),
        "p50_ms": 1e3 * p50, "p99_ms": 1e3 * p99, "max_ms": 1e3 * most,
        "batch_rows": rows, "batch_seconds": whole, "batch_bytes": body.len(), "answer_bytes": answer,
    });
    Ok(Outcome { json, text })
}

/// An ensemble that has seen some data.
fn model() -> Result<Model> {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    let x = Mat::from_fn(COLUMNS, LEARNED, |_, _| rng.random_range(-1.7..1.7_f64));
    let y = Mat::from_fn(1, LEARNED, |_, j| (x[(0, j)] * x[(1, j)]).sin());
    let mut settings = ModelSettings { members: NETWORKS, ..ModelSettings::fast() };
    settings.training.epochs = 5;
    Ok(Model::fit(&Samples::new(&x, &y)?, &settings)?)
}

/// A request for so many rows in the Open Inference Protocol.
fn request(rows: usize, seed: u64) -> Vec<u8> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let data: Vec<String> =
        (0..rows * COLUMNS).map(|_| format!("{:.3}", rng.random_range(-1.7..1.7_f64))).collect();
    let body = format!(
        "{{\"inputs\":[{{\"name\":\"X\",\"datatype\":\"FP64\",\"shape\":[{rows},{COLUMNS}],\"data\":[{}]}}]}}",
        data.join(",")
    );
    let head = format!(
        "POST /v2/models/bench/infer HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    [head.into_bytes(), body.into_bytes()].concat()
}

/// A server in a thread of this process.
struct Server {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: std::thread::JoinHandle<Result<(), bayespc_serve::Error>>,
}

impl Server {
    fn start(file: ModelFile) -> Result<Self> {
        let (tell, hear) = mpsc::channel();
        let listener = move |event: &Event| {
            if let Event::Listening { address, .. } = event {
                // Nobody hears it only if the benchmark has ended.
                let _ = tell.send(*address);
            }
        };
        let options = Options { port: 0, listener: Some(Arc::new(listener)), ..Options::default() };
        let stop = Arc::new(AtomicBool::new(false));
        let asked = stop.clone();
        let thread = std::thread::spawn(move || {
            bayespc_serve::serve(&[file], options, || {
                if asked.load(Ordering::Relaxed) { Shutdown::Now } else { Shutdown::No }
            })
        });
        let address = hear.recv_timeout(Duration::from_secs(30)).context("the server does not start")?;
        Ok(Self { address, stop, thread })
    }

    fn stop(self) -> Result<()> {
        self.stop.store(true, Ordering::Relaxed);
        match self.thread.join() {
            Ok(result) => Ok(result?),
            Err(_) => bail!("the server broke down"),
        }
    }
}

/// A connection that is kept open.
struct Connection {
    stream: TcpStream,
    reader: BufReader<TcpStream>,
}

impl Connection {
    fn open(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(60)))?;
        let reader = BufReader::new(stream.try_clone()?);
        Ok(Self { stream, reader })
    }

    /// Send a request and read its whole answer; gives the length of the answer's body.
    fn ask(&mut self, request: &[u8]) -> Result<usize> {
        self.stream.write_all(request)?;
        let mut line = String::new();
        self.reader.read_line(&mut line)?;
        let status = line.trim().to_owned();
        let mut length = 0;
        loop {
            line.clear();
            self.reader.read_line(&mut line)?;
            if let Some((name, value)) = line.split_once(':')
                && name.eq_ignore_ascii_case("content-length")
            {
                length = value.trim().parse()?;
            }
            if line.trim().is_empty() {
                break;
            }
        }
        let mut body = vec![0; length];
        self.reader.read_exact(&mut body)?;
        if status != "HTTP/1.1 200 OK" {
            bail!("{status}: {}", String::from_utf8_lossy(&body));
        }
        Ok(length)
    }
}

/// Seconds from when each request was due to its answer.
fn load(address: SocketAddr, rate: usize, seconds: usize, bar: &indicatif::ProgressBar) -> Result<Vec<f64>> {
    let body = request(1, 2);
    let start = Instant::now() + Duration::from_millis(20);
    let total = rate * seconds;
    std::thread::scope(|scope| {
        let client = |first: usize| {
            let body = &body;
            scope.spawn(move || -> Result<Vec<f64>> {
                let mut connection = Connection::open(address)?;
                let mut times = Vec::with_capacity(total / CONNECTIONS + 1);
                for k in (first..total).step_by(CONNECTIONS) {
                    let due = start + Duration::from_secs_f64(k as f64 / rate as f64);
                    std::thread::sleep(due.saturating_duration_since(Instant::now()));
                    connection.ask(body)?;
                    times.push(due.elapsed().as_secs_f64());
                    bar.inc(1);
                }
                Ok(times)
            })
        };
        let clients: Vec<_> = (0..CONNECTIONS).map(client).collect();
        let mut all = Vec::with_capacity(total);
        for client in clients {
            match client.join() {
                Ok(times) => all.extend(times?),
                Err(_) => bail!("a client broke down"),
            }
        }
        Ok(all)
    })
}
