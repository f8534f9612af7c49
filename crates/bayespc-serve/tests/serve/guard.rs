//! Who may ask.

use axum::body::Body;
use axum::http::Request;
use bayespc_serve::Options;

use crate::support::{Answer, Server};

fn guarded() -> Server {
    Server::new(&["rent"], Options { token: Some("open sesame+".to_owned()), ..Options::default() })
}

async fn with(server: &Server, path: &str, name: &str, value: &str) -> Answer {
    server.send(Request::get(path).header(name, value).body(Body::empty()).unwrap()).await
}

#[tokio::test]
async fn nothing_but_health_is_told_without_the_token() {
    let server = guarded();
    for path in ["/v2/health/live", "/v2/health/ready", "/ping"] {
        assert_eq!(server.get(path).await.status, 200, "{path}");
    }
    for path in ["/", "/v2", "/v2/models/rent", "/api/models", "/openapi.json", "/page/app.js", "/nothing"] {
        assert_eq!(server.get(path).await.status, 401, "{path}");
        assert_eq!(with(&server, path, "authorization", "Bearer wrong").await.status, 401, "{path}");
        assert_eq!(with(&server, path, "authorization", "Basic open sesame+").await.status, 401, "{path}");
    }
    assert_eq!(server.get("/v2").await.headers["www-authenticate"], "Bearer");
    assert_eq!(server.post_as("/invocations", "text/csv", "size\n1\n").await.status, 401);
    assert_eq!(with(&server, "/v2/models/rent", "authorization", "bearer open sesame+").await.status, 200);
    assert!(
        with(&server, "/openapi.json", "authorization", "Bearer open sesame+")
            .await
            .text()
            .contains("securitySchemes")
    );
}

#[tokio::test]
async fn a_browser_gets_a_cookie_for_the_token_and_never_the_token_itself() {
    let server = guarded();
    let page = server.get("/").await;
    assert!(page.text().contains("name=\"token\"") && page.text().contains("role=\"alert\" hidden"));
    let form = |body: &'static str| server.post_as("/login", "application/x-www-form-urlencoded", body);
    let wrong = form("token=open").await;
    assert_eq!(wrong.status, 401);
    assert!(!wrong.text().contains("role=\"alert\" hidden"));
    let right = form("token=open+sesame%2B").await;
    assert_eq!(right.status, 303);
    let cookie = right.headers["set-cookie"].to_str().unwrap();
    assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict") && !cookie.contains("sesame"));
    let pair = cookie.split(';').next().unwrap();
    assert_eq!(with(&server, "/api/models", "cookie", &format!("other=1; {pair}")).await.status, 200);
    assert_eq!(with(&server, "/api/models", "cookie", "bayespc_token=0").await.status, 401);
}

#[tokio::test]
async fn a_server_without_a_token_answers_only_to_names_of_this_machine() {
    let server = Server::new(&["rent"], Options::default());
    assert_eq!(with(&server, "/api/models", "host", "localhost:8080").await.status, 200);
    assert_eq!(with(&server, "/api/models", "host", "127.0.0.1:8080").await.status, 200);
    assert_eq!(with(&server, "/api/models", "host", "rebound.example").await.status, 403);
}
