//! How long to wait before something is tried again.
//!
//! One policy for everything that fails: a tenth of a second after the first failure, and twice as long after each
//! further one, up to ten seconds. A far end that asks for fewer calls gets pauses of one to sixty seconds.

use std::time::Duration;

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

#[cfg(test)]
mod tests {
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
}
