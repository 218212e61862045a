//! Definition of NodeClaim v1beta1.

use super::{kubelet, machine};
use crate::crd::build::whole;
use crate::crd::{Column, Definition};

pub(super) fn definition() -> Definition {
    Definition {
        group: "karpenter.sh",
        version: "v1beta1",
        kind: "NodeClaim",
        plural: "nodeclaims",
        singular: "nodeclaim",
        short_names: &[],
        category: "karpenter",
        namespaced: false,
        columns: vec![Column::READY, Column::AGE],
        scale: None,
        schema: whole("The wish for one node, and what became of it.")
            .required("spec", machine::spec("nodeClassRef", kubelet::kubelet()))
            .field("status", crate::crd::node_claim::status()),
    }
}
