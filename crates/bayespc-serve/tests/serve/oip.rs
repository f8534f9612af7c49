//! Open Inference Protocol.

use bayespc::Model;
use bayespc_serve::{App, ModelFile, Options, router};
use serde_json::{Value, json};

use crate::support::{Files, Server, bytes, fitted};

fn tensor(name: &str, datatype: &str, data: &Value) -> Value {
    json!({ "name": name, "datatype": datatype, "shape": [data.as_array().unwrap().len()], "data": data })
}

/// Two flats.
fn flats() -> Vec<Value> {
    vec![
        tensor("size", "FP64", &json!([50.0, 90.0])),
        tensor("city", "BYTES", &json!(["Bern", "Chur"])),
        tensor("new", "BOOL", &json!([true, false])),
        tensor("built", "BYTES", &json!(["03.05.2020", "2020-07-01"])),
    ]
}

fn output<'a>(answer: &'a Value, name: &str) -> &'a Value {
    answer["outputs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|output| output["name"] == name)
        .unwrap_or_else(|| panic!("no {name} in {answer}"))
}

fn numbers(answer: &Value, name: &str) -> Vec<f64> {
    output(answer, name)["data"].as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

#[tokio::test]
async fn health_and_metadata_are_as_the_protocol_has_them() {
    let server = Server::usual();
    assert_eq!(server.get("/v2").await.ok()["name"], "bayespc");
    assert_eq!(server.get("/v2/health/live").await.status, 200);
    assert_eq!(server.get("/v2/health/ready").await.status, 200);
    assert_eq!(server.get("/v2/models/rent/ready").await.ok()["ready"], true);
    let rent = server.get("/v2/models/rent").await.ok();
    let inputs = json!([
        { "name": "size", "datatype": "FP64", "shape": [-1] },
        { "name": "city", "datatype": "BYTES", "shape": [-1] },
        { "name": "new", "datatype": "BOOL", "shape": [-1] },
        { "name": "built", "datatype": "BYTES", "shape": [-1] },
    ]);
    assert_eq!(rent["inputs"], inputs);
    let names: Vec<&str> =
        rent["outputs"].as_array().unwrap().iter().map(|o| o["name"].as_str().unwrap()).collect();
    assert_eq!(
        names,
        ["mean", "std", "aleatoric_std", "epistemic_std", "lower", "upper", "quantiles", "ood_score"]
    );
    let array = server.get("/v2/models/array").await.ok();
    assert_eq!(array["inputs"], json!([{ "name": "X", "datatype": "FP64", "shape": [-1, 3] }]));
    assert_eq!(array["outputs"][0]["shape"], json!([-1, 2]));
    let version = rent["versions"][0].as_str().unwrap().to_owned();
    assert_eq!(server.get(&format!("/v2/models/rent/versions/{version}")).await.ok()["name"], "rent");
    assert_eq!(server.get("/v2/models/rent/versions/7").await.status, 404);
    let missing = server.get("/v2/models/rnet").await;
    assert_eq!(missing.status, 404);
    assert!(missing.json()["error"].as_str().unwrap().contains("is `rent` meant?"));
}

#[tokio::test]
async fn predictions_are_those_of_the_model_to_the_bit() {
    let server = Server::usual();
    let answer = server.post("/v2/models/array/infer", &json!({
        "id": "17",
        "inputs": [{ "name": "X", "datatype": "FP64", "shape": [2, 3], "data": [[0.1, 0.2, 0.3], [0.9, 0.5, 0.4]] }],
        "parameters": { "level": 0.8, "quantiles": [0.1, 0.5, 0.9] },
    })).await.ok();
    assert_eq!((&answer["id"], &answer["model_name"]), (&json!("17"), &json!("array")));
    let x = bayespc::Mat::from_fn(3, 2, |i, j| [[0.1, 0.2, 0.3], [0.9, 0.5, 0.4]][j][i]);
    let predictive = Model::from_bytes(bytes("array")).unwrap().predict(&x).unwrap();
    let (mean, (lower, _)) = (predictive.mean(), predictive.interval(0.8).unwrap());
    let quantiles = predictive.quantile(&[0.1, 0.5, 0.9]).unwrap();
    assert_eq!(output(&answer, "mean")["shape"], json!([2, 2]));
    assert_eq!(output(&answer, "quantiles")["shape"], json!([2, 2, 3]));
    for j in 0..2 {
        for i in 0..2 {
            assert_eq!(numbers(&answer, "mean")[2 * j + i], mean[(i, j)]);
            assert_eq!(numbers(&answer, "lower")[2 * j + i], lower[(i, j)]);
            for (k, quantile) in quantiles.iter().enumerate() {
                assert_eq!(numbers(&answer, "quantiles")[6 * j + 3 * i + k], quantile[(i, j)]);
            }
            let variance = numbers(&answer, "aleatoric_std")[2 * j + i].powi(2)
                + numbers(&answer, "epistemic_std")[2 * j + i].powi(2);
            assert!((variance / numbers(&answer, "std")[2 * j + i].powi(2) - 1.0).abs() < 1e-12);
        }
    }
}

#[tokio::test]
async fn columns_of_all_kinds_flat_or_nested_in_any_order_give_the_same_answer() {
    let server = Server::usual();
    let infer = async |inputs: Vec<Value>| {
        server
            .post("/v2/models/rent/infer", &json!({ "inputs": inputs, "outputs": [{ "name": "mean" }] }))
            .await
            .ok()["outputs"]
            .clone()
    };
    let expected = infer(flats()).await;
    assert_eq!(expected.as_array().unwrap().len(), 1);
    let mut others = flats();
    others.reverse();
    // Numbers as text, booleans as 0 and 1, dates in either form, a column of shape [n, 1].
    others[3] = tensor("size", "BYTES", &json!(["50", "90"]));
    others[1] = tensor("new", "INT64", &json!([1, 0]));
    others[0] = tensor("built", "BYTES", &json!(["2020-05-03", "2020-07-01T00:00"]));
    others[2] = json!({ "name": "city", "datatype": "BYTES", "shape": [2, 1], "data": [["Bern"], ["Chur"]] });
    assert_eq!(infer(others).await, expected);
}

#[tokio::test]
async fn classes_have_names_probabilities_and_parts_of_their_entropy() {
    let server = Server::usual();
    let inputs = json!([tensor("a", "FP32", &json!([0.9, -0.9])), tensor("b", "FP32", &json!([0.8, 0.2]))]);
    let usual = server.post("/v2/models/colour/infer", &json!({ "inputs": inputs })).await.ok();
    assert_eq!(output(&usual, "class")["datatype"], "BYTES");
    assert_eq!(output(&usual, "class")["data"][0], "red");
    assert_eq!(output(&usual, "probabilities")["shape"], json!([2, 3]));
    let p = numbers(&usual, "probabilities");
    assert!((p[..3].iter().sum::<f64>() - 1.0).abs() < 1e-12);
    let wanted: Vec<Value> = ["entropy", "aleatoric_entropy", "epistemic_entropy", "probability_std"]
        .iter()
        .map(|name| json!({ "name": name }))
        .collect();
    let parts =
        server.post("/v2/models/colour/infer", &json!({ "inputs": inputs, "outputs": wanted })).await.ok();
    for i in 0..2 {
        let sum = numbers(&parts, "aleatoric_entropy")[i] + numbers(&parts, "epistemic_entropy")[i];
        assert!((sum - numbers(&parts, "entropy")[i]).abs() < 1e-12);
    }
    assert!(numbers(&parts, "probability_std").iter().all(|s| (0.0..0.5).contains(s)));
}

#[tokio::test]
async fn rows_far_from_the_training_rows_have_a_large_score() {
    let server = Server::usual();
    let mut inputs = flats();
    inputs[0] = tensor("size", "FP64", &json!([70.0, 5000.0]));
    let answer = server.post("/v2/models/rent/infer", &json!({ "inputs": inputs })).await.ok();
    let score = numbers(&answer, "ood_score");
    assert!(score[0] < 2.0 && score[1] > 5.0 * score[0], "{score:?}");
}

#[tokio::test]
async fn what_is_wrong_is_named() {
    let server = Server::usual();
    let infer =
        async |inputs: Vec<Value>| server.post("/v2/models/rent/infer", &json!({ "inputs": inputs })).await;
    let with = |k: usize, tensor: Value| {
        let mut inputs = flats();
        inputs[k] = tensor;
        inputs
    };
    let named = infer(with(1, tensor("city", "BYTES", &json!(["Bern", "Berne"])))).await.refused(&[
        "row 2",
        "city",
        "Berne",
        "is `Bern` meant?",
        "Aarau",
    ]);
    assert_eq!(
        (&named["column"], &named["row"], &named["value"]),
        (&json!("city"), &json!(2), &json!("Berne"))
    );
    infer(flats()[..3].to_vec()).await.refused(&["`built` is missing"]);
    infer(with(0, tensor("szie", "FP64", &json!([1.0, 2.0])))).await.refused(&["szie", "is `size` meant?"]);
    infer(with(0, tensor("size", "BYTES", &json!(["50", "big"]))))
        .await
        .refused(&["row 2", "size", "big", "number"]);
    infer(with(0, tensor("size", "FP64", &json!([1.0, "2"])))).await.refused(&["row 2", "size", "FP64"]);
    infer(with(0, tensor("size", "INT64", &json!([1, 2.5])))).await.refused(&["row 2", "2.5", "INT64"]);
    infer(with(0, tensor("size", "FP65", &json!([1.0, 2.0])))).await.refused(&["FP65"]);
    infer(with(0, tensor("size", "FP64", &json!([1.0])))).await.refused(&["city", "2 rows", "`size` has 1"]);
    infer(with(2, tensor("new", "INT8", &json!([1, 7])))).await.refused(&["row 2", "new", "7", "boolean"]);
    infer(with(3, tensor("built", "BYTES", &json!(["2020-01-01", "someday"]))))
        .await
        .refused(&["row 2", "built", "someday", "date"]);
    infer(with(3, tensor("built", "INT64", &json!([1, 2])))).await.refused(&["row 1", "built", "date"]);
    infer(with(0, json!({ "name": "size", "datatype": "FP64", "shape": [3], "data": [1.0, 2.0] })))
        .await
        .refused(&["size", "2 values", "[3]"]);
    infer(with(
        0,
        json!({ "name": "size", "datatype": "FP64", "shape": [2, 2], "data": [1.0, 2.0, 3.0, 4.0] }),
    ))
    .await
    .refused(&["size", "[2, 2]"]);
    infer(with(0, json!({ "name": "size", "datatype": "FP64", "shape": [2, 1], "data": [[1.0, 2.0]] })))
        .await
        .refused(&["size", "[2, 1]"]);
    infer(with(
        0,
        json!({ "name": "size", "datatype": "FP64", "shape": [2], "parameters": { "binary_data_size": 16 } }),
    ))
    .await
    .refused(&["binary"]);
    infer(vec![]).await.refused(&["`size` is missing"]);
    infer(with(0, tensor("size", "FP64", &json!([])))).await.refused(&["rows"]);
    let path = "/v2/models/rent/infer";
    server
        .post(path, &json!({ "inputs": flats(), "outputs": [{ "name": "median" }] }))
        .await
        .refused(&["median", "quantiles"]);
    server
        .post(path, &json!({ "inputs": flats(), "parameters": { "level": 2 } }))
        .await
        .refused(&["level", "2"]);
    server
        .post(
            "/v2/models/array/infer",
            &json!({ "inputs": [{ "name": "X", "datatype": "FP64", "shape": [1, 2], "data": [1, 2] }] }),
        )
        .await
        .refused(&["[n, 3]"]);
    server.post("/v2/models/rent/infer", &json!({ "inputs": [{ "name": "X", "datatype": "FP64", "shape": [1, 4], "data": [1, 2, 3, 4] }] })).await.refused(&["tensor per column"]);
}

/// What Python's `save` writes for an array: columns called x0, x1 … and a note that they have no names of their own.
#[tokio::test]
async fn a_model_that_python_has_saved_takes_an_array_or_its_columns() {
    let files = Files::new();
    let mut csv = "x0,x1,y\n".to_owned();
    (0..60).for_each(|i| csv.push_str(&format!("{}.5,{},{}.25\n", i * 7 % 13, i * 5 % 11, i % 9)));
    let serve = |feature_names: Value| {
        let mut model = Model::from_bytes(&fitted(&csv, &["y"], false)).unwrap();
        let note = json!({ "feature_names": feature_names, "params": {} });
        model.notes_mut().insert("python".to_owned(), note.to_string());
        let path = files.path("saved.safetensors");
        std::fs::write(&path, model.to_bytes().unwrap()).unwrap();
        let file = ModelFile { name: "saved".to_owned(), path };
        Server::of(router(App::new(&[file], Options::default()).unwrap()), Files::new())
    };
    let (nameless, named) = (serve(json!(null)), serve(json!(["x0", "x1"])));
    let inputs = |metadata: Value| metadata["inputs"].as_array().unwrap().len();
    assert_eq!(inputs(nameless.get("/v2/models/saved").await.ok()), 1);
    assert_eq!(inputs(named.get("/v2/models/saved").await.ok()), 2);
    let whole = json!({ "inputs": [{ "name": "X", "datatype": "FP32", "shape": [1, 2], "data": [3.5, 4] }] });
    let columns =
        json!({ "inputs": [tensor("x1", "INT32", &json!([4])), tensor("x0", "FP64", &json!([3.5]))] });
    let expected = nameless.post("/v2/models/saved/infer", &whole).await.ok()["outputs"].clone();
    for server in [&nameless, &named] {
        for body in [&whole, &columns] {
            assert_eq!(server.post("/v2/models/saved/infer", body).await.ok()["outputs"], expected);
        }
    }
}

#[tokio::test]
async fn unseen_values_can_be_allowed_and_missing_ones_are_bridged_over_with_a_word() {
    let server = Server::usual();
    let mut inputs = flats();
    inputs[1] = tensor("city", "BYTES", &json!(["Bern", "Genf"]));
    inputs[0] = tensor("size", "FP64", &json!([null, 90.0]));
    let answer = server
        .post("/v2/models/rent/infer", &json!({ "inputs": inputs, "parameters": { "unseen": "allow" } }))
        .await
        .ok();
    let warnings = answer["parameters"]["warnings"].to_string();
    assert!(warnings.contains("Genf") && warnings.contains("`size`"), "{warnings}");
}
