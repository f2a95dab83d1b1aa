//! Bodies of requests, which are bounded in bytes and in time.

use std::io;
use std::time::Duration;

use axum::body::{Body, HttpBody};
use axum::http::StatusCode;
use bytes::Bytes;
use futures::{Stream, StreamExt, TryStreamExt};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use tokio::time::{Instant, timeout};
use tokio_util::codec::{AnyDelimiterCodec, AnyDelimiterCodecError, FramedRead};
use tokio_util::io::StreamReader;

use crate::options::Timeouts;
use crate::refusal::Refusal;

/// Reads a whole body. A body whose length is announced and too large is not read at all.
pub async fn whole(body: Body, max_bytes: usize, patience: Duration) -> Result<Bytes, Refusal> {
    if body.size_hint().lower() > max_bytes as u64 {
        return Err(Refusal::too_large(max_bytes));
    }
    match timeout(patience, Limited::new(body, max_bytes).collect()).await {
        Err(_) => Err(Refusal::too_slow()),
        Ok(Ok(collected)) => Ok(collected.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Refusal::too_large(max_bytes)),
        Ok(Err(_)) => Err(incomplete()),
    }
}

/// Returns the lines of a body, without blank ones. After an error there are no more. It is an error if a line, or the
/// whole body, does not arrive in time.
pub fn lines(body: Body, max_bytes: usize, timeouts: Timeouts) -> impl Stream<Item = Result<Bytes, Refusal>> {
    let reader = StreamReader::new(TryStreamExt::map_err(body.into_data_stream(), io::Error::other));
    let lines = FramedRead::new(reader, AnyDelimiterCodec::new_with_max_length(b"\n".to_vec(), Vec::new(), max_bytes));
    let end = Instant::now() + timeouts.stream;
    let next = move |lines: Option<FramedRead<_, AnyDelimiterCodec>>| async move {
        let mut lines = lines?;
        loop {
            let left = end.saturating_duration_since(Instant::now());
            let next = async { if left.is_zero() { std::future::pending().await } else { lines.next().await } };
            let line = match timeout(timeouts.body.min(left), next).await {
                Err(_) if left <= timeouts.body => Err(Refusal::stream_over(timeouts.stream)),
                Err(_) => Err(Refusal::too_slow()),
                Ok(None) => return None,
                Ok(Some(Ok(line))) if line.trim_ascii().is_empty() => continue,
                Ok(Some(line)) => line.map_err(|error| of_line(&error, max_bytes)),
            };
            let rest = line.is_ok().then_some(lines);
            return Some((line, rest));
        }
    };
    futures::stream::unfold(Some(lines), next)
}

fn of_line(error: &AnyDelimiterCodecError, max_bytes: usize) -> Refusal {
    match error {
        AnyDelimiterCodecError::MaxChunkLengthExceeded => Refusal::too_large(max_bytes),
        AnyDelimiterCodecError::Io(_) => incomplete(),
    }
}

fn incomplete() -> Refusal {
    Refusal::usage(StatusCode::BAD_REQUEST, "the body ended too early")
}
