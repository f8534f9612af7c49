//! What the page asks.

use bayespc_serve::Options;
use serde_json::{Value, json};

use crate::support::{Files, Server, fitted, flats};

fn row() -> Value {
    json!({ "size": 50.0, "city": "Bern", "new": true, "built": "2020-05-03" })
}

fn numbers(value: &Value) -> Vec<f64> {
    value.as_array().unwrap().iter().map(|x| x.as_f64().unwrap()).collect()
}

#[tokio::test]
async fn columns_tell_their_kind_range_and_typical_value() {
    let server = Server::usual();
    let model = server.get("/api/models/rent").await.ok();
    let [size, city, new, built] = model["columns"].as_array().unwrap().as_slice() else { panic!("{model}") };
    assert_eq!(
        (&size["kind"], &size["range"], &size["integer"]),
        (&json!("number"), &json!([20.0, 120.0]), &json!(true))
    );
    let usual = numbers(&size["usual"]);
    let typical = size["typical"].as_f64().unwrap();
    assert!(20.0 < usual[0] && usual[0] < typical && typical < usual[1] && usual[1] < 120.0, "{size}");
    let values: Vec<&str> =
        city["values"].as_array().unwrap().iter().map(|v| v["value"].as_str().unwrap()).collect();
    assert_eq!(values, ["Aarau", "Bern", "Chur"]);
    assert!((city["values"][1]["share"].as_f64().unwrap() - 1.0 / 3.0).abs() < 1e-9);
    assert_eq!((&new["kind"], &built["kind"]), (&json!("bool"), &json!("time")));
    assert_eq!((&built["from"], &built["to"]), (&json!("2020-01-01"), &json!("2020-12-28")));
    // A typical row is one that the model can be asked about.
    let typical: serde_json::Map<String, Value> = [size, city, new, built]
        .iter()
        .map(|c| (c["name"].as_str().unwrap().to_owned(), c["typical"].clone()))
        .collect();
    server.post("/api/models/rent/row", &json!({ "row": typical })).await.ok();
    assert_eq!(server.get("/api/models").await.ok()["models"].as_array().unwrap().len(), 3);
}

#[tokio::test]
async fn a_file_without_what_was_kept_of_its_rows_still_has_ranges_and_scores() {
    let files = Files::new();
    let path = files.path("old.safetensors");
    std::fs::write(&path, fitted(&flats(60), &["rent"], false)).unwrap();
    let file = bayespc_serve::ModelFile { name: "old".to_owned(), path };
    let app = bayespc_serve::App::new(&[file], Options::default()).unwrap();
    let server = Server::of(bayespc_serve::router(app), files);
    let model = server.get("/api/models/old").await.ok();
    let range = numbers(&model["columns"][0]["range"]);
    assert!(range[0] < 40.0 && range[1] > 100.0, "{range:?}");
    assert_eq!(model["columns"][0]["seen"], false);
    let answer = server.post("/api/models/old/row", &json!({ "row": row() })).await.ok();
    assert!(answer["ood_score"].as_f64().unwrap() > 0.0);
}

#[tokio::test]
async fn a_row_has_a_density_whose_parts_fit_its_numbers() {
    let server = Server::usual();
    let answer = server.post("/api/models/rent/row", &json!({ "row": row(), "level": 0.8 })).await.ok();
    let (lower, mean, upper) = (
        answer["lower"].as_f64().unwrap(),
        answer["mean"].as_f64().unwrap(),
        answer["upper"].as_f64().unwrap(),
    );
    assert!(lower < mean && mean < upper);
    let (y, total, noise) = (
        numbers(&answer["density"]["y"]),
        numbers(&answer["density"]["total"]),
        numbers(&answer["density"]["noise"]),
    );
    let h = y[1] - y[0];
    assert!((h * total.iter().sum::<f64>() - 0.996).abs() < 1e-6);
    assert!(noise.iter().zip(&total).all(|(a, b)| a <= b));
    let between: f64 =
        y.iter().zip(&total).filter(|(y, _)| **y > lower && **y < upper).map(|(_, p)| h * p).sum();
    // The grid has cells of a hundredth of the range: one more or less at either end.
    assert!((between - 0.8).abs() < 2.0 * h * total.iter().copied().fold(0.0, f64::max), "{between}");
}

#[tokio::test]
async fn curves_pass_through_the_prediction_and_their_bands_are_nested() {
    let server = Server::usual();
    let here = server.post("/api/models/rent/row", &json!({ "row": row() })).await.ok();
    let answer = server.post("/api/models/rent/curves", &json!({ "row": row() })).await.ok();
    let curves = answer["curves"].as_array().unwrap();
    assert_eq!(curves.len(), 4);
    for curve in curves {
        let [mean, lower, upper, inner, outer] =
            ["mean", "lower", "upper", "noise_lower", "noise_upper"].map(|key| numbers(&curve[key]));
        for i in 0..mean.len() {
            assert!(
                lower[i] <= inner[i] && inner[i] <= mean[i] && mean[i] <= outer[i] && outer[i] <= upper[i],
                "{curve}"
            );
        }
    }
    let city = curves.iter().find(|curve| curve["column"] == "city").unwrap();
    assert_eq!(city["x"], json!(["Aarau", "Bern", "Chur"]));
    assert_eq!(city["mean"][1], here["mean"]);
    let size = curves.iter().find(|curve| curve["column"] == "size").unwrap();
    let x = numbers(&size["x"]);
    assert!(x[0] < 20.0 && *x.last().unwrap() > 120.0);
    let one = server.post("/api/models/rent/curves", &json!({ "row": row(), "columns": ["new"] })).await.ok();
    assert_eq!(one["curves"].as_array().unwrap().len(), 1);
    server
        .post("/api/models/rent/curves", &json!({ "row": row(), "columns": ["x"] }))
        .await
        .refused(&["`x`"]);
}

#[tokio::test]
async fn what_drives_a_prediction_adds_up_to_it() {
    let server = Server::usual();
    let here = server.post("/api/models/rent/row", &json!({ "row": row() })).await.ok();
    let answer = server.post("/api/models/rent/drivers", &json!({ "row": row() })).await.ok();
    let square = |key: &str| here[key].as_f64().unwrap().powi(2);
    let expected = [here["mean"].as_f64().unwrap(), square("aleatoric_std"), square("epistemic_std")];
    for ((driver, name), expected) in
        answer["drivers"].as_array().unwrap().iter().zip(["mean", "aleatoric", "epistemic"]).zip(expected)
    {
        assert_eq!(driver["quantity"], name);
        let parts: Vec<f64> = driver["columns"]
            .as_array()
            .unwrap()
            .iter()
            .map(|part| part["value"].as_f64().unwrap())
            .collect();
        assert_eq!(parts.len(), 4);
        assert!(parts.windows(2).all(|pair| pair[0].abs() >= pair[1].abs()));
        let sum = driver["base"].as_f64().unwrap() + parts.iter().sum::<f64>();
        assert!((sum - expected).abs() < 1e-6 * expected.abs().max(1.0), "{name}: {sum} {expected}");
    }
    assert_eq!(answer["drivers"][0]["columns"][0]["column"], "size");
    let class =
        server.post("/api/models/colour/drivers", &json!({ "row": { "a": 0.9, "b": 0.9 } })).await.ok();
    assert_eq!((class["drivers"].as_array().unwrap().len(), &class["of"]), (3, &json!(2)));
    let here = server.post("/api/models/colour/row", &json!({ "row": { "a": 0.9, "b": 0.9 } })).await.ok();
    let expected = [&here["probabilities"][2], &here["aleatoric_entropy"], &here["epistemic_entropy"]];
    for (driver, expected) in class["drivers"].as_array().unwrap().iter().zip(expected) {
        let (total, expected) = (driver["total"].as_f64().unwrap(), expected.as_f64().unwrap());
        assert!((total - expected).abs() < 1e-6, "{}: {total} {expected}", driver["quantity"]);
    }
}

#[tokio::test]
async fn classes_have_probabilities_with_their_spread() {
    let server = Server::usual();
    let answer = server.post("/api/models/colour/row", &json!({ "row": { "a": 0.9, "b": 0.9 } })).await.ok();
    let (p, spread) = (numbers(&answer["probabilities"]), numbers(&answer["probability_std"]));
    assert!((p.iter().sum::<f64>() - 1.0).abs() < 1e-12 && spread.len() == 3);
    assert_eq!(answer["class"], 2);
    let curves =
        server.post("/api/models/colour/curves", &json!({ "row": { "a": 0.9, "b": 0.9 } })).await.ok();
    assert_eq!(curves["of"], 2);
    let red = server
        .post("/api/models/colour/curves", &json!({ "row": { "a": 0.9, "b": 0.9 }, "of": 0 }))
        .await
        .ok();
    assert_eq!(red["of"], 0);
    server
        .post("/api/models/colour/curves", &json!({ "row": { "a": 0.9, "b": 0.9 }, "of": 3 }))
        .await
        .refused(&["3"]);
}

#[tokio::test]
async fn a_table_comes_back_least_sure_first_and_whole_as_csv() {
    let server = Server::usual();
    let csv =
        "size,city,new,built\n50,Bern,true,03.05.2020\n4000,Bern,true,03.05.2020\n60,Chur,false,04.05.2020\n";
    let answer = server.post_as("/api/models/rent/table", "text/csv", csv).await.ok();
    assert_eq!((&answer["rows"], &answer["least_sure"][0]["row"]), (&json!(3), &json!(2)));
    let std: Vec<f64> = answer["least_sure"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| line["prediction"]["std"].as_f64().unwrap())
        .collect();
    assert!(std.windows(2).all(|pair| pair[0] >= pair[1]));
    // Its cells are a row that can be asked for.
    let cells = answer["least_sure"][0]["cells"].as_array().unwrap();
    let again: serde_json::Map<String, Value> = answer["columns"]
        .as_array()
        .unwrap()
        .iter()
        .zip(cells)
        .map(|(name, cell)| (name.as_str().unwrap().to_owned(), cell.clone()))
        .collect();
    let one = server.post("/api/models/rent/row", &json!({ "row": again })).await.ok();
    assert_eq!(one["mean"], answer["least_sure"][0]["prediction"]["mean"]);
    let text = server.post_as("/api/models/rent/table?format=csv&level=0.5", "text/csv", csv).await;
    assert_eq!(text.headers["content-type"], "text/csv; charset=utf-8");
    let text = text.text();
    assert!(
        text.starts_with("mean,std,aleatoric_std,epistemic_std,lower,upper,ood_score\n")
            && text.lines().count() == 4,
        "{text}"
    );
    server.post_as("/api/models/rent/table?format=xml", "text/csv", csv).await.refused(&["xml"]);
    let classes = server.post_as("/api/models/colour/table", "text/csv", "a,b\n0,0\n1,1\n").await.ok();
    assert_eq!(classes["sorted_by"], "entropy");
}

#[tokio::test]
async fn the_page_loads_nothing_from_elsewhere() {
    let server = Server::usual();
    let page = server.get("/").await;
    assert_eq!(page.status, 200);
    let policy = page.headers["content-security-policy"].to_str().unwrap();
    assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"));
    let text = page.text();
    assert!(!text.contains("http://") && !text.contains("https://"));
    for part in text.split('"').filter(|part| part.starts_with("/page/")) {
        assert_eq!(server.get(part).await.status, 200, "{part}");
    }
    let script = server.get("/page/app.js").await;
    assert_eq!(script.headers["content-type"], "text/javascript; charset=utf-8");
    for line in script.text().lines().filter(|line| line.starts_with("import ")) {
        let file = line.split('"').nth(1).unwrap().trim_start_matches("./");
        assert_eq!(server.get(&format!("/page/{file}")).await.status, 200, "{file}");
    }
}
