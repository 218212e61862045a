//! Who asks.

use std::collections::BTreeMap;

use serde_json::{Value, json};

/// The group whose members may do everything.
pub const MASTERS: &str = "system:masters";
/// The group of everyone with a name.
pub const AUTHENTICATED: &str = "system:authenticated";
/// The group of everyone without.
pub(super) const UNAUTHENTICATED: &str = "system:unauthenticated";
/// Who shows no credentials.
pub(super) const ANONYMOUS: &str = "system:anonymous";
/// The group of all nodes.
pub(super) const NODES: &str = "system:nodes";
/// Extra of a token that is bound to a pod: the pod's name.
pub const POD_NAME_KEY: &str = "authentication.kubernetes.io/pod-name";
/// Extra of a token that is bound to a pod: the pod's uid.
pub const POD_UID_KEY: &str = "authentication.kubernetes.io/pod-uid";
/// Extra of a token that is bound to a pod or a node: the node's name.
pub const NODE_NAME_KEY: &str = "authentication.kubernetes.io/node-name";
/// Extra of a token that is bound to a pod or a node: the node's uid.
pub const NODE_UID_KEY: &str = "authentication.kubernetes.io/node-uid";

/// Who asks: a name, and the groups that it is in.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct User {
    /// Name.
    pub name: String,
    /// Empty when there is none.
    pub uid: String,
    /// Groups, in order.
    pub groups: Vec<String>,
    /// What else is known of the user.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl User {
    /// An administrator of the cluster.
    #[must_use]
    pub fn administrator() -> Self {
        Self {
            name: "kubernetes-admin".to_owned(),
            groups: vec![MASTERS.to_owned(), AUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// Who shows no credentials.
    #[must_use]
    pub fn anonymous() -> Self {
        Self {
            name: ANONYMOUS.to_owned(),
            groups: vec![UNAUTHENTICATED.to_owned()],
            ..Self::default()
        }
    }

    /// A service account.
    #[must_use]
    pub fn service_account(namespace: &str, name: &str, uid: &str) -> Self {
        let mut groups = account_groups(namespace);
        groups.push(AUTHENTICATED.to_owned());
        Self {
            name: format!("system:serviceaccount:{namespace}:{name}"),
            uid: uid.to_owned(),
            groups,
            extra: BTreeMap::new(),
        }
    }

    /// True for members of the group that may do everything.
    #[must_use]
    pub fn is_master(&self) -> bool {
        self.is_in(MASTERS)
    }

    pub(super) fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|one| one == group)
    }

    /// As reviews show a user.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let mut shown = json!({"username": self.name});
        if !self.uid.is_empty() {
            shown["uid"] = json!(self.uid);
        }
        if !self.groups.is_empty() {
            shown["groups"] = json!(self.groups);
        }
        if !self.extra.is_empty() {
            shown["extra"] = json!(self.extra);
        }
        shown
    }
}

/// The groups that every service account of a namespace is in.
pub(super) fn account_groups(namespace: &str) -> Vec<String> {
    vec![
        "system:serviceaccounts".to_owned(),
        format!("system:serviceaccounts:{namespace}"),
    ]
}

/// Namespace and name of a service account by its user name.
#[must_use]
pub fn split_account(user: &str) -> Option<(&str, &str)> {
    let rest = user.strip_prefix("system:serviceaccount:")?;
    let (namespace, name) = rest.split_once(':')?;
    let is_name = |text: &str| !text.is_empty() && !text.contains(':');
    (is_name(namespace) && is_name(name)).then_some((namespace, name))
}

/// The node by its user name.
pub(super) fn split_node(user: &str) -> Option<&str> {
    let name = user.strip_prefix("system:node:")?;
    let fits = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-' || c == '.';
    let is_name = !name.is_empty() && name.len() <= 253 && name.chars().all(fits);
    is_name.then_some(name)
}
