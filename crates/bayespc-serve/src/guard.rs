//! Who may ask: whoever knows the token, as a `Bearer` header or, in a browser, as a cookie after typing it once.
//!
//! Health is told to anybody, and the looks of the page that asks for the token. Without a token a server on a loopback address answers only to names of this machine, so
//! that a web page elsewhere cannot reach it by a name of its own that leads here.

use axum::body::Bytes;
use axum::extract::{Request, State};
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{Html, IntoResponse, Redirect, Response};

use crate::digest::{digest, hex};
use crate::page;
use crate::problem::Problem;
use crate::router::App;

/// What a browser keeps.
const COOKIE: &str = "bayespc_token";

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

/// The token, by its digest: comparing digests tells nothing of how near a guess was.
#[derive(Clone)]
pub struct Guard {
    token: Option<[u8; 32]>,
    /// Whether only names of this machine are answered to.
    only_local_names: bool,
}

impl Guard {
    pub fn new(token: Option<&str>, only_local_names: bool) -> Self {
        Self {
            token: token.map(|token| digest(token.as_bytes())),
            only_local_names: only_local_names && token.is_none(),
        }
    }

    fn lets_in(&self, headers: &HeaderMap) -> bool {
        let Some(token) = self.token else { return true };
        let bearer = headers
            .get(header::AUTHORIZATION)
            .and_then(|value| value.to_str().ok())
            .and_then(|value| value.split_once(' '))
            .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"))
            .map(|(_, given)| digest(given.trim().as_bytes()));
        let cookie = headers
            .get_all(header::COOKIE)
            .iter()
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(';'))
            .filter_map(|pair| pair.trim().split_once('='))
            .any(|(name, value)| {
                name == COOKIE && digest(value.as_bytes()) == digest(hex(&token).as_bytes())
            });
        cookie || bearer == Some(token)
    }

    fn knows(&self, headers: &HeaderMap) -> bool {
        if !self.only_local_names {
            return true;
        }
        let Some(host) = headers.get(header::HOST) else { return true };
        host.to_str().is_ok_and(is_local_name)
    }
}

/// `localhost` or an address, perhaps with a port.
fn is_local_name(host: &str) -> bool {
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|c| c.is_ascii_digit()) => name,
        _ => host,
    };
    let name = name.trim_start_matches('[').trim_end_matches(']');
    name.eq_ignore_ascii_case("localhost") || name.parse::<std::net::IpAddr>().is_ok()
}

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
    match (guard.token, given) {
        (Some(token), Some(given)) if digest(given.trim().as_bytes()) == token => {
            let cookie = format!("{COOKIE}={}; HttpOnly; SameSite=Strict; Path=/", hex(&token));
            let mut response = Redirect::to("/").into_response();
            if let Ok(cookie) = HeaderValue::from_str(&cookie) {
                response.headers_mut().insert(header::SET_COOKIE, cookie);
            }
            response
        }
        (None, _) => Redirect::to("/").into_response(),
        _ => (StatusCode::UNAUTHORIZED, page::headers(), Html(page::LOGIN_AGAIN.as_str())).into_response(),
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
    fn names_of_this_machine_are_told_from_others() {
        for name in ["localhost", "LOCALHOST:8080", "127.0.0.1", "127.0.0.1:80", "[::1]:8080", "[::1]"] {
            assert!(is_local_name(name), "{name}");
        }
        for name in ["example.com", "localhost.example.com:80", "evil", ""] {
            assert!(!is_local_name(name), "{name}");
        }
    }

    #[test]
    fn forms_are_read_as_they_were_typed() {
        assert_eq!(unescaped("a%2Bb+c%C3%A4"), "a+b cä");
        assert_eq!(unescaped("%zz%"), "");
    }
}
