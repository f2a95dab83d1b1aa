//! The time that a night takes after its documents are fingerprinted, as far as it can be expected before.

use std::time::Duration;

use nearprint_fault::Result;
use nearprint_join::Verifier;
use nearprint_storage::{Progress, blocking};

use crate::join_plan::{PlanRequest, estimated_seconds};
use crate::machine;
use crate::resources::Resources;

/// The number of existing fingerprints from which the speed of this machine is measured, which takes some tenths of a
/// second. With fewer of them, the scale of the cost model does.
const WORTH_MEASURING: u64 = 1 << 24;

/// The share by which the number of documents must change before the time is expected anew.
const CHANGE: f64 = 0.1;

/// Expects how long the joins of a night take, from the number of its documents.
#[derive(Debug)]
pub struct RemainingTime {
    keys: Vec<PlanRequest>,
    n_joins: u32,
    resources: Resources,
    measured_over_model: f64,
    /// The number of documents of the last expectation.
    expected_for: f64,
}

impl RemainingTime {
    /// Creates an expectation of `n_joins` joins with `existing` fingerprints, a number for each sorted run.
    ///
    /// # Errors
    /// The kernel of the join does not exist, or cannot run here.
    pub async fn new(
        existing: &[u64],
        (bits, verifier, own_verifier): (u32, Verifier, Verifier),
        n_joins: u32,
        resources: &Resources,
    ) -> Result<Self> {
        let existing_rows = existing.iter().sum();
        let (kernel, threads) = (resources.join_kernel()?, resources.n_threads());
        let measured_over_model = match existing_rows {
            WORTH_MEASURING.. => blocking("machine", move || machine::measured_over_model(kernel, threads)).await?,
            _ => 1.0,
        };
        let (runs, max_distance) = (existing.len() as u64, own_verifier.max_distance.into());
        let join = PlanRequest { existing_rows, query_rows: 0, bits, max_distance, runs, itself: true };
        let keys = join.of_keys(verifier, own_verifier);
        Ok(Self { keys, n_joins, resources: resources.clone(), measured_over_model, expected_for: 0.0 })
    }

    /// Tells the progress of the fingerprint stage what comes after it, when `n_documents` of the part that is done were
    /// collected. If the join cannot be planned, nothing is told: the join itself says why.
    #[allow(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "an estimate"
    )]
    pub(crate) fn tell(&mut self, n_documents: u32, progress: &Progress) {
        let now = progress.snapshot();
        if now.done == 0 || now.total == 0 || n_documents == 0 {
            return;
        }
        let n_expected = f64::from(n_documents) * now.total as f64 / now.done as f64;
        if (n_expected - self.expected_for).abs() <= CHANGE * self.expected_for {
            return;
        }
        self.expected_for = n_expected;
        if let Some(expected) = self.time(n_expected as u64) {
            progress.expect_after(expected);
        }
    }

    fn time(&self, n_documents: u64) -> Option<Duration> {
        let keys = self.keys.iter().map(|key| PlanRequest { query_rows: n_documents, ..key.clone() });
        let keys: Vec<PlanRequest> = keys.collect();
        let seconds = estimated_seconds(&keys, &self.resources, self.measured_over_model).ok()?;
        Duration::try_from_secs_f64(f64::from(self.n_joins) * seconds).ok()
    }
}

#[cfg(test)]
mod tests {
    use nearprint_join::WordKeys;

    use super::*;

    async fn told(existing: &[u64], n_joins: u32, seen: &[(u64, u32)]) -> Duration {
        let progress = Progress::default();
        progress.start("fingerprint", "bytes", 1_000);
        let verifier =
            Verifier { max_distance: 12, words: WordKeys::NONE, max_sketch_distance: Some(36), judged_to: None };
        let limits = (64, verifier, verifier);
        let mut ahead = RemainingTime::new(existing, limits, n_joins, &Resources::default()).await.unwrap();
        for (done, n_documents) in seen {
            progress.advance(*done);
            ahead.tell(*n_documents, &progress);
        }
        progress.snapshot().after
    }

    #[tokio::test]
    async fn the_expected_time_grows_with_documents_existing_fingerprints_and_joins() {
        let night = told(&[8 << 20], 1, &[(100, 50_000)]).await;
        assert!(night > Duration::from_millis(100), "{night:?}");
        assert!(told(&[8 << 20], 1, &[(100, 100_000)]).await > night);
        assert!(told(&[8 << 20, 8 << 20], 1, &[(100, 50_000)]).await > night);
        // Progress counts whole milliseconds of both.
        assert!(told(&[8 << 20], 2, &[(100, 50_000)]).await.abs_diff(2 * night) <= Duration::from_millis(1));
        // Twice the part that is done, with twice the documents, is the same night.
        assert_eq!(told(&[8 << 20], 1, &[(100, 50_000), (100, 101_000)]).await, night);
    }

    #[tokio::test]
    async fn nothing_is_expected_before_documents_are_read() {
        assert_eq!(told(&[8 << 20], 1, &[(0, 50_000)]).await, Duration::ZERO);
        assert_eq!(told(&[8 << 20], 1, &[(100, 0)]).await, Duration::ZERO);
    }
}
