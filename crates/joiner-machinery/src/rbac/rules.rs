//! Which rules apply to a user, and what a rule allows.

use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use super::user::User;
use super::{Access, Policy};
use crate::meta;

/// A role that a binding gives to a user.
pub(super) struct Grant {
    binding: Arc<Value>,
    /// Which of the subjects the user is.
    subject: usize,
    /// The role, or why it cannot be read.
    pub(super) role: Result<Arc<Value>, String>,
}

/// The grants of a user: those of the cluster, then those of the namespace.
pub(super) fn grants(
    policy: &dyn Policy,
    user: &User,
    namespace: &str,
) -> impl Iterator<Item = Grant> {
    let mut bindings = policy.cluster_role_bindings();
    if !namespace.is_empty() {
        bindings.extend(policy.role_bindings(namespace));
    }
    let given = bindings.into_iter().filter_map(move |binding| {
        let own = meta::namespace(&binding);
        let subjects = binding["subjects"].as_array().into_iter().flatten();
        let subject = subjects
            .into_iter()
            .position(|one| is_subject(one, user, own))?;
        Some((binding, subject))
    });
    given.map(move |(binding, subject)| Grant {
        role: role_of(policy, &binding),
        binding,
        subject,
    })
}

/// The role that a binding refers to.
fn role_of(policy: &dyn Policy, binding: &Value) -> Result<Arc<Value>, String> {
    let name = text(&binding["roleRef"], "name");
    let namespace = meta::namespace(binding);
    let (found, kind) = match text(&binding["roleRef"], "kind") {
        "ClusterRole" => (policy.cluster_role(name), "clusterrole"),
        _ => (policy.role(namespace, name), "role"),
    };
    found.ok_or_else(|| format!("{kind}.{} \"{name}\" not found", super::GROUP))
}

fn is_subject(subject: &Value, user: &User, namespace: &str) -> bool {
    let name = text(subject, "name");
    match text(subject, "kind") {
        "User" => user.name == name,
        "Group" => user.is_in(name),
        "ServiceAccount" => {
            let namespace = match text(subject, "namespace") {
                "" => namespace,
                given => given,
            };
            !namespace.is_empty() && super::split_account(&user.name) == Some((namespace, name))
        }
        _ => false,
    }
}

impl fmt::Display for Grant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let binding = &*self.binding;
        let (name, namespace) = (meta::name(binding), meta::namespace(binding));
        match namespace {
            "" => write!(f, "ClusterRoleBinding {name:?}")?,
            namespace => write!(f, "RoleBinding \"{name}/{namespace}\"")?,
        }
        let role = &binding["roleRef"];
        write!(f, " of {} {:?} to ", text(role, "kind"), text(role, "name"))?;
        let subject = &binding["subjects"][self.subject];
        let (kind, name) = (text(subject, "kind"), text(subject, "name"));
        match (kind, text(subject, "namespace")) {
            ("ServiceAccount", "") => write!(f, "{kind} \"{name}/{namespace}\""),
            ("ServiceAccount", given) => write!(f, "{kind} \"{name}/{given}\""),
            _ => write!(f, "{kind} {name:?}"),
        }
    }
}

/// The rules of a role.
pub(super) fn of(role: &Value) -> impl Iterator<Item = &Value> {
    role["rules"].as_array().into_iter().flatten()
}

/// The texts of a field that is a list.
pub(super) fn list<'v>(rule: &'v Value, field: &str) -> impl Iterator<Item = &'v str> + Clone {
    let all = rule[field].as_array().map_or(&[][..], Vec::as_slice);
    all.iter().filter_map(Value::as_str)
}

pub(super) fn text<'v>(value: &'v Value, field: &str) -> &'v str {
    value[field].as_str().unwrap_or("")
}

/// True when a rule allows an access.
pub(super) fn allows(rule: &Value, access: &Access) -> bool {
    let has = |field: &str, wanted: &str| list(rule, field).any(|one| one == "*" || one == wanted);
    if !has("verbs", &access.verb) {
        return false;
    }
    if let Some(path) = &access.path {
        return list(rule, "nonResourceURLs").any(|url| path_fits(url, path));
    }
    let mut names = list(rule, "resourceNames").peekable();
    has("apiGroups", &access.group)
        && resource_fits(rule, access)
        && (names.peek().is_none() || names.any(|name| name == access.name))
}

fn resource_fits(rule: &Value, access: &Access) -> bool {
    let combined = access.combined();
    list(rule, "resources").any(|one| {
        one == "*"
            || one == combined
            || (!access.subresource.is_empty()
                && one.strip_prefix("*/") == Some(access.subresource.as_str()))
    })
}

/// True when a path is the one of a rule, or starts like one that ends in a star.
pub(super) fn path_fits(rule: &str, path: &str) -> bool {
    rule == "*"
        || rule == path
        || (rule.ends_with('*') && path.starts_with(rule.trim_end_matches('*')))
}
