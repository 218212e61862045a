//! AWSNodeTemplate, which EC2NodeClass has replaced.

use super::ec2_node_class::{self, PLACEHOLDER_IMAGE};
use super::fields::{at, put, take};
use super::remark::{Remark, Remarks};
use super::{metadata, selectors, volume_size};
use serde_json::{Value, json};

/// A role that has to be filled in: the old default was a setting of the controller.
const PLACEHOLDER_ROLE: &str = "$KARPENTER_NODE_ROLE";
/// Security groups that have to be filled in.
const PLACEHOLDER_TAG: (&str, &str) = ("karpenter.sh/discovery", "$CLUSTER_NAME");
/// How far answers of the metadata service traveled when nothing was said.
pub(super) const OLD_HOPS: i64 = 2;

/// Selectors, and the terms that they become.
const SELECTORS: &[(&str, &str)] = &[
    ("subnetSelector", "subnetSelectorTerms"),
    ("securityGroupSelector", "securityGroupSelectorTerms"),
    ("amiSelector", "amiSelectorTerms"),
];

/// The node class that takes the place of a template.
pub(super) fn convert(template: &Value, subject: &str, list: &mut Vec<Remark>) -> Value {
    let mut remarks = Remarks { subject, list };
    let spec = at(template, &["spec"]).cloned().unwrap_or_default();
    class(metadata::carried(template), spec, "spec", &mut remarks)
}

/// The node class of these settings, which stand at `path` of the old object.
pub(super) fn class(meta: Value, mut spec: Value, path: &str, remarks: &mut Remarks<'_>) -> Value {
    for (selector, terms) in SELECTORS {
        if let Some(Value::Object(map)) = take(&mut spec, &[selector])
            && !map.is_empty()
        {
            put(&mut spec, &[terms], selectors::terms(&map).into());
        }
    }
    // What a provider inside of a Provisioner said of itself.
    take(&mut spec, &["apiVersion"]);
    take(&mut spec, &["kind"]);
    match take(&mut spec, &["launchTemplate"]) {
        Some(name) => without_launch_template(&mut spec, &name, path, remarks),
        None => {
            hops(&mut spec, path, remarks);
            family(&mut spec, path, remarks);
        }
    }
    if at(&spec, &["instanceProfile"]).is_none() {
        put(&mut spec, &["role"], PLACEHOLDER_ROLE.into());
        remarks.hand(
            format!("{path}.instanceProfile"),
            format!(
                "there is none, and the controller's default is gone: role is {PLACEHOLDER_ROLE}, \
                 write the name of your nodes' IAM role"
            ),
        );
    }
    let mut class = json!({
        "apiVersion": "karpenter.k8s.aws/v1beta1", "kind": "EC2NodeClass", "metadata": meta,
    });
    put(&mut class, &["spec"], spec);
    volume_size::rewrite(&mut class, path, remarks);
    images(&class, path, remarks);
    ec2_node_class::up(class)
}

/// Everything that was in a launch template has to be said in the class.
fn without_launch_template(spec: &mut Value, name: &Value, path: &str, remarks: &mut Remarks<'_>) {
    let (key, value) = PLACEHOLDER_TAG;
    put(spec, &["amiFamily"], "Custom".into());
    put(
        spec,
        &["amiSelectorTerms"],
        json!([{"id": PLACEHOLDER_IMAGE}]),
    );
    put(
        spec,
        &["securityGroupSelectorTerms"],
        json!([{"tags": {key: value}}]),
    );
    remarks.hand(
        format!("{path}.launchTemplate"),
        format!(
            "launch templates are no longer taken: amiFamily, amiSelectorTerms, \
             securityGroupSelectorTerms and role are placeholders; write what {} says of image, \
             security groups, role, volumes, metadata and user data",
            name.as_str().unwrap_or_default()
        ),
    );
}

/// Writes out how far answers of the metadata service travel, where nothing is said.
pub(super) fn hops(spec: &mut Value, path: &str, remarks: &mut Remarks<'_>) {
    let field = ["metadataOptions", "httpPutResponseHopLimit"];
    if at(spec, &field).is_none() {
        put(spec, &field, OLD_HOPS.into());
        remarks.note(
            format!("{path}.metadataOptions.httpPutResponseHopLimit"),
            format!(
                "{OLD_HOPS} is written out, which it was without saying so; v1's default of 1 keeps \
                 pods from the metadata service"
            ),
        );
    }
}

fn family(spec: &mut Value, path: &str, remarks: &mut Remarks<'_>) {
    if at(spec, &["amiFamily"]).is_none() {
        put(spec, &["amiFamily"], "AL2".into());
        remarks.note(
            format!("{path}.amiFamily"),
            "AL2 is written out, which it was without saying so",
        );
    }
}

/// Says what is to be known of the images of a v1beta1 class.
pub(super) fn images(class: &Value, path: &str, remarks: &mut Remarks<'_>) {
    let family = at(class, &["spec", "amiFamily"]).and_then(Value::as_str);
    let terms = at(class, &["spec", "amiSelectorTerms"]).and_then(Value::as_array);
    let has_terms = terms.is_some_and(|terms| !terms.is_empty());
    let path = format!("{path}.amiFamily");
    match family {
        Some("Ubuntu") if has_terms => remarks.note(
            path,
            "there is no family Ubuntu in v1: amiFamily is AL2, whose user data Ubuntu understands",
        ),
        Some("Ubuntu") => remarks.hand(
            path,
            format!(
                "there is no family Ubuntu in v1: amiFamily is AL2, whose user data Ubuntu \
                 understands, and amiSelectorTerms is the placeholder {PLACEHOLDER_IMAGE}; write \
                 the id or the name of your image"
            ),
        ),
        Some("AL2") if !has_terms => remarks.note(
            path,
            "AL2 without a selector is the alias al2@latest, which AWS publishes up to Kubernetes \
             1.32; for later ones write al2023@latest",
        ),
        Some(_) | None => {}
    }
}
