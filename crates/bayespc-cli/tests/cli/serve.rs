//! `bayespc serve`: what it refuses, what it answers, how it ends.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{QUICK, Sandbox, flats};

#[test]
fn what_cannot_be_served_is_an_error_with_a_reason() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    sandbox.ok(&format!("fit flats.csv --target rent --search off --out m.safetensors {QUICK}"));
    sandbox.fails("serve m.safetensors --host 0.0.0.0", 2, &["--token-file", "--allow-anyone"]);
    sandbox.fails("serve m.safetensors m.safetensors", 2, &["two models are called `m`"]);
    sandbox.fails("serve none.safetensors", 1, &["none.safetensors"]);
    sandbox.fails("serve flats.csv", 1, &["flats.csv is not a model"]);
    sandbox.fails("serve m.safetensors --timeout 0", 2, &["--timeout"]);
    sandbox.fails("serve m.safetensors --max-body 0", 2, &["--max-body"]);
    for delay in ["-1", "nan", "1e9"] {
        sandbox.fails(&format!("serve m.safetensors --drain-delay={delay}"), 2, &["--drain-delay", "3600"]);
    }
    sandbox.write("short", "abc\n");
    sandbox.fails("serve m.safetensors --token-file short", 2, &["short", "at least 8"]);
    sandbox.fails("serve m.safetensors --token-file none", 1, &["none"]);
}

#[cfg(unix)]
#[test]
fn it_answers_with_a_token_and_ends_well_after_a_signal() {
    let sandbox = Sandbox::new();
    sandbox.write("flats.csv", flats(60));
    sandbox.ok(&format!("fit flats.csv --target rent --search off --out m.safetensors {QUICK}"));
    sandbox.write("token", "a long secret\nand a second line\n");
    let mut running = sandbox
        .command("serve m.safetensors --port 0 --token-file token --log json")
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(running.stderr.take().unwrap());
    let mut line = String::new();
    lines.read_line(&mut line).unwrap();
    let event: serde_json::Value = serde_json::from_str(&line).unwrap();
    let ask = |token: &str| {
        let mut stream = TcpStream::connect(event["address"].as_str().unwrap()).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        write!(stream, "GET /v2/models/m HTTP/1.1\r\nhost: x\r\nconnection: close\r\nauthorization: Bearer {token}\r\n\r\n")
            .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    };
    assert!(ask("a long secret").starts_with("HTTP/1.1 200"), "{line}");
    assert!(ask("a guess").starts_with("HTTP/1.1 401"));
    assert!(Command::new("kill").args(["-TERM", &running.id().to_string()]).status().unwrap().success());
    assert_eq!(running.wait().unwrap().code(), Some(0));
    let mut rest = String::new();
    lines.read_to_string(&mut rest).unwrap();
    assert!(rest.contains("\"event\":\"request\"") && rest.contains("\"event\":\"stopping\""), "{rest}");
    assert!(!rest.contains("secret"));
}
