//! How launches and registrations of a pool went of late.
//!
//! The last four outcomes of each pool are remembered, in memory only: it is a hint for people,
//! shown as a condition of the pool, and stops nothing. After a restart the condition gives a first
//! guess.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use joiner_api::types::ConditionStatus;
use joiner_model::Name;

/// How many outcomes count.
const RING: usize = 4;
/// With this many failures among them a pool is unhealthy: half of the ring.
const FAILURES: usize = 2;
/// Pools that are remembered; beyond, the first by uid is forgotten.
const POOLS_MAX: usize = 10_000;

/// How a launch ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RegistrationOutcome {
    /// The node registered.
    Registered,
    /// It never did.
    Failed {
        /// In one word.
        reason: String,
        /// In words.
        message: String,
    },
}

/// What the outcomes of a pool come to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Health {
    /// Nothing is known.
    Unknown,
    /// Nodes register.
    Healthy,
    /// Half of them, or more, do not.
    Unhealthy {
        /// The last failure, in one word.
        reason: String,
        /// The last failure, in words.
        message: String,
    },
}

/// One remembered outcome.
#[derive(Clone, Debug)]
struct Entry {
    /// Uid of the claim; empty for a guess.
    claim: Name,
    outcome: RegistrationOutcome,
}

/// How launches and registrations of pools went of late; clones share what they know.
#[derive(Clone, Debug, Default)]
pub struct RegistrationHealth {
    rings: Arc<Mutex<BTreeMap<Name, VecDeque<Entry>>>>,
}

impl RegistrationHealth {
    /// Remembers how a launch ended. The same news about the same claim counts once, so that it can
    /// be told before it is written down.
    pub fn record(&self, pool_uid: &Name, claim_uid: &Name, outcome: RegistrationOutcome) {
        let mut rings = self.lock();
        let ring = rings.entry(pool_uid.clone()).or_default();
        let registered =
            |outcome: &RegistrationOutcome| matches!(outcome, RegistrationOutcome::Registered);
        let same = |entry: &Entry| {
            entry.claim == *claim_uid && registered(&entry.outcome) == registered(&outcome)
        };
        if !ring.iter().any(same) {
            push(ring, claim_uid.clone(), outcome);
        }
        while rings.len() > POOLS_MAX {
            rings.pop_first();
        }
    }

    /// What is known of a pool, by its uid.
    #[must_use]
    pub fn health(&self, pool_uid: &Name) -> Health {
        let rings = self.lock();
        let Some(ring) = rings.get(pool_uid).filter(|ring| !ring.is_empty()) else {
            return Health::Unknown;
        };
        let failures = ring.iter().rev().filter_map(|entry| match &entry.outcome {
            RegistrationOutcome::Failed { reason, message } => Some((reason, message)),
            RegistrationOutcome::Registered => None,
        });
        let mut failures = failures.peekable();
        match failures.peek().copied() {
            Some((reason, message)) if failures.count() >= FAILURES => Health::Unhealthy {
                reason: reason.clone(),
                message: message.clone(),
            },
            Some(_) | None => Health::Healthy,
        }
    }

    /// The pool or its class changed: what was is no guide to what will be.
    pub fn reset(&self, pool_uid: &Name) {
        self.lock().remove(pool_uid);
    }

    /// A first guess from the pool's condition, for a pool of which nothing is known.
    pub fn seed(&self, pool_uid: &Name, condition: ConditionStatus) {
        let mut rings = self.lock();
        let ring = rings.entry(pool_uid.clone()).or_default();
        if !ring.is_empty() {
            return;
        }
        match condition {
            ConditionStatus::True => push(ring, "".into(), RegistrationOutcome::Registered),
            ConditionStatus::False => {
                for _ in 0..FAILURES {
                    push(ring, "".into(), never_registered());
                }
            }
            ConditionStatus::Unknown => {}
        }
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<Name, VecDeque<Entry>>> {
        self.rings.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A node that was launched and never registered.
#[must_use]
pub fn never_registered() -> RegistrationOutcome {
    RegistrationOutcome::Failed {
        reason: "RegistrationFailed".to_owned(),
        message: "Failed to register node".to_owned(),
    }
}

fn push(ring: &mut VecDeque<Entry>, claim: Name, outcome: RegistrationOutcome) {
    ring.push_back(Entry { claim, outcome });
    if ring.len() > RING {
        ring.pop_front();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `+` registered, `-` failed; each for another claim.
    fn after(outcomes: &str) -> RegistrationHealth {
        let health = RegistrationHealth::default();
        for (n, sign) in outcomes.chars().enumerate() {
            let outcome = match sign {
                '+' => RegistrationOutcome::Registered,
                _ => never_registered(),
            };
            health.record(&"pool".into(), &n.to_string().into(), outcome);
        }
        health
    }

    fn word(health: &RegistrationHealth) -> &'static str {
        match health.health(&"pool".into()) {
            Health::Unknown => "unknown",
            Health::Healthy => "healthy",
            Health::Unhealthy { .. } => "unhealthy",
        }
    }

    #[test]
    fn core_226_two_failures_among_four_make_a_pool_unhealthy() {
        for (outcomes, wanted) in [
            ("", "unknown"),
            ("+", "healthy"),
            ("-", "healthy"),
            ("--", "unhealthy"),
            ("-+-", "unhealthy"),
            ("--+", "unhealthy"),
            ("--++", "unhealthy"),
            ("--+++", "healthy"),
            ("-++-", "unhealthy"),
            ("-+++-", "healthy"),
        ] {
            assert_eq!(word(&after(outcomes)), wanted, "{outcomes}");
        }
        assert_eq!(
            after("--").health(&"other".into()),
            Health::Unknown,
            "each pool for itself"
        );
    }

    #[test]
    fn the_last_failure_says_why() {
        let health = after("-");
        let refused = RegistrationOutcome::Failed {
            reason: "QuotaExceeded".to_owned(),
            message: "no more".to_owned(),
        };
        health.record(&"pool".into(), &"x".into(), refused);
        health.record(&"pool".into(), &"y".into(), RegistrationOutcome::Registered);
        assert_eq!(
            health.health(&"pool".into()),
            Health::Unhealthy {
                reason: "QuotaExceeded".to_owned(),
                message: "no more".to_owned()
            }
        );
    }

    #[test]
    fn the_same_news_counts_once() {
        let health = RegistrationHealth::default();
        for _ in 0..3 {
            health.record(&"pool".into(), &"a".into(), never_registered());
        }
        assert_eq!(word(&health), "healthy");
        health.record(&"pool".into(), &"b".into(), never_registered());
        assert_eq!(word(&health), "unhealthy");
    }

    #[test]
    fn a_change_of_the_pool_clears_it_and_a_restart_guesses() {
        let health = after("--");
        health.reset(&"pool".into());
        assert_eq!(word(&health), "unknown");
        for (condition, wanted) in [
            (ConditionStatus::Unknown, "unknown"),
            (ConditionStatus::False, "unhealthy"),
            (ConditionStatus::True, "healthy"),
        ] {
            let health = RegistrationHealth::default();
            health.seed(&"pool".into(), condition);
            assert_eq!(word(&health), wanted);
        }
        let health = after("+");
        health.seed(&"pool".into(), ConditionStatus::False);
        assert_eq!(word(&health), "healthy", "a guess does not outdo news");
    }
}
