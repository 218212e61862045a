//! Definition of KWOKNodeClass.

use super::build::{object, string, whole};
use super::common::{Reason, conditions};
use super::patterns::GO_DURATION;
use super::{Column, Definition};
use serde_json::json;

pub(super) fn definition() -> Definition {
    let ready = json!({"conditions": [{
        "type": "Ready",
        "status": "True",
        "reason": "Ready",
        "message": "",
        "lastTransitionTime": "2024-01-01T01:01:01Z",
    }]});
    Definition {
        group: "karpenter.kwok.sh",
        version: "v1alpha1",
        kind: "KWOKNodeClass",
        plural: "kwoknodeclasses",
        singular: "kwoknodeclass",
        short_names: &["kwoknc", "kwokncs"],
        category: "karpenter",
        namespaced: false,
        columns: vec![Column::READY, Column::AGE],
        scale: None,
        schema: whole("Settings of simulated nodes.")
            .field(
                "spec",
                object("How simulated nodes behave.").field(
                    "nodeRegistrationDelay",
                    string("How long a node takes to appear.").pattern(GO_DURATION),
                ),
            )
            .field(
                "status",
                object("Whether the class can be used.")
                    .field("conditions", conditions(Reason::Required))
                    .default(ready),
            ),
    }
}
