//! One clock for timers, timestamps, leases and watch timeouts.
//!
//! It is the async runtime's clock plus an epoch. On a paused runtime time jumps to the next timer
//! whenever all tasks wait, so a day of cluster life takes seconds; on a running one it follows the
//! machine, `speed` times as fast.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::time::Instant;

/// Tells the time and waits.
#[derive(Clone, Debug)]
pub struct Clock {
    epoch: Timestamp,
    start: Instant,
    speed: u32,
}

impl Clock {
    /// A clock that shows `epoch` now and runs `speed` times as fast as the runtime's.
    ///
    /// *Assumes* a tokio runtime around it when the runtime's clock may be paused.
    #[must_use]
    pub fn new(epoch: Timestamp, speed: u32) -> Self {
        Self {
            epoch,
            start: Instant::now(),
            speed: speed.max(1),
        }
    }

    /// The clock of the machine.
    #[must_use]
    pub fn system(speed: u32) -> Self {
        Self::new(Timestamp::now(), speed)
    }

    /// The time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        let passed = self.start.elapsed().saturating_mul(self.speed);
        let passed = SignedDuration::try_from(passed).unwrap_or(SignedDuration::MAX);
        self.epoch.checked_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// Waits for a while of this clock's time.
    pub async fn sleep(&self, duration: Duration) {
        tokio::time::sleep(duration / self.speed).await;
    }

    /// Waits until this clock shows `at`; not at all if it is past.
    pub async fn sleep_until(&self, at: Timestamp) {
        let left = at.duration_since(self.now());
        if let Ok(left) = Duration::try_from(left) {
            // A clock that counts seconds must not wake a moment too early.
            self.sleep(left + Duration::from_micros(1)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn a_paused_runtime_jumps() {
        let clock = Clock::new(Timestamp::UNIX_EPOCH, 1);
        clock.sleep(Duration::from_secs(86_400)).await;
        assert_eq!(clock.now().as_second(), 86_400);
    }

    #[tokio::test(start_paused = true)]
    async fn a_fast_clock_waits_less() {
        let clock = Clock::new(Timestamp::UNIX_EPOCH, 10);
        let before = Instant::now();
        clock
            .sleep_until(Timestamp::from_second(100).unwrap())
            .await;
        assert!(clock.now().as_second() >= 100);
        assert_eq!(before.elapsed().as_secs(), 10);
    }
}
