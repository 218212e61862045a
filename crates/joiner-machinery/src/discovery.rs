//! Which groups, versions and kinds a client is told about, in the old form and in the aggregated one.

use serde_json::{Value, json};

use crate::kinds::{Kind, Subresource};

/// Media type of the aggregated form.
pub const AGGREGATED_V2: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
/// Media type of the aggregated form that clients before 1.30 ask for.
pub const AGGREGATED_V2BETA1: &str =
    "application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// Groups in the order in which upstream lists them. Those of CRDs follow by name, then metrics.
const GROUP_ORDER: &[&str] = &[
    "",
    "apps",
    "events.k8s.io",
    "authentication.k8s.io",
    "authorization.k8s.io",
    "autoscaling",
    "batch",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "storage.k8s.io",
    "apiextensions.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "node.k8s.io",
    "discovery.k8s.io",
];

/// A custom kind's verbs, in the order that upstream gives them.
const CUSTOM_VERBS: &[&str] = &[
    "delete",
    "deletecollection",
    "get",
    "list",
    "patch",
    "create",
    "update",
    "watch",
];

/// `/api`. The address is where clients reach this server, `host:port`.
#[must_use]
pub fn core_versions(address: &str) -> Value {
    json!({
        "kind": "APIVersions",
        "versions": ["v1"],
        "serverAddressByClientCIDRs": [{"clientCIDR": "0.0.0.0/0", "serverAddress": address}],
    })
}

/// `/apis`.
#[must_use]
pub fn groups(kinds: &[&Kind]) -> Value {
    let names = group_names(kinds);
    let named = names.iter().filter(|name| !name.is_empty());
    let groups: Vec<Value> = named.map(|name| api_group(kinds, name)).collect();
    json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": groups})
}

/// `/apis/GROUP`; none when nothing is served there.
#[must_use]
pub fn group(kinds: &[&Kind], name: &str) -> Option<Value> {
    if name.is_empty() || !kinds.iter().any(|kind| kind.group == name) {
        return None;
    }
    let mut group = json!({"kind": "APIGroup", "apiVersion": "v1"});
    if let (Value::Object(all), Value::Object(rest)) = (&mut group, api_group(kinds, name)) {
        all.extend(rest);
    }
    Some(group)
}

/// `/api/v1` or `/apis/GROUP/VERSION`; none when nothing is served there.
#[must_use]
pub fn resources(kinds: &[&Kind], group: &str, version: &str) -> Option<Value> {
    let kinds = kinds_of(kinds, group, version);
    let group_version = kinds.first()?.api_version();
    let resources: Vec<Value> = kinds.iter().flat_map(|kind| listed(kind)).collect();
    let mut list = json!({
        "kind": "APIResourceList",
        "groupVersion": group_version,
        "resources": resources,
    });
    // The core list is older than the field, and upstream has left it out ever since.
    if !group.is_empty() {
        list["apiVersion"] = json!("v1");
    }
    Some(list)
}

/// `/api` (`core`) or `/apis` in the aggregated form of this media type.
#[must_use]
pub fn aggregated(kinds: &[&Kind], core: bool, media_type: &str) -> Value {
    let names = group_names(kinds);
    let chosen = names.iter().filter(|name| name.is_empty() == core);
    let items: Vec<Value> = chosen.map(|name| aggregated_group(kinds, name)).collect();
    let version = if media_type == AGGREGATED_V2BETA1 {
        "apidiscovery.k8s.io/v2beta1"
    } else {
        "apidiscovery.k8s.io/v2"
    };
    json!({
        "kind": "APIGroupDiscoveryList",
        "apiVersion": version,
        "metadata": {},
        "items": items,
    })
}

/// The media type of the aggregated form, when that is what the client wants first.
#[must_use]
pub fn wants_aggregated(accept: &str) -> Option<&'static str> {
    for clause in clauses(accept) {
        match (clause.param("g"), clause.param("v"), clause.param("as")) {
            (Some("apidiscovery.k8s.io"), Some("v2"), Some("APIGroupDiscoveryList")) => {
                return Some(AGGREGATED_V2);
            }
            (Some("apidiscovery.k8s.io"), Some("v2beta1"), Some("APIGroupDiscoveryList")) => {
                return Some(AGGREGATED_V2BETA1);
            }
            (_, _, None) => return None,
            (_, _, Some(_)) => {}
        }
    }
    None
}

/// One alternative of an `Accept` header.
pub(crate) struct Clause<'a> {
    params: Vec<(&'a str, &'a str)>,
}

impl<'a> Clause<'a> {
    /// A parameter's value.
    pub(crate) fn param(&self, name: &str) -> Option<&'a str> {
        let found = self.params.iter().find(|(key, _)| *key == name);
        found.map(|(_, value)| *value)
    }
}

/// The alternatives that JSON can answer, in the client's order.
pub(crate) fn clauses(accept: &str) -> impl Iterator<Item = Clause<'_>> {
    accept.split(',').filter_map(|clause| {
        let mut parts = clause.split(';').map(str::trim);
        let media_type = parts.next()?;
        if !matches!(media_type, "application/json" | "application/*" | "*/*") {
            return None;
        }
        let params = parts.filter_map(|part| part.split_once('=')).collect();
        Some(Clause { params })
    })
}

/// All groups once, in discovery's order.
pub(crate) fn group_names<'k>(kinds: &[&'k Kind]) -> Vec<&'k str> {
    let mut names: Vec<&str> = kinds.iter().map(|kind| kind.group.as_str()).collect();
    names.sort_by_key(|name| {
        let place = GROUP_ORDER.iter().position(|known| known == name);
        // Groups of other servers, which metrics are, come after those of CRDs.
        let late = *name == "metrics.k8s.io";
        (place.unwrap_or(GROUP_ORDER.len()), late, *name)
    });
    names.dedup();
    names
}

/// The versions of a group, the preferred one first.
pub(crate) fn versions<'k>(kinds: &[&'k Kind], group: &str) -> Vec<&'k str> {
    let of_group = kinds.iter().filter(|kind| kind.group == group);
    let mut versions: Vec<&str> = of_group.map(|kind| kind.version.as_str()).collect();
    versions.sort_by(|a, b| version_rank(b).cmp(&version_rank(a)).then(a.cmp(b)));
    versions.dedup();
    versions
}

/// Releases before betas before alphas before anything else; then the higher number.
fn version_rank(version: &str) -> (u8, u32, u32) {
    let number = |text: &str| -> Option<u32> {
        let digits = text.bytes().all(|b| b.is_ascii_digit());
        if digits { text.parse().ok() } else { None }
    };
    let rank = || {
        let rest = version.strip_prefix('v')?;
        for (stage, word) in [(2, "beta"), (1, "alpha")] {
            if let Some((major, minor)) = rest.split_once(word) {
                return Some((stage, number(major)?, number(minor)?));
            }
        }
        Some((3, number(rest)?, 0))
    };
    rank().unwrap_or((0, 0, 0))
}

/// The kinds of a group's version by plural.
fn kinds_of<'k>(kinds: &[&'k Kind], group: &str, version: &str) -> Vec<&'k Kind> {
    let matching = |kind: &&&Kind| kind.group == group && kind.version == version;
    let mut found: Vec<&Kind> = kinds.iter().filter(matching).copied().collect();
    found.sort_by(|a, b| a.plural.cmp(&b.plural));
    found
}

fn api_group(kinds: &[&Kind], name: &str) -> Value {
    let entry =
        |version: &str| json!({"groupVersion": format!("{name}/{version}"), "version": version});
    let versions: Vec<Value> = versions(kinds, name).into_iter().map(entry).collect();
    let preferred = versions.first().cloned();
    json!({"name": name, "versions": versions, "preferredVersion": preferred})
}

/// A kind and what is under it, as rows of the old form.
fn listed(kind: &Kind) -> Vec<Value> {
    let mut own = json!({
        "name": kind.plural,
        "singularName": kind.singular,
        "namespaced": kind.namespaced,
        "kind": kind.kind,
        "verbs": verbs(kind),
    });
    add_names(&mut own, kind);
    let mut rows = vec![own];
    for (word, below) in below(kind) {
        let mut row = json!({
            "name": format!("{}/{word}", kind.plural),
            "singularName": "",
            "namespaced": kind.namespaced,
            "kind": below.kind,
            "verbs": below.verbs,
        });
        if !below.group.is_empty() {
            row["group"] = json!(below.group);
            row["version"] = json!(below.version);
        }
        rows.push(row);
    }
    rows
}

fn aggregated_group(kinds: &[&Kind], name: &str) -> Value {
    let version = |version: &str| {
        let found = kinds_of(kinds, name, version);
        let resources: Vec<Value> = found.into_iter().map(aggregated_kind).collect();
        json!({"version": version, "resources": resources, "freshness": "Current"})
    };
    let versions: Vec<Value> = versions(kinds, name).into_iter().map(version).collect();
    let metadata = if name.is_empty() {
        json!({})
    } else {
        json!({"name": name})
    };
    json!({"metadata": metadata, "versions": versions})
}

fn aggregated_kind(kind: &Kind) -> Value {
    // Upstream leaves group and version of its own kinds empty, and clients fill them in.
    let (group, version) = match kind.custom {
        Some(_) => (kind.group.as_str(), kind.version.as_str()),
        None => ("", ""),
    };
    let mut resource = json!({
        "resource": kind.plural,
        "responseKind": {"group": group, "version": version, "kind": kind.kind},
        "scope": if kind.namespaced { "Namespaced" } else { "Cluster" },
        "singularResource": kind.singular,
        "verbs": verbs(kind),
    });
    add_names(&mut resource, kind);
    let subresources: Vec<Value> = below(kind)
        .into_iter()
        .map(|(word, below)| {
            let (group, version) = match below.group {
                "" => (group, version),
                other => (other, below.version),
            };
            json!({
                "subresource": word,
                "responseKind": {"group": group, "version": version, "kind": below.kind},
                "verbs": below.verbs,
            })
        })
        .collect();
    if !subresources.is_empty() {
        resource["subresources"] = Value::Array(subresources);
    }
    resource
}

fn add_names(resource: &mut Value, kind: &Kind) {
    let Value::Object(fields) = resource else {
        return;
    };
    for (name, list) in [
        ("shortNames", &kind.short_names),
        ("categories", &kind.categories),
    ] {
        if !list.is_empty() {
            fields.insert(name.to_owned(), json!(list));
        }
    }
}

fn verbs(kind: &Kind) -> &'static [&'static str] {
    if kind.custom.is_some() {
        CUSTOM_VERBS
    } else {
        kind.verbs()
    }
}

/// What a subresource answers with.
struct Below<'k> {
    group: &'static str,
    version: &'static str,
    kind: &'k str,
    verbs: &'static [&'static str],
}

/// The served subresources in upstream's order: by name, but status first for custom kinds.
fn below(kind: &Kind) -> Vec<(&'static str, Below<'_>)> {
    let served = kind.subresources.iter();
    let named = served.filter_map(|sub| Some((sub.word()?, answer(*sub, kind))));
    let mut found: Vec<(&'static str, Below<'_>)> = named.collect();
    let custom = kind.custom.is_some();
    found.sort_by_key(|(word, _)| (custom && *word != "status", *word));
    found
}

fn answer(subresource: Subresource, kind: &Kind) -> Below<'_> {
    let own = |verbs| Below {
        group: "",
        version: "",
        kind: &kind.kind,
        verbs,
    };
    let other = |group, kind, verbs| Below {
        group,
        version: "v1",
        kind,
        verbs,
    };
    match subresource {
        Subresource::Status | Subresource::Unserved => own(&["get", "patch", "update"]),
        Subresource::Log => own(&["get"]),
        Subresource::Finalize => own(&["update"]),
        Subresource::Scale => other("autoscaling", "Scale", &["get", "patch", "update"]),
        Subresource::Eviction => other("policy", "Eviction", &["create"]),
        Subresource::Token => other("authentication.k8s.io", "TokenRequest", &["create"]),
        Subresource::Binding => Below {
            kind: "Binding",
            ..own(&["create"])
        },
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::kinds::builtin;

    fn gadget(version: &str) -> Kind {
        Kind {
            group: "zoo.example.com".to_owned(),
            version: version.to_owned(),
            kind: "Gadget".to_owned(),
            plural: "gadgets".to_owned(),
            singular: "gadget".to_owned(),
            short_names: vec!["gg".to_owned()],
            categories: vec!["all".to_owned()],
            namespaced: true,
            subresources: vec![Subresource::Scale, Subresource::Status],
            custom: Some(Arc::new(json!({}))),
        }
    }

    fn all() -> Vec<Kind> {
        let mut kinds = builtin();
        kinds.extend(["v1alpha1", "v10", "v2", "v2beta1", "odd"].map(gadget));
        kinds.reverse();
        kinds
    }

    #[test]
    fn groups_come_in_upstreams_order_with_preferred_versions() {
        let kinds = all();
        let kinds: Vec<&Kind> = kinds.iter().collect();
        let list = groups(&kinds);
        let names: Vec<&str> = list["groups"]
            .as_array()
            .unwrap()
            .iter()
            .map(|group| group["name"].as_str().unwrap())
            .collect();
        assert_eq!(names[0], "apps");
        assert_eq!(
            names[names.len() - 2..],
            ["zoo.example.com", "metrics.k8s.io"]
        );
        assert!(!names.contains(&""));

        let scaling = group(&kinds, "autoscaling").unwrap();
        assert_eq!(
            scaling["preferredVersion"]["groupVersion"],
            "autoscaling/v2"
        );
        assert_eq!(scaling["versions"][1]["version"], "v1");
        assert_eq!(
            versions(&kinds, "zoo.example.com"),
            ["v10", "v2", "v2beta1", "v1alpha1", "odd"]
        );
        assert_eq!(group(&kinds, "nope"), None);
        assert_eq!(group(&kinds, ""), None);
    }

    #[test]
    fn kinds_are_listed_with_what_is_under_them() {
        let kinds = all();
        let kinds: Vec<&Kind> = kinds.iter().collect();
        let core = resources(&kinds, "", "v1").unwrap();
        assert_eq!(core["groupVersion"], "v1");
        assert_eq!(core.get("apiVersion"), None);
        let rows = core["resources"].as_array().unwrap();
        let named = |name: &str| rows.iter().find(|row| row["name"] == name).unwrap();
        assert_eq!(
            named("pods/eviction"),
            &json!({
                "name": "pods/eviction", "singularName": "", "namespaced": true,
                "group": "policy", "version": "v1", "kind": "Eviction", "verbs": ["create"],
            })
        );
        assert_eq!(named("pods")["shortNames"], json!(["po"]));
        assert_eq!(named("pods")["categories"], json!(["all"]));
        assert_eq!(named("pods")["singularName"], "pod");
        assert_eq!(named("pods/log")["verbs"], json!(["get"]));
        assert_eq!(named("serviceaccounts/token")["kind"], "TokenRequest");
        assert_eq!(resources(&kinds, "apps", "v2"), None);

        let custom = resources(&kinds, "zoo.example.com", "v2").unwrap();
        assert_eq!(custom["apiVersion"], "v1");
        let names: Vec<&Value> = custom["resources"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| &row["name"])
            .collect();
        assert_eq!(names, ["gadgets", "gadgets/status", "gadgets/scale"]);
    }

    #[test]
    fn aggregated_form_has_everything_in_one_answer() {
        let kinds = all();
        let kinds: Vec<&Kind> = kinds.iter().collect();
        let core = aggregated(&kinds, true, AGGREGATED_V2);
        assert_eq!(core["apiVersion"], "apidiscovery.k8s.io/v2");
        assert_eq!(core["items"].as_array().unwrap().len(), 1);
        assert_eq!(core["items"][0]["metadata"], json!({}));

        let rest = aggregated(&kinds, false, AGGREGATED_V2BETA1);
        assert_eq!(rest["apiVersion"], "apidiscovery.k8s.io/v2beta1");
        let zoo = rest["items"].as_array().unwrap().iter();
        let zoo = zoo
            .filter(|group| group["metadata"]["name"] == "zoo.example.com")
            .map(|group| &group["versions"][1]["resources"][0]);
        assert_eq!(
            zoo.collect::<Vec<_>>(),
            [&json!({
                "resource": "gadgets",
                "responseKind": {"group": "zoo.example.com", "version": "v2", "kind": "Gadget"},
                "scope": "Namespaced",
                "singularResource": "gadget",
                "verbs": CUSTOM_VERBS,
                "shortNames": ["gg"],
                "categories": ["all"],
                "subresources": [
                    {
                        "subresource": "status",
                        "responseKind": {
                            "group": "zoo.example.com", "version": "v2", "kind": "Gadget",
                        },
                        "verbs": ["get", "patch", "update"],
                    },
                    {
                        "subresource": "scale",
                        "responseKind": {
                            "group": "autoscaling", "version": "v1", "kind": "Scale",
                        },
                        "verbs": ["get", "patch", "update"],
                    },
                ],
            })]
        );
    }

    #[test]
    fn form_is_the_first_that_the_client_takes() {
        let v2 = AGGREGATED_V2;
        let beta = AGGREGATED_V2BETA1;
        for (accept, expected) in [
            (format!("{v2},{beta},application/json"), Some(v2)),
            (format!("{beta},application/json"), Some(beta)),
            (format!("application/json, {v2}"), None),
            (
                format!("application/vnd.kubernetes.protobuf, {v2}"),
                Some(v2),
            ),
            (
                "application/json;as=APIGroupDiscoveryList;v=v2;g=apidiscovery.k8s.io".into(),
                Some(v2),
            ),
            (
                "application/json;as=APIGroupDiscoveryList;v=v9;g=apidiscovery.k8s.io,*/*".into(),
                None,
            ),
            ("*/*".to_owned(), None),
            (String::new(), None),
        ] {
            assert_eq!(wants_aggregated(&accept), expected, "{accept}");
        }
    }
}
