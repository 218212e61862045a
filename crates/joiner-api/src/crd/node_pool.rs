//! Definition of NodePool.

use super::build::{
    Field, int32, int64, list, map, object, resource_map, string, string_map, whole,
};
use super::common::{
    Reason, conditions, expire_after, node_class_ref, requirements, taints,
    termination_grace_period,
};
use super::keys::{Owner, map_key_rules};
use super::patterns::{BUDGET_NODES, DURATION_OR_NEVER, LABEL_VALUE, SCHEDULE, WINDOW};
use super::{Column, Definition};
use crate::types::{ConsolidationPolicy, DisruptionReason};
use serde_json::json;

pub(super) fn definition() -> Definition {
    Definition {
        group: "karpenter.sh",
        version: "v1",
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
            Column::new("Nodes", "string", ".status.nodes"),
            Column::READY,
            Column::AGE,
            Column::wide("Weight", "integer", ".spec.weight"),
            Column::wide("CPU", "string", ".status.resources.cpu"),
            Column::wide("Memory", "string", ".status.resources.memory"),
        ],
        scale: Some((".spec.replicas", ".status.nodes")),
        schema: whole("A pool of nodes with common properties.")
            .required("spec", spec())
            .field("status", status()),
    }
}

fn spec() -> Field {
    object("What the pool may hold and when its nodes may go.")
        .required("template", template())
        .field("disruption", disruption())
        .field(
            "limits",
            resource_map(
                "Caps on the sum of the capacity of the pool's nodes. The resource nodes counts \
                 nodes. Without it the pool may grow without end.",
            ),
        )
        .field(
            "weight",
            int32("Pools with a higher weight are tried first; without one the weight is zero.")
                .range(1, 100),
        )
        .field(
            "replicas",
            int64(
                "Makes the pool static: it keeps this many nodes whatever the pods ask for. Alpha.",
            )
            // An API server refuses more of a field that is scaled.
            .range(0, i64::from(i32::MAX)),
        )
        .rule(
            "has(self.replicas) == has(oldSelf.replicas)",
            "replicas can neither be added to a pool nor taken away; make a new pool",
        )
        .rule(
            "!has(self.replicas) || !has(self.limits) || \
             size(self.limits) == ('nodes' in self.limits ? 1 : 0)",
            "a pool with replicas can only be limited by nodes",
        )
        .rule(
            "!has(self.replicas) || !has(self.weight)",
            "a pool with replicas cannot have a weight",
        )
}

fn template() -> Field {
    let labels = map(
        "Labels for claims and nodes.",
        string("A label value.").max_length(63).pattern(LABEL_VALUE),
    )
    .max_entries(100)
    .rules(map_key_rules(Owner::Pool));
    let metadata = object("What claims and nodes inherit.")
        .field("labels", labels)
        .field(
            "annotations",
            string_map("Annotations for claims and nodes."),
        );
    let spec = object("What each claim asks for.")
        .field("taints", taints("Taints that stay on the node."))
        .field(
            "startupTaints",
            taints("Taints that something else lifts once the node is set up; pods ignore them."),
        )
        .required("requirements", requirements(Owner::Pool))
        .required("nodeClassRef", node_class_ref(true))
        .field("terminationGracePeriod", termination_grace_period())
        .field("expireAfter", expire_after());
    object("The mold of the pool's claims. Changing it makes nodes drift.")
        .field("metadata", metadata)
        .required("spec", spec)
}

fn disruption() -> Field {
    let policies: Vec<&str> = ConsolidationPolicy::ALL
        .iter()
        .map(|p| p.as_str())
        .collect();
    object("When nodes of the pool may be taken away.")
        .required(
            "consolidateAfter",
            string("How long a node must have been left alone by pods first, or Never.")
                .pattern(DURATION_OR_NEVER),
        )
        .field(
            "consolidationPolicy",
            string("Which nodes consolidation may look at.")
                .one_of(&policies)
                .default(json!("WhenEmptyOrUnderutilized")),
        )
        .field(
            "budgets",
            list(
                "How many nodes may go at once. The strictest one in force decides.",
                budget(),
            )
            .max_items(50)
            .atomic()
            .default(json!([{"nodes": "10%"}])),
        )
        .default(json!({"consolidateAfter": "0s"}))
}

fn budget() -> Field {
    let reasons: Vec<&str> = DisruptionReason::ALL.iter().map(|r| r.as_str()).collect();
    object("How many nodes may go at once, and when that holds.")
        .required(
            "nodes",
            string("A number of nodes, or a share of the pool such as 10%, rounded up.")
                .pattern(BUDGET_NODES)
                .default(json!("10%")),
        )
        .field(
            "reasons",
            list(
                "Reasons that the budget is about. Without the field it is about all of them.",
                string("A reason.").one_of(&reasons),
            )
            .max_items(50)
            .with("x-kubernetes-list-type", "set"),
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

/// What is known of a pool.
pub(super) fn status() -> Field {
    object("What is known of the pool.")
        .field(
            "resources",
            resource_map("Capacity of all nodes of the pool."),
        )
        .field(
            "nodes",
            int64("Number of nodes of the pool.").default(json!(0)),
        )
        .field(
            "nodeClassObservedGeneration",
            int64("Generation of the node class when registration was last judged."),
        )
        .field("conditions", conditions(Reason::Required))
}
