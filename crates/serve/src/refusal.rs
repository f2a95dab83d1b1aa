//! Requests that get no answer: a status, and JSON with the kind and the message.

use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use nearprint_fault::{ErrorKind, Fault};
use nearprint_store::with_repair;
use serde_json::{Value, json};

/// The reason why a request gets no answer.
#[derive(Debug)]
pub struct Refusal {
    pub status: StatusCode,
    pub kind: ErrorKind,
    pub message: String,
}

impl Refusal {
    pub fn usage(status: StatusCode, message: impl Into<String>) -> Self {
        Self { status, kind: ErrorKind::Usage, message: message.into() }
    }

    pub fn too_large(max_body: usize) -> Self {
        let message = format!("more than {max_body} bytes: send less at once, or raise `--max-body` of the server");
        Self::usage(StatusCode::PAYLOAD_TOO_LARGE, message)
    }

    pub fn too_slow() -> Self {
        let message = "the body did not arrive in time: try again".to_owned();
        Self { status: StatusCode::REQUEST_TIMEOUT, kind: ErrorKind::TryAgain, message }
    }

    pub fn stream_over(longest: Duration) -> Self {
        let seconds = longest.as_secs_f64();
        let message =
            format!("this stream has lasted {seconds} s, and none may last longer: send the rest in another one");
        Self { status: StatusCode::REQUEST_TIMEOUT, kind: ErrorKind::TryAgain, message }
    }

    pub fn too_long(patience: Duration) -> Self {
        let seconds = patience.as_secs_f64();
        let message =
            format!("the comparison takes more than {seconds} s: compare the texts themselves, or shorter ones");
        Self { status: StatusCode::SERVICE_UNAVAILABLE, kind: ErrorKind::TryAgain, message }
    }

    pub fn busy() -> Self {
        let message = "as many requests as the server takes are under way: try again".to_owned();
        Self { status: StatusCode::SERVICE_UNAVAILABLE, kind: ErrorKind::TryAgain, message }
    }

    pub fn no_token() -> Self {
        let message = "send the server's token: `Authorization: Bearer …`".to_owned();
        Self { status: StatusCode::UNAUTHORIZED, kind: ErrorKind::Permission, message }
    }

    /// The JSON of a refusal, which is that of a bad line in a stream too.
    pub fn json(&self) -> Value {
        json!({ "status": "failed", "kind": self.kind.name(), "error": self.message })
    }
}

impl From<Fault> for Refusal {
    fn from(error: Fault) -> Self {
        let error = with_repair(error);
        let status = match error.kind() {
            ErrorKind::Usage => StatusCode::BAD_REQUEST,
            ErrorKind::InputMissing => StatusCode::NOT_FOUND,
            ErrorKind::StoreUnavailable | ErrorKind::TryAgain => StatusCode::SERVICE_UNAVAILABLE,
            _ => StatusCode::INTERNAL_SERVER_ERROR,
        };
        let (kind, message) = (error.kind(), error.to_string());
        if status.is_server_error() && status != StatusCode::SERVICE_UNAVAILABLE {
            // The client gets it too, and may not be the one who can mend the store.
            tracing::error!(kind = kind.name(), "{message}");
        }
        Self { status, kind, message }
    }
}

/// The seconds after which a client that was refused for now may come again.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("1");

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        let mut response = (self.status, json_body(&self.json())).into_response();
        let headers = response.headers_mut();
        match self.status {
            StatusCode::SERVICE_UNAVAILABLE => drop(headers.insert(header::RETRY_AFTER, RETRY_AFTER)),
            StatusCode::UNAUTHORIZED => {
                drop(headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer")));
            }
            // The rest of such a body is not read, so that nothing can follow it on the connection.
            StatusCode::PAYLOAD_TOO_LARGE | StatusCode::REQUEST_TIMEOUT => {
                drop(headers.insert(header::CONNECTION, HeaderValue::from_static("close")));
            }
            _ => {}
        }
        response
    }
}

/// A body of JSON with its line break.
pub fn json_body(value: &Value) -> impl IntoResponse + use<> {
    ([(header::CONTENT_TYPE, "application/json")], value.to_string() + "\n")
}
