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
use nearprint_fault::Fault;
use nearprint_lookup::{Answer, JsonQuery, Taken, Turn, Turns};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::answers::Side;
use crate::app::{App, Permit};
use crate::options::ServeOptions;
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
/// The most bytes of an answer whose next one is looked up before its client has taken it.
const ANSWER_AHEAD_BYTES: usize = 128 << 10;

async fn page(State(app): State<Arc<App>>) -> Response {
    app.page.response()
}

async fn query(State(app): State<Arc<App>>, headers: HeaderMap, body: Body) -> Result<Response, Refusal> {
    let permit = app.permit()?;
    match media_type(&headers).as_deref() {
        Some(JSON) => {
            let (max_body, patience) = (app.options.max_body, app.options.timeouts.body);
            let question = parsed(&body::whole(body, max_body, patience).await?)?;
            let answer = answered(&app, question, Turn::default()).await.map_err(|(refusal, _)| refusal)?;
            Ok(([(header::CONTENT_TYPE, JSON)], answer).into_response())
        }
        Some(NDJSON) => Ok(stream(app, permit, body)),
        _ => Err(unsupported("application/json or application/x-ndjson")),
    }
}

const JSON: &str = "application/json";
const NDJSON: &str = "application/x-ndjson";

/// Answers the lines of a body in their order. A bad line has an error in its place.
fn stream(app: Arc<App>, permit: Permit, body: Body) -> Response {
    let ServeOptions { max_body, timeouts, .. } = app.options;
    // The lines of a stream that are under way have as many bytes as one may have.
    let bytes = Arc::new(Semaphore::new(max_body));
    let lines = body::lines(body, max_body, timeouts).then(move |line| {
        let n_bytes = line.as_ref().map_or(0, |line| line.len().min(max_body));
        let bytes = Arc::clone(&bytes).acquire_many_owned(u32::try_from(n_bytes).unwrap_or(u32::MAX));
        async move { (line, bytes.await) }
    });
    let mut turns = Turns::new(ANSWER_AHEAD_BYTES);
    let answers = lines.map(move |(line, bytes)| {
        let (app, turn) = (Arc::clone(&app), turns.another());
        async move {
            // A task of its own, so that several threads answer one stream. It ends with its stream.
            let (of_line, mut answering) = (Arc::clone(&app), JoinSet::new());
            answering.spawn(async move {
                let answer = line_answer(&of_line, line, turn).await;
                drop(bytes);
                answer
            });
            let failed = |error: &dyn std::fmt::Display| {
                app.metrics.panics.inc();
                app.metrics.answer(None);
                line_of(&internal("stream", error).json())
            };
            Ok::<_, Infallible>(match answering.join_next().await {
                Some(Ok(answer)) => answer,
                Some(Err(error)) => failed(&error),
                None => failed(&"a line has no task"),
            })
        }
    });
    let answers = answers.buffered(ANSWERS_AT_ONCE).map(move |answer| {
        // The permit is held until the body ends.
        let _held = &permit;
        answer
    });
    ([(header::CONTENT_TYPE, NDJSON)], Body::from_stream(answers)).into_response()
}

async fn line_answer(app: &App, line: Result<Bytes, Refusal>, turn: Turn) -> Bytes {
    match line.and_then(|line| parsed(&line)) {
        Ok(question) => {
            let answer = answered(app, question, turn).await;
            answer.unwrap_or_else(|(refusal, id)| line_of(&with_id(refusal.json(), id)))
        }
        Err(refusal) => line_of(&refusal.json()),
    }
}

fn line_of(json: &Value) -> Bytes {
    Bytes::from(json.to_string() + "\n")
}

/// A question. The answer has the same id.
#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct Question {
    id: Option<Value>,
    #[serde(flatten)]
    asked: JsonQuery,
}

/// The answer to a question.
#[derive(Serialize)]
struct Answered<'a> {
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Value>,
    #[serde(flatten)]
    answer: &'a Answer,
}

/// The JSON of an answer, and the memory that it takes until it was sent.
struct Held {
    json: Vec<u8>,
    _taken: Taken,
}

impl AsRef<[u8]> for Held {
    fn as_ref(&self) -> &[u8] {
        &self.json
    }
}

/// Returns the line of the answer, or the refusal, with the id of the question.
async fn answered(app: &App, Question { id, asked }: Question, turn: Turn) -> Result<Bytes, (Refusal, Option<Value>)> {
    let outcome = app.answers.answer(asked, turn).await;
    let counted = outcome.as_ref().ok().map(|(answer, _)| answer);
    app.metrics.answer(counted.map(|answer| (answer.n_matches, answer.read.map_or(0, |read| read.bytes_read))));
    let rendered = outcome.map_err(Refusal::from).and_then(|(answer, mut taken)| {
        let mut json = serde_json::to_vec(&Answered { id: id.as_ref(), answer: &answer })
            .map_err(|error| internal("answer", &error))?;
        json.push(b'\n');
        json.shrink_to_fit();
        drop(answer);
        taken.keep(json.len());
        Ok(Bytes::from_owner(Held { json, _taken: taken }))
    });
    rendered.map_err(|refusal| (refusal, id))
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
    if media_type(&headers).as_deref() != Some(JSON) {
        return Err(unsupported(JSON));
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
        "refresh_error": stale.map(nearprint_fault::ErrorKind::name),
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
    let json = json.strip_prefix("\u{feff}".as_bytes()).unwrap_or(json);
    serde_json::from_slice(json).map_err(|error| Refusal::usage(StatusCode::BAD_REQUEST, format!("the JSON: {error}")))
}

fn internal(stage: &'static str, error: &dyn std::fmt::Display) -> Refusal {
    Fault::internal(stage, error).into()
}

/// Returns the media type of a body in lower case, without its parameters.
fn media_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().ok()?;
    value.split(';').next().map(|name| name.trim().to_ascii_lowercase())
}

fn unsupported(expected: &str) -> Refusal {
    Refusal::usage(StatusCode::UNSUPPORTED_MEDIA_TYPE, format!("send `Content-Type: {expected}`"))
}
