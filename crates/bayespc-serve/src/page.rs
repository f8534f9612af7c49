//! The page and its files, which are part of the program. A strict policy lets the browser load nothing else.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::http::{HeaderName, HeaderValue, header};
use axum::response::{Html, IntoResponse, Response};

use crate::problem::Problem;

const INDEX: &str = include_str!("../page/index.html");

/// Asks for the token.
pub const LOGIN: &str = include_str!("../page/login.html");

/// Asks again.
pub static LOGIN_AGAIN: LazyLock<String> = LazyLock::new(|| LOGIN.replace("hidden>", ">"));

const SCRIPT: &str = "text/javascript; charset=utf-8";

/// Name, content and type of each file.
const FILES: [(&str, &str, &str); 9] = [
    ("style.css", include_str!("../page/style.css"), "text/css; charset=utf-8"),
    ("app.js", include_str!("../page/app.js"), SCRIPT),
    ("chart.js", include_str!("../page/chart.js"), SCRIPT),
    ("drivers.js", include_str!("../page/drivers.js"), SCRIPT),
    ("form.js", include_str!("../page/form.js"), SCRIPT),
    ("format.js", include_str!("../page/format.js"), SCRIPT),
    ("result.js", include_str!("../page/result.js"), SCRIPT),
    ("table.js", include_str!("../page/table.js"), SCRIPT),
    ("icon.svg", include_str!("../page/icon.svg"), "image/svg+xml"),
];

/// Nothing from elsewhere, no script or style in the page itself, no frame around it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'";

/// Headers of every page.
pub fn headers() -> [(HeaderName, HeaderValue); 3] {
    [
        (header::CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        // A newer program has a newer page.
        (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
    ]
}

pub async fn index() -> impl IntoResponse {
    (headers(), Html(INDEX))
}

pub async fn file(Path(name): Path<String>) -> Result<Response, Problem> {
    match FILES.iter().find(|(file, ..)| *file == name) {
        Some((_, content, kind)) => {
            Ok((headers(), [(header::CONTENT_TYPE, HeaderValue::from_static(kind))], *content)
                .into_response())
        }
        None => Err(Problem::missing(format!("the page has no file `{name}`"))),
    }
}
