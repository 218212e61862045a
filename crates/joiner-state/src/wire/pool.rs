//! Node pools and overlays.

use super::{Amounts, Condition, Expression, Meta, Taint, Text};

wire! {
    /// A node pool.
    struct NodePool<'a> {
        metadata: Meta<'a>,
        spec: NodePoolSpec<'a>,
        status: Status<'a>,
    }

    /// What a pool is for.
    struct NodePoolSpec<'a> {
        template: NodePoolTemplate<'a>,
        limits: Amounts<'a>,
        weight: i32,
        replicas: i64,
    }

    /// What its nodes look like.
    struct NodePoolTemplate<'a> {
        metadata: Meta<'a>,
        spec: NodeClaimTemplate<'a>,
    }

    /// What its nodes look like.
    struct NodeClaimTemplate<'a> {
        requirements: Vec<Expression<'a>>,
        taints: Vec<Taint<'a>>,
        startup_taints: Vec<Taint<'a>>,
        node_class_ref: NodeClassReference<'a>,
    }

    /// The class of its nodes.
    struct NodeClassReference<'a> {
        group: Text<'a>,
        kind: Text<'a>,
        name: Text<'a>,
    }

    /// Conditions of anything.
    struct Status<'a> {
        conditions: Vec<Condition<'a>>,
    }

    /// A correction of what instance types cost or have.
    struct NodeOverlay<'a> {
        metadata: Meta<'a>,
        spec: NodeOverlaySpec<'a>,
    }

    /// A correction of what instance types cost or have.
    struct NodeOverlaySpec<'a> {
        requirements: Vec<Expression<'a>>,
        price: Text<'a>,
        price_adjustment: Text<'a>,
        capacity: Amounts<'a>,
        weight: i32,
    }
}
