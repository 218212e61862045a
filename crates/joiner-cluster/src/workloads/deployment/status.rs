//! What a Deployment says of itself: counts, `Available` and `Progressing`.

use joiner_machinery::meta;
use serde_json::{Value, json};

use super::{DEPLOYMENTS, NO_DEADLINE, Rollout};
use crate::fields::{self, Fields};

/// The counts of a status.
struct Counts {
    replicas: i64,
    updated: i64,
    ready: i64,
    available: i64,
}

impl Rollout<'_, '_> {
    /// Seconds without progress after which a rollout counts as stuck.
    pub(super) fn deadline(&self) -> Option<i64> {
        let deadline = self.deployment["spec"]["progressDeadlineSeconds"].as_i64();
        deadline.filter(|seconds| *seconds != NO_DEADLINE)
    }

    pub(super) fn condition(&self, kind: &str) -> Option<&Value> {
        self.conditions
            .iter()
            .find(|condition| condition["type"] == kind)
    }

    /// Sets a condition. With the status and reason that it has, it stays as it is.
    pub(super) fn set_condition(&mut self, kind: &str, status: &str, reason: &str, message: &str) {
        let now = meta::time(self.view.now);
        let mut since = json!(now);
        if let Some(old) = self.condition(kind).filter(|old| old["status"] == status) {
            if old["reason"] == reason {
                return;
            }
            since = old["lastTransitionTime"].clone();
        }
        self.conditions
            .retain(|condition| condition["type"] != kind);
        self.conditions.push(json!({
            "type": kind,
            "status": status,
            "lastUpdateTime": now,
            "lastTransitionTime": since,
            "reason": reason,
            "message": message,
        }));
    }

    /// Notes that a rollout was paused or resumed, so that the pause does not count as a stall.
    pub(super) fn note_pause(&mut self, paused: bool) {
        let reason = self.condition("Progressing").map(|c| c["reason"].clone());
        let was_paused = reason.as_ref().is_some_and(|r| r == "DeploymentPaused");
        let timed_out = reason.is_some_and(|r| r == "ProgressDeadlineExceeded");
        if self.deadline().is_none() || timed_out || paused == was_paused {
            return;
        }
        let (reason, message) = match paused {
            true => ("DeploymentPaused", "Deployment is paused"),
            false => ("DeploymentResumed", "Deployment is resumed"),
        };
        self.set_condition("Progressing", "Unknown", reason, message);
    }

    /// True when the status that is stored says that the rollout is done.
    pub(super) fn was_complete(&self) -> bool {
        let observed = fields::count(&self.deployment["status"]["observedGeneration"], 0);
        observed >= self.generation() && self.is_complete(&self.stored())
    }

    /// Says how the rollout is getting on: done, moving, or stuck.
    pub(super) fn estimate_progress(&mut self) {
        // Upstream judges in this order, and a condition that changes moves to the end.
        self.note_availability();
        let Some(deadline) = self.deadline() else {
            self.conditions
                .retain(|condition| condition["type"] != "Progressing");
            return;
        };
        let (old, new) = (self.stored(), self.counted());
        // The stored condition counts here: one that this step has set is not a sign of progress.
        let stored = fields::condition(self.deployment, "Progressing");
        let done = stored.is_some_and(|c| c["reason"] == "NewReplicaSetAvailable");
        if done && new.replicas == new.updated {
            return;
        }
        let subject = match self.sets.new {
            Some(new) => format!("ReplicaSet \"{}\"", self.sets.all[new].name),
            None => format!("Deployment \"{}\"", meta::name(self.deployment)),
        };
        let has_progressed = new.updated > old.updated
            || new.replicas - new.updated < old.replicas - old.updated
            || new.ready > old.ready
            || new.available > old.available;
        if self.is_complete(&new) {
            let message = format!("{subject} has successfully progressed.");
            self.set_condition("Progressing", "True", "NewReplicaSetAvailable", &message);
        } else if has_progressed {
            let message = format!("{subject} is progressing.");
            self.set_condition("Progressing", "True", "ReplicaSetUpdated", &message);
            let now = json!(meta::time(self.view.now));
            let progressing = |c: &&mut Value| c["type"] == "Progressing";
            if let Some(condition) = self.conditions.iter_mut().find(progressing) {
                condition["lastUpdateTime"] = now;
                condition["message"] = json!(message);
            }
        } else {
            self.check_deadline(deadline, &subject);
        }
    }

    fn check_deadline(&mut self, deadline: i64, subject: &str) {
        let Some(condition) = self.condition("Progressing") else {
            return;
        };
        if condition["reason"] == "NewReplicaSetAvailable"
            || condition["reason"] == "ProgressDeadlineExceeded"
        {
            return;
        }
        let Some(since) = fields::instant(&condition["lastUpdateTime"]) else {
            return;
        };
        let end = fields::after(since, deadline);
        if end < self.view.now {
            let message = format!("{subject} has timed out progressing.");
            self.set_condition("Progressing", "False", "ProgressDeadlineExceeded", &message);
        } else {
            self.wake = Some(fields::after(end, 1));
        }
    }

    /// Says whether enough pods are there.
    fn note_availability(&mut self) {
        let available = self.counted().available;
        if available >= self.replicas - self.unavailable {
            let message = "Deployment has minimum availability.";
            self.set_condition("Available", "True", "MinimumReplicasAvailable", message);
        } else {
            let message = "Deployment does not have minimum availability.";
            self.set_condition("Available", "False", "MinimumReplicasUnavailable", message);
        }
    }

    /// Writes the status if it changed.
    pub(super) fn write_status(&mut self) {
        let counts = self.counted();
        self.take_failure();
        self.note_availability();
        let unavailable = (self.sets.total() - counts.available).max(0);
        let status = Fields::default()
            .value(
                "observedGeneration",
                self.deployment["metadata"]["generation"].clone(),
            )
            .count("replicas", counts.replicas)
            .count("updatedReplicas", counts.updated)
            .count("readyReplicas", counts.ready)
            .count("availableReplicas", counts.available)
            .count("unavailableReplicas", unavailable)
            .value("terminatingReplicas", self.terminating())
            .value("collisionCount", json!(self.collisions))
            .list("conditions", self.conditions.clone());
        let change = fields::patch_status(DEPLOYMENTS, self.deployment, status.finish());
        self.actions.extend(change);
    }

    /// Shows the failure of a set, the new one's first, as the deployment's own.
    fn take_failure(&mut self) {
        let new = self.sets.new.into_iter();
        let objects = new
            .chain(self.sets.old())
            .filter_map(|at| self.sets.all[at].object);
        let failure = objects
            .filter_map(|o| fields::condition(o, "ReplicaFailure"))
            .next();
        let Some(failure) = failure else {
            self.conditions
                .retain(|condition| condition["type"] != "ReplicaFailure");
            return;
        };
        let text = |field: &str| failure[field].as_str().unwrap_or_default();
        let (status, reason) = (text("status"), text("reason"));
        self.set_condition("ReplicaFailure", status, reason, text("message"));
    }

    /// Pods on their way out; unknown until every set has counted its own.
    fn terminating(&self) -> Value {
        let mut objects = self.sets.all.iter().map(|set| set.object);
        let sum = objects.try_fold(0, |sum, object| {
            Some(sum + object?["status"]["terminatingReplicas"].as_i64()?)
        });
        json!(sum)
    }

    fn stored(&self) -> Counts {
        let count = |field: &str| fields::count(&self.deployment["status"][field], 0);
        Counts {
            replicas: count("replicas"),
            updated: count("updatedReplicas"),
            ready: count("readyReplicas"),
            available: count("availableReplicas"),
        }
    }

    fn counted(&self) -> Counts {
        let sum = |field: &str| self.sets.all.iter().map(|set| set.status(field)).sum();
        let new = self.sets.new.map(|new| &self.sets.all[new]);
        Counts {
            replicas: sum("replicas"),
            updated: new.map_or(0, |new| new.status("replicas")),
            ready: sum("readyReplicas"),
            available: sum("availableReplicas"),
        }
    }

    fn is_complete(&self, counts: &Counts) -> bool {
        counts.updated == self.replicas
            && counts.replicas == self.replicas
            && counts.available == self.replicas
    }

    fn generation(&self) -> i64 {
        fields::count(&self.deployment["metadata"]["generation"], 0)
    }
}
