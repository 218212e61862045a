//! The roles and bindings that every cluster starts with.

use serde_json::{Value, json};

use super::GROUP;

/// One line for each, see there.
const TABLE: &str = include_str!("bootstrap.txt");

/// The plural name of the kind and the object, for each role and binding.
#[must_use]
pub fn objects() -> Vec<(&'static str, Value)> {
    let mut all: Vec<(&'static str, Value)> = Vec::new();
    for line in TABLE.lines().filter(|line| !line.starts_with('#')) {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["role", name, ref marks @ ..] => all.push(("clusterroles", role(name, marks))),
            ["binding", name, ref subjects @ ..] => {
                all.push(("clusterrolebindings", binding(name, subjects)));
            }
            _ => {
                let rules = all.last_mut().map(|(_, role)| &mut role["rules"]);
                if let Some(Value::Array(rules)) = rules {
                    rules.push(rule(&words));
                }
            }
        }
    }
    all
}

fn metadata(name: &str) -> Value {
    json!({"name": name, "labels": {"kubernetes.io/bootstrapping": "rbac-defaults"},
        "annotations": {"rbac.authorization.kubernetes.io/autoupdate": "true"}})
}

fn role(name: &str, marks: &[&str]) -> Value {
    let mut role = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRole",
        "metadata": metadata(name), "rules": []});
    for (key, aggregate) in marks.iter().filter_map(|mark| mark.split_once('=')) {
        let label = format!("{GROUP}/aggregate-to-{aggregate}");
        match key {
            "gathers" => {
                let selector = json!({"matchLabels": {label: "true"}});
                // There are no rules until somebody gathers them.
                role["rules"] = Value::Null;
                role["aggregationRule"] = json!({"clusterRoleSelectors": [selector]});
            }
            _ => role["metadata"]["labels"][label] = json!("true"),
        }
    }
    role
}

fn binding(name: &str, subjects: &[&str]) -> Value {
    let subject = |(kind, name): (&str, &str)| match (kind, name.split_once('/')) {
        ("account", Some((namespace, name))) => {
            json!({"kind": "ServiceAccount", "name": name, "namespace": namespace})
        }
        ("group", _) => json!({"apiGroup": GROUP, "kind": "Group", "name": name}),
        _ => json!({"apiGroup": GROUP, "kind": "User", "name": name}),
    };
    let subjects = subjects.iter().filter_map(|text| text.split_once('='));
    let subjects: Vec<Value> = subjects.map(subject).collect();
    let mut binding = json!({"apiVersion": format!("{GROUP}/v1"), "kind": "ClusterRoleBinding",
        "metadata": metadata(name),
        "roleRef": {"apiGroup": GROUP, "kind": "ClusterRole", "name": name}});
    if !subjects.is_empty() {
        binding["subjects"] = json!(subjects);
    }
    binding
}

fn rule(words: &[&str]) -> Value {
    let list = |text: &str| -> Vec<String> {
        let names = text.split(',');
        names
            .map(|name| name.replace('-', if name == "-" { "" } else { "-" }))
            .collect()
    };
    match words {
        [verbs, "paths", paths] => json!({"verbs": list(verbs), "nonResourceURLs": list(paths)}),
        [verbs, groups, resources, more @ ..] => {
            let mut rule = json!({"verbs": list(verbs), "apiGroups": list(groups),
                "resources": list(resources)});
            if let ["named", names] = more {
                rule["resourceNames"] = json!(list(names));
            }
            rule
        }
        _ => Value::Null,
    }
}
