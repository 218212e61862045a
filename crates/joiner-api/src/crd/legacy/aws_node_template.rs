//! Definition of AWSNodeTemplate, which EC2NodeClass has replaced.

use super::ec2_node_class::{CONTROLLER_TAGS, with_instance};
use super::parts;
use crate::crd::build::{Field, object, string, string_map, whole};
use crate::crd::ec2_node_class::tags;
use crate::crd::{Column, Definition};

/// Families of images, of which AL2 was the one without saying so.
const FAMILIES: &[&str] = &[
    "AL2",
    "Bottlerocket",
    "Ubuntu",
    "Windows2019",
    "Windows2022",
    "Custom",
];
/// What a launch template says by itself.
const BESIDE_LAUNCH_TEMPLATE: &[&str] = &[
    "securityGroupSelector",
    "metadataOptions",
    "amiFamily",
    "instanceProfile",
    "blockDeviceMappings",
    "userData",
    "amiSelector",
];

pub(super) fn definition() -> Definition {
    Definition {
        group: "karpenter.k8s.aws",
        version: "v1alpha1",
        kind: "AWSNodeTemplate",
        plural: "awsnodetemplates",
        singular: "awsnodetemplate",
        short_names: &[],
        category: "karpenter",
        namespaced: false,
        columns: vec![Column::AGE],
        scale: None,
        schema: whole("How instances are launched on EC2, before EC2NodeClass.")
            .required("spec", spec())
            .field("status", parts::loose("What the selectors came to.")),
    }
}

fn spec() -> Field {
    let ids = |field: &str| {
        let rule = "!('aws-ids' in self || 'aws::ids' in self) || size(self) == 1";
        (
            rule.to_owned(),
            format!("aws-ids must be the only key of {field}"),
        )
    };
    let selector = |field: &str, description: &str| {
        string_map(description)
            .rule(
                "self.all(k, k != '' && self[k] != '')",
                "selectors need a key and a value",
            )
            .rules(vec![ids(field)])
    };
    let base = object("Settings of the instances.")
        .field(
            "amiFamily",
            string("How user data and volumes are laid out.").one_of(FAMILIES),
        )
        .field("instanceProfile", string("Instance profile.").not_empty())
        .required(
            "subnetSelector",
            selector("subnetSelector", "Tags or ids of subnets.").with("minProperties", 1),
        )
        .field(
            "securityGroupSelector",
            selector("securityGroupSelector", "Tags or ids of groups."),
        )
        .field(
            "amiSelector",
            selector("amiSelector", "Tags, ids, names or owners of images."),
        )
        .field("tags", tags(CONTROLLER_TAGS))
        .field(
            "launchTemplate",
            string("Name of a launch template.").not_empty(),
        );
    let others: Vec<String> = BESIDE_LAUNCH_TEMPLATE
        .iter()
        .map(|field| format!("has(self.{field})"))
        .collect();
    let base = with_instance(base).field("metadataOptions", metadata_options());
    base.rule(
        format!("!has(self.launchTemplate) || !({})", others.join(" || ")),
        format!(
            "launchTemplate cannot be combined with {}",
            BESIDE_LAUNCH_TEMPLATE.join(", ")
        ),
    )
    .rule(
        "has(self.launchTemplate) || \
         (has(self.securityGroupSelector) && size(self.securityGroupSelector) > 0)",
        "securityGroupSelector is needed when there is no launchTemplate",
    )
    .rule(
        "!has(self.amiFamily) || self.amiFamily != 'Custom' || \
         (has(self.amiSelector) && size(self.amiSelector) > 0)",
        "the amiFamily Custom needs an amiSelector",
    )
    .rule(
        "!has(self.blockDeviceMappings) || \
         self.blockDeviceMappings.all(x, has(x.deviceName) && has(x.ebs))",
        "every one of blockDeviceMappings needs a deviceName and ebs",
    )
}

/// Without defaults: a launch template forbids them.
fn metadata_options() -> Field {
    let toggle = |description: &str| string(description).one_of(&["enabled", "disabled"]);
    object("Access to the instance metadata service.")
        .field("httpEndpoint", toggle("Whether it answers."))
        .field("httpProtocolIPv6", toggle("Whether it answers over IPv6."))
        .field(
            "httpPutResponseHopLimit",
            crate::crd::build::int64("How far its answers travel.").range(1, 64),
        )
        .field(
            "httpTokens",
            string("Whether session tokens are needed.").one_of(&["required", "optional"]),
        )
}
