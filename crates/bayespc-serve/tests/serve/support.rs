//! Small models, and requests to a router without a socket.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::sync::OnceLock;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Request, StatusCode};
use bayespc::{Mat, Model, ModelSettings, Samples};
use bayespc_data::{Encoding, EncodingOptions, Kinds, Table, Targets};
use bayespc_serve::{App, ModelFile, Options, router};
use serde_json::Value;
use tempfile::TempDir;
use tower::ServiceExt;

/// Rents of flats, as CSV: numbers, a category, a boolean and a date.
pub fn flats(n: usize) -> String {
    let mut text = "size,city,new,built,rent\n".to_owned();
    for i in 0..n {
        let size = 20.0 + (i * 37 % 101) as f64;
        let city = ["Aarau", "Bern", "Chur"][i % 3];
        let rent = 10.0 * size + 100.0 * (i % 3) as f64 + 20.0 * ((i * 71 % 13) as f64 - 6.0);
        writeln!(text, "{size},{city},{},{:02}.{:02}.2020,{rent}", i % 2 == 0, 1 + i % 28, 1 + i % 12)
            .unwrap();
    }
    text
}

/// Three kinds of spots.
pub fn spots(n: usize) -> String {
    let mut text = "a,b,colour\n".to_owned();
    for i in 0..n {
        let (a, b) = ((i * 37 % 101) as f64 / 50.0 - 1.0, (i * 53 % 89) as f64 / 44.0 - 1.0);
        let colour = if a + b > 0.4 {
            "red"
        } else if a > b {
            "green"
        } else {
            "blue"
        };
        writeln!(text, "{a},{b},{colour}").unwrap();
    }
    text
}

fn quick() -> ModelSettings {
    let mut settings = ModelSettings::fast();
    settings.training.epochs = 10;
    settings.network.hidden_layer_sizes = vec![8];
    settings.members = 2;
    settings
}

/// The bytes of a model of a table, as `bayespc fit` would write them.
pub fn fitted(csv: &str, targets: &[&str], with_reference: bool) -> Vec<u8> {
    let table = Table::from_csv("t.csv", csv.as_bytes(), &Kinds::new()).unwrap();
    let encoding = Encoding::fit(&table, targets, &EncodingOptions::default()).unwrap();
    let features = encoding.transform(&table).unwrap().features;
    let mut model = match encoding.targets(&table).unwrap() {
        Targets::Regression(values) => Model::fit(&Samples::new(&features, &values).unwrap(), &quick()),
        Targets::Classification(labels) => {
            let classes = encoding.classes().unwrap().len();
            let targets = bayespc::Targets::Classes { labels: &labels, classes };
            Model::fit(&Samples::new(&features, targets).unwrap(), &quick())
        }
    }
    .unwrap();
    if !with_reference {
        // A stream leaves no rows to compare with.
        let Targets::Regression(values) = encoding.targets(&table).unwrap() else { panic!("classes") };
        model.partial_fit(&Samples::new(&features, &values).unwrap()).unwrap();
    }
    model.notes_mut().insert("encoding".to_owned(), serde_json::to_string(&encoding).unwrap());
    model.notes_mut().insert("data".to_owned(), "made up".to_owned());
    model.to_bytes().unwrap()
}

/// A model of an array, with two targets and no names.
fn array() -> Vec<u8> {
    let x = Mat::from_fn(3, 60, |i, j| ((i + 2) * j % 17) as f64 / 17.0);
    let y = Mat::from_fn(2, 60, |i, j| x[(i, j)] - x[(2, j)]);
    Model::fit(&Samples::new(&x, &y).unwrap(), &quick()).unwrap().to_bytes().unwrap()
}

/// The models of all tests, fitted once.
pub fn bytes(name: &str) -> &'static [u8] {
    static RENT: OnceLock<Vec<u8>> = OnceLock::new();
    static COLOUR: OnceLock<Vec<u8>> = OnceLock::new();
    static ARRAY: OnceLock<Vec<u8>> = OnceLock::new();
    match name {
        "rent" => RENT.get_or_init(|| fitted(&flats(120), &["rent"], true)),
        "colour" => COLOUR.get_or_init(|| fitted(&spots(150), &["colour"], true)),
        "array" => ARRAY.get_or_init(array),
        other => panic!("no model {other}"),
    }
}

/// Model files in a folder.
pub struct Files(TempDir);

impl Files {
    pub fn new() -> Self {
        Self(TempDir::new().unwrap())
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub fn models(&self, names: &[&str]) -> Vec<ModelFile> {
        let file = |name: &&str| {
            let path = self.path(&format!("{name}.safetensors"));
            std::fs::write(&path, bytes(name)).unwrap();
            ModelFile { name: (*name).to_owned(), path }
        };
        names.iter().map(file).collect()
    }
}

/// A server without a socket.
pub struct Server {
    pub router: Router,
    _files: Files,
}

/// What was answered.
pub struct Answer {
    pub status: StatusCode,
    pub headers: HeaderMap,
    pub body: Vec<u8>,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.body.clone()).unwrap()
    }

    /// JSON of a success.
    pub fn ok(&self) -> Value {
        assert_eq!(self.status, 200, "{}", self.text());
        self.json()
    }

    /// Refused as wrong, with these words in the message.
    pub fn refused(&self, words: &[&str]) -> Value {
        assert_eq!(self.status, 400, "{}", self.text());
        let json = self.json();
        let message = json["error"].as_str().or(json["message"].as_str()).unwrap().to_owned();
        for word in words {
            assert!(message.contains(word), "no `{word}` in {message}");
        }
        json
    }
}

impl Server {
    pub fn new(names: &[&str], options: Options) -> Self {
        let files = Files::new();
        let app = App::new(&files.models(names), options).unwrap();
        Self { router: router(app), _files: files }
    }

    /// All models, as served by default.
    pub fn usual() -> Self {
        Self::new(&["rent", "colour", "array"], Options::default())
    }

    pub async fn send(&self, request: Request<Body>) -> Answer {
        let response = self.router.clone().oneshot(request).await.unwrap();
        let (status, headers) = (response.status(), response.headers().clone());
        let body = to_bytes(response.into_body(), usize::MAX).await.unwrap().to_vec();
        Answer { status, headers, body }
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.send(Request::get(path).body(Body::empty()).unwrap()).await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.post_as(path, "application/json", body.to_string()).await
    }

    pub async fn post_as(&self, path: &str, kind: &str, body: impl Into<Body>) -> Answer {
        self.send(Request::post(path).header("content-type", kind).body(body.into()).unwrap()).await
    }
}

impl Server {
    /// A server of this router, which keeps the files it was made of.
    pub fn of(router: Router, files: Files) -> Self {
        Self { router, _files: files }
    }
}
