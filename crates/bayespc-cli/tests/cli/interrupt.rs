//! Ctrl-C and SIGTERM: the command ends soon, with the exit code of a shell, and leaves files as they were.

use std::io::{Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::support::{QUICK, Sandbox, flats};

/// So long the command works before it is told to stop.
const WORK: Duration = Duration::from_secs(1);
/// So long it may take to end, on a busy machine.
pub const END: Duration = Duration::from_secs(20);
/// So many epochs would not end within anybody's life.
const LONG: &str = "--target rent --set training.epochs=10000000 --set network.hidden_layer_sizes=[8]";

/// A command that is ended whatever happens to the test.
pub struct Running(Child);

impl Running {
    /// Start a command with a signal handled in one of `env`'s ways: whoever runs the tests may ignore it.
    pub fn start(sandbox: &Sandbox, way: &str, line: &str) -> Self {
        let command = sandbox.command(line);
        let mut wrapped = Command::new("env");
        wrapped.arg(way).arg(command.get_program()).args(command.get_args());
        for (key, value) in command.get_envs() {
            match value {
                Some(value) => wrapped.env(key, value),
                None => wrapped.env_remove(key),
            };
        }
        wrapped
            .current_dir(command.get_current_dir().unwrap())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        Self(wrapped.spawn().unwrap())
    }

    pub fn signal(&self, signal: &str) {
        let sent = Command::new("kill").args([signal, &self.0.id().to_string()]).status().unwrap();
        assert!(sent.success());
    }

    /// The exit code, if it ends in time.
    pub fn code_within(&mut self, limit: Duration) -> Option<i32> {
        let start = Instant::now();
        while start.elapsed() < limit {
            if let Some(status) = self.0.try_wait().unwrap() {
                return Some(status.code().expect("an exit code, not the death by a signal"));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

impl Running {
    /// Write to its standard input.
    pub fn feed(&mut self, text: &str) {
        self.0.stdin.as_mut().unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// Close its standard input.
    pub fn end_of_input(&mut self) {
        drop(self.0.stdin.take());
    }

    /// The next line on standard error.
    pub fn stderr_line(&mut self) -> String {
        // A buffer would take bytes of the lines behind it.
        let (stderr, mut line, mut byte) = (self.0.stderr.as_mut().unwrap(), Vec::new(), [0]);
        while stderr.read(&mut byte).unwrap() == 1 && byte != *b"\n" {
            line.extend(byte);
        }
        String::from_utf8(line).unwrap()
    }

    /// What it has said on standard error, once it has ended.
    pub fn stderr(&mut self) -> String {
        let mut text = String::new();
        self.0.stderr.take().unwrap().read_to_string(&mut text).unwrap();
        text
    }

    /// End it as a loss of power would.
    pub fn kill(mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // It has ended already, or it must.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_fit_that_is_interrupted_ends_soon_and_changes_no_file() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(200));
    sandbox.write("m.safetensors", "old");
    for (way, signal, search, code) in [
        ("--default-signal=INT", "-INT", "off", 130),
        ("--default-signal=TERM", "-TERM", "off", 143),
        // The search does not ask whether to stop.
        ("--default-signal=INT", "-INT", "auto", 130),
    ] {
        let line = format!("fit flats.csv {LONG} --search {search} --out m.safetensors --report r.html");
        let mut running = Running::start(&sandbox, way, &line);
        std::thread::sleep(WORK);
        assert_eq!(running.code_within(Duration::ZERO), None, "{line} ended by itself");
        assert_eq!(
            sandbox.files(),
            ["flats.csv", "m.safetensors"],
            "{line}: a draft before there is content"
        );
        running.signal(signal);
        assert_eq!(running.code_within(END), Some(code), "{line}");
        assert_eq!(sandbox.files(), ["flats.csv", "m.safetensors"], "{line}");
        assert_eq!(sandbox.read("m.safetensors"), b"old");
    }
}

#[test]
fn a_half_written_file_goes_away() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(200));
    sandbox.ok(&format!("fit flats.csv --target rent --out m.safetensors {QUICK}"));
    let line = "predict m.safetensors flats.csv --method monte-carlo --draws 100000 --out p.csv";
    let mut running = Running::start(&sandbox, "--default-signal=INT", line);
    std::thread::sleep(WORK);
    assert_eq!(sandbox.files_with(".part").len(), 1);
    // The second signal ends it at once.
    running.signal("-INT");
    std::thread::sleep(Duration::from_millis(100));
    let second = Instant::now();
    running.signal("-INT");
    assert_eq!(running.code_within(END), Some(130));
    assert!(second.elapsed() < Duration::from_millis(800), "{:?}", second.elapsed());
    assert_eq!(sandbox.files(), ["flats.csv", "m.safetensors"]);
}

#[test]
fn a_background_job_that_ignores_the_keyboard_goes_on() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(200));
    let line = format!("fit flats.csv {LONG} --search off");
    let mut running = Running::start(&sandbox, "--ignore-signal=INT", &line);
    std::thread::sleep(WORK);
    running.signal("-INT");
    assert_eq!(running.code_within(Duration::from_millis(1500)), None);
    running.signal("-TERM");
    assert_eq!(running.code_within(END), Some(143));
}
