//! How long a watch that broke is left alone.

use std::time::Duration;

use kube::runtime::utils::Backoff;
use kube::runtime::watcher::DefaultBackoff;
use tokio::time::Instant;

/// A watch that lasted this long was a good one: it is not to blame for the failures before it.
const GOOD_MIN: Duration = Duration::from_secs(4);

/// Growing pauses between failures of a watch, up to half a minute.
///
/// Where nothing happens, a watch that is cut again and again by something on the way tells nothing in
/// between. That is no failure: whoever paused ever longer for it would be blind for most of the time.
#[derive(Default)]
pub struct WatchPauses {
    grow: DefaultBackoff,
    /// When the last pause ended.
    resumed: Option<Instant>,
}

impl Iterator for WatchPauses {
    type Item = Duration;

    fn next(&mut self) -> Option<Duration> {
        let now = Instant::now();
        if self
            .resumed
            .is_some_and(|at| now.saturating_duration_since(at) >= GOOD_MIN)
        {
            self.grow.reset();
        }
        let pause = self.grow.next()?;
        self.resumed = Some(now + pause);
        Some(pause)
    }
}

impl Backoff for WatchPauses {
    fn reset(&mut self) {
        self.grow.reset();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Pauses have some chance in them: up to twice the shortest.
    const FIRST_MAX: Duration = Duration::from_millis(1_600);

    async fn pause_of(pauses: &mut WatchPauses) -> Duration {
        let pause = pauses.next().unwrap();
        tokio::time::advance(pause).await;
        pause
    }

    #[tokio::test(start_paused = true)]
    async fn pauses_grow_while_nothing_works() {
        let mut pauses = WatchPauses::default();
        assert!(pause_of(&mut pauses).await <= FIRST_MAX);
        for _ in 0..8 {
            tokio::time::advance(Duration::from_secs(2)).await;
            pause_of(&mut pauses).await;
        }
        assert!(pause_of(&mut pauses).await >= Duration::from_secs(20));
    }

    #[tokio::test(start_paused = true)]
    async fn a_watch_that_lasted_ends_them() {
        let mut pauses = WatchPauses::default();
        for _ in 0..20 {
            assert!(pause_of(&mut pauses).await <= FIRST_MAX);
            tokio::time::advance(Duration::from_secs(5)).await;
        }
    }
}
