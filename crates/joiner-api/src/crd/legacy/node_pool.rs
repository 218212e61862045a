//! Definition of NodePool v1beta1.

use super::{kubelet, parts};
use crate::crd::build::{Field, int32, list, object, resource_map, string, string_map, whole};
use crate::crd::patterns::{BUDGET_NODES, DURATION_OR_NEVER, SCHEDULE, WINDOW};
use crate::crd::{Column, Definition};
use crate::labels::NODE_POOL;
use serde_json::json;

pub(super) fn definition() -> Definition {
    Definition {
        group: "karpenter.sh",
        version: "v1beta1",
        kind: "NodePool",
        plural: "nodepools",
        singular: "nodepool",
        short_names: &[],
        category: "karpenter",
        namespaced: false,
        columns: vec![
            Column::new(
                "NodeClass",
                "string",
                ".spec.template.spec.nodeClassRef.name",
            ),
            Column::wide("Weight", "string", ".spec.weight"),
        ],
        scale: None,
        schema: whole("A pool of nodes with common properties.")
            .required("spec", spec())
            .field("status", crate::crd::node_pool::status()),
    }
}

fn spec() -> Field {
    object("What the pool may hold and when its nodes may go.")
        .required("template", template())
        .field("disruption", disruption())
        .field(
            "limits",
            resource_map("Caps on the sum of the capacity of the pool's nodes."),
        )
        .field(
            "weight",
            int32("Pools with a higher weight are tried first.").range(1, 100),
        )
}

fn template() -> Field {
    let metadata = object("What claims and nodes inherit.")
        .field("labels", parts::template_labels(NODE_POOL))
        .field("annotations", string_map("Annotations for nodes."));
    let spec = object("What each claim asks for.")
        .field("taints", parts::taints("Taints that stay on the node."))
        .field(
            "startupTaints",
            parts::taints("Taints that something else lifts once the node is set up."),
        )
        .required("requirements", parts::requirements(Some(NODE_POOL)))
        .field("kubelet", kubelet::kubelet())
        .required("nodeClassRef", parts::reference("The node class."));
    object("The mold of the pool's claims.")
        .field("metadata", metadata)
        .required("spec", spec)
}

fn disruption() -> Field {
    object("When nodes of the pool may be taken away.")
        .field(
            "consolidateAfter",
            string("How long a node must be empty first, or Never.").pattern(DURATION_OR_NEVER),
        )
        .field(
            "consolidationPolicy",
            string("Which nodes consolidation may look at.")
                .one_of(&["WhenEmpty", "WhenUnderutilized"])
                .default(json!("WhenUnderutilized")),
        )
        .field(
            "expireAfter",
            string("Age at which a node is replaced, or Never.")
                .pattern(DURATION_OR_NEVER)
                .default(json!("720h")),
        )
        .field(
            "budgets",
            list("How many nodes may go at once.", budget())
                .max_items(50)
                .default(json!([{"nodes": "10%"}])),
        )
        .default(json!({"consolidationPolicy": "WhenUnderutilized", "expireAfter": "720h"}))
        .rule(
            "!has(self.consolidateAfter) || self.consolidationPolicy != 'WhenUnderutilized' || \
             self.consolidateAfter == 'Never'",
            "consolidateAfter cannot be combined with the consolidationPolicy WhenUnderutilized in \
             v1beta1; remove it, or write WhenEmpty",
        )
        .rule(
            "has(self.consolidateAfter) || self.consolidationPolicy != 'WhenEmpty'",
            "the consolidationPolicy WhenEmpty needs a consolidateAfter, such as 30s",
        )
}

fn budget() -> Field {
    object("How many nodes may go at once, and when that holds.")
        .required(
            "nodes",
            string("A number of nodes, or a share of the pool.")
                .pattern(BUDGET_NODES)
                .default(json!("10%")),
        )
        .field(
            "schedule",
            string("Cron expression in UTC that opens the window.").pattern(SCHEDULE),
        )
        .field(
            "duration",
            string("How long the window stays open.").pattern(WINDOW),
        )
        .rule(
            "has(self.schedule) == has(self.duration)",
            "schedule and duration go together: set both or neither",
        )
}
