//! The routes.

use std::convert::Infallible;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::from_fn_with_state;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use bytes::Bytes;
use futures::StreamExt;
use nearprint_lookup::Asked;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::answers::Side;
use crate::app::{App, Permit};
use crate::error::ServeError;
use crate::refusal::{Refusal, json_body};
use crate::{body, guard, metrics};

/// Returns the routes.
pub fn router(app: Arc<App>) -> Router {
    Router::new()
        .route("/", get(page))
        .route("/query", post(query))
        .route("/explain", post(explain))
        .route("/healthz", get(healthz))
        .route("/metrics", get(counts))
        .fallback(async || Refusal::usage(StatusCode::NOT_FOUND, format!("nothing is here: {HINT}")))
        .method_not_allowed_fallback(async || Refusal::usage(StatusCode::METHOD_NOT_ALLOWED, HINT))
        .layer(from_fn_with_state(Arc::clone(&app), guard::guard))
        .with_state(app)
}

const HINT: &str = "GET /, /healthz or /metrics, or POST /query or /explain";

/// The answers of one stream that are under way at a time.
const ANSWERS_AT_ONCE: usize = 8;

async fn page(State(app): State<Arc<App>>) -> Response {
    app.page.response()
}

async fn query(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Result<Response, Refusal> {
    let permit = app.permit()?;
    match media_type(&headers) {
        Some("application/json") => {
            let (max_body, patience) = (app.options.max_body, app.options.timeouts.body);
            let question = parsed(&body::whole(body, max_body, patience).await?)?;
            let answer = answered(&app, question).await.map_err(|(refusal, _)| refusal)?;
            Ok(json_body(&answer).into_response())
        }
        Some(NDJSON) => Ok(stream(app, permit, body)),
        _ => Err(unsupported("application/json or application/x-ndjson")),
    }
}

const NDJSON: &str = "application/x-ndjson";

/// Answers the lines of a body in their order. A bad line has an error in its place.
fn stream(app: Arc<App>, permit: Permit, body: Body) -> Response {
    let (max_body, patience) = (app.options.max_body, app.options.timeouts.body);
    let answers = body::lines(body, max_body, patience).map(move |line| {
        let app = Arc::clone(&app);
        async move {
            // A task of its own, so that several threads answer one stream.
            let of_line = Arc::clone(&app);
            let answer = tokio::spawn(async move { line_answer(&of_line, line).await }).await;
            let answer = answer.unwrap_or_else(|error| {
                app.metrics.panics.inc();
                app.metrics.answer(None);
                internal("stream", &error).json()
            });
            Ok::<_, Infallible>(Bytes::from(answer.to_string() + "\n"))
        }
    });
    let answers = answers.buffered(ANSWERS_AT_ONCE).map(move |answer| {
        // The permit is held until the body ends.
        let _held = &permit;
        answer
    });
    ([(header::CONTENT_TYPE, NDJSON)], Body::from_stream(answers)).into_response()
}

async fn line_answer(app: &App, line: Result<String, Refusal>) -> Value {
    match line.and_then(|line| parsed(line.as_bytes())) {
        Ok(question) => answered(app, question).await.unwrap_or_else(|(refusal, id)| with_id(refusal.json(), id)),
        Err(refusal) => refusal.json(),
    }
}

/// A question. The answer has the same id.
#[derive(Deserialize)]
struct Question {
    id: Option<Value>,
    #[serde(flatten)]
    asked: Asked,
}

/// Returns the answer, or the refusal, with the id of the question.
async fn answered(app: &App, Question { id, asked }: Question) -> Result<Value, (Refusal, Option<Value>)> {
    let outcome = app.answers.answer(asked).await;
    app.metrics
        .answer(outcome.as_ref().ok().map(|answer| (answer.n_matches, answer.read.map_or(0, |read| read.bytes_read))));
    let json = outcome.map_err(Refusal::from);
    let json = json.and_then(|answer| serde_json::to_value(answer).map_err(|error| internal("answer", &error)));
    match json {
        Ok(json) => Ok(with_id(json, id)),
        Err(refusal) => Err((refusal, id)),
    }
}

fn with_id(mut json: Value, id: Option<Value>) -> Value {
    if let Some(id) = id {
        json["id"] = id;
    }
    json
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Comparison {
    a: Side,
    b: Side,
}

async fn explain(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Result<Response, Refusal> {
    let _permit = app.permit()?;
    if media_type(&headers) != Some("application/json") {
        return Err(unsupported("application/json"));
    }
    let Comparison { a, b } = parsed(&body::whole(body, app.options.max_body, app.options.timeouts.body).await?)?;
    let _comparison = app.comparison()?;
    let patience = app.options.timeouts.comparison;
    let explanation = timeout(patience, app.answers.explain(a, b)).await.map_err(|_| Refusal::too_long(patience))??;
    let json = serde_json::to_value(explanation).map_err(|error| internal("explain", &error))?;
    Ok(json_body(&json).into_response())
}

async fn healthz(State(app): State<Arc<App>>) -> impl IntoResponse {
    let state = app.answers.state();
    let stale = app.stale();
    json_body(&json!({
        "status": if stale.is_some() { "stale" } else { "ok" },
        "refresh_error": stale.map(nearprint_storage::ErrorKind::name),
        "commit": state.commit,
        "n_nights": state.n_nights,
        "n_live_rows": state.n_live_rows,
        "has_texts": app.answers.has_texts(),
        "needs_token": app.options.token.is_some(),
    }))
}

async fn counts(State(app): State<Arc<App>>) -> Result<impl IntoResponse, Refusal> {
    let text = app.metrics.text().map_err(|error| internal("metrics", &error))?;
    Ok(([(header::CONTENT_TYPE, metrics::MEDIA_TYPE)], text))
}

fn parsed<T: DeserializeOwned>(json: &[u8]) -> Result<T, Refusal> {
    serde_json::from_slice(json).map_err(|error| Refusal::usage(StatusCode::BAD_REQUEST, format!("the JSON: {error}")))
}

fn internal(stage: &'static str, error: &dyn std::fmt::Display) -> Refusal {
    ServeError::Internal { stage, reason: error.to_string() }.into()
}

/// Returns the media type of a body, without its parameters.
fn media_type(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(str::trim)
}

fn unsupported(expected: &str) -> Refusal {
    Refusal::usage(StatusCode::UNSUPPORTED_MEDIA_TYPE, format!("send `Content-Type: {expected}`"))
}
