//! Where requests come in: whoever may not ask is turned away, and a browser can be given a token.
//!
//! Health is told to anybody, and the looks of the page that asks for the token.

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Redirect, Response};

use crate::app::App;
use crate::page;
use crate::problem::Problem;

/// Paths that need no token.
const OPEN: [&str; 7] = [
    "/v2/health/live",
    "/v2/health/ready",
    "/ping",
    "/health",
    "/login",
    "/page/style.css",
    "/page/icon.svg",
];

/// Turns away whoever may not ask.
pub async fn check(State(app): State<App>, request: Request, next: Next) -> Response {
    let guard = app.guard();
    if !guard.knows(request.headers()) {
        let message = "this name is not answered to: use localhost or an address, or give the server a token";
        return Problem::new(StatusCode::FORBIDDEN, message).into_response();
    }
    let path = request.uri().path();
    if OPEN.contains(&path) || guard.lets_in(request.headers()) {
        return next.run(request).await;
    }
    // A person with a browser can type the token.
    if path == "/" {
        return (StatusCode::UNAUTHORIZED, page::headers(), Html(page::LOGIN)).into_response();
    }
    let mut response =
        Problem::new(StatusCode::UNAUTHORIZED, "a token is needed: send it as `Authorization: Bearer TOKEN`")
            .into_response();
    response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
    response
}

/// Takes the token of a form and lets the browser keep its digest.
pub async fn login(State(app): State<App>, body: Bytes) -> Response {
    let text = String::from_utf8_lossy(&body);
    let given = text.split('&').find_map(|pair| pair.strip_prefix("token=")).map(unescaped);
    let guard = app.guard();
    let cookie =
        given.and_then(|given| guard.cookie(&given)).and_then(|cookie| HeaderValue::from_str(&cookie).ok());
    match cookie {
        Some(cookie) => ([(header::SET_COOKIE, cookie)], Redirect::to("/")).into_response(),
        None if guard.is_open() => Redirect::to("/").into_response(),
        None => (StatusCode::UNAUTHORIZED, page::headers(), Html(page::LOGIN_AGAIN.as_str())).into_response(),
    }
}

/// A value of a form as it was typed.
fn unescaped(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        match byte {
            b'+' => bytes.push(b' '),
            b'%' => {
                let pair: Vec<u8> = rest.by_ref().take(2).collect();
                let code = std::str::from_utf8(&pair).ok().and_then(|pair| u8::from_str_radix(pair, 16).ok());
                bytes.extend(code);
            }
            other => bytes.push(other),
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_are_read_as_they_were_typed() {
        assert_eq!(unescaped("a%2Bb+c%C3%A4"), "a+b cä");
        assert_eq!(unescaped("%zz%"), "");
    }
}
