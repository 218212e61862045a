//! Rows of ingresses, their classes and network policies.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::cell::{NONE, items, or_none, selector, text, text_or};
use super::{AGE, BuiltIn, Column, NAME};
use crate::kinds::Kind;
use crate::meta;

/// How many hosts are shown.
const HOSTS_MAX: usize = 3;
/// How much of a list of addresses is shown.
const ADDRESSES_MAX: usize = 16;

/// The printer of a kind that is shown here.
pub(super) fn printer(kind: &Kind) -> Option<&'static BuiltIn> {
    let found = match (kind.group.as_str(), kind.kind.as_str()) {
        ("networking.k8s.io", "Ingress") => &INGRESSES,
        ("networking.k8s.io", "IngressClass") => &CLASSES,
        ("networking.k8s.io", "NetworkPolicy") => &POLICIES,
        _ => return None,
    };
    Some(found)
}

static INGRESSES: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Class", "Who serves it."),
        Column::text("Hosts", "Names of hosts that it serves."),
        Column::text("Address", "Where it can be reached."),
        Column::text("Ports", "Ports that it opens."),
        AGE,
    ],
    |shown| {
        let spec = shown.spec();
        let ports = match items(&spec["tls"]) {
            [] => "80",
            _ => "80, 443",
        };
        vec![
            shown.name(),
            json!(text_or(&spec["ingressClassName"], NONE)),
            json!(hosts(items(&spec["rules"]))),
            json!(addresses(shown.status())),
            json!(ports),
            shown.age(),
        ]
    },
);

fn hosts(rules: &[Value]) -> String {
    let named = rules.iter().map(|rule| text(&rule["host"]));
    let named: Vec<&str> = named.filter(|host| !host.is_empty()).collect();
    match named.len() {
        0 => "*".to_owned(),
        n if n > HOSTS_MAX || (n == HOSTS_MAX && rules.len() > n) => {
            let first = named[..HOSTS_MAX].join(",");
            format!("{first} + {} more...", rules.len() - HOSTS_MAX)
        }
        _ => named.join(","),
    }
}

fn addresses(status: &Value) -> String {
    let given = items(&status["loadBalancer"]["ingress"]).iter();
    let given: BTreeSet<&str> = given
        .map(|i| text_or(&i["ip"], text(&i["hostname"])))
        .filter(|address| !address.is_empty())
        .collect();
    let all: Vec<&str> = given.into_iter().collect();
    let all = all.join(",");
    match all.get(..ADDRESSES_MAX - 3) {
        Some(start) if all.len() > ADDRESSES_MAX => format!("{start}..."),
        Some(_) | None => all,
    }
}

static CLASSES: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Controller", "Who serves ingresses of the class."),
        Column::text("Parameters", "What more is said about it."),
        AGE,
    ],
    |shown| {
        let mark = "ingressclass.kubernetes.io/is-default-class";
        let name = meta::name(shown.object);
        let name = match meta::annotation(shown.object, mark) {
            Some("true") => format!("{name} (default)"),
            Some(_) | None => name.to_owned(),
        };
        let given = &shown.spec()["parameters"];
        let parameters = match (text(&given["kind"]), given["apiGroup"].as_str()) {
            ("", _) => NONE.to_owned(),
            (kind, Some(group)) => format!("{kind}.{group}/{}", text(&given["name"])),
            (kind, None) => format!("{kind}/{}", text(&given["name"])),
        };
        vec![
            json!(name),
            json!(text(&shown.spec()["controller"])),
            json!(parameters),
            shown.age(),
        ]
    },
);

static POLICIES: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Pod-Selector", "Pods that it is about."),
        AGE,
    ],
    |shown| {
        vec![
            shown.name(),
            json!(or_none(selector(&shown.spec()["podSelector"]))),
            shown.age(),
        ]
    },
);
