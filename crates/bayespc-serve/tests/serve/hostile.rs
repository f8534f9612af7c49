//! Whatever is sent: an answer with a reason, never a breakdown.

use bayespc_serve::Options;
use serde_json::{Value, json};

use crate::support::Server;

/// A generator that needs no crate: the tests only want variety that replays.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % n
    }
}

fn valid() -> Vec<(&'static str, Value)> {
    let row = json!({ "size": 50, "city": "Bern", "new": true, "built": "2020-05-03" });
    let tensor = |name: &str, kind: &str, data: Value| json!({ "name": name, "datatype": kind, "shape": [1], "data": [data] });
    let inputs = json!([
        tensor("size", "FP64", json!(50.5)),
        tensor("city", "BYTES", json!("Bern")),
        tensor("new", "BOOL", json!(true)),
        tensor("built", "BYTES", json!("2020-05-03")),
    ]);
    vec![
        (
            "/v2/models/rent/infer",
            json!({ "inputs": inputs, "outputs": [{ "name": "mean" }], "parameters": { "level": 0.5 } }),
        ),
        ("/invocations", json!({ "dataframe_records": [row], "params": { "quantiles": [0.5] } })),
        (
            "/invocations",
            json!({ "dataframe_split": { "columns": ["size", "city", "new", "built"], "data": [[50, "Bern", true, "2020-05-03"]] } }),
        ),
        ("/api/models/rent/row", json!({ "row": row, "level": 0.9, "of": 0 })),
        ("/api/models/rent/curves", json!({ "row": row, "columns": ["size", "city"] })),
    ]
}

fn answered(status: u16) -> bool {
    status == 200 || (400..500).contains(&status)
}

#[tokio::test]
async fn damaged_requests_are_refused_and_never_break_anything() {
    let server = Server::new(&["rent"], Options::default());
    let mut numbers = Numbers(7);
    for (path, body) in valid() {
        assert_eq!(
            server.post(path, &body).await.status,
            200,
            "{path}: {}",
            server.post(path, &body).await.text()
        );
        let whole = body.to_string().into_bytes();
        for round in 0..150 {
            let mut bytes = whole.clone();
            match round % 3 {
                // Cut off, a byte changed, a part repeated.
                0 => bytes.truncate(numbers.below(bytes.len())),
                1 => {
                    let at = numbers.below(bytes.len());
                    bytes[at] = b"\"[]{},:0e-\\x\xff\0"[numbers.below(14)];
                }
                _ => {
                    let at = numbers.below(bytes.len());
                    let part = bytes[at..(at + numbers.below(20)).min(bytes.len())].to_vec();
                    bytes.splice(at..at, part);
                }
            }
            let answer = server.post_as(path, "application/json", bytes.clone()).await;
            let status = answer.status.as_u16();
            assert!(answered(status), "{status} for {}", String::from_utf8_lossy(&bytes));
            if status != 200 {
                let json = answer.json();
                assert!(json["error"].is_string() || json["message"].is_string(), "{json}");
            }
        }
    }
}

#[tokio::test]
async fn every_value_replaced_by_every_kind_of_value_is_answered() {
    let server = Server::new(&["rent"], Options::default());
    let odd = [
        json!(null),
        json!(true),
        json!(-1),
        json!(1e308),
        json!(1e-308),
        json!(18_446_744_073_709_551_615_u64),
        json!(""),
        json!("NaN"),
        json!("inf"),
        json!("-1e999"),
        json!([]),
        json!({}),
        json!([[]]),
        json!([null]),
        json!("\u{0}"),
    ];
    for (path, body) in valid() {
        let mut pointers = Vec::new();
        collect(&body, String::new(), &mut pointers);
        for pointer in pointers {
            for value in &odd {
                let mut changed = body.clone();
                *changed.pointer_mut(&pointer).unwrap() = value.clone();
                let answer = server.post(path, &changed).await;
                assert!(
                    answered(answer.status.as_u16()),
                    "{} {pointer} = {value}: {}",
                    answer.status,
                    answer.text()
                );
            }
        }
    }
}

fn collect(value: &Value, at: String, into: &mut Vec<String>) {
    match value {
        Value::Array(list) => {
            list.iter().enumerate().for_each(|(i, inner)| collect(inner, format!("{at}/{i}"), into));
        }
        Value::Object(map) => map.iter().for_each(|(key, inner)| collect(inner, format!("{at}/{key}"), into)),
        _ => {}
    }
    if !at.is_empty() {
        into.push(at);
    }
}

#[tokio::test]
async fn deep_nesting_and_strange_paths_are_refused() {
    let server = Server::new(&["rent"], Options::default());
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    for path in ["/invocations", "/v2/models/rent/infer", "/api/models/rent/row"] {
        assert_eq!(server.post_as(path, "application/json", deep.clone()).await.status, 400);
        assert_eq!(server.post_as(path, "application/json", "").await.status, 400);
    }
    for path in
        ["/v2/models/..%2F..%2Fetc/infer", "/page/..%2Fsrc%2Flib.rs", "/page/app.js%00", "/v2/models/%FF"]
    {
        let status = server.get(path).await.status.as_u16();
        assert!((400..500).contains(&status), "{path}: {status}");
    }
    assert_eq!(server.get("/invocations").await.status, 405);
    assert_eq!(server.get("/nowhere").await.status, 404);
}

#[tokio::test]
async fn csv_of_any_bytes_is_answered() {
    let server = Server::new(&["rent"], Options::default());
    let mut numbers = Numbers(3);
    let whole = b"size,city,new,built\n50,Bern,true,03.05.2020\n60,\"Chur\",false,04.05.2020\n".to_vec();
    for path in ["/invocations", "/api/models/rent/table", "/api/models/rent/table?format=csv"] {
        for _ in 0..150 {
            let mut bytes = whole.clone();
            for _ in 0..=numbers.below(4) {
                let at = numbers.below(bytes.len());
                bytes[at] = numbers.below(256) as u8;
            }
            let answer = server.post_as(path, "text/csv", bytes.clone()).await;
            assert!(answered(answer.status.as_u16()), "{}: {bytes:?}", answer.text());
        }
    }
}
