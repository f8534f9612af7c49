//! MLflow's payloads.

use axum::body::Body;
use axum::http::Request;
use bayespc_serve::Options;
use serde_json::{Value, json};

use crate::support::{Server, flats};

fn server() -> Server {
    Server::new(&["rent"], Options::default())
}

const COLUMNS: [&str; 4] = ["size", "city", "new", "built"];

#[tokio::test]
async fn all_forms_of_one_table_give_the_same_predictions() {
    let server = server();
    let rows = json!([[50.0, "Bern", true, "2020-05-03"], [90.0, "Chur", false, "2020-07-01"]]);
    let records: Vec<Value> = rows
        .as_array()
        .unwrap()
        .iter()
        .map(|row| {
            COLUMNS
                .iter()
                .zip(row.as_array().unwrap())
                .map(|(name, value)| ((*name).to_owned(), value.clone()))
                .collect::<serde_json::Map<_, _>>()
                .into()
        })
        .collect();
    let columns: serde_json::Map<String, Value> = COLUMNS
        .iter()
        .enumerate()
        .map(|(k, name)| ((*name).to_owned(), json!([rows[0][k], rows[1][k]])))
        .collect();
    let split = server
        .post(
            "/invocations",
            &json!({ "dataframe_split": { "columns": COLUMNS, "index": [0, 1], "data": rows } }),
        )
        .await
        .ok();
    let predictions = split["predictions"].as_array().unwrap();
    assert_eq!(predictions.len(), 2);
    for key in ["mean", "std", "aleatoric_std", "epistemic_std", "lower", "upper", "ood_score"] {
        assert!(predictions[1][key].is_f64(), "{key}: {split}");
    }
    assert!(predictions[1]["mean"].as_f64() > predictions[0]["mean"].as_f64());
    for body in [
        json!({ "dataframe_records": records }),
        json!({ "instances": records }),
        json!({ "instances": rows }),
        json!({ "inputs": rows }),
        json!({ "inputs": columns }),
    ] {
        assert_eq!(server.post("/invocations", &body).await.ok(), split, "{body}");
    }
    let csv = "built,size,note,city,new\n03.05.2020,50,x,Bern,true\n01.07.2020,90,y,Chur,false\n";
    assert_eq!(server.post_as("/invocations", "text/csv; charset=utf-8", csv).await.ok(), split);
}

#[tokio::test]
async fn parameters_and_levels_are_heard() {
    let server = server();
    let records = json!([{ "size": 50, "city": "Bern", "new": true, "built": "2020-05-03" }]);
    let narrow = server
        .post(
            "/invocations",
            &json!({ "dataframe_records": records, "params": { "level": 0.5, "quantiles": [0.25] } }),
        )
        .await
        .ok();
    let row = &narrow["predictions"][0];
    assert!((row["q0.25"].as_f64().unwrap() - row["lower"].as_f64().unwrap()).abs() < 1e-6, "{row}");
    let csv = "size,city,new,built\n50,Bern,true,03.05.2020\n";
    let by_query = server.post_as("/invocations?level=0.5", "text/csv", csv).await.ok();
    assert_eq!(by_query["predictions"][0]["lower"], row["lower"]);
    server.post_as("/invocations?level=5", "text/csv", csv).await.refused(&["level"]);
}

#[tokio::test]
async fn several_models_are_told_apart_by_the_query() {
    let server = Server::usual();
    let csv = "a,b\n0.9,0.9\n";
    server.post_as("/invocations", "text/csv", csv).await.refused(&["?model=", "colour"]);
    let answer = server.post_as("/invocations?model=colour", "text/csv", csv).await.ok();
    let row = &answer["predictions"][0];
    assert_eq!(row["class"], "red");
    assert!(row["probability_red"].as_f64().unwrap() > 0.5, "{row}");
    assert_eq!(server.post_as("/invocations?model=x", "text/csv", csv).await.status, 404);
}

#[tokio::test]
async fn what_is_wrong_is_named_in_mlflows_words() {
    let server = server();
    let post = async |body: Value| server.post("/invocations", &body).await;
    let row = json!({ "size": 50, "city": "Bern", "new": true, "built": "2020-05-03" });
    let problem = post(json!({ "dataframe_records": [row, { "size": "?!", "city": "Bern", "new": true, "built": "2020-05-03" }] })).await.refused(&["row 2", "size", "?!"]);
    assert_eq!((&problem["error_code"], &problem["row"]), (&json!("BAD_REQUEST"), &json!(2)));
    post(json!({ "dataframe_records": [{ "size": 50 }] })).await.refused(&["`city` is missing"]);
    post(json!({ "dataframe_records": [{ "size": [50], "city": "Bern", "new": true, "built": "2020-05-03" }] })).await.refused(&["row 1", "size", "a list"]);
    post(json!({ "dataframe_records": [] })).await.refused(&["missing"]);
    post(json!({ "dataframe_records": 3 })).await.refused(&["dataframe_records"]);
    post(json!({ "dataframe_split": { "columns": COLUMNS, "data": [[1, "Bern"]] } }))
        .await
        .refused(&["row 1", "2 values for 4 columns"]);
    post(json!({ "dataframe_split": { "data": [] } })).await.refused(&["columns"]);
    post(json!({ "dataframe_split": { "columns": ["size", "size"], "data": [[1, 2]] } }))
        .await
        .refused(&["missing"]);
    post(json!({ "instances": [row], "inputs": [row] })).await.refused(&["exactly one"]);
    post(json!({ "rows": [row] })).await.refused(&["dataframe_split", "none"]);
    post(json!([row])).await.refused(&["no JSON object"]);
    post(json!({ "inputs": { "size": 3 } })).await.refused(&["size", "no list"]);
    post(json!({ "inputs": { "size": [1, 2], "city": ["Bern"], "new": [true, true], "built": ["2020-05-03", "2020-05-03"] } })).await.refused(&["city", "1"]);
    assert_eq!(server.post_as("/invocations", "application/xml", "<x/>").await.status, 415);
    server.post_as("/invocations", "text/csv", "").await.refused(&["empty"]);
    server.post_as("/invocations", "text/csv", "size,city,new,built\n1,Bern\n").await.refused(&["CSV"]);
    server
        .post_as("/invocations", "text/csv", "size,city,new,built\n1,Basel,true,03.05.2020\n")
        .await
        .refused(&["Basel", "city"]);
}

#[tokio::test]
async fn ping_and_version_answer() {
    let server = server();
    for path in ["/ping", "/health", "/version"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
}

#[tokio::test]
async fn a_body_that_is_too_long_is_refused_whether_or_not_it_says_so() {
    let server = Server::new(&["rent"], Options { max_body: 1000, ..Options::default() });
    let text = flats(100);
    assert_eq!(server.post_as("/invocations", "text/csv", text.clone()).await.status, 413);
    let request = Request::post("/invocations")
        .header("content-type", "text/csv")
        .header("content-length", text.len())
        .body(Body::from(text))
        .unwrap();
    let answer = server.send(request).await;
    assert_eq!(answer.status, 413);
    assert!(answer.json()["message"].as_str().unwrap().contains("1000 bytes"));
}
