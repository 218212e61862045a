//! Who a user may pretend to be.
//!
//! There are five ways, tried in this order: a service account as the node that it runs on, as any node,
//! as a service account, as another user, and the old way that needs the verb `impersonate`. The first
//! four take two rights: to be the other, and to do this as the other.

use std::collections::BTreeMap;

use super::user::{
    ANONYMOUS, AUTHENTICATED, MASTERS, NODE_NAME_KEY, NODES, UNAUTHENTICATED, User, account_groups,
    split_account, split_node,
};
use super::{Access, Policy, check};
use crate::error::ApiError;

const AUTHENTICATION: &str = "authentication.k8s.io";

/// Who a request wants to be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Name.
    pub name: String,
    /// Empty when none is asked for.
    pub uid: String,
    /// Groups, in order.
    pub groups: Vec<String>,
    /// Extra keys with their values.
    pub extra: BTreeMap<String, Vec<String>>,
}

impl Wanted {
    fn is_name_only(&self) -> bool {
        self.uid.is_empty() && self.groups.is_empty() && self.extra.is_empty()
    }
}

/// One way to be somebody else.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mode {
    AssociatedNode,
    ArbitraryNode,
    ServiceAccount,
    UserInfo,
    Legacy,
}

const MODES: [Mode; 5] = [
    Mode::AssociatedNode,
    Mode::ArbitraryNode,
    Mode::ServiceAccount,
    Mode::UserInfo,
    Mode::Legacy,
];

impl Mode {
    const fn word(self) -> &'static str {
        match self {
            Self::AssociatedNode => "associated-node",
            Self::ArbitraryNode => "arbitrary-node",
            Self::ServiceAccount => "serviceaccount",
            Self::UserInfo => "user-info",
            Self::Legacy => "",
        }
    }

    fn applies(self, requestor: &User, wanted: &Wanted) -> bool {
        let node = split_node(&wanted.name);
        let account = split_account(&wanted.name);
        match self {
            Self::AssociatedNode => {
                let own = requestor.extra.get(NODE_NAME_KEY).map(Vec::as_slice);
                let is_own = matches!(own, Some([own]) if Some(own.as_str()) == node);
                wanted.is_name_only() && is_own && split_account(&requestor.name).is_some()
            }
            Self::ArbitraryNode => wanted.is_name_only() && node.is_some(),
            Self::ServiceAccount => wanted.is_name_only() && account.is_some(),
            Self::UserInfo => node.is_none() && account.is_none(),
            Self::Legacy => true,
        }
    }

    fn verb(self) -> String {
        match self {
            Self::Legacy => "impersonate".to_owned(),
            Self::AssociatedNode | Self::ArbitraryNode | Self::ServiceAccount | Self::UserInfo => {
                format!("impersonate:{}", self.word())
            }
        }
    }

    /// Group of the API in which names and groups are.
    const fn group(self) -> &'static str {
        match self {
            Self::Legacy => "",
            Self::AssociatedNode | Self::ArbitraryNode | Self::ServiceAccount | Self::UserInfo => {
                AUTHENTICATION
            }
        }
    }
}

/// The user that the request is made as, or 403 with what the requestor lacks.
pub fn impersonate(
    policy: &dyn Policy,
    requestor: &User,
    wanted: &Wanted,
    access: &Access,
) -> Result<User, ApiError> {
    let mut first = None;
    for mode in MODES {
        if !mode.applies(requestor, wanted) {
            continue;
        }
        match attempt(policy, requestor, wanted, access, mode) {
            Ok(user) => return Ok(user),
            Err(error) => first = first.or(Some(error)),
        }
    }
    // The last mode applies always, so there is an error by now.
    Err(first.unwrap_or_else(|| access.refused(requestor, "")))
}

fn attempt(
    policy: &dyn Policy,
    requestor: &User,
    wanted: &Wanted,
    access: &Access,
    mode: Mode,
) -> Result<User, ApiError> {
    if mode != Mode::Legacy {
        let on = Access {
            verb: format!("impersonate-on:{}:{}", mode.word(), access.verb),
            ..access.clone()
        };
        check(policy, requestor, &on)?;
    }
    let mut user = User {
        name: wanted.name.clone(),
        uid: wanted.uid.clone(),
        groups: wanted.groups.clone(),
        extra: wanted.extra.clone(),
    };
    let ask = |access: Access| check(policy, requestor, &access);
    ask(name_access(wanted, mode, &mut user.groups))?;
    let about = |group: &str, resource: &str, subresource: &str, name: &str| Access {
        verb: mode.verb(),
        group: group.to_owned(),
        resource: resource.to_owned(),
        subresource: subresource.to_owned(),
        name: name.to_owned(),
        ..Access::default()
    };
    if !wanted.uid.is_empty() {
        ask(about(AUTHENTICATION, "uids", "", &wanted.uid))?;
    }
    for group in &wanted.groups {
        let access = about(mode.group(), "groups", "", group);
        if mode != Mode::Legacy && group == MASTERS {
            return Err(access.forbidden("impersonating the system:masters group is not allowed"));
        }
        if mode != Mode::Legacy && group.is_empty() {
            return Err(access.forbidden("impersonating the empty string group is not allowed"));
        }
        ask(access)?;
    }
    for (key, values) in &wanted.extra {
        for value in values {
            ask(about(AUTHENTICATION, "userextras", key, value))?;
        }
    }
    if user.name == ANONYMOUS {
        join(&mut user.groups, UNAUTHENTICATED);
    } else if !user.is_in(UNAUTHENTICATED) {
        join(&mut user.groups, AUTHENTICATED);
    }
    Ok(user)
}

/// The right to be of that name; groups that go with the name are noted.
fn name_access(wanted: &Wanted, mode: Mode, groups: &mut Vec<String>) -> Access {
    let mut access = Access {
        verb: mode.verb(),
        group: mode.group().to_owned(),
        resource: "users".to_owned(),
        name: wanted.name.clone(),
        ..Access::default()
    };
    let node = split_node(&wanted.name).filter(|_| mode != Mode::Legacy);
    if let Some(node) = node {
        "nodes".clone_into(&mut access.resource);
        // Who may be the node that it runs on, may so on every node.
        let name = match mode {
            Mode::AssociatedNode => "*",
            Mode::ArbitraryNode | Mode::ServiceAccount | Mode::UserInfo | Mode::Legacy => node,
        };
        name.clone_into(&mut access.name);
        *groups = vec![NODES.to_owned()];
    }
    if let Some((namespace, name)) = split_account(&wanted.name) {
        "serviceaccounts".clone_into(&mut access.resource);
        namespace.clone_into(&mut access.namespace);
        name.clone_into(&mut access.name);
        if wanted.groups.is_empty() {
            *groups = account_groups(namespace);
        }
    }
    access
}

fn join(groups: &mut Vec<String>, group: &str) {
    if !groups.iter().any(|one| one == group) {
        groups.push(group.to_owned());
    }
}
