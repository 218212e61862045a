//! Definition of Provisioner, which NodePool has replaced.

use super::{kubelet, parts};
use crate::crd::build::{
    Field, boolean, int32, int64, object, resource_map, string_map, time, whole,
};
use crate::crd::{Column, Definition};

pub(super) fn definition() -> Definition {
    Definition {
        group: "karpenter.sh",
        version: "v1alpha5",
        kind: "Provisioner",
        plural: "provisioners",
        singular: "provisioner",
        short_names: &[],
        category: "karpenter",
        namespaced: false,
        columns: vec![
            Column::new("Template", "string", ".spec.providerRef.name"),
            Column::wide("Weight", "string", ".spec.weight"),
        ],
        scale: None,
        schema: whole("A pool of nodes, before NodePool.")
            .field("spec", spec())
            .field("status", status()),
    }
}

fn spec() -> Field {
    let base = object("What the pool may hold and when its nodes may go.")
        .field("annotations", string_map("Annotations for nodes."))
        .field("labels", parts::template_labels(parts::PROVISIONER_NAME))
        .field("taints", parts::taints("Taints that stay on the node."))
        .field(
            "startupTaints",
            parts::taints("Taints that something else lifts once the node is set up."),
        )
        .field(
            "requirements",
            parts::requirements(Some(parts::PROVISIONER_NAME)),
        )
        .field("kubeletConfiguration", kubelet::with_runtime())
        .field(
            "provider",
            parts::loose("Settings of the provider, inline."),
        )
        .field("providerRef", parts::reference("Settings of the provider."));
    with_life(base)
        .rule(
            "!has(self.provider) || !has(self.providerRef)",
            "set only one of provider and providerRef",
        )
        .rule(
            "!has(self.ttlSecondsAfterEmpty) || !has(self.consolidation) || \
             !has(self.consolidation.enabled) || !self.consolidation.enabled",
            "ttlSecondsAfterEmpty cannot be combined with consolidation.enabled: remove one of them",
        )
}

fn with_life(base: Field) -> Field {
    base.field(
        "ttlSecondsAfterEmpty",
        int64("Seconds that an empty node is kept.").at_least(0),
    )
    .field(
        "ttlSecondsUntilExpired",
        int64("Age in seconds at which a node is replaced.").at_least(0),
    )
    .field(
        "limits",
        object("Caps.").field(
            "resources",
            resource_map("Caps on the sum of the capacity of the pool's nodes."),
        ),
    )
    .field(
        "weight",
        int32("Pools with a higher weight are tried first.").range(1, 100),
    )
    .field(
        "consolidation",
        object("Whether nodes are replaced by cheaper ones.")
            .field("enabled", boolean("Whether they are.")),
    )
}

fn status() -> Field {
    parts::loose("What is known of the pool.")
        .field("lastScaleTime", time("When it last grew."))
        .field(
            "resources",
            resource_map("Capacity of all nodes of the pool."),
        )
}
