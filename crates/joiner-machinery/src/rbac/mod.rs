//! Who may do what: users, and the roles and bindings that give them rights.
//!
//! A [`User`] asks for an [`Access`]; [`authorize`] answers from the roles and bindings of a
//! [`Policy`]. [`rules_for`] lists all that a user may do, [`impersonate`] says who a user may pretend to
//! be, and [`check_write`] keeps users from granting what they do not have. [`bootstrap`] has the roles
//! and bindings that every cluster starts with.

pub mod bootstrap;
mod escalation;
mod impersonation;
mod rules;
#[cfg(test)]
mod tests;
mod user;

use std::sync::Arc;

use serde_json::{Value, json};

use crate::error::{ApiError, Reason};

pub use escalation::{Write, check_write};
pub use impersonation::{Wanted, impersonate};
use rules::{Grant, grants};
pub use user::{
    AUTHENTICATED, MASTERS, NODE_NAME_KEY, NODE_UID_KEY, POD_NAME_KEY, POD_UID_KEY, User,
    split_account,
};

/// API group of roles and bindings.
pub const GROUP: &str = "rbac.authorization.k8s.io";

/// The roles and bindings that there are.
pub trait Policy {
    /// A ClusterRole.
    fn cluster_role(&self, name: &str) -> Option<Arc<Value>>;
    /// A Role.
    fn role(&self, namespace: &str, name: &str) -> Option<Arc<Value>>;
    /// All ClusterRoleBindings.
    fn cluster_role_bindings(&self) -> Vec<Arc<Value>>;
    /// The RoleBindings of a namespace.
    fn role_bindings(&self, namespace: &str) -> Vec<Arc<Value>>;
}

/// What a user asks to do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    /// `get`, `list`, `create`, …
    pub verb: String,
    /// The path, when it is not about resources.
    pub path: Option<String>,
    /// API group, empty for the core one.
    pub group: String,
    /// Plural name of the kind.
    pub resource: String,
    /// Empty for the resource itself.
    pub subresource: String,
    /// Empty for all namespaces, and for what is in none.
    pub namespace: String,
    /// Empty for all names.
    pub name: String,
}

impl Access {
    /// Access to a path that is not about resources.
    #[must_use]
    pub fn to_path(verb: &str, path: &str) -> Self {
        Self {
            verb: verb.to_owned(),
            path: Some(path.to_owned()),
            ..Self::default()
        }
    }

    /// The name of the resource in rules: `pods`, `pods/log`.
    pub(crate) fn combined(&self) -> String {
        match self.subresource.as_str() {
            "" => self.resource.clone(),
            sub => format!("{}/{sub}", self.resource),
        }
    }

    /// 403 for a user without this right.
    #[must_use]
    pub fn refused(&self, user: &User, reason: &str) -> ApiError {
        let user = &user.name;
        let verb = &self.verb;
        let mut what = match &self.path {
            Some(path) => format!("User {user:?} cannot {verb} path {path:?}"),
            None => {
                let (resource, group) = (self.combined(), &self.group);
                let place = match self.namespace.as_str() {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {namespace:?}"),
                };
                format!(
                    "User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {place}"
                )
            }
        };
        if !reason.is_empty() {
            what = format!("{what}: {reason}");
        }
        self.forbidden(&what)
    }

    /// 403 about the resource, in words.
    pub(crate) fn forbidden(&self, why: &str) -> ApiError {
        forbidden(&self.group, &self.resource, &self.name, why)
    }
}

/// 403 about a resource, an object of it, or a path.
fn forbidden(group: &str, resource: &str, name: &str, why: &str) -> ApiError {
    let qualified = match group {
        "" => resource.to_owned(),
        group => format!("{resource}.{group}"),
    };
    let message = match (resource, name) {
        ("", _) => format!("forbidden: {why}"),
        (_, "") => format!("{qualified} is forbidden: {why}"),
        (_, name) => format!("{qualified} {name:?} is forbidden: {why}"),
    };
    let mut error = ApiError::new(Reason::Forbidden, message);
    let mut details = json!({});
    for (key, value) in [("name", name), ("group", group), ("kind", resource)] {
        if !value.is_empty() {
            details[key] = json!(value);
        }
    }
    error.details = Some(details);
    error
}

/// The answer to an access.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Decision {
    /// Whether the user may.
    pub allowed: bool,
    /// Which binding allows it, or what could not be looked up.
    pub reason: String,
}

/// Decides whether a user may.
#[must_use]
pub fn authorize(policy: &dyn Policy, user: &User, access: &Access) -> Decision {
    if user.is_master() {
        return Decision {
            allowed: true,
            reason: String::new(),
        };
    }
    let mut missing = Vec::new();
    for grant in grants(policy, user, &access.namespace) {
        match &grant.role {
            Err(why) => missing.push(why.clone()),
            Ok(role) if rules::of(role).any(|rule| rules::allows(rule, access)) => {
                return Decision {
                    allowed: true,
                    reason: format!("RBAC: allowed by {grant}"),
                };
            }
            Ok(_) => {}
        }
    }
    let reason = match missing.is_empty() {
        true => String::new(),
        false => format!("RBAC: {}", aggregate(missing)),
    };
    Decision {
        allowed: false,
        reason,
    }
}

/// 403 unless the user may.
pub fn check(policy: &dyn Policy, user: &User, access: &Access) -> Result<(), ApiError> {
    let decision = authorize(policy, user, access);
    match decision.allowed {
        true => Ok(()),
        false => Err(access.refused(user, &decision.reason)),
    }
}

/// All that a user may do in a namespace.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    /// Rules, as roles have them.
    pub rules: Vec<Value>,
    /// What could not be looked up; empty when all could.
    pub error: String,
}

/// Lists what a user may do in a namespace, by bindings alone.
#[must_use]
pub fn rules_for(policy: &dyn Policy, user: &User, namespace: &str) -> Rules {
    let mut found = Rules::default();
    let mut missing = Vec::new();
    for Grant { role, .. } in grants(policy, user, namespace) {
        match role {
            Ok(role) => found.rules.extend(rules::of(&role).cloned()),
            Err(why) => missing.push(why),
        }
    }
    found.error = aggregate(missing);
    found
}

impl Rules {
    /// The status of a SelfSubjectRulesReview.
    #[must_use]
    pub fn to_status(&self) -> Value {
        let some =
            |rule: &Value, field: &str| rule[field].as_array().is_some_and(|l| !l.is_empty());
        let keep = |rule: &Value, fields: &[&str]| {
            let mut kept = json!({"verbs": rule["verbs"]});
            for field in fields.iter().filter(|field| some(rule, field)) {
                kept[*field] = rule[*field].clone();
            }
            kept
        };
        let resources = self.rules.iter().filter(|rule| some(rule, "resources"));
        let resources = resources.map(|r| keep(r, &["apiGroups", "resources", "resourceNames"]));
        let paths = self.rules.iter().filter(|r| some(r, "nonResourceURLs"));
        let paths = paths.map(|rule| keep(rule, &["nonResourceURLs"]));
        let mut status = json!({"resourceRules": resources.collect::<Vec<_>>(),
            "nonResourceRules": paths.collect::<Vec<_>>(), "incomplete": false});
        if !self.error.is_empty() {
            status["evaluationError"] = json!(self.error);
        }
        status
    }
}

/// Several errors as one; each is said once.
fn aggregate(errors: Vec<String>) -> String {
    let mut all: Vec<String> = Vec::new();
    for error in errors {
        if !all.contains(&error) {
            all.push(error);
        }
    }
    match &all[..] {
        [] => String::new(),
        [one] => one.clone(),
        many => format!("[{}]", many.join(", ")),
    }
}
