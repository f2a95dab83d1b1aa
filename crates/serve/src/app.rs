//! The state that all requests share.

use std::sync::Arc;

use nearprint_fault::ErrorKind;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use crate::answers::Answers;
use crate::follow::Followed;
use crate::metrics::Metrics;
use crate::options::ServeOptions;
use crate::page::Page;
use crate::refusal::Refusal;

/// The state that all requests share.
pub struct App {
    pub answers: Arc<dyn Answers>,
    pub options: ServeOptions,
    pub metrics: Metrics,
    pub followed: Followed,
    pub page: Page,
    requests: Arc<Semaphore>,
    /// A comparison reads documents of a night, so that there is one at a time.
    comparisons: Arc<Semaphore>,
}

/// The right to work on a request. It is given back when it is dropped.
#[derive(Debug)]
pub struct Permit {
    _request: OwnedSemaphorePermit,
    open: prometheus_client::metrics::gauge::Gauge,
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.open.dec();
    }
}

impl App {
    pub fn new(answers: Arc<dyn Answers>, options: ServeOptions) -> Self {
        let requests = Arc::new(Semaphore::new(options.max_requests));
        let metrics = Metrics::new();
        metrics.state(&answers.state());
        let comparisons = Arc::new(Semaphore::new(1));
        Self { answers, options, metrics, followed: Followed::default(), page: Page::new(), requests, comparisons }
    }

    /// Returns the right to work on a request, or a refusal if as many as allowed are under way.
    pub fn permit(&self) -> Result<Permit, Refusal> {
        let request = Arc::clone(&self.requests).try_acquire_owned().map_err(|_| Refusal::busy())?;
        let open = self.metrics.open.clone();
        open.inc();
        Ok(Permit { _request: request, open })
    }

    /// Returns the right to compare documents.
    pub fn comparison(&self) -> Result<OwnedSemaphorePermit, Refusal> {
        let busy = || Refusal { message: "another comparison is under way: try again".to_owned(), ..Refusal::busy() };
        Arc::clone(&self.comparisons).try_acquire_owned().map_err(|_| busy())
    }

    /// Returns the number of requests that are under way.
    pub fn n_open(&self) -> usize {
        self.options.max_requests - self.requests.available_permits()
    }

    /// Goes on to the newest commit, if there is a new one.
    pub async fn follow(&self) {
        let outcome = self.answers.refresh().await;
        self.metrics.refreshed(outcome.is_ok());
        self.metrics.state(&self.answers.state());
        if let Ok(true) = outcome {
            tracing::info!(commit = self.answers.state().commit, "a new commit");
        }
        self.followed.set(outcome.err());
    }

    /// Returns the kind of the error that keeps the server from following new commits.
    pub fn stale(&self) -> Option<ErrorKind> {
        self.followed.failure()
    }
}
