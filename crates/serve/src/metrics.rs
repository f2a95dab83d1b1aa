//! Counts for Prometheus.

use std::fmt;
use std::sync::atomic::AtomicU64;
use std::time::Duration;

use nearprint_lookup::State;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::{Registry, Unit};

/// The media type of the counts.
pub const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The upper bounds of the times of requests, in seconds.
const SECONDS: [f64; 12] = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 10.0];

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfRequest {
    route: &'static str,
    status: u16,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfRoute {
    route: &'static str,
}

#[derive(Debug, Clone, Hash, PartialEq, Eq, EncodeLabelSet)]
struct OfAnswer {
    result: &'static str,
}

/// The counts of a server.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    requests: Family<OfRequest, Counter>,
    times: Family<OfRoute, Histogram>,
    answers: Family<OfAnswer, Counter>,
    pub open: Gauge,
    pub connections: Gauge,
    pub panics: Counter,
    refresh_failures: Counter,
    is_stale: Gauge,
    commit: Gauge,
    nights: Gauge,
    rows: Gauge,
    scanned_rows: Gauge,
    bytes_read: Counter<u64, AtomicU64>,
}

impl Metrics {
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("nearprint"),
            requests: Family::default(),
            times: Family::new_with_constructor(|| Histogram::new(SECONDS)),
            answers: Family::default(),
            open: Gauge::default(),
            connections: Gauge::default(),
            panics: Counter::default(),
            refresh_failures: Counter::default(),
            is_stale: Gauge::default(),
            commit: Gauge::default(),
            nights: Gauge::default(),
            rows: Gauge::default(),
            scanned_rows: Gauge::default(),
            bytes_read: Counter::default(),
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let to = &mut self.registry;
        to.register("requests", "Requests by route and status", self.requests.clone());
        let help = "Time from the head of a request to the head of its response";
        to.register_with_unit("request", help, Unit::Seconds, self.times.clone());
        to.register("answers", "Answers by result: match, no_match or failed", self.answers.clone());
        to.register("open_requests", "Requests for answers that are under way", self.open.clone());
        to.register("connections", "Open connections", self.connections.clone());
        to.register("panics", "Connections and lines of streams that a defect ended", self.panics.clone());
        to.register("refresh_failures", "Failed looks for a new commit", self.refresh_failures.clone());
        to.register("stale", "1 if the last look for a new commit failed", self.is_stale.clone());
        to.register("commit", "Number of the commit that answers come from", self.commit.clone());
        to.register("nights", "Nights of that commit", self.nights.clone());
        to.register("live_rows", "Documents with a fingerprint that answers may name", self.rows.clone());
        to.register("scanned_rows", "Documents with a fingerprint that no index covers", self.scanned_rows.clone());
        let help = "Bytes that answers read from files of the store";
        to.register_with_unit("answer_read", help, Unit::Bytes, self.bytes_read.clone());
    }

    pub fn request(&self, route: &'static str, status: u16, time: Duration) {
        self.requests.get_or_create(&OfRequest { route, status }).inc();
        self.times.get_or_create(&OfRoute { route }).observe(time.as_secs_f64());
    }

    /// Counts an answer with its matches and the bytes that it read, or one that failed.
    pub fn answer(&self, answer: Option<(u64, u64)>) {
        let result = match answer {
            None => "failed",
            Some((0, _)) => "no_match",
            Some(_) => "match",
        };
        self.answers.get_or_create(&OfAnswer { result }).inc();
        self.bytes_read.inc_by(answer.map_or(0, |(_, bytes)| bytes));
    }

    pub fn state(&self, state: &State) {
        // A gauge counts to 2^63.
        let set = |gauge: &Gauge, value: u64| gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        set(&self.commit, state.commit);
        set(&self.nights, state.n_nights);
        set(&self.rows, state.n_live_rows);
        set(&self.scanned_rows, state.n_scanned_rows);
    }

    pub fn refreshed(&self, succeeded: bool) {
        self.is_stale.set(i64::from(!succeeded));
        if !succeeded {
            self.refresh_failures.inc();
        }
    }

    /// Returns the counts in the text format of Prometheus.
    pub fn text(&self) -> Result<String, fmt::Error> {
        let mut text = String::new();
        encode(&mut text, &self.registry)?;
        Ok(text)
    }
}
