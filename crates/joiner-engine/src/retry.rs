//! How long to wait before something is tried again.
//!
//! One policy for everything that fails: a tenth of a second after the first failure, and twice as long after each
//! further one, up to ten seconds. A far end that asks for fewer calls gets pauses of one to sixty seconds.

use std::time::Duration;

use futures::future::BoxFuture;
use joiner_runtime::Clock;

use crate::controller::Failure;

/// The pause after the first failure.
pub const PAUSE_MIN: Duration = Duration::from_millis(100);
/// The longest pause.
pub const PAUSE_MAX: Duration = Duration::from_secs(10);

/// The same where fewer calls are asked for.
const THROTTLED: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(60));

/// How long to wait after so many failures in a row: it doubles.
#[must_use]
pub fn pause_after(failures: u32) -> Duration {
    doubled((PAUSE_MIN, PAUSE_MAX), failures)
}

/// How long to wait when the last of so many failures was this one.
#[must_use]
pub fn pause_after_failure(failure: &Failure, failures: u32) -> Duration {
    match failure {
        Failure::Throttled(_) => doubled(THROTTLED, failures),
        Failure::Api(_) | Failure::Other(_) => pause_after(failures),
    }
}

fn doubled((min, max): (Duration, Duration), failures: u32) -> Duration {
    let times = 2u32.saturating_pow(failures.saturating_sub(1));
    min.saturating_mul(times).min(max)
}

/// Tries something again and again, with growing pauses, until it works. The last failure when it does not
/// work so many times.
pub async fn insist<'a, T, E>(
    clock: &Clock,
    tries: u32,
    attempt: impl Fn() -> BoxFuture<'a, Result<T, E>>,
) -> Result<T, E> {
    for failures in 1..tries {
        match attempt().await {
            Ok(done) => return Ok(done),
            Err(_) => clock.sleep(pause_after(failures)).await,
        }
    }
    attempt().await
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU32, Ordering};

    use futures::FutureExt as _;

    use super::*;

    #[test]
    fn pauses_double_and_end() {
        let millis = |failures| pause_after(failures).as_millis();
        let first: Vec<u128> = (1..=8).map(millis).collect();
        assert_eq!(first, [100, 200, 400, 800, 1_600, 3_200, 6_400, 10_000]);
        assert_eq!(millis(u32::MAX), 10_000);
    }

    #[test]
    fn a_far_end_that_asks_for_fewer_calls_gets_fewer() {
        let throttled = Failure::Throttled("slow down".to_owned());
        let secs = [1, 2, 9].map(|n| pause_after_failure(&throttled, n).as_secs());
        assert_eq!(secs, [1, 2, 60]);
        let other = Failure::Other("no".to_owned());
        assert_eq!(pause_after_failure(&other, 1), PAUSE_MIN);
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_is_tried_so_often() {
        let clock = Clock::system(1);
        for (works_at, tries, outcome) in [(1, 3, Ok(1)), (3, 3, Ok(3)), (4, 3, Err(3))] {
            let n = AtomicU32::new(0);
            let attempt = || {
                let n = n.fetch_add(1, Ordering::Relaxed) + 1;
                std::future::ready(if n == works_at { Ok(n) } else { Err(n) }).boxed()
            };
            assert_eq!(insist(&clock, tries, attempt).await, outcome);
        }
    }
}
