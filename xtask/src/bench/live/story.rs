//! The objects of the stories.

use joiner_testkit::story::{N_DEPLOYMENTS, workloads};
use serde_json::{Value, json};

/// The pool of the scale-out, and its class.
pub(super) fn pool() -> Vec<Value> {
    let mut pool = pool_named("default");
    pool["spec"]["disruption"] = json!({"consolidationPolicy": "WhenEmptyOrUnderutilized",
        "consolidateAfter": "0s", "budgets": [{"nodes": "100%"}]});
    vec![class(), pool]
}

/// The Deployments of the story; `pods` pods in all.
pub(super) fn deployments(pods: usize) -> Vec<Value> {
    workloads()
        .into_iter()
        .map(|own| {
            let replicas = pods / N_DEPLOYMENTS;
            let mut deployment = deployment(&own.name, replicas, own.milli, own.mebi);
            let spec = &mut deployment["spec"]["template"]["spec"];
            for (field, rule) in own.rules.as_object().into_iter().flatten() {
                spec[field] = rule.clone();
            }
            deployment
        })
        .collect()
}

/// A fixed pool of so many nodes for a crowd of pods, and a pool that buys for newcomers.
pub(super) fn crowd_pools(nodes: usize) -> Vec<Value> {
    let mut fixed = pool_named("crowd");
    fixed["spec"]["replicas"] = json!(nodes);
    let template = &mut fixed["spec"]["template"];
    template["metadata"] = json!({"labels": {"bench": "crowd"}});
    let types = json!({"key": "node.kubernetes.io/instance-type", "operator": "In",
        "values": ["c-4x-amd64-linux"]});
    if let Some(requirements) = template["spec"]["requirements"].as_array_mut() {
        requirements.push(types);
    }
    let mut bought = pool_named("newcomers");
    bought["spec"]["template"]["metadata"] = json!({"labels": {"bench": "newcomers"}});
    vec![class(), fixed, bought]
}

/// Deployments that fill the fixed pool.
pub(super) fn crowd(pods: usize) -> Vec<Value> {
    let share = pods / N_DEPLOYMENTS;
    (0..N_DEPLOYMENTS)
        .map(|ix| {
            let mut deployment = deployment(&format!("crowd{ix}"), share, 100, 64);
            deployment["spec"]["template"]["spec"]["nodeSelector"] = json!({"bench": "crowd"});
            deployment
        })
        .collect()
}

/// A pod that needs a node of its own.
pub(super) fn newcomer(ix: usize) -> Value {
    let mut spec = pod_spec(30_000, 1024);
    spec["nodeSelector"] = json!({"bench": "newcomers"});
    json!({"apiVersion": "v1", "kind": "Pod",
        "metadata": {"name": format!("newcomer{ix}"), "namespace": "default"}, "spec": spec})
}

/// A list of objects, as text.
pub(super) fn list(items: &[Value]) -> String {
    json!({"apiVersion": "v1", "kind": "List", "items": items}).to_string()
}

fn class() -> Value {
    json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass",
        "metadata": {"name": "default"}, "spec": {}})
}

fn pool_named(name: &str) -> Value {
    let is_in = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool", "metadata": {"name": name},
    "spec": {"template": {"spec": {
        "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass",
            "name": "default"},
        "expireAfter": "Never",
        "requirements": [is_in("karpenter.sh/capacity-type", "on-demand"),
            is_in("kubernetes.io/os", "linux")],
    }}}})
}

fn deployment(name: &str, replicas: usize, cpu: u64, memory: u64) -> Value {
    let labels = json!({"app": name});
    json!({"apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod_spec(cpu, memory)}}})
}

fn pod_spec(cpu: u64, memory: u64) -> Value {
    let requests = json!({"cpu": format!("{cpu}m"), "memory": format!("{memory}Mi")});
    json!({"terminationGracePeriodSeconds": 0,
        "containers": [{"name": "c", "image": "pause", "resources": {"requests": requests}}]})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_story_is_the_one_that_others_were_measured_with() {
        let all = deployments(1000);
        let pods: u64 = all
            .iter()
            .filter_map(|d| d["spec"]["replicas"].as_u64())
            .sum();
        assert_eq!((all.len(), pods), (20, 1000));
        let spec = |d: &Value| d["spec"]["template"]["spec"].clone();
        let has = |field: &str| all.iter().filter(|d| spec(d)[field] != Value::Null).count();
        assert_eq!(
            (has("topologySpreadConstraints"), has("nodeSelector")),
            (4, 4)
        );
    }
}
