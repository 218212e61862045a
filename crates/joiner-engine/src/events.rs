//! Kubernetes events about the objects that controllers look after: in our words, under upstream's
//! reasons.

use joiner_api::conditions as condition;
use joiner_model::Name;
use joiner_runtime::{About, Event, Events};
use joiner_state::live::{LiveClaim, LiveNode, LivePod, LivePool, Meta};

use crate::conditions::Transition;

/// Events about a claim.
#[must_use]
pub fn claim(claim: &LiveClaim) -> About {
    about("NodeClaim", "karpenter.sh/v1", &claim.meta)
}

/// Events about a pool.
#[must_use]
pub fn pool(pool: &LivePool) -> About {
    about("NodePool", "karpenter.sh/v1", &pool.meta)
}

/// Events about a node.
#[must_use]
pub fn node(node: &LiveNode) -> About {
    about("Node", "v1", &node.meta)
}

/// Events about a pod.
#[must_use]
pub fn pod(pod: &LivePod) -> About {
    About {
        kind: "Pod",
        api_version: "v1".into(),
        name: pod.name.clone(),
        uid: pod.uid.clone(),
    }
}

/// Events about an object of any kind.
#[must_use]
pub fn about(kind: &'static str, api_version: &'static str, meta: &Meta) -> About {
    About {
        kind,
        api_version: api_version.into(),
        name: meta.name.clone(),
        uid: meta.uid.clone(),
    }
}

/// Reports something that needs attention, once in two minutes for each object.
pub fn warn(events: &Events, about: About, reason: &'static str, message: String) {
    events.tell(Event::warning(about, reason, message));
}

/// Reports something, once in two minutes for each object.
pub fn note(events: &Events, about: About, reason: &'static str, message: String) {
    events.tell(Event::normal(about, reason, message));
}

/// Reports something that needs attention, once in two minutes for each `other` object that it is
/// about.
pub fn warn_of(events: &Events, about: About, reason: &'static str, message: String, other: &Name) {
    let mut event = Event::warning(about, reason, message);
    event.same = other.to_string();
    events.tell(event);
}

/// Reports which conditions of an object changed their status, unless such events are switched off.
pub fn transitions(events: &Events, about: &About, transitions: &[Transition]) {
    if events.leaves_out_conditions() {
        return;
    }
    for transition in transitions {
        let change = ConditionChange {
            kind: &transition.kind,
            from: transition.from.as_str(),
            to: transition.to.as_str(),
            reason: &transition.reason,
            message: &transition.message,
        };
        condition_changed(events, about, &change);
    }
}

/// A condition that changed its status, in words.
#[derive(Clone, Copy, Debug)]
pub struct ConditionChange<'a> {
    /// The condition's type.
    pub kind: &'a str,
    /// What it was.
    pub from: &'a str,
    /// What it is.
    pub to: &'a str,
    /// Why.
    pub reason: &'a str,
    /// In words; may be empty.
    pub message: &'a str,
}

impl ConditionChange<'_> {
    fn text(&self) -> String {
        let mut text = format!(
            "Status condition transitioned, Type: {}, Status: {} -> {}, Reason: {}",
            self.kind, self.from, self.to, self.reason
        );
        if !self.message.is_empty() {
            text = format!("{text}, Message: {}", self.message);
        }
        text
    }
}

/// Conditions whose changes are reported under their own name; all others have one in common.
const REASONS: &[&str] = &[
    condition::LAUNCHED.as_str(),
    condition::REGISTERED.as_str(),
    condition::INITIALIZED.as_str(),
    condition::READY.as_str(),
    condition::CONSOLIDATABLE.as_str(),
    condition::DRIFTED.as_str(),
    condition::DRAINED.as_str(),
    condition::VOLUMES_DETACHED.as_str(),
    condition::INSTANCE_TERMINATING.as_str(),
    condition::CONSISTENT_STATE_FOUND.as_str(),
    condition::DISRUPTION_REASON.as_str(),
    condition::VALIDATION_SUCCEEDED.as_str(),
    condition::NODE_CLASS_READY.as_str(),
    condition::NODE_REGISTRATION_HEALTHY.as_str(),
    "MemoryPressure",
    "DiskPressure",
    "PIDPressure",
    "NetworkUnavailable",
];

fn event_reason(kind: &str) -> &'static str {
    let known = REASONS.iter().find(|reason| **reason == kind);
    known.copied().unwrap_or("StatusCondition")
}

/// Reports one change of a condition.
pub fn condition_changed(events: &Events, about: &About, change: &ConditionChange<'_>) {
    let message = change.text();
    let mut event = Event::normal(about.clone(), event_reason(change.kind), message);
    // A change there and back is news both times.
    event.same.clone_from(&event.message);
    events.tell(event);
}

/// Reports that a finalizer of ours was removed.
pub fn finalized(events: &Events, about: About, finalizer: &str) {
    if !events.leaves_out_conditions() {
        let message = format!("Finalized {finalizer}");
        note(events, about, "Finalized", message);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_is_reported_with_its_message_if_there_is_one() {
        let mut change = ConditionChange {
            kind: "Launched",
            from: "Unknown",
            to: "True",
            reason: "Launched",
            message: "",
        };
        let plain = "Status condition transitioned, Type: Launched, Status: Unknown -> True, \
                     Reason: Launched";
        assert_eq!(change.text(), plain);
        change.message = "at last";
        assert_eq!(change.text(), format!("{plain}, Message: at last"));
    }

    #[test]
    fn conditions_are_reported_under_their_name() {
        assert_eq!(event_reason("Ready"), "Ready");
        assert_eq!(event_reason("KernelDeadlock"), "StatusCondition");
    }
}
