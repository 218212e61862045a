//! Definition of NodeOverlay.

use super::build::{Field, int32, object, resource_map, string, whole};
use super::common::{Reason, conditions, overlay_requirements};
use super::patterns::{PRICE, PRICE_ADJUSTMENT};
use super::{Column, Definition};

/// Resources that overlays may not touch.
const FIXED_RESOURCES: &[&str] = &["cpu", "memory", "ephemeral-storage", "pods"];

pub(super) fn definition() -> Definition {
    Definition {
        group: "karpenter.sh",
        version: "v1alpha1",
        kind: "NodeOverlay",
        plural: "nodeoverlays",
        singular: "nodeoverlay",
        short_names: &["overlays"],
        category: "karpenter",
        namespaced: false,
        columns: vec![
            Column::READY,
            Column::AGE,
            Column::wide("Weight", "integer", ".spec.weight"),
        ],
        scale: None,
        schema: whole("A correction of what is believed about instance types.")
            .required("spec", spec())
            .field(
                "status",
                object("Whether it is in force.").field("conditions", conditions(Reason::Required)),
            ),
    }
}

fn spec() -> Field {
    let untouched = FIXED_RESOURCES
        .iter()
        .map(|name| format!("!('{name}' in self)"));
    object("What is corrected, and how.")
        .required("requirements", overlay_requirements())
        .field("price", string("Replaces the hourly price.").pattern(PRICE))
        .field(
            "priceAdjustment",
            string("Shifts the hourly price, by an amount or a percentage with a sign.")
                .pattern(PRICE_ADJUSTMENT),
        )
        .field(
            "capacity",
            resource_map("Extended resources that the types have.").rule(
                untouched.collect::<Vec<_>>().join(" && "),
                format!(
                    "these resources cannot be corrected: {}",
                    FIXED_RESOURCES.join(", ")
                ),
            ),
        )
        .field(
            "weight",
            int32("Among overlays for the same type the heaviest wins; without one it is zero.")
                .range(1, 10000),
        )
        .rule(
            "!has(self.price) || !has(self.priceAdjustment)",
            "price and priceAdjustment exclude each other",
        )
}
