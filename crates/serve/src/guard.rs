//! The guard of the routes, which acts on every request before and after its route.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Instant;

use axum::extract::{Request, State};
use axum::http::uri::Authority;
use axum::http::{HeaderName, HeaderValue, StatusCode, Version, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use crate::app::App;
use crate::refusal::Refusal;

/// The headers of every response.
const HEADERS: [(HeaderName, HeaderValue); 4] = [
    (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
    (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
    (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
    (HeaderName::from_static("cross-origin-resource-policy"), HeaderValue::from_static("same-origin")),
];

/// Refuses strangers, and counts and logs what happens to the request. Where there is a token, a request without it
/// closes its connection, so that only those who have the token keep one.
pub async fn guard(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let started = Instant::now();
    let route = route(request.uri().path());
    let method = request.method().clone();
    let is_strange = app.options.token.is_some() && !carries_token(&app, &request);
    let mut response = match refuse(&app, &request) {
        Some(refusal) => refusal.into_response(),
        None => next.run(request).await,
    };
    response.headers_mut().extend(HEADERS);
    if is_strange {
        response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    let (status, time) = (response.status().as_u16(), started.elapsed());
    app.metrics.request(route, status, time);
    tracing::debug!(%method, route, status, elapsed_us = time.as_micros(), "request");
    response
}

/// Returns the name of the route for counts and logs. A path that a stranger made up is in neither.
fn route(path: &str) -> &'static str {
    ["/", "/query", "/explain", "/healthz", "/metrics"].into_iter().find(|known| *known == path).unwrap_or("other")
}

/// The page and the health tell nothing about documents, so that they need no token.
fn is_open(path: &str) -> bool {
    matches!(path, "/" | "/healthz")
}

fn refuse(app: &App, request: &Request) -> Option<Refusal> {
    let n_hosts = request.headers().get_all(header::HOST).iter().count();
    if n_hosts > 1 || (n_hosts == 0 && request.version() == Version::HTTP_11) {
        return Some(Refusal::usage(StatusCode::BAD_REQUEST, "send one `Host` header"));
    }
    if app.options.token.is_none() {
        return (!is_of_this_machine(request)).then(|| {
            let message = "without a token, the server answers to localhost alone: open it by that name";
            Refusal::usage(StatusCode::MISDIRECTED_REQUEST, message)
        });
    }
    (!carries_token(app, request) && !is_open(request.uri().path())).then(Refusal::no_token)
}

fn carries_token(app: &App, request: &Request) -> bool {
    let authorization = request.headers().get(header::AUTHORIZATION);
    app.options.token.as_ref().zip(authorization).is_some_and(|(token, value)| token.is_in(value.as_bytes()))
}

/// Returns whether the request names its host as one of this machine. A page of a stranger whose name was made to mean
/// 127.0.0.1 reaches the server under that name, and may read answers if the server does not look at it.
fn is_of_this_machine(request: &Request) -> bool {
    let named = request.headers().get(header::HOST).and_then(|host| host.to_str().ok());
    // A target with a host of its own goes before the header (RFC 9112, section 3.2.2).
    let target = request.uri().authority().cloned();
    let Some(authority) = target.or_else(|| named?.parse::<Authority>().ok()) else {
        return false;
    };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}
