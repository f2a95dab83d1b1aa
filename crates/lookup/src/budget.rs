//! The bytes that the queries under way take together.
//!
//! There are two budgets, and both are first come, first served. **Rows** have the near rows of a query and the matches
//! that its answer lists. They are taken in one step, before the first row is held, and are kept until whoever asked has
//! done with the answer. **Reads** have what one read of a file holds. They are taken before the read and given back
//! after it.
//!
//! Nobody waits for ever. Whoever holds bytes of a read waits for the file alone. Whoever holds rows may wait for reads,
//! and for the answers before its own: these hold their rows already, because queries whose answers come in an order
//! take their rows in that order (see [`Turns`]).

use std::sync::Arc;

use nearprint_fault::{Fault, Result};
use tokio::sync::oneshot::{self, error::TryRecvError};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// The bytes that are counted as one.
const UNIT: usize = 1 << 10;

/// Bytes that many queries share.
#[derive(Debug, Clone)]
pub struct Budget {
    free: Arc<Semaphore>,
    units: u32,
}

/// Bytes of a query under way. They are given back when this is dropped.
#[derive(Debug, Default)]
pub struct Taken {
    permit: Option<OwnedSemaphorePermit>,
    next: Option<Next>,
}

impl Budget {
    pub fn new(bytes: usize) -> Self {
        // 32 bits of units are 4 TiB.
        let units = u32::try_from(bytes / UNIT).unwrap_or(u32::MAX).max(1);
        Self { free: Arc::new(Semaphore::new(units as usize)), units }
    }

    /// Returns all bytes, the taken ones too.
    pub fn bytes(&self) -> usize {
        self.units as usize * UNIT
    }

    /// Waits until so many bytes are free, and takes them. Whoever needs more than there are takes all, and so is alone.
    ///
    /// # Errors
    /// Only a defect is an error.
    pub async fn take(&self, bytes: usize) -> Result<Taken> {
        let units = u32::try_from(bytes.div_ceil(UNIT)).unwrap_or(u32::MAX).min(self.units);
        let permit = Arc::clone(&self.free).acquire_many_owned(units).await;
        let internal = |error: tokio::sync::AcquireError| Fault::internal("query", error);
        Ok(Taken { permit: Some(permit.map_err(internal)?), next: None })
    }

    /// Takes bytes when the turn has come. Then the next query has its turn, unless this one holds too much for that.
    ///
    /// # Errors
    /// Those of [`take`](Self::take).
    pub async fn take_in_turn(&self, bytes: usize, mut turn: Turn) -> Result<Taken> {
        turn.come().await;
        let mut taken = self.take(bytes).await?;
        taken.next = turn.next.take().filter(|(_, most)| bytes > *most);
        Ok(taken)
    }
}

impl Taken {
    /// Gives back all but so many bytes.
    pub fn keep(&mut self, bytes: usize) {
        if let Some(permit) = &mut self.permit {
            let more = permit.num_permits().saturating_sub(bytes.div_ceil(UNIT));
            drop(permit.split(more));
        }
        if self.next.as_ref().is_some_and(|(_, most)| bytes <= *most) {
            self.next = None;
        }
    }
}

/// The turns of queries whose answers are given in an order.
#[derive(Debug)]
pub struct Turns {
    most_held: usize,
    last: Option<oneshot::Receiver<Passed>>,
}

/// The turn of one of them to take memory. A turn that is dropped passes to the next query, but not before its time.
#[derive(Debug, Default)]
pub struct Turn {
    before: Option<oneshot::Receiver<Passed>>,
    next: Option<Next>,
}

/// Whoever has the next turn, and the most bytes that this query may hold while the next one takes some.
type Next = (oneshot::Sender<Passed>, usize);

/// The turn is passed on: it comes when this one has come, if it has not come yet.
#[derive(Debug)]
struct Passed(Option<oneshot::Receiver<Passed>>);

impl Turns {
    /// A query that holds more than `most_held` bytes lets the next one take some when its own answer is dropped. So
    /// answers that wait for those before them, or for a client, hold few bytes.
    #[must_use]
    pub fn new(most_held: usize) -> Self {
        Self { most_held, last: None }
    }

    /// Returns the turn after those that were returned before.
    pub fn another(&mut self) -> Turn {
        let (sender, receiver) = oneshot::channel();
        Turn { before: self.last.replace(receiver), next: Some((sender, self.most_held)) }
    }
}

impl Turn {
    /// Returns whether no other query waits for this one.
    #[must_use]
    pub fn is_alone(&self) -> bool {
        self.before.is_none() && self.next.is_none()
    }

    async fn come(&mut self) {
        // A sender that was dropped has passed the turn on too.
        while let Some(before) = &mut self.before {
            self.before = before.await.ok().and_then(|Passed(earlier)| earlier);
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // What was passed on already is left out, so that no chain grows with the number of queries.
        while let Some(before) = &mut self.before {
            self.before = match before.try_recv() {
                Ok(Passed(earlier)) => earlier,
                Err(TryRecvError::Closed) => None,
                Err(TryRecvError::Empty) => break,
            };
        }
        if let Some((next, _)) = self.next.take() {
            // Nobody may be next.
            let _ = next.send(Passed(self.before.take()));
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use futures::FutureExt;

    use super::{Budget, Turns, UNIT};

    #[tokio::test]
    async fn bytes_are_given_back_and_whoever_needs_more_than_there_are_is_alone() {
        let budget = Budget::new(4 * UNIT);
        let mut all = budget.take(100 * UNIT).await.unwrap();
        assert!(budget.take(1).now_or_never().is_none());
        assert!(budget.take(0).now_or_never().is_some(), "nothing is always there");
        all.keep(3 * UNIT);
        let one = budget.take(1).now_or_never().unwrap().unwrap();
        assert!(budget.take(1).now_or_never().is_none());
        drop((all, one));
        assert!(budget.take(4 * UNIT).now_or_never().is_some());
    }

    #[tokio::test]
    async fn turns_come_in_their_order_even_if_some_are_not_used() {
        let (budget, mut turns) = (Budget::new(4 * UNIT), Turns::new(UNIT));
        let (first, unused, third) = (turns.another(), turns.another(), turns.another());
        drop(unused);
        let mut third = Box::pin(budget.take_in_turn(1, third));
        assert!((&mut third).now_or_never().is_none(), "the first has not come yet");
        let mut first = budget.take_in_turn(2 * UNIT, first).now_or_never().unwrap().unwrap();
        assert!((&mut third).now_or_never().is_none(), "the first holds too much for another one");
        first.keep(UNIT);
        assert!((&mut third).now_or_never().unwrap().is_ok());
        // Any number of them may pass: a chain of them would overflow the stack.
        (0..1_000_000).for_each(|_| drop(turns.another()));
        assert!(budget.take_in_turn(1, turns.another()).now_or_never().is_some());
    }
}
