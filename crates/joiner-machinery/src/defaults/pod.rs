//! Defaults of pods and of the pod templates in workloads.

use serde_json::{Map, Value, json};

use super::{existing, items, put, text, under};
use crate::quantity::Quantity;

/// A pod: what every pod spec gets, and what only pods get.
pub(super) fn pod(map: &mut Map<String, Value>) {
    under(map, "spec", |spec| {
        pod_spec(spec);
        for list in ["containers", "initContainers"] {
            for container in items(spec, list) {
                if let Some(resources) = existing(container, "resources") {
                    requests_from_limits(resources);
                }
            }
        }
        pod_level_requests(spec);
        put(spec, "enableServiceLinks", true);
        if spec.get("hostNetwork") == Some(&Value::Bool(true)) {
            for list in ["containers", "initContainers"] {
                items(spec, list).for_each(host_ports);
            }
        }
    });
}

/// A spec in a pod or in a template.
pub(super) fn pod_spec(spec: &mut Map<String, Value>) {
    put(spec, "dnsPolicy", "ClusterFirst");
    put(spec, "restartPolicy", "Always");
    put(spec, "securityContext", json!({}));
    put(spec, "terminationGracePeriodSeconds", 30);
    put(spec, "schedulerName", "default-scheduler");
    // The old name of the field is written beside the new one.
    let account = match text(spec, "serviceAccountName") {
        "" => text(spec, "serviceAccount"),
        name => name,
    };
    if !account.is_empty() {
        let account = Value::from(account);
        spec.insert("serviceAccountName".to_owned(), account.clone());
        spec.insert("serviceAccount".to_owned(), account);
    }
    for list in ["containers", "initContainers", "ephemeralContainers"] {
        items(spec, list).for_each(container);
    }
    items(spec, "volumes").for_each(volume);
}

/// A template in a workload.
pub(super) fn template(map: &mut Map<String, Value>) {
    under(map, "template", |template| {
        under(template, "spec", pod_spec)
    });
}

fn container(map: &mut Map<String, Value>) {
    if !map.contains_key("imagePullPolicy") {
        let policy = pull_policy(text(map, "image"));
        map.insert("imagePullPolicy".to_owned(), Value::from(policy));
    }
    put(map, "terminationMessagePath", "/dev/termination-log");
    put(map, "terminationMessagePolicy", "File");
    for port in items(map, "ports") {
        put(port, "protocol", "TCP");
    }
    for env in items(map, "env") {
        let from = existing(env, "valueFrom");
        if let Some(field) = from.and_then(|from| existing(from, "fieldRef")) {
            put(field, "apiVersion", "v1");
        }
    }
    for name in ["livenessProbe", "readinessProbe", "startupProbe"] {
        if let Some(probe) = existing(map, name) {
            put(probe, "timeoutSeconds", 1);
            put(probe, "periodSeconds", 10);
            put(probe, "successThreshold", 1);
            put(probe, "failureThreshold", 3);
            handler(probe);
        }
    }
    if let Some(lifecycle) = existing(map, "lifecycle") {
        for name in ["postStart", "preStop"] {
            if let Some(hook) = existing(lifecycle, name) {
                handler(hook);
            }
        }
    }
}

fn handler(map: &mut Map<String, Value>) {
    if let Some(get) = existing(map, "httpGet") {
        put(get, "path", "/");
        put(get, "scheme", "HTTP");
    }
    if let Some(grpc) = existing(map, "grpc") {
        put(grpc, "service", "");
    }
}

/// Images without a tag, or with the tag `latest`, are pulled every time.
fn pull_policy(image: &str) -> &'static str {
    if image.contains('@') {
        return "IfNotPresent";
    }
    let last = image.rsplit('/').next().unwrap_or(image);
    match last.split_once(':') {
        None | Some((_, "latest")) => "Always",
        Some(_) => "IfNotPresent",
    }
}

fn volume(map: &mut Map<String, Value>) {
    if map.len() == 1 && map.contains_key("name") {
        map.insert("emptyDir".to_owned(), json!({}));
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = existing(map, source) {
            put(source, "defaultMode", 0o644);
            items(source, "items").for_each(field_ref);
            for part in items(source, "sources") {
                if let Some(token) = existing(part, "serviceAccountToken") {
                    put(token, "expirationSeconds", 3600);
                }
                if let Some(fields) = existing(part, "downwardAPI") {
                    items(fields, "items").for_each(field_ref);
                }
            }
        }
    }
    if let Some(path) = existing(map, "hostPath") {
        put(path, "type", "");
    }
    if let Some(image) = existing(map, "image") {
        let policy = pull_policy(text(image, "reference"));
        put(image, "pullPolicy", policy);
    }
    let ephemeral = existing(map, "ephemeral");
    if let Some(template) = ephemeral.and_then(|e| existing(e, "volumeClaimTemplate")) {
        under(template, "spec", |spec| {
            put(spec, "volumeMode", "Filesystem")
        });
    }
}

fn field_ref(item: &mut Map<String, Value>) {
    if let Some(field) = existing(item, "fieldRef") {
        put(field, "apiVersion", "v1");
    }
}

fn requests_from_limits(resources: &mut Map<String, Value>) {
    let Some(limits) = resources.get("limits").and_then(Value::as_object).cloned() else {
        return;
    };
    under(resources, "requests", |requests| {
        for (name, amount) in limits {
            requests.entry(name).or_insert(amount);
        }
    });
}

/// Requests of the pod as a whole: the sum of its containers' where they have any, else its limits.
fn pod_level_requests(spec: &mut Map<String, Value>) {
    let limits = spec.get("resources").and_then(|r| r["limits"].as_object());
    let Some(limits) = limits.filter(|limits| !limits.is_empty()).cloned() else {
        return;
    };
    let sum = |name: &str| {
        let containers = spec.get("containers").and_then(Value::as_array);
        let amounts = containers
            .into_iter()
            .flatten()
            .filter_map(|c| Quantity::of(&c["resources"]["requests"][name]));
        amounts.reduce(Quantity::plus)
    };
    let sums: Vec<(&str, Option<Quantity>)> = ["cpu", "memory"]
        .into_iter()
        .map(|name| (name, sum(name)))
        .collect();
    let Some(resources) = existing(spec, "resources") else {
        return;
    };
    under(resources, "requests", |requests| {
        for (name, sum) in sums {
            if let Some(sum) = sum {
                put(requests, name, sum.to_string());
            }
        }
        for (name, limit) in limits {
            requests.entry(name).or_insert(limit);
        }
    });
}

fn host_ports(container: &mut Map<String, Value>) {
    for port in items(container, "ports") {
        if let Some(number) = port.get("containerPort").cloned() {
            port.entry("hostPort").or_insert(number);
        }
    }
}

/// `Guaranteed`, `Burstable` or `BestEffort`, from CPU and memory of a pod's spec.
#[must_use]
pub fn qos_class(spec: &Value) -> &'static str {
    let own = &spec["resources"];
    let has = |resources: &Value, list: &str| {
        let entries = resources[list].as_object().into_iter().flatten();
        entries
            .filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory"))
            .any(|(_, amount)| Quantity::of(amount).is_some_and(|q| !q.is_zero()))
    };
    let full = |resources: &Value| {
        ["cpu", "memory"].iter().all(|name| {
            let limit = Quantity::of(&resources["limits"][name]);
            let request = Quantity::of(&resources["requests"][name]);
            limit.is_some_and(|limit| !limit.is_zero() && request == Some(limit))
        })
    };
    if has(own, "limits") || has(own, "requests") {
        return if full(own) { "Guaranteed" } else { "Burstable" };
    }
    let lists = ["containers", "initContainers"];
    let all = || {
        let lists = lists.iter().filter_map(|list| spec[*list].as_array());
        lists.flatten().map(|container| &container["resources"])
    };
    if !all().any(|r| has(r, "limits") || has(r, "requests")) {
        "BestEffort"
    } else if all().all(full) {
        "Guaranteed"
    } else {
        "Burstable"
    }
}
