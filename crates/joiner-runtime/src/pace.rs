//! How many requests a second the API server gets from us.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use crate::clock::Clock;

/// Lets requests through at a rate, and some more at once after a pause. Clones share the rate.
#[derive(Clone, Debug)]
pub struct Pace {
    clock: Clock,
    /// From one request to the next.
    every: Duration,
    /// How far ahead of the rate a burst may run.
    ahead: Duration,
    /// When the next request would be due at the rate.
    due: Arc<Mutex<Timestamp>>,
}

impl Pace {
    /// So many requests a second, and so many at once. A rate of 0 is no limit.
    #[must_use]
    pub fn new(clock: Clock, per_sec: u32, burst: u32) -> Self {
        let every = match per_sec {
            0 => Duration::ZERO,
            per_sec => Duration::from_secs(1) / per_sec,
        };
        let due = Arc::new(Mutex::new(clock.now()));
        Self {
            clock,
            every,
            ahead: every * burst.max(1).saturating_sub(1),
            due,
        }
    }

    /// Waits for its turn.
    pub async fn turn(&self) {
        if let Some(at) = self.book(self.clock.now()) {
            self.clock.sleep_until(at).await;
        }
    }

    /// Books a request; until when it has to wait, if so.
    fn book(&self, now: Timestamp) -> Option<Timestamp> {
        let mut due = self.due.lock().unwrap_or_else(PoisonError::into_inner);
        let own = (*due).max(now);
        *due = own.checked_add(self.every).unwrap_or(own);
        let starts = own.checked_sub(self.ahead).unwrap_or(now);
        (starts > now).then_some(starts)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_burst_passes_and_then_the_rate_holds() {
        let clock = Clock::new(Timestamp::UNIX_EPOCH, 1);
        let pace = Pace::new(clock.clone(), 10, 5);
        for _ in 0..5 {
            pace.turn().await;
        }
        assert_eq!(clock.now().as_millisecond(), 0);
        for _ in 0..10 {
            pace.turn().await;
        }
        let passed = clock.now().as_millisecond();
        assert!((1_000..1_010).contains(&passed), "{passed}");
        // After a pause there is a burst again, and no more than that.
        clock.sleep(Duration::from_secs(60)).await;
        let start = clock.now();
        for _ in 0..6 {
            pace.turn().await;
        }
        let passed = clock.now().duration_since(start).as_millis();
        assert!((100..110).contains(&passed), "{passed}");
    }

    #[tokio::test(start_paused = true)]
    async fn no_rate_is_no_limit() {
        let clock = Clock::new(Timestamp::UNIX_EPOCH, 1);
        let pace = Pace::new(clock.clone(), 0, 1);
        for _ in 0..1_000 {
            pace.turn().await;
        }
        assert_eq!(clock.now().as_millisecond(), 0);
    }
}
