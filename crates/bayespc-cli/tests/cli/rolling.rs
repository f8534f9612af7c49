//! A rolling update: requests go on behind a proxy that follows readiness, as Kubernetes does, while one of two
//! servers is restarted.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use crate::interrupt::{END, Running};
use crate::support::{QUICK, Sandbox, flats};

/// Time between two readiness probes.
const PERIOD: Duration = Duration::from_millis(200);
/// Probes that fail before a server gets no more connections.
const THRESHOLD: usize = 2;
/// Drain delay in seconds: several times `PERIOD` × `THRESHOLD`, since the machine may be busy.
const DELAY: f64 = 6.0;

const BODY: &str = "size,age,city,new\n5,3,Bern,true\n";

fn sandbox() -> Sandbox {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    sandbox.ok(&format!("fit flats.csv --target rent --search off --out m.safetensors {QUICK}"));
    sandbox
}

/// A server and its address.
fn start(sandbox: &Sandbox, delay: f64) -> (Running, SocketAddr) {
    let line = format!("serve m.safetensors --port 0 --threads 1 --drain-delay {delay}");
    let mut running = Running::start(sandbox, "--default-signal=INT,TERM", &line);
    let line = running.stderr_line();
    let (_, address) = line.trim().split_once("http://").unwrap_or_else(|| panic!("no address in {line}"));
    (running, address.parse().unwrap())
}

fn connect(address: SocketAddr) -> std::io::Result<BufReader<TcpStream>> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(END))?;
    Ok(BufReader::new(stream))
}

/// Whether the answer to a request keeps the connection; none if there is no answer, or not 200.
fn ask(stream: &mut BufReader<TcpStream>, request: &str, body: &str, keep: bool) -> Option<bool> {
    let connection = if keep { "keep-alive" } else { "close" };
    let length = body.len();
    let head = format!("connection: {connection}\r\ncontent-type: text/csv\r\ncontent-length: {length}");
    let whole = format!("{request} HTTP/1.1\r\nhost: localhost\r\n{head}\r\n\r\n{body}");
    stream.get_mut().write_all(whole.as_bytes()).ok()?;
    let mut line = || {
        let mut line = String::new();
        stream.read_line(&mut line).ok()?;
        line.ends_with("\r\n").then(|| line.trim_end().to_lowercase())
    };
    if !line()?.starts_with("http/1.1 200") {
        return None;
    }
    let (mut length, mut keep) = (0, keep);
    loop {
        let header = line()?;
        match header.split_once(": ") {
            Some(("content-length", text)) => length = text.parse().ok()?,
            Some(("connection", text)) => keep = keep && text != "close",
            Some(_) => {}
            None => break,
        }
    }
    stream.read_exact(&mut vec![0; length]).ok()?;
    Some(keep)
}

/// A server behind the proxy.
struct Backend {
    address: SocketAddr,
    /// Probes that have failed since the last that succeeded.
    failed: usize,
}

/// Two servers behind a proxy.
struct Service {
    backends: Mutex<[Backend; 2]>,
    proxy: TcpListener,
    ends: AtomicBool,
    answered: AtomicUsize,
    failed: AtomicUsize,
}

impl Service {
    fn ends(&self) -> bool {
        self.ends.load(Ordering::Relaxed)
    }

    fn is_ready(&self, which: usize) -> bool {
        self.backends.lock().unwrap()[which].failed < THRESHOLD
    }

    fn probe(&self) {
        while !self.ends() {
            for which in 0..2 {
                let address = self.backends.lock().unwrap()[which].address;
                let ready = connect(address)
                    .is_ok_and(|mut stream| ask(&mut stream, "GET /v2/health/ready", "", false).is_some());
                let backend = &mut self.backends.lock().unwrap()[which];
                if backend.address == address {
                    backend.failed = if ready { 0 } else { backend.failed + 1 };
                }
            }
            thread::sleep(PERIOD);
        }
    }

    /// Hand connections to ready servers, in turn; a connection that is refused is closed.
    fn forward(&self) {
        let mut turn = 0;
        while let Ok((client, _)) = self.proxy.accept() {
            if self.ends() {
                return;
            }
            turn += 1;
            let which = if self.is_ready(turn % 2) { turn % 2 } else { (turn + 1) % 2 };
            let address = self.backends.lock().unwrap()[which].address;
            let Ok(server) = TcpStream::connect(address) else { continue };
            let copy = |mut from: TcpStream, mut to: TcpStream| {
                thread::spawn(move || {
                    let _ = std::io::copy(&mut from, &mut to);
                    let _ = to.shutdown(Shutdown::Both);
                })
            };
            copy(client.try_clone().unwrap(), server.try_clone().unwrap());
            copy(server, client);
        }
    }

    fn requests(&self, keep: bool) {
        let address = self.proxy.local_addr().unwrap();
        let mut kept = None;
        while !self.ends() {
            let mut stream = kept.take().unwrap_or_else(|| connect(address).unwrap());
            match ask(&mut stream, "POST /invocations", BODY, keep) {
                Some(keep) => {
                    kept = keep.then_some(stream);
                    self.answered.fetch_add(1, Ordering::Relaxed)
                }
                None => self.failed.fetch_add(1, Ordering::Relaxed),
            };
            thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Requests that were answered and that failed while one of two servers was restarted.
fn restart(delay: f64) -> (usize, usize) {
    let sandbox = sandbox();
    let ((mut old, first), (_other, second)) = (start(&sandbox, delay), start(&sandbox, delay));
    let service = Arc::new(Service {
        backends: Mutex::new([first, second].map(|address| Backend { address, failed: 0 })),
        proxy: TcpListener::bind("127.0.0.1:0").unwrap(),
        ends: AtomicBool::new(false),
        answered: AtomicUsize::new(0),
        failed: AtomicUsize::new(0),
    });
    let spawn = |work: fn(&Service)| {
        let service = service.clone();
        thread::spawn(move || work(&service))
    };
    let others = [Service::probe, Service::forward].map(|work: fn(&Service)| spawn(work));
    let clients: [fn(&Service); 4] = [
        |service| service.requests(true),
        |service| service.requests(true),
        |service| service.requests(false),
        |service| service.requests(false),
    ];
    let clients = clients.map(spawn);
    thread::sleep(Duration::from_millis(500));
    old.signal("-TERM");
    assert_eq!(old.code_within(END), Some(0));
    let (_new, address) = start(&sandbox, delay);
    service.backends.lock().unwrap()[0] = Backend { address, failed: THRESHOLD };
    let begun = Instant::now();
    while !service.is_ready(0) {
        assert!(begun.elapsed() < END, "the new server is not ready");
        thread::sleep(PERIOD);
    }
    thread::sleep(Duration::from_millis(500));
    service.ends.store(true, Ordering::Relaxed);
    for client in clients {
        client.join().unwrap();
    }
    // One connection more, so that the proxy sees the end.
    connect(service.proxy.local_addr().unwrap()).unwrap();
    for thread in others {
        thread.join().unwrap();
    }
    (service.answered.load(Ordering::Relaxed), service.failed.load(Ordering::Relaxed))
}

#[test]
fn no_request_fails_while_a_server_restarts_with_a_drain_delay() {
    let (answered, failed) = restart(DELAY);
    assert!(answered > 0 && failed == 0, "{failed} failed, {answered} answered");
    // The same without the delay: the proxy learns too late.
    let (answered, failed) = restart(0.0);
    assert!(answered > 0 && failed > 0, "{failed} failed, {answered} answered");
}

#[test]
fn a_second_signal_and_ctrl_c_do_not_wait_for_the_drain_delay() {
    let sandbox = sandbox();
    for signals in [&["-TERM", "-TERM"][..], &["-TERM", "-INT"], &["-INT"]] {
        let (mut server, address) = start(&sandbox, 600.0);
        // Half of a request: it is answered all the same.
        let mut begun = TcpStream::connect(address).unwrap();
        let head = format!("host: localhost\r\ncontent-type: text/csv\r\ncontent-length: {}", BODY.len());
        let (half, rest) = BODY.split_at(10);
        write!(begun, "POST /invocations HTTP/1.1\r\n{head}\r\n\r\n{half}").unwrap();
        thread::sleep(Duration::from_millis(500));
        for (i, signal) in signals.iter().enumerate() {
            server.signal(signal);
            let line = server.stderr_line();
            let draining = signals.len() == 2 && i == 0;
            assert_eq!(line.contains("draining: not ready"), draining, "{signals:?}: {line}");
            assert_eq!(line.contains("stopping: 1 open"), !draining, "{signals:?}: {line}");
        }
        begun.write_all(rest.as_bytes()).unwrap();
        let mut answer = String::new();
        begun.read_to_string(&mut answer).unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{signals:?}: {answer}");
        assert_eq!(server.code_within(END), Some(0), "{signals:?}");
    }
    // A third one ends the command although a request is open.
    let (mut server, address) = start(&sandbox, 600.0);
    let mut begun = TcpStream::connect(address).unwrap();
    write!(begun, "POST /invocations HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n").unwrap();
    thread::sleep(Duration::from_millis(500));
    for _ in 0..2 {
        server.signal("-TERM");
        server.stderr_line();
    }
    server.signal("-TERM");
    assert_eq!(server.code_within(Duration::from_secs(10)), Some(143));
}
