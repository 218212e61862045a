//! Numbered behaviors of upstream's recommender and updater, as far as they need no cluster.

mod capping;
mod estimation;
mod histogram;
mod limits;
mod rules;
mod samples;
mod updater;

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::*;
use crate::quantity::Quantity;
use crate::selector::Selector;

pub(super) const DAY: i64 = 86_400;
pub(super) const MB: i64 = 1_000_000;

/// So many seconds after the beginning of the tests' time.
pub(super) fn at(seconds: i64) -> Timestamp {
    let begin: Timestamp = "2026-03-01T00:00:00Z".parse().unwrap();
    begin + SignedDuration::from_secs(seconds)
}

pub(super) fn q(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}

/// A VPA after a change of its spec.
pub(super) fn vpa(change: impl FnOnce(&mut Value)) -> Vpa {
    let mut object = json!({
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"targetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"}},
    });
    change(&mut object);
    Vpa::read(&object).unwrap()
}

/// A pod of these containers, each with what it requests and its limits.
pub(super) fn pod(name: &str, containers: &[(&str, Value, Value)]) -> Pod {
    let container = |(name, requests, limits): &(&str, Value, Value)| json!({"name": name, "resources": {"requests": requests, "limits": limits}});
    let containers: Vec<Value> = containers.iter().map(container).collect();
    let object = json!({
        "metadata": {
            "name": name, "namespace": "shop", "labels": {"app": "web"},
            "ownerReferences": [{"kind": "ReplicaSet", "name": "web-1", "controller": true}],
        },
        "spec": {"containers": containers},
        "status": {"phase": "Running"},
    });
    Pod::read(&object).unwrap()
}

/// What is recommended for a container: target, lower and upper bound.
pub(super) fn recommended(
    name: &str,
    target: Value,
    lower: Value,
    upper: Value,
) -> ContainerRecommendation {
    let object = json!({
        "metadata": {"name": "a"},
        "spec": {"targetRef": {"kind": "Deployment", "name": "a"}},
        "status": {"recommendation": {"containerRecommendations": [{
            "containerName": name, "target": target, "lowerBound": lower, "upperBound": upper,
        }]}},
    });
    Vpa::read(&object).unwrap().recommendation.remove(0)
}

/// A recommender that follows one VPA.
pub(super) struct Watch {
    pub(super) cluster: Cluster,
    pub(super) id: Id,
}

impl Watch {
    pub(super) fn new(settings: Settings, vpa: Vpa) -> Self {
        let mut cluster = Cluster::new(settings);
        let id = (vpa.namespace.clone(), vpa.name.clone());
        cluster.set_vpas(vec![(vpa, Selector::parse("app=web").unwrap())]);
        Self { cluster, id }
    }

    /// What a container of a pod used.
    pub(super) fn use_of(
        &mut self,
        pod: &str,
        container: &str,
        (cpu, memory): (i64, i64),
        time: Timestamp,
    ) {
        let usage = Usage {
            container: container.to_owned(),
            cpu_millis: cpu,
            memory_bytes: memory,
            time,
        };
        self.cluster
            .add_usage(&("shop".to_owned(), pod.to_owned()), &usage, time);
    }

    pub(super) fn containers(&mut self, now: Timestamp) -> Vec<ContainerRecommendation> {
        self.cluster.recommend(&self.id, now).unwrap().containers
    }
}
