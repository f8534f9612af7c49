//! The OpenAPI document agrees with itself and with the router; a validator of the field reads it in the Python tests.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::support::Server;

fn references(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::Array(list) => list.iter().for_each(|inner| references(inner, into)),
        Value::Object(map) => {
            into.extend(map.get("$ref").and_then(Value::as_str).map(str::to_owned));
            map.values().for_each(|inner| references(inner, into));
        }
        _ => {}
    }
}

#[tokio::test]
async fn every_reference_leads_somewhere_and_every_path_exists() {
    let server = Server::usual();
    let document = server.get("/openapi.json").await.ok();
    assert_eq!(document["openapi"], "3.1.0");
    let mut all = BTreeSet::new();
    references(&document, &mut all);
    assert!(all.len() > 5);
    for reference in all {
        let pointer = reference.strip_prefix('#').unwrap();
        assert!(document.pointer(pointer).is_some(), "{reference}");
    }
    let version = server.get("/v2/models/rent").await.ok()["versions"][0].as_str().unwrap().to_owned();
    let mut names = BTreeSet::new();
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            assert!(names.insert(operation["operationId"].as_str().unwrap().to_owned()), "{operation}");
            let path = path.replace("{model}", "rent").replace("{version}", &version);
            let answer = match method.as_str() {
                "get" => server.get(&path).await,
                _ => server.post_as(&path, "application/json", "{").await,
            };
            assert!(![404, 405, 500].contains(&answer.status.as_u16()), "{method} {path}: {}", answer.status);
        }
    }
}
