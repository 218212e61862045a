//! Definition of CapacityBuffer.

use super::build::{Field, int32, int64, list, object, resource_map, string, whole};
use super::common::{Reason, condition};
use super::{Column, Definition};
use crate::types::ACTIVE_CAPACITY;
use serde_json::json;

pub(super) fn definition() -> Definition {
    Definition {
        group: "autoscaling.x-k8s.io",
        version: "v1beta1",
        kind: "CapacityBuffer",
        plural: "capacitybuffers",
        singular: "capacitybuffer",
        short_names: &["cb"],
        category: "autoscaling",
        namespaced: true,
        columns: vec![
            Column::new("Strategy", "string", ".spec.provisioningStrategy"),
            Column::new("PodTemplate", "string", ".status.podTemplateRef.name"),
            Column::new("Replicas", "integer", ".status.replicas"),
            Column::new("ConditionsType", "string", ".status.conditions[*].type"),
            Column::new("ConditionsStatus", "string", ".status.conditions[*].status"),
            Column::new("ConditionsReason", "string", ".status.conditions[*].reason"),
            Column::AGE,
        ],
        scale: None,
        schema: whole("Room kept free for pods that may come.")
            .field("spec", spec())
            .field("status", status()),
    }
}

fn template_ref(description: &str) -> Field {
    object(description).required("name", string("Name of the PodTemplate.").not_empty())
}

fn spec() -> Field {
    object("How much room, and for what.")
        .field(
            "provisioningStrategy",
            string("How the room is kept.").default(json!(ACTIVE_CAPACITY)),
        )
        .field(
            "podTemplateRef",
            template_ref("PodTemplate in the same namespace that one unit of room is cut to."),
        )
        .field(
            "scalableRef",
            object("Workload in the same namespace that one unit of room is cut to.")
                .field(
                    "apiGroup",
                    string("Group of the workload; apps when left out."),
                )
                .required("kind", string("Kind of the workload.").not_empty())
                .required("name", string("Name of the workload.").not_empty()),
        )
        .field("replicas", int32("Units of room.").at_least(0))
        .field(
            "percentage",
            int32("Units of room as a share of the workload's replicas.").at_least(0),
        )
        .field("limits", resource_map("Cap on the sum of all units."))
        .rule(
            "!has(self.podTemplateRef) || has(self.replicas) || has(self.limits)",
            "with podTemplateRef, replicas or limits must say how much room to keep",
        )
        .rule(
            "!has(self.podTemplateRef) || !has(self.scalableRef)",
            "podTemplateRef and scalableRef exclude each other",
        )
}

fn status() -> Field {
    object("What the buffer came to.")
        .field("podTemplateRef", template_ref("PodTemplate in use."))
        .field("replicas", int32("Units of room wanted now."))
        .field(
            "podTemplateGeneration",
            int64("Generation of the template in use."),
        )
        .field("provisioningStrategy", string("Strategy in use."))
        .field(
            "conditions",
            list(
                "Observations about the object.",
                condition(Reason::Required),
            )
            .with("x-kubernetes-list-type", "map")
            .with("x-kubernetes-list-map-keys", json!(["type"])),
        )
}
