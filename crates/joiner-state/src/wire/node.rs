//! Nodes and node claims.

use super::strict::object_only;
use super::{Amounts, Condition, Expression, Meta, Taint, Text};

wire! {
    /// A node.
    struct Node<'a> {
        metadata: Meta<'a>,
        spec: NodeSpec<'a>,
        status: NodeStatus<'a>,
    }

    /// What a node is told.
    struct NodeSpec<'a> {
        #[serde(rename = "providerID")]
        provider_id: Text<'a>,
        taints: Vec<Taint<'a>>,
        unschedulable: bool,
    }

    /// What a node says.
    struct NodeStatus<'a> {
        capacity: Amounts<'a>,
        allocatable: Amounts<'a>,
    }

    /// A node that was bought, or is being bought.
    struct NodeClaim<'a> {
        metadata: Meta<'a>,
        spec: NodeClaimSpec<'a>,
        status: NodeClaimStatus<'a>,
    }

    /// What was ordered.
    struct NodeClaimSpec<'a> {
        taints: Vec<Taint<'a>>,
        startup_taints: Vec<Taint<'a>>,
        requirements: Vec<Expression<'a>>,
    }

    /// What came.
    struct NodeClaimStatus<'a> {
        node_name: Text<'a>,
        #[serde(rename = "providerID")]
        provider_id: Text<'a>,
        capacity: Amounts<'a>,
        allocatable: Amounts<'a>,
        conditions: Vec<Condition<'a>>,
    }

    /// Volume drivers of a node.
    struct CsiNode<'a> {
        metadata: Meta<'a>,
        spec: CsiNodeSpec<'a>,
    }

    /// Volume drivers of a node.
    struct CsiNodeSpec<'a> {
        drivers: Vec<CsiDriver<'a>>,
    }

    /// A volume driver on a node.
    struct CsiDriver<'a> {
        name: Text<'a>,
        allocatable: CsiAllocatable,
    }
}

/// How many volumes a driver can attach.
#[derive(Debug, Default, serde::Deserialize)]
#[serde(remote = "Self", expecting = "an object")]
pub(crate) struct CsiAllocatable {
    pub(crate) count: Option<u32>,
}

object_only!(CsiAllocatable);
