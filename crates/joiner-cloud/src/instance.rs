//! What is asked of a cloud, and what it gives.

use std::fmt;
use std::sync::Arc;

use jiff::Timestamp;
use joiner_model::{Labels, Name, Requirements, Resources};
use serde_json::Value;

/// Names a machine, as `spec.providerID` of its Node does.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ProviderId(pub Name);

impl fmt::Display for ProviderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// A node class as it is in the cluster.
#[derive(Clone, Debug)]
pub struct NodeClass {
    /// API group.
    pub group: Name,
    /// Kind.
    pub kind: Name,
    /// Name.
    pub name: Name,
    /// The object.
    pub object: Arc<Value>,
}

/// One machine, please.
#[derive(Clone, Debug)]
pub struct Order {
    /// Name of the NodeClaim.
    pub claim: Name,
    /// Its uid: two orders with the same uid are the same order.
    pub claim_uid: Name,
    /// The pool it comes from, if any.
    pub pool: Option<Name>,
    /// What the machine must be; types and offerings that do not satisfy them may not be launched.
    pub requirements: Requirements,
    /// Types that will do, cheapest first, if the claim lists them.
    pub types: Vec<Name>,
    /// What the machine must have room for.
    pub requests: Resources,
    /// Labels of the NodeClaim, which its Node will get.
    pub labels: Labels,
    /// Its class, if it exists.
    pub class: Option<NodeClass>,
}

/// A machine.
#[derive(Clone, Debug)]
pub struct Instance {
    /// Its name in the cloud.
    pub id: ProviderId,
    /// The NodeClaim it was launched for, if it says so.
    pub claim: Option<Name>,
    /// Uid of that claim, if it says so: another claim may have the name by now.
    pub claim_uid: Option<Name>,
    /// Every well-known label, with the value that came true.
    pub labels: Labels,
    /// Annotations for the NodeClaim.
    pub annotations: Labels,
    /// The image it runs.
    pub image_id: Option<Name>,
    /// All that it has.
    pub capacity: Resources,
    /// What pods can use.
    pub allocatable: Resources,
    /// When it was launched.
    pub launched: Timestamp,
    /// It is on its way out.
    pub terminating: bool,
}
