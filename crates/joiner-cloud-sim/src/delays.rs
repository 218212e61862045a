//! How long things take: constant, or drawn from a distribution by seed.

use std::str::FromStr;
use std::time::Duration;

use joiner_api::types::parse_go_duration;
use joiner_cluster::Digest;

/// Nothing takes longer than this, whatever a distribution says.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// A length of time, the same for all machines or drawn for each.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Delay {
    /// Always the same.
    Constant(Duration),
    /// Anything in between is as likely.
    Uniform {
        /// At least.
        min: Duration,
        /// At most.
        max: Duration,
    },
    /// Mostly near the median, sometimes much longer.
    LogNormal {
        /// Half of them are shorter.
        median: Duration,
        /// Spread of the logarithm; 0.5 is a lot.
        sigma: f64,
    },
}

impl Default for Delay {
    fn default() -> Self {
        Self::Constant(Duration::ZERO)
    }
}

/// How long machines take.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Delays {
    /// From the order until the machine runs.
    pub launch: Delay,
    /// From there until its Node joins.
    pub boot: Delay,
    /// From the end of a machine until it is gone.
    pub shutdown: Delay,
}

/// A text that is not a delay.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{0:?} is not a delay; write 30s for a constant one, 10s..60s for anything in between, or \
     30s~0.5 for a median with a spread"
)]
pub struct DelayError(pub String);

impl Delay {
    /// The delay of one object; the same seed, uid and purpose give the same one.
    #[must_use]
    pub fn draw(&self, seed: u64, uid: &str, purpose: &str) -> Duration {
        let digest = Digest::default().number(seed).text(uid).text(purpose);
        let drawn = match *self {
            Self::Constant(duration) => duration,
            Self::Uniform { min, max } => {
                let span = max.saturating_sub(min);
                min.saturating_add(span.mul_f64(share(digest.number(1).finish())))
            }
            Self::LogNormal { median, sigma } => {
                // Box and Muller: two even draws make a normal one.
                let (a, b) = (digest.number(1).finish(), digest.number(2).finish());
                let radius = (-2.0 * (1.0 - share(a)).ln()).sqrt();
                let normal = radius * (std::f64::consts::TAU * share(b)).cos();
                let seconds = median.as_secs_f64() * (sigma * normal).exp();
                Duration::try_from_secs_f64(seconds).unwrap_or(LONGEST)
            }
        };
        drawn.min(LONGEST)
    }

    /// True when nothing ever takes time.
    #[must_use]
    pub fn is_zero(&self) -> bool {
        match *self {
            Self::Constant(duration) => duration.is_zero(),
            Self::Uniform { max, .. } => max.is_zero(),
            Self::LogNormal { median, .. } => median.is_zero(),
        }
    }
}

/// A number from 0 to just below 1.
pub(crate) fn share(draw: u64) -> f64 {
    // 53 bits are what a float can tell apart.
    #[expect(clippy::cast_precision_loss, reason = "53 bits fit")]
    let (top, all) = ((draw >> 11) as f64, (1_u64 << 53) as f64);
    top / all
}

impl FromStr for Delay {
    type Err = DelayError;

    fn from_str(text: &str) -> Result<Self, DelayError> {
        let wrong = || DelayError(text.to_owned());
        let duration = |text: &str| parse_go_duration(text.trim()).map_err(|_| wrong());
        if let Some((min, max)) = text.split_once("..") {
            let (min, max) = (duration(min)?, duration(max)?);
            return (min <= max)
                .then_some(Self::Uniform { min, max })
                .ok_or_else(wrong);
        }
        if let Some((median, sigma)) = text.split_once('~') {
            let sigma: f64 = sigma.trim().parse().map_err(|_| wrong())?;
            let median = duration(median)?;
            let sane = (0.0..=5.0).contains(&sigma);
            return sane
                .then_some(Self::LogNormal { median, sigma })
                .ok_or_else(wrong);
        }
        duration(text).map(Self::Constant)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn draws(text: &str) -> Vec<f64> {
        let delay: Delay = text.parse().unwrap();
        let mut all: Vec<f64> = (0..2000)
            .map(|n| delay.draw(7, &format!("uid-{n}"), "boot").as_secs_f64())
            .collect();
        all.sort_by(f64::total_cmp);
        all
    }

    #[test]
    fn draws_follow_their_distribution() {
        let even = draws("10s..60s");
        assert!(even[0] >= 10.0 && even[1999] < 60.0);
        assert!((34.0..36.0).contains(&even[1000]), "{}", even[1000]);
        let skewed = draws("30s~0.5");
        assert!((28.5..31.5).contains(&skewed[1000]), "{}", skewed[1000]);
        // Five percent lie beyond 1.645 standard deviations: 30 s times e to the 0.82.
        assert!((62.0..75.0).contains(&skewed[1900]), "{}", skewed[1900]);
        assert_eq!(draws("5s"), vec![5.0; 2000]);
    }

    #[test]
    fn the_same_draw_is_the_same_delay() {
        let delay: Delay = "1s..1h".parse().unwrap();
        assert_eq!(delay.draw(1, "a", "boot"), delay.draw(1, "a", "boot"));
        assert_ne!(delay.draw(1, "a", "boot"), delay.draw(2, "a", "boot"));
        assert_ne!(delay.draw(1, "a", "boot"), delay.draw(1, "a", "launch"));
    }

    #[test]
    fn nonsense_is_told() {
        for text in ["", "soon", "60s..10s", "30s~-1", "30s~much", "-3s"] {
            let error = text.parse::<Delay>().unwrap_err();
            assert!(error.to_string().contains("is not a delay"), "{error}");
        }
    }
}
