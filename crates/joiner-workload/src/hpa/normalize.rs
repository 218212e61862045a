//! From a recommendation to the size to go to: older recommendations, limits, and how fast.

use jiff::{SignedDuration, Timestamp};

use super::memory::{Memory, Recommendation, ScaleEvent, changed};
use super::spec::{Amount, Behavior, Rules, Select};
use crate::condition::{Said, Truth};
use crate::durations::before;
use crate::floats::to_i32;

/// Without rules, the size may grow to so many times what it is, ….
const GROWTH: f64 = 2.0;
/// … or to this.
const GROWTH_MIN: f64 = 4.0;

/// A recommendation with what it is held against.
pub(crate) struct Wish<'a> {
    pub(crate) current: i32,
    pub(crate) wanted: i32,
    pub(crate) min: i32,
    pub(crate) max: i32,
    pub(crate) behavior: Option<&'a Behavior>,
    /// How far back a larger recommendation counts where the rules do not say it.
    pub(crate) down_window: SignedDuration,
}

/// The size to go to, and what to say about it.
pub(crate) struct Normalized {
    pub(crate) replicas: i32,
    pub(crate) able: Said,
    pub(crate) limited: Said,
}

impl Wish<'_> {
    /// Holds the recommendation against older ones and the limits, and remembers it.
    pub(crate) fn normalize(&self, memory: &mut Memory, now: Timestamp) -> Normalized {
        let (stable, stabilized) = match self.behavior {
            Some(behavior) => self.stabilize(behavior, memory, now),
            None => self.stabilize_down(memory, now),
        };
        let able = match stabilized {
            _ if stable == self.wanted => Said::new(
                ABLE,
                Truth::True,
                "ReadyForNewScale",
                "the recommended size agrees with recent ones",
            ),
            message => {
                let up = self.behavior.is_some() && self.wanted >= self.current;
                let reason = if up {
                    "ScaleUpStabilized"
                } else {
                    "ScaleDownStabilized"
                };
                Said::new(ABLE, Truth::True, reason, message)
            }
        };
        let limit = match self.behavior {
            Some(behavior) => self.limit(stable, behavior, memory, now),
            None => self.limit_without_rules(stable),
        };
        let limited = match &limit {
            Some((limit, reason)) => {
                Said::new(LIMITED, Truth::True, reason, said(reason, stable, *limit))
            }
            None => Said::new(
                LIMITED,
                Truth::False,
                "DesiredWithinRange",
                "the wanted size is within all limits",
            ),
        };
        Normalized {
            replicas: limit.map_or(stable, |(limit, _)| limit),
            able,
            limited,
        }
    }

    /// The largest recommendation of the window.
    fn stabilize_down(&self, memory: &mut Memory, now: Timestamp) -> (i32, String) {
        let cutoff = before(now, self.down_window);
        let recent = memory.recommended().filter(|r| r.time >= cutoff);
        let largest = recent.fold(self.wanted, |most, r| most.max(r.replicas));
        memory.record(self.recommendation(now), |r| r.time < cutoff);
        let message = format!(
            "{} replicas would do, but {largest} were recommended lately",
            self.wanted
        );
        (largest, message)
    }

    /// As close to the current size as recommendations of both windows allow.
    fn stabilize(&self, behavior: &Behavior, memory: &mut Memory, now: Timestamp) -> (i32, String) {
        let cutoff = |rules: &Rules, default: SignedDuration| {
            let window = rules.window_secs;
            let window = window.map(|secs| SignedDuration::from_secs(secs.into()));
            before(now, window.unwrap_or(default))
        };
        let up = cutoff(&behavior.up, SignedDuration::ZERO);
        let down = cutoff(&behavior.down, self.down_window);
        let (mut least, mut most) = (self.wanted, self.wanted);
        for recommendation in memory.recommended() {
            if recommendation.time > up {
                least = least.min(recommendation.replicas);
            }
            if recommendation.time > down {
                most = most.max(recommendation.replicas);
            }
        }
        memory.record(self.recommendation(now), |r| r.time < up && r.time < down);
        let stable = self.current.max(least).min(most);
        let message = format!(
            "{} replicas are recommended now, but recent recommendations go from {least} to {most}",
            self.wanted
        );
        (stable, message)
    }

    const fn recommendation(&self, time: Timestamp) -> Recommendation {
        Recommendation {
            replicas: self.wanted,
            time,
        }
    }

    /// The limit that is in the way, and what it is called.
    fn limit_without_rules(&self, wanted: i32) -> Option<(i32, &'static str)> {
        let rate = to_i32((GROWTH * f64::from(self.current)).max(GROWTH_MIN));
        let (most, reason) = if self.max > rate {
            (rate, UP_LIMIT)
        } else {
            (self.max, TOO_MANY)
        };
        if wanted < self.min {
            Some((self.min, TOO_FEW))
        } else {
            (wanted > most).then_some((most, reason))
        }
    }

    fn limit(
        &self,
        wanted: i32,
        behavior: &Behavior,
        memory: &Memory,
        now: Timestamp,
    ) -> Option<(i32, &'static str)> {
        let past = Past {
            current: self.current,
            ups: &memory.ups,
            downs: &memory.downs,
            now,
        };
        if wanted > self.current {
            let rate = past.up_limit(&behavior.up).max(self.current);
            let (most, reason) = if self.max > rate {
                (rate, UP_LIMIT)
            } else {
                (self.max, TOO_MANY)
            };
            return (wanted > most).then_some((most, reason));
        }
        if wanted < self.current {
            let rate = past.down_limit(&behavior.down).min(self.current);
            let (least, reason) = if self.min < rate {
                (rate, DOWN_LIMIT)
            } else {
                (self.min, TOO_FEW)
            };
            return (wanted < least).then_some((least, reason));
        }
        None
    }
}

const ABLE: &str = "AbleToScale";
const LIMITED: &str = "ScalingLimited";
const TOO_FEW: &str = "TooFewReplicas";
const TOO_MANY: &str = "TooManyReplicas";
const UP_LIMIT: &str = "ScaleUpLimit";
const DOWN_LIMIT: &str = "ScaleDownLimit";

fn said(reason: &str, wanted: i32, limit: i32) -> String {
    let limit = match reason {
        TOO_FEW => format!("minReplicas is {limit}"),
        TOO_MANY => format!("maxReplicas is {limit}"),
        UP_LIMIT => format!("it may not grow faster than to {limit}"),
        _ => format!("it may not shrink faster than to {limit}"),
    };
    format!("{wanted} replicas are wanted, but {limit}")
}

/// Changes of size so far, which limits of the rate count from.
struct Past<'a> {
    current: i32,
    ups: &'a [ScaleEvent],
    downs: &'a [ScaleEvent],
    now: Timestamp,
}

impl Past<'_> {
    /// The size at the beginning of a period.
    fn begin(&self, period_secs: i32) -> i32 {
        let added = changed(self.ups, period_secs, self.now);
        let removed = changed(self.downs, period_secs, self.now);
        self.current.wrapping_sub(added).wrapping_add(removed)
    }

    fn up_limit(&self, rules: &Rules) -> i32 {
        let limits = rules.policies.iter().map(|policy| {
            let begin = self.begin(policy.period_secs);
            match policy.amount {
                Amount::Pods(n) => begin.wrapping_add(n),
                Amount::Percent(n) => {
                    // Rounded up: a small size can grow, too.
                    to_i32((f64::from(begin) * (1.0 + f64::from(n) / 100.0)).ceil())
                }
            }
        });
        match rules.select {
            Select::Max => limits.max().unwrap_or(i32::MIN),
            Select::Min => limits.min().unwrap_or(i32::MAX),
            Select::Disabled => self.current,
        }
    }

    fn down_limit(&self, rules: &Rules) -> i32 {
        let limits = rules.policies.iter().map(|policy| {
            let begin = self.begin(policy.period_secs);
            match policy.amount {
                Amount::Pods(n) => begin.wrapping_sub(n),
                Amount::Percent(n) => to_i32(f64::from(begin) * (1.0 - f64::from(n) / 100.0)),
            }
        });
        match rules.select {
            Select::Max => limits.min().unwrap_or(i32::MAX),
            Select::Min => limits.max().unwrap_or(i32::MIN),
            Select::Disabled => self.current,
        }
    }
}

/// How far back any policy of these rules looks.
pub(crate) fn longest_period_secs(rules: &Rules) -> i32 {
    let periods = rules.policies.iter().map(|policy| policy.period_secs);
    periods.max().unwrap_or(0)
}
