//! How conditions of our kinds are kept.
//!
//! Some conditions feed the root `Ready`; they are there from the first touch, as Unknown. The time
//! of a condition changes only with its status. The root is True when all that feed it are True at
//! the object's current generation, False when one of them is False, and else Unknown.

use jiff::Timestamp;
use joiner_api::conditions::{
    INITIALIZED, LAUNCHED, NODE_CLASS_READY, READY, REGISTERED, VALIDATION_SUCCEEDED,
};
use joiner_api::types::{Condition, ConditionStatus};
use joiner_state::live::{Conditions as _, Meta, rfc3339};
use serde_json::Value;

pub use joiner_api::conditions::ConditionType;

/// What feeds the root of a NodeClaim.
pub const CLAIM_DEPENDENTS: &[ConditionType] = &[LAUNCHED, REGISTERED, INITIALIZED];
/// What feeds the root of a NodePool.
pub const POOL_DEPENDENTS: &[ConditionType] = &[VALIDATION_SUCCEEDED, NODE_CLASS_READY];

/// A condition changed its status; worth an event and a metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transition {
    /// The condition's type.
    pub kind: String,
    /// What it was.
    pub from: ConditionStatus,
    /// When it had become that.
    pub since: Option<Timestamp>,
    /// What it is.
    pub to: ConditionStatus,
    /// Why.
    pub reason: String,
    /// In words.
    pub message: String,
}

/// The conditions of one object, to be changed.
#[derive(Clone, Debug)]
pub struct ConditionSet {
    before: Vec<Condition>,
    now: Vec<Condition>,
    dependents: Vec<ConditionType>,
    generation: i64,
    at: Timestamp,
}

impl ConditionSet {
    /// The conditions of an object; those that feed the root are put in where they are missing,
    /// and those of an object that is being deleted are taken as seen at its generation.
    #[must_use]
    pub fn new(
        meta: &Meta,
        conditions: &[Condition],
        dependents: &[ConditionType],
        at: Timestamp,
    ) -> Self {
        let mut set = Self {
            before: conditions.to_vec(),
            now: conditions.to_vec(),
            dependents: dependents.to_vec(),
            generation: meta.generation,
            at,
        };
        for kind in dependents.iter().chain([&READY]) {
            if set.now.condition(kind).is_none() {
                set.now.push(Condition {
                    type_: kind.to_string(),
                    status: ConditionStatus::Unknown,
                    reason: Some("AwaitingReconciliation".to_owned()),
                    message: Some("object is awaiting reconciliation".to_owned()),
                    last_transition_time: rfc3339(meta.created),
                    observed_generation: Some(meta.generation),
                });
            }
        }
        if meta.deleting.is_some() {
            for condition in &mut set.now {
                condition.observed_generation = Some(meta.generation);
            }
        }
        set
    }

    /// True when a condition is True now.
    #[must_use]
    pub fn is_true(&self, kind: ConditionType) -> bool {
        self.now.is_true(&kind)
    }

    /// A condition as it is now.
    #[must_use]
    pub fn get(&self, kind: ConditionType) -> Option<&Condition> {
        self.now.condition(&kind)
    }

    /// Sets a condition to True; its type is the reason.
    pub fn set_true(&mut self, kind: ConditionType) {
        self.set(kind, ConditionStatus::True, kind.as_str(), "");
    }

    /// Sets a condition to True for a reason.
    pub fn set_true_for(&mut self, kind: ConditionType, reason: &str, message: &str) {
        self.set(kind, ConditionStatus::True, reason, message);
    }

    /// Sets a condition to False.
    pub fn set_false(&mut self, kind: ConditionType, reason: &str, message: &str) {
        self.set(kind, ConditionStatus::False, reason, message);
    }

    /// Sets a condition to Unknown.
    pub fn set_unknown(&mut self, kind: ConditionType, reason: &str, message: &str) {
        self.set(kind, ConditionStatus::Unknown, reason, message);
    }

    /// Removes a condition that does not feed the root.
    pub fn clear(&mut self, kind: ConditionType) {
        if !self.dependents.contains(&kind) && kind != READY {
            self.now.retain(|condition| condition.type_ != *kind);
        }
    }

    fn set(&mut self, kind: ConditionType, status: ConditionStatus, reason: &str, message: &str) {
        let known = self.now.condition(&kind).cloned();
        let same = known.as_ref().filter(|known| known.status == status);
        let since = match same {
            Some(known) => known.last_transition_time.clone(),
            None => rfc3339(self.at),
        };
        let condition = Condition {
            type_: kind.to_string(),
            status,
            reason: Some(reason.to_owned()),
            message: Some(message.to_owned()),
            last_transition_time: since,
            observed_generation: Some(self.generation),
        };
        match self.now.iter_mut().find(|known| known.type_ == *kind) {
            Some(known) => *known = condition,
            None => self.now.push(condition),
        }
    }

    /// The conditions as they are to be written: in order of time, the root last.
    #[must_use]
    pub fn finished(mut self) -> Finished {
        self.root();
        self.now.sort_by(|a, b| {
            let key = |of: &Condition| (of.type_ == *READY, of.last_transition_time.clone());
            key(a).cmp(&key(b))
        });
        let transitions = self.now.iter().filter_map(|now| {
            let before = self.before.condition(&now.type_);
            let from = before.map_or(ConditionStatus::Unknown, |before| before.status);
            (from != now.status).then(|| Transition {
                kind: now.type_.clone(),
                from,
                since: before.and_then(|before| before.last_transition_time.parse().ok()),
                to: now.status,
                reason: now.reason.clone().unwrap_or_default(),
                message: now.message.clone().unwrap_or_default(),
            })
        });
        Finished {
            transitions: transitions.collect(),
            changed: self.now != self.before,
            conditions: self.now,
        }
    }

    fn root(&mut self) {
        let status = |kind: &&ConditionType| {
            let known = self.now.condition(kind);
            let seen_at = known.and_then(|known| known.observed_generation);
            let current = seen_at == Some(self.generation);
            match known.map(|known| known.status) {
                Some(status) if current => status,
                Some(_) | None => ConditionStatus::Unknown,
            }
        };
        let of = |wanted: ConditionStatus| -> Vec<String> {
            let found = self.dependents.iter().filter(|kind| status(kind) == wanted);
            found
                .map(|kind| format!("{kind}={}", wanted.as_str()))
                .collect()
        };
        let (failed, unknown) = (of(ConditionStatus::False), of(ConditionStatus::Unknown));
        if !failed.is_empty() {
            let message = failed.join(", ");
            self.set(
                READY,
                ConditionStatus::False,
                "UnhealthyDependents",
                &message,
            );
        } else if !unknown.is_empty() {
            let message = unknown.join(", ");
            self.set(
                READY,
                ConditionStatus::Unknown,
                "ReconcilingDependents",
                &message,
            );
        } else {
            self.set(READY, ConditionStatus::True, READY.as_str(), "");
        }
    }
}

/// Conditions that are ready to be written.
#[derive(Clone, Debug)]
pub struct Finished {
    /// All of them.
    pub conditions: Vec<Condition>,
    /// Those that changed their status.
    pub transitions: Vec<Transition>,
    /// True when something is to be written.
    pub changed: bool,
}

impl Finished {
    /// For a status patch.
    #[must_use]
    pub fn to_value(&self) -> Value {
        serde_json::to_value(&self.conditions).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use joiner_api::conditions::DRIFTED;

    use super::*;

    fn meta(generation: i64) -> Meta {
        Meta {
            generation,
            created: Timestamp::from_second(100).unwrap(),
            ..Meta::default()
        }
    }

    fn set(meta: &Meta, conditions: &[Condition], secs: i64) -> ConditionSet {
        let at = Timestamp::from_second(secs).unwrap();
        ConditionSet::new(meta, conditions, CLAIM_DEPENDENTS, at)
    }

    fn shown(conditions: &[Condition]) -> Vec<String> {
        let one = |condition: &Condition| {
            let reason = condition.reason.clone().unwrap_or_default();
            let since: Timestamp = condition.last_transition_time.parse().unwrap();
            format!(
                "{}={} {} {}",
                condition.type_,
                condition.status.as_str(),
                reason,
                since.as_second()
            )
        };
        conditions.iter().map(one).collect()
    }

    #[test]
    fn at_first_touch_everything_is_unknown_since_creation() {
        let finished = set(&meta(1), &[], 200).finished();
        assert_eq!(
            shown(&finished.conditions),
            [
                "Launched=Unknown AwaitingReconciliation 100",
                "Registered=Unknown AwaitingReconciliation 100",
                "Initialized=Unknown AwaitingReconciliation 100",
                "Ready=Unknown ReconcilingDependents 100",
            ]
        );
        assert!(finished.changed);
        assert!(finished.transitions.is_empty());
    }

    #[test]
    fn the_root_follows_and_times_change_with_the_status_only() {
        let mut first = set(&meta(1), &[], 200);
        for kind in CLAIM_DEPENDENTS {
            first.set_true(*kind);
        }
        let first = first.finished();
        assert_eq!(first.transitions.len(), 4);
        let mut second = set(&meta(1), &first.conditions, 300);
        second.set_true(LAUNCHED);
        second.set_true(DRIFTED);
        let second = second.finished();
        assert_eq!(
            shown(&second.conditions),
            [
                "Launched=True Launched 200",
                "Registered=True Registered 200",
                "Initialized=True Initialized 200",
                "Drifted=True Drifted 300",
                "Ready=True Ready 200",
            ]
        );
        let again = set(&meta(1), &second.conditions, 400).finished();
        assert!(!again.changed);
    }

    #[test]
    fn a_condition_seen_at_an_older_generation_does_not_count() {
        let mut first = set(&meta(1), &[], 200);
        for kind in CLAIM_DEPENDENTS {
            first.set_true(*kind);
        }
        let first = first.finished();
        let later = set(&meta(2), &first.conditions, 300).finished();
        let ready = later.conditions.condition(&READY).unwrap();
        assert_eq!(ready.status, ConditionStatus::Unknown);
        let deleting = Meta {
            deleting: Some(Timestamp::from_second(300).unwrap()),
            ..meta(2)
        };
        assert!(
            set(&deleting, &first.conditions, 300)
                .finished()
                .conditions
                .is_true(&READY)
        );
    }

    #[test]
    fn only_conditions_that_feed_nothing_can_be_cleared() {
        let mut all = set(&meta(1), &[], 200);
        all.set_true(DRIFTED);
        all.clear(DRIFTED);
        all.clear(LAUNCHED);
        let kinds = all.finished().conditions;
        assert!(kinds.condition("Drifted").is_none());
        assert!(kinds.condition("Launched").is_some());
    }

    #[test]
    fn one_failed_condition_fails_the_root() {
        let mut all = set(&meta(1), &[], 200);
        all.set_false(REGISTERED, "MultipleNodesFound", "two nodes");
        let ready = all
            .finished()
            .conditions
            .condition(&READY)
            .cloned()
            .unwrap();
        assert_eq!(ready.status, ConditionStatus::False);
        assert_eq!(ready.message.as_deref(), Some("Registered=False"));
    }
}
