//! Requests to the server: answered or refused, never a failure of its own. The first byte says which path, the second
//! of which kind the body is.

#![no_main]

use std::sync::OnceLock;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{Request, StatusCode};
use bayespc_fuzz::{FLATS, SPOTS, fitted, scratch};
use bayespc_serve::{App, ModelFile, Options, router};
use libfuzzer_sys::fuzz_target;
use tokio::runtime::{Builder, Runtime};
use tower::ServiceExt;

const PATHS: [&str; 10] = [
    "/v2/models/rent/infer",
    "/v2/models/colour/infer",
    "/invocations",
    "/api/models/rent/row",
    "/api/models/colour/row",
    "/api/models/rent/curves",
    "/api/models/rent/drivers",
    "/api/models/rent/table",
    "/api/models/colour/table?format=csv&level=0.8",
    "/login",
];

const KINDS: [&str; 3] = ["application/json", "text/csv", "application/octet-stream"];

fn server() -> &'static (Runtime, Router) {
    static SERVER: OnceLock<(Runtime, Router)> = OnceLock::new();
    SERVER.get_or_init(|| {
        let models = [("rent", FLATS), ("colour", SPOTS)].map(|(name, csv)| {
            let path = scratch(&fitted(csv, name), &format!("{name}.safetensors"));
            ModelFile { name: name.to_owned(), path }
        });
        let app = App::new(&models, Options { computations: 1, ..Options::default() }).expect("a server");
        (Builder::new_multi_thread().worker_threads(1).enable_all().build().expect("a runtime"), router(app))
    })
}

fuzz_target!(|bytes: &[u8]| {
    let [path, kind, body @ ..] = bytes else { return };
    let request = Request::post(PATHS[usize::from(*path) % PATHS.len()])
        .header("content-type", KINDS[usize::from(*kind) % KINDS.len()])
        .header("host", "127.0.0.1")
        .body(Body::from(body.to_vec()))
        .expect("a request");
    let (runtime, router) = server();
    runtime.block_on(async {
        let answer = router.clone().oneshot(request).await.expect("infallible");
        let status = answer.status();
        let body = to_bytes(answer.into_body(), usize::MAX).await.expect("a body");
        assert_ne!(status, StatusCode::INTERNAL_SERVER_ERROR, "{}", String::from_utf8_lossy(&body));
    });
});
