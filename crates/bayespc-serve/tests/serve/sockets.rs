//! Over a socket: start and end, changed files, limits, metrics.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::{Arc, Mutex, mpsc};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use bayespc_serve::{Error, Event, ModelFile, Options, Shutdown, serve};

use crate::support::{Files, bytes, fitted, flats};

/// A server in a thread.
struct Running {
    address: SocketAddr,
    metrics: Option<SocketAddr>,
    shutdown: Arc<Mutex<Shutdown>>,
    thread: Option<JoinHandle<Result<(), Error>>>,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Running {
    fn start(models: Vec<ModelFile>, options: Options) -> Self {
        let (shutdown, events) = (Arc::new(Mutex::new(Shutdown::No)), Arc::new(Mutex::new(Vec::new())));
        let (tell, hear) = mpsc::channel();
        let listener = {
            let events = events.clone();
            move |event: &Event| {
                if let Event::Listening { address, metrics, .. } = event {
                    tell.send((*address, *metrics)).unwrap();
                }
                events.lock().unwrap().push(event.clone());
            }
        };
        let options = Options {
            port: 0,
            listener: Some(Arc::new(listener)),
            watch_every: Duration::from_millis(30),
            ..options
        };
        let asked = shutdown.clone();
        let thread = std::thread::spawn(move || serve(&models, options, || *asked.lock().unwrap()));
        let (address, metrics) = hear.recv_timeout(Duration::from_secs(20)).unwrap();
        Self { address, metrics, shutdown, thread: Some(thread), events }
    }

    /// Whole answer to a request, after which the connection is closed.
    fn ask(&self, head: &str, body: &str) -> String {
        let mut stream = self.connect();
        write!(
            stream,
            "{head}\r\nhost: localhost\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
            body.len()
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(self.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        stream
    }

    fn has(&self, wanted: impl Fn(&Event) -> bool) -> bool {
        self.events.lock().unwrap().iter().any(wanted)
    }

    fn wait_for(&self, wanted: impl Fn(&Event) -> bool) {
        let start = Instant::now();
        while !self.has(&wanted) {
            assert!(start.elapsed() < Duration::from_secs(20), "{:?}", self.events.lock().unwrap());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn shut_down(&self, how: Shutdown) {
        *self.shutdown.lock().unwrap() = how;
    }

    fn end(&mut self) -> Result<(), Error> {
        self.shut_down(Shutdown::Now);
        self.join()
    }

    fn join(&mut self) -> Result<(), Error> {
        self.thread.take().unwrap().join().unwrap()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if self.thread.is_some() {
            let _ = self.end();
        }
    }
}

const CSV: &str = "size,city,new,built\n50,Bern,true,03.05.2020\n";

#[test]
fn a_request_is_answered_counted_and_told() {
    let files = Files::new();
    let mut server =
        Running::start(files.models(&["rent"]), Options { metrics_port: Some(0), ..Options::default() });
    let answer = server.ask("POST /invocations HTTP/1.1\r\ncontent-type: text/csv", CSV);
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("\"mean\""), "{answer}");
    let far =
        server.ask("POST /invocations HTTP/1.1\r\ncontent-type: text/csv", &CSV.replace("50,", "50000,"));
    assert!(far.starts_with("HTTP/1.1 200 OK"), "{far}");
    server.ask("GET /nothing/here HTTP/1.1", "");
    server.wait_for(
        |event| matches!(event, Event::Request { path, status: 200, .. } if path == "/invocations"),
    );
    let mut stream = TcpStream::connect(server.metrics.unwrap()).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    for line in [
        "bayespc_requests_total{route=\"/invocations\",status=\"200\"} 2",
        "bayespc_requests_total{route=\"other\",status=\"404\"} 1",
        "bayespc_rows_total{model=\"rent\"} 2",
        "bayespc_unlike_rows_total{model=\"rent\"} 1",
        "bayespc_model_info{model=\"rent\",version=",
        "bayespc_request_seconds_bucket{le=",
        "# EOF",
    ] {
        assert!(text.contains(line), "no {line} in {text}");
    }
    assert!(server.end().is_ok());
    assert!(TcpStream::connect(server.address).is_err());
}

#[test]
fn a_changed_file_is_served_and_a_damaged_one_is_not() {
    let files = Files::new();
    let models = files.models(&["rent"]);
    let path = models[0].path.clone();
    let server = Running::start(models, Options::default());
    let mean = || {
        server
            .ask("POST /invocations HTTP/1.1\r\ncontent-type: text/csv", CSV)
            .split("\"mean\":")
            .nth(1)
            .unwrap()
            .split(',')
            .next()
            .unwrap()
            .to_owned()
    };
    let first = mean();
    std::fs::write(&path, &bytes("rent")[..1000]).unwrap();
    server.wait_for(|event| matches!(event, Event::Refused { model, .. } if model == "rent"));
    assert_eq!(mean(), first);
    // A model of other columns is a model too: renamed into place, as `bayespc fit` writes.
    let draft = files.path("draft");
    std::fs::write(&draft, fitted(&flats(60), &["rent"], true)).unwrap();
    std::fs::rename(&draft, &path).unwrap();
    server.wait_for(|event| matches!(event, Event::Replaced { .. }));
    assert_ne!(mean(), first);
    std::fs::remove_file(&path).unwrap();
    std::thread::sleep(Duration::from_millis(100));
    assert_ne!(mean(), first);
}

#[test]
fn what_was_begun_is_finished_after_the_order_to_stop() {
    let files = Files::new();
    let mut server = Running::start(files.models(&["rent"]), Options::default());
    // The head and half of the body arrive before the order, the rest after it.
    let mut stream = server.connect();
    let (half, rest) = CSV.split_at(20);
    write!(stream, "POST /invocations HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/csv\r\ncontent-length: {}\r\n\r\n{half}", CSV.len()).unwrap();
    let idle = server.connect();
    std::thread::sleep(Duration::from_millis(100));
    server.shut_down(Shutdown::AfterDelay);
    server.wait_for(|event| matches!(event, Event::Stopping { .. }));
    stream.write_all(rest.as_bytes()).unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 OK") && answer.contains("\"mean\""), "{answer}");
    assert!(server.end().is_ok());
    drop(idle);
}

#[test]
fn a_draining_server_is_not_ready_and_answers() {
    let files = Files::new();
    let options = Options { drain_delay: Duration::from_secs(600), ..Options::default() };
    let mut server = Running::start(files.models(&["rent"]), options);
    let status = |path: &str| server.ask(&format!("GET {path} HTTP/1.1"), "")[9..12].to_owned();
    let readiness = ["/v2/health/ready", "/v2/models/rent/ready"];
    assert_eq!(readiness.map(status), ["200", "200"]);
    let mut kept = server.connect();
    server.shut_down(Shutdown::AfterDelay);
    server.wait_for(|event| matches!(event, Event::Draining { .. }));
    // Each of these is a new connection.
    assert_eq!(readiness.map(status), ["503", "503"]);
    assert_eq!(["/v2/health/live", "/ping", "/v2/models/rent"].map(status), ["200", "200", "200"]);
    let answer = server.ask("POST /invocations HTTP/1.1\r\ncontent-type: text/csv", CSV);
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("\"mean\""), "{answer}");
    // A client that keeps its connection gets `connection: close`.
    write!(kept, "GET /v2 HTTP/1.1\r\nhost: localhost\r\n\r\n").unwrap();
    let mut answer = String::new();
    kept.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200") && answer.contains("connection: close"), "{answer}");
    assert!(!server.has(|event| matches!(event, Event::Stopping { .. })));
    assert!(server.end().is_ok());
    assert!(TcpStream::connect(server.address).is_err());
}

#[test]
fn a_draining_server_ends_when_the_delay_is_over() {
    const DELAY: Duration = Duration::from_secs(1);
    let files = Files::new();
    let options = Options { drain_delay: DELAY, ..Options::default() };
    let mut server = Running::start(files.models(&["rent"]), options);
    let start = Instant::now();
    server.shut_down(Shutdown::AfterDelay);
    assert!(server.join().is_ok());
    assert!(start.elapsed() >= DELAY);
}

#[test]
fn an_order_to_stop_at_once_ends_the_drain_delay() {
    let files = Files::new();
    let options = || Options { drain_delay: Duration::from_secs(600), ..Options::default() };
    let mut server = Running::start(files.models(&["rent"]), options());
    server.shut_down(Shutdown::AfterDelay);
    server.wait_for(|event| matches!(event, Event::Draining { .. }));
    assert!(server.end().is_ok());
    // Without a delay before it too.
    let mut server = Running::start(files.models(&["rent"]), options());
    assert!(server.end().is_ok());
    assert!(!server.has(|event| matches!(event, Event::Draining { .. })));
}

#[test]
fn a_body_that_does_not_arrive_and_a_full_server_are_answered() {
    let files = Files::new();
    let options =
        Options { timeout: Duration::from_millis(300), computations: 1, queue: 0, ..Options::default() };
    let server = Running::start(files.models(&["rent"]), options);
    let mut slow = server.connect();
    slow.write_all(b"POST /invocations HTTP/1.1\r\nhost: localhost\r\ncontent-type: text/csv\r\ncontent-length: 100\r\n\r\nsize").unwrap();
    std::thread::sleep(Duration::from_millis(100));
    let refused = server.ask("POST /invocations HTTP/1.1\r\ncontent-type: text/csv", CSV);
    assert!(refused.starts_with("HTTP/1.1 503") && refused.contains("retry-after: 1"), "{refused}");
    // Health needs no room.
    assert!(server.ask("GET /v2/health/live HTTP/1.1", "").starts_with("HTTP/1.1 200"));
    let mut answer = String::new();
    slow.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 408"), "{answer}");
    let again = server.ask("POST /invocations HTTP/1.1\r\ncontent-type: text/csv", CSV);
    assert!(again.starts_with("HTTP/1.1 200"), "{again}");
}

#[test]
fn what_cannot_be_served_is_said_at_once() {
    let files = Files::new();
    let models = files.models(&["rent"]);
    let start =
        |models: &[ModelFile], options: Options| serve(models, options, || Shutdown::Now).unwrap_err();
    let open = Options { host: [0, 0, 0, 0].into(), port: 0, ..Options::default() };
    assert!(matches!(start(&models, open), Error::Open { .. }));
    assert!(matches!(start(&[], Options::default()), Error::NoModels));
    let twice = [models[0].clone(), models[0].clone()];
    assert!(matches!(start(&twice, Options::default()), Error::SameName { .. }));
    let missing = ModelFile { name: "x".to_owned(), path: files.path("x.safetensors") };
    assert!(matches!(start(&[missing], Options::default()), Error::Read { .. }));
    std::fs::write(files.path("y.safetensors"), "no model").unwrap();
    let damaged = ModelFile { name: "y".to_owned(), path: files.path("y.safetensors") };
    assert!(matches!(start(&[damaged], Options::default()), Error::Model { .. }));
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    assert!(matches!(start(&models, Options { port, ..Options::default() }), Error::Listen { .. }));
    // With a token others may reach it.
    let guarded = Options {
        host: [0, 0, 0, 0].into(),
        port: 0,
        token: Some("secret of ours".to_owned()),
        ..Options::default()
    };
    assert!(serve(&models, guarded, || Shutdown::Now).is_ok());
}
