//! Definition of NodeClaim.

use super::build::{Field, object, resource_map, string, time, whole};
use super::common::{
    Reason, conditions, expire_after, node_class_ref, requirements, taints,
    termination_grace_period,
};
use super::keys::Owner;
use super::{Column, Definition};

pub(super) fn definition() -> Definition {
    Definition {
        group: "karpenter.sh",
        version: "v1",
        kind: "NodeClaim",
        plural: "nodeclaims",
        singular: "nodeclaim",
        short_names: &[],
        category: "karpenter",
        namespaced: false,
        columns: vec![
            Column::new(
                "Type",
                "string",
                r".metadata.labels.node\.kubernetes\.io/instance-type",
            ),
            Column::new(
                "Capacity",
                "string",
                r".metadata.labels.karpenter\.sh/capacity-type",
            ),
            Column::new(
                "Zone",
                "string",
                r".metadata.labels.topology\.kubernetes\.io/zone",
            ),
            Column::new("Node", "string", ".status.nodeName"),
            Column::READY,
            Column::AGE,
            Column::wide("ImageID", "string", ".status.imageID"),
            Column::wide("ID", "string", ".status.providerID"),
            Column::wide(
                "NodePool",
                "string",
                r".metadata.labels.karpenter\.sh/nodepool",
            ),
            Column::wide("NodeClass", "string", ".spec.nodeClassRef.name"),
            Column::wide(
                "Drifted",
                "string",
                r#".status.conditions[?(@.type=="Drifted")].status"#,
            ),
        ],
        scale: None,
        schema: whole("The wish for one node, and what became of it.")
            .required("spec", spec())
            .field("status", status()),
    }
}

fn spec() -> Field {
    object("What the node must be.")
        .field("taints", taints("Taints that stay on the node."))
        .field(
            "startupTaints",
            taints("Taints that something else lifts once the node is set up; pods ignore them."),
        )
        .required("requirements", requirements(Owner::Claim))
        .field(
            "resources",
            object("The least that the node must offer.").field(
                "requests",
                resource_map("Sum of what the node's pods and daemons ask for."),
            ),
        )
        .required("nodeClassRef", node_class_ref(false))
        .field("terminationGracePeriod", termination_grace_period())
        .field("expireAfter", expire_after())
        .rule(
            "self == oldSelf",
            "the spec of a claim cannot be changed; delete it and make another",
        )
}

/// What became of a claim.
pub(super) fn status() -> Field {
    object("What became of the wish.")
        .field("nodeName", string("Name of the node."))
        .field(
            "providerID",
            string("The machine, as the provider calls it."),
        )
        .field("imageID", string("The image that the machine booted from."))
        .field("capacity", resource_map("Everything that the machine has."))
        .field("allocatable", resource_map("What is left for pods."))
        .field(
            "lastPodEventTime",
            time("When a pod last came, went or finished."),
        )
        .field("conditions", conditions(Reason::Optional))
}
