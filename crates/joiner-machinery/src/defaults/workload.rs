//! Defaults of the kinds that make pods.

use serde_json::{Map, Value, json};

use super::cluster;
use super::{items, pod, put, text, under};

pub(super) fn deployment(map: &mut Map<String, Value>) {
    under(map, "spec", |spec| {
        put(spec, "replicas", 1);
        under(spec, "strategy", |strategy| {
            put(strategy, "type", "RollingUpdate");
            if text(strategy, "type") == "RollingUpdate" {
                under(strategy, "rollingUpdate", |rolling| {
                    put(rolling, "maxUnavailable", "25%");
                    put(rolling, "maxSurge", "25%");
                });
            }
        });
        put(spec, "revisionHistoryLimit", 10);
        put(spec, "progressDeadlineSeconds", 600);
        pod::template(spec);
    });
}

pub(super) fn replica_set(map: &mut Map<String, Value>) {
    under(map, "spec", |spec| {
        put(spec, "replicas", 1);
        pod::template(spec);
    });
}

pub(super) fn stateful_set(map: &mut Map<String, Value>) {
    under(map, "spec", |spec| {
        put(spec, "podManagementPolicy", "OrderedReady");
        under(spec, "updateStrategy", |strategy| {
            if !strategy.contains_key("type") {
                put(strategy, "type", "RollingUpdate");
                put(strategy, "rollingUpdate", json!({}));
            }
            if text(strategy, "type") == "RollingUpdate"
                && let Some(rolling) = super::existing(strategy, "rollingUpdate")
            {
                put(rolling, "partition", 0);
            }
        });
        under(spec, "persistentVolumeClaimRetentionPolicy", |policy| {
            put(policy, "whenDeleted", "Retain");
            put(policy, "whenScaled", "Retain");
        });
        put(spec, "replicas", 1);
        put(spec, "revisionHistoryLimit", 10);
        for claim in items(spec, "volumeClaimTemplates") {
            put(claim, "kind", "PersistentVolumeClaim");
            put(claim, "apiVersion", "v1");
            cluster::claim(claim);
        }
        pod::template(spec);
    });
}

pub(super) fn daemon_set(map: &mut Map<String, Value>) {
    under(map, "spec", |spec| {
        under(spec, "updateStrategy", |strategy| {
            put(strategy, "type", "RollingUpdate");
            if text(strategy, "type") == "RollingUpdate" {
                under(strategy, "rollingUpdate", |rolling| {
                    put(rolling, "maxUnavailable", 1);
                    put(rolling, "maxSurge", 0);
                });
            }
        });
        put(spec, "revisionHistoryLimit", 10);
        pod::template(spec);
    });
}

pub(super) fn job(map: &mut Map<String, Value>) {
    under(map, "spec", |spec| {
        // A job that says nothing runs one pod; one with some parallelism is a work queue.
        if !spec.contains_key("completions") && !spec.contains_key("parallelism") {
            put(spec, "completions", 1);
        }
        put(spec, "parallelism", 1);
        let per_index = spec.contains_key("backoffLimitPerIndex");
        put(spec, "backoffLimit", if per_index { i32::MAX } else { 6 });
        put(spec, "completionMode", "NonIndexed");
        put(spec, "suspend", false);
        put(spec, "manualSelector", false);
        let failed_only = spec.contains_key("podFailurePolicy");
        let policy = if failed_only {
            "Failed"
        } else {
            "TerminatingOrFailed"
        };
        put(spec, "podReplacementPolicy", policy);
        failure_policy(spec);
        pod::template(spec);
    });
}

fn failure_policy(spec: &mut Map<String, Value>) {
    if let Some(policy) = super::existing(spec, "podFailurePolicy") {
        for rule in items(policy, "rules") {
            for condition in items(rule, "onPodConditions") {
                put(condition, "status", "True");
            }
        }
    }
}

pub(super) fn cron_job(map: &mut Map<String, Value>) {
    under(map, "spec", |spec| {
        put(spec, "concurrencyPolicy", "Allow");
        put(spec, "suspend", false);
        put(spec, "successfulJobsHistoryLimit", 3);
        put(spec, "failedJobsHistoryLimit", 1);
        under(spec, "jobTemplate", |template| {
            under(template, "spec", |spec| {
                failure_policy(spec);
                pod::template(spec);
            });
        });
    });
}
