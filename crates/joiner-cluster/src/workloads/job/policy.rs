//! Do the pods that have ended decide the whole Job, or not count at all?

use joiner_machinery::meta;
use serde_json::Value;

use super::counting::has_failed;
use super::indexes::Indexes;
use super::{End, Job};
use crate::fields;
use crate::workloads::owned::Child;

/// The first rule that a failed pod meets.
struct Match<'a> {
    action: &'a str,
    /// In words, for the Job's conditions.
    message: String,
}

impl Job<'_, '_> {
    /// True when a failed pod is not held against the Job.
    pub(super) fn is_ignored(&self, pod: &Child) -> bool {
        self.matched(&pod.object)
            .is_some_and(|matched| matched.action == "Ignore")
    }

    /// True when a failed pod decides its index.
    pub(super) fn fails_index(&self, pod: &Child) -> bool {
        has_failed(&pod.facts, self.waits_for_end())
            && self
                .matched(&pod.object)
                .is_some_and(|matched| matched.action == "FailIndex")
    }

    /// The end of a Job of which one pod failed in a way that no other pod would mend.
    pub(super) fn hopeless(&self) -> Option<End> {
        let waits = self.waits_for_end();
        let failed = self.pods.iter().filter(|pod| has_failed(&pod.facts, waits));
        let mut matches = failed.filter_map(|pod| self.matched(&pod.object));
        let found = matches.find(|matched| matched.action == "FailJob")?;
        Some(End::failure("PodFailurePolicy", &found.message))
    }

    /// The end of a Job of which enough indexes have succeeded.
    pub(super) fn satisfied(&self) -> Option<End> {
        let rules = self.object["spec"]["successPolicy"]["rules"].as_array()?;
        let done = self.indexes.as_ref()?;
        let met = rules.iter().position(|rule| {
            let chosen = rule["succeededIndexes"].as_str();
            let chosen = chosen.map(|_| Indexes::read(&rule["succeededIndexes"]));
            let succeeded = chosen.as_ref().map_or(done.len(), |set| done.common(set));
            let needed = rule["succeededCount"].as_i64();
            needed
                .or(chosen.map(|set| set.len()))
                .is_some_and(|needed| succeeded >= needed)
        })?;
        Some(End {
            is_success: true,
            reason: "SuccessPolicy".to_owned(),
            message: format!("Matched rules at index {met}"),
        })
    }

    /// True when a pod that is being deleted fails only once it has ended.
    pub(super) fn waits_for_end(&self) -> bool {
        let spec = &self.object["spec"];
        spec["podReplacementPolicy"] == "Failed" || spec["podFailurePolicy"].is_object()
    }

    fn matched(&self, pod: &Value) -> Option<Match<'_>> {
        let rules = self.object["spec"]["podFailurePolicy"]["rules"].as_array()?;
        rules.iter().enumerate().find_map(|(index, rule)| {
            let action = rule["action"].as_str()?;
            let what =
                exit(&rule["onExitCodes"], pod).or_else(|| state(&rule["onPodConditions"], pod))?;
            let message = format!("{what} matching {action} rule at index {index}");
            Some(Match { action, message })
        })
    }
}

/// A container that ended as the rule has it.
fn exit(rule: &Value, pod: &Value) -> Option<String> {
    let codes = rule["values"].as_array()?;
    let statuses = ["containerStatuses", "initContainerStatuses"].into_iter();
    let mut statuses =
        statuses.flat_map(|list| pod["status"][list].as_array().into_iter().flatten());
    let is_meant = |status: &Value| {
        let name = rule["containerName"].as_str();
        let code = &status["state"]["terminated"]["exitCode"];
        let is_listed = codes.contains(code);
        let is_other = rule["operator"] == "NotIn";
        name.is_none_or(|name| status["name"] == name)
            && code.as_i64().is_some_and(|code| code != 0)
            && is_listed != is_other
    };
    let status = statuses.find(|status| is_meant(status))?;
    Some(format!(
        "Container {} for pod {}/{} failed with exit code {}",
        status["name"].as_str().unwrap_or_default(),
        meta::namespace(pod),
        meta::name(pod),
        status["state"]["terminated"]["exitCode"],
    ))
}

/// A condition of the pod that the rule names.
fn state(patterns: &Value, pod: &Value) -> Option<String> {
    let mut patterns = patterns.as_array()?.iter();
    let pattern = patterns.find(|pattern| {
        let status = pattern["status"].as_str().unwrap_or("True");
        let found = fields::condition(pod, pattern["type"].as_str().unwrap_or_default());
        found.is_some_and(|condition| condition["status"] == status)
    })?;
    Some(format!(
        "Pod {}/{} has condition {}",
        meta::namespace(pod),
        meta::name(pod),
        pattern["type"].as_str().unwrap_or_default(),
    ))
}
