//! Nobody grants what they do not have: the rights that writing a role or a binding takes.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::rules::{self, list, path_fits, text};
use super::user::User;
use super::{Access, GROUP, Policy, authorize, forbidden, rules_for};
use crate::error::{ApiError, Reason};
use crate::meta;

/// A write of a role or a binding.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// Plural name of the kind.
    pub resource: &'a str,
    /// Empty for what is in none.
    pub namespace: &'a str,
    /// The object before; `None` for a new one.
    pub before: Option<&'a Value>,
    /// The object after.
    pub object: &'a Value,
}

/// 403 when a write would grant rights that the user lacks.
pub fn check_write(policy: &dyn Policy, user: &User, write: &Write<'_>) -> Result<(), ApiError> {
    if user.is_master() {
        return Ok(());
    }
    match write.resource {
        "roles" | "clusterroles" => check_role(policy, user, write),
        "rolebindings" | "clusterrolebindings" => check_binding(policy, user, write),
        _ => Ok(()),
    }
}

fn refuse(write: &Write<'_>, why: &str) -> ApiError {
    forbidden(GROUP, write.resource, meta::name(write.object), why)
}

fn check_role(policy: &dyn Policy, user: &User, write: &Write<'_>) -> Result<(), ApiError> {
    let name = write.before.map_or("", meta::name);
    let escalate = Access {
        verb: "escalate".to_owned(),
        group: GROUP.to_owned(),
        resource: write.resource.to_owned(),
        namespace: write.namespace.to_owned(),
        name: name.to_owned(),
        ..Access::default()
    };
    if authorize(policy, user, &escalate).allowed || is_housekeeping(write) {
        return Ok(());
    }
    let granted: Vec<&Value> = rules::of(write.object).collect();
    confirm(policy, user, write.namespace, &granted).map_err(|why| refuse(write, &why))?;
    // An aggregation gathers whatever there will be.
    if is_aggregate(write.object) || write.before.is_some_and(is_aggregate) {
        let all = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]});
        let paths = json!({"verbs": ["*"], "nonResourceURLs": ["*"]});
        let why = "must have cluster-admin privileges to use the aggregationRule";
        confirm(policy, user, write.namespace, &[&all, &paths]).map_err(|_| refuse(write, why))?;
    }
    Ok(())
}

fn is_aggregate(role: &Value) -> bool {
    let selectors = role["aggregationRule"]["clusterRoleSelectors"].as_array();
    selectors.is_some_and(|all| !all.is_empty())
}

fn check_binding(policy: &dyn Policy, user: &User, write: &Write<'_>) -> Result<(), ApiError> {
    if is_housekeeping(write) {
        return Ok(());
    }
    let role = &write.object["roleRef"];
    let (kind, name) = (text(role, "kind"), text(role, "name"));
    let (found, resource) = match kind {
        "ClusterRole" => (policy.cluster_role(name), "clusterroles"),
        "Role" => (policy.role(write.namespace, name), "roles"),
        _ => return Ok(()), // Such a binding is not valid anyway.
    };
    let bind = Access {
        verb: "bind".to_owned(),
        group: text(role, "apiGroup").to_owned(),
        resource: resource.to_owned(),
        namespace: write.namespace.to_owned(),
        name: name.to_owned(),
        ..Access::default()
    };
    if authorize(policy, user, &bind).allowed {
        return Ok(());
    }
    let Some(found) = found else {
        // Upstream names the kind that is written.
        let message = format!("{}.{GROUP} \"{name}\" not found", write.resource);
        let mut error = ApiError::new(Reason::NotFound, message);
        error.details = Some(json!({"name": name, "group": GROUP, "kind": write.resource}));
        return Err(error);
    };
    let granted: Vec<&Value> = rules::of(&found).collect();
    confirm(policy, user, write.namespace, &granted).map_err(|why| refuse(write, &why))
}

/// True when only owners and finalizers change, as they do on the way to a deletion.
fn is_housekeeping(write: &Write<'_>) -> bool {
    let plain = |object: &Value| {
        let mut object = object.clone();
        if let Some(metadata) = object["metadata"].as_object_mut() {
            metadata.retain(|key, _| {
                let free = ["ownerReferences", "finalizers", "managedFields"];
                !free.contains(&key.as_str()) && key != "resourceVersion"
            });
        }
        object
    };
    let before = write.before.map(plain);
    before.is_some_and(|before| before == plain(write.object))
}

/// Says which of the rules the user does not have.
fn confirm(
    policy: &dyn Policy,
    user: &User,
    namespace: &str,
    granted: &[&Value],
) -> Result<(), String> {
    let held = rules_for(policy, user, namespace);
    let parts = granted.iter().flat_map(|rule| parts(rule));
    let missing: Vec<Part<'_>> = parts
        .filter(|part| !held.rules.iter().any(|rule| covers(rule, part)))
        .collect();
    if missing.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = described(&missing).into_iter().collect();
    let mut why = format!(
        "user {:?} (groups={}) is attempting to grant RBAC permissions not currently held:\n{}",
        user.name,
        quoted(user.groups.iter().map(String::as_str)),
        lines.join("\n")
    );
    if !held.error.is_empty() {
        why = format!("{why}; resolution errors: [{}]", held.error);
    }
    Err(why)
}

/// The smallest thing that a rule can grant.
struct Part<'r> {
    verb: &'r str,
    /// A path, or group, resource and perhaps a name.
    what: Result<&'r str, (&'r str, &'r str, Option<&'r str>)>,
}

fn parts(rule: &Value) -> Vec<Part<'_>> {
    let mut all = Vec::new();
    let names: Vec<Option<&str>> = match list(rule, "resourceNames").map(Some).collect::<Vec<_>>() {
        names if names.is_empty() => vec![None],
        names => names,
    };
    for group in list(rule, "apiGroups") {
        for resource in list(rule, "resources") {
            for verb in list(rule, "verbs") {
                let named = names.iter().map(|name| Part {
                    verb,
                    what: Err((group, resource, *name)),
                });
                all.extend(named);
            }
        }
    }
    for path in list(rule, "nonResourceURLs") {
        all.extend(list(rule, "verbs").map(|verb| Part {
            verb,
            what: Ok(path),
        }));
    }
    all
}

fn covers(rule: &Value, part: &Part<'_>) -> bool {
    let has = |field: &str, wanted: &str| list(rule, field).any(|one| one == "*" || one == wanted);
    if !has("verbs", part.verb) {
        return false;
    }
    match part.what {
        Ok(path) => list(rule, "nonResourceURLs").any(|url| path_fits(url, path)),
        Err((group, resource, name)) => {
            let mut names = list(rule, "resourceNames").peekable();
            let any_name = names.peek().is_none();
            let below = resource
                .split_once('/')
                .map(|(_, below)| format!("*/{below}"));
            has("apiGroups", group)
                && (has("resources", resource) || below.is_some_and(|all| has("resources", &all)))
                && (any_name || name.is_some_and(|name| names.any(|one| one == name)))
        }
    }
}

/// One line for each path, and for each resource with all its verbs.
fn described(missing: &[Part<'_>]) -> BTreeSet<String> {
    let mut verbs: BTreeMap<(&str, &str, Option<&str>), Vec<&str>> = BTreeMap::new();
    let mut lines = BTreeSet::new();
    for part in missing {
        match part.what {
            Err(resource) => verbs.entry(resource).or_default().push(part.verb),
            Ok(path) => {
                lines.insert(format!(
                    "{{NonResourceURLs:[{path:?}], Verbs:[{:?}]}}",
                    part.verb
                ));
            }
        }
    }
    lines.extend(verbs.into_iter().map(|((group, resource, name), verbs)| {
        let named = name.map_or(String::new(), |name| format!(", ResourceNames:[{name:?}]"));
        let verbs = quoted(verbs.into_iter());
        format!("{{APIGroups:[{group:?}], Resources:[{resource:?}]{named}, Verbs:{verbs}}}")
    }));
    lines
}

/// `["a" "b"]`.
fn quoted<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let all: Vec<String> = texts.map(|text| format!("{text:?}")).collect();
    format!("[{}]", all.join(" "))
}
