//! The places of connections. If all are taken, the idle connection that has waited longest makes place for a new one.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nearprint_storage::locked;
use tokio::sync::{Notify, OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// The places that connections may take.
#[derive(Debug)]
pub struct Places {
    free: Arc<Semaphore>,
    taken: Mutex<HashMap<u64, Arc<Use>>>,
}

/// A place, which is free again when this is dropped.
#[derive(Debug)]
pub struct Place {
    places: Arc<Places>,
    number: u64,
    used: Arc<Use>,
    _permit: OwnedSemaphorePermit,
}

/// The use that the connection in a place makes of it.
#[derive(Debug)]
pub struct Use {
    state: Mutex<State>,
    ended: Notify,
}

#[derive(Debug, Clone, Copy)]
enum State {
    /// The connection waits for the head of a request, since then.
    Idle(Instant),
    /// A request is under way, since then.
    Busy(Instant),
    /// The connection makes place for another.
    Ended,
}

/// A request under way. When this is dropped, its connection is idle again.
#[derive(Debug)]
pub struct Busy(Arc<Use>);

/// The time after which a connection without a place looks for an idle one again.
const LOOK_AGAIN: Duration = Duration::from_millis(50);

impl Places {
    pub fn new(n: usize) -> Arc<Self> {
        Arc::new(Self { free: Arc::new(Semaphore::new(n)), taken: Mutex::default() })
    }

    /// Gives the connection `number` a place. While none is free, idle connections end, one after another.
    pub async fn take(self: &Arc<Self>, number: u64) -> Place {
        let permit = loop {
            if let Ok(permit) = Arc::clone(&self.free).try_acquire_owned() {
                break permit;
            }
            self.end_one();
            match timeout(LOOK_AGAIN, Arc::clone(&self.free).acquire_owned()).await {
                Ok(Ok(permit)) => break permit,
                // Nothing closes the semaphore.
                Ok(Err(_)) => sleep(LOOK_AGAIN).await,
                Err(_) => {}
            }
        };
        let used = Arc::new(Use { state: Mutex::new(State::Idle(Instant::now())), ended: Notify::new() });
        locked(&self.taken).insert(number, Arc::clone(&used));
        Place { places: Arc::clone(self), number, used, _permit: permit }
    }

    /// Ends the idle connection that has waited longest, if there is one.
    fn end_one(&self) {
        let taken = locked(&self.taken);
        let idle = taken.values().filter_map(|used| Some((used.idle_since()?, used)));
        if let Some((_, used)) = idle.min_by_key(|(since, _)| *since) {
            used.end();
        }
    }
}

impl Place {
    pub fn used(&self) -> Arc<Use> {
        Arc::clone(&self.used)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        locked(&self.places.taken).remove(&self.number);
    }
}

impl Use {
    /// Notes that a request has begun. Returns `None` if the connection is about to end, and answers nothing any more.
    pub fn begin(self: &Arc<Self>) -> Option<Busy> {
        let mut state = locked(&self.state);
        if let State::Ended = *state {
            return None;
        }
        *state = State::Busy(Instant::now());
        Some(Busy(Arc::clone(self)))
    }

    /// Waits until the connection must end: because it makes place for another, or because its request has lasted for
    /// `longest`.
    pub async fn over(&self, longest: Duration) {
        tokio::select! {
            () = self.ended.notified() => {}
            () = self.overdue(longest) => {}
        }
    }

    async fn overdue(&self, longest: Duration) {
        loop {
            let now = Instant::now();
            // A request that begins later lasts longer.
            let since = if let State::Busy(since) = *locked(&self.state) { since } else { now };
            if now >= since + longest {
                return;
            }
            sleep_until(since + longest).await;
        }
    }

    fn idle_since(&self) -> Option<Instant> {
        if let State::Idle(since) = *locked(&self.state) { Some(since) } else { None }
    }

    /// Ends the connection, unless a request has begun meanwhile.
    fn end(&self) {
        let mut state = locked(&self.state);
        if let State::Idle(_) = *state {
            *state = State::Ended;
            self.ended.notify_one();
        }
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        let mut state = locked(&self.0.state);
        if let State::Busy(_) = *state {
            *state = State::Idle(Instant::now());
        }
    }
}
