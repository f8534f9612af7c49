//! Who may ask: whoever knows the token, as a `Bearer` header or, in a browser, as a cookie after typing it once.
//!
//! Without a token a server on a loopback address answers only to names of this machine, so
//! that a web page elsewhere cannot reach it by a name of its own that leads here.

use axum::http::{HeaderMap, header};

use crate::digest::{digest, hex};

/// What a browser keeps.
const COOKIE: &str = "bayespc_token";

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

    /// Whether whoever sends these headers knows the token.
    pub fn lets_in(&self, headers: &HeaderMap) -> bool {
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

    /// The cookie of whoever types the right token; none if there is no token, or it is another.
    pub fn cookie(&self, given: &str) -> Option<String> {
        let token = self.token.filter(|token| digest(given.trim().as_bytes()) == *token)?;
        Some(format!("{COOKIE}={}; HttpOnly; SameSite=Strict; Path=/", hex(&token)))
    }

    /// Whether anybody may ask.
    pub fn is_open(&self) -> bool {
        self.token.is_none()
    }

    /// Whether the server answers to the name that it is called by.
    pub fn knows(&self, headers: &HeaderMap) -> bool {
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
}
