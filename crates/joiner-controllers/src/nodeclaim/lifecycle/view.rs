//! All that a decision about one NodeClaim rests on.

use std::time::Duration;

use joiner_cloud::{ClassKind, Cloud};
use joiner_state::NodeClassRef;
use joiner_state::live::{LiveClaim, LiveClass, LiveNode, LivePool, Snapshot};

/// What a cloud says of itself.
#[derive(Clone, Copy, Debug)]
pub struct Terms {
    /// Kinds of node classes it knows.
    pub classes: &'static [ClassKind],
    /// How long a launch may take.
    pub launch_timeout: Duration,
    /// It has a say in when a Node is registered.
    pub has_registration_hooks: bool,
}

impl Terms {
    /// The terms of a cloud.
    #[must_use]
    pub fn of(cloud: &dyn Cloud) -> Self {
        Self {
            classes: cloud.classes(),
            launch_timeout: cloud.launch_timeout(),
            has_registration_hooks: cloud.has_registration_hooks(),
        }
    }

    /// True when claims of this class are the cloud's.
    #[must_use]
    pub fn supports(&self, group: &str, kind: &str) -> bool {
        let known = |own: &&ClassKind| own.group == group && own.kind == kind;
        self.classes.iter().find(known).is_some()
    }
}

/// All that a decision about one NodeClaim rests on.
#[derive(Clone, Debug)]
pub struct ClaimView<'a> {
    /// The claim.
    pub claim: &'a LiveClaim,
    /// Nodes with its provider id: one, unless something is very wrong.
    pub nodes: Vec<&'a LiveNode>,
    /// Its class, if it exists.
    pub class: Option<&'a LiveClass>,
    /// Its pool, if it exists and owns the claim.
    pub pool: Option<&'a LivePool>,
    /// What the cloud says of itself.
    pub terms: Terms,
}

impl<'a> ClaimView<'a> {
    /// The view of a claim by name.
    #[must_use]
    pub fn of(snapshot: &'a Snapshot, name: &str, terms: Terms) -> Option<Self> {
        let claim = snapshot.claim(name)?;
        let class = &claim.claim.spec.node_class_ref;
        let class = NodeClassRef {
            group: class.group.as_str().into(),
            kind: class.kind.as_str().into(),
            name: class.name.as_str().into(),
        };
        let id = claim.provider_id.as_deref();
        let nodes = id.map(|id| snapshot.nodes_with_id(id).map(AsRef::as_ref).collect());
        Some(Self {
            claim,
            nodes: nodes.unwrap_or_default(),
            class: snapshot.class(&class).map(AsRef::as_ref),
            pool: pool_of(snapshot, claim),
            terms,
        })
    }

    /// True when the claim is the cloud's.
    #[must_use]
    pub fn is_supported(&self) -> bool {
        let class = &self.claim.claim.spec.node_class_ref;
        self.terms.supports(&class.group, &class.kind)
    }
}

/// The pool that owns a claim; one that merely has the name does not count.
fn pool_of<'a>(snapshot: &'a Snapshot, claim: &LiveClaim) -> Option<&'a LivePool> {
    let pool = snapshot.pool(claim.pool()?)?;
    let owns = claim.meta.owners.iter().any(|own| own.uid == pool.meta.uid);
    owns.then_some(pool)
}
