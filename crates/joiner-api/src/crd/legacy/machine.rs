//! Definition of Machine, which NodeClaim has replaced.

use super::{kubelet, parts};
use crate::crd::build::{Field, object, resource_map, whole};
use crate::crd::{Column, Definition};

pub(super) fn definition() -> Definition {
    Definition {
        group: "karpenter.sh",
        version: "v1alpha5",
        kind: "Machine",
        plural: "machines",
        singular: "machine",
        short_names: &[],
        category: "karpenter",
        namespaced: false,
        columns: vec![Column::READY, Column::AGE],
        scale: None,
        schema: whole("The wish for one node, before NodeClaim.")
            .required("spec", spec("machineTemplateRef", kubelet::with_runtime()))
            .field("status", parts::loose("What became of the wish.")),
    }
}

/// What a node must be, in the versions before v1.
pub(super) fn spec(reference: &str, kubelet: Field) -> Field {
    object("What the node must be.")
        .field("taints", parts::taints("Taints that stay on the node."))
        .field(
            "startupTaints",
            parts::taints("Taints that something else lifts once the node is set up."),
        )
        .field("requirements", parts::requirements(None))
        .field(
            "resources",
            object("The least that the node must offer.").field(
                "requests",
                resource_map("Sum of what the node's pods and daemons ask for."),
            ),
        )
        .field("kubelet", kubelet)
        .field(reference, parts::reference("Settings of the provider."))
}
