//! Parts that several old kinds share.

use crate::crd::build::{Field, integer, list, object, string};
use crate::crd::common::COMPARISON_RULE;
use crate::crd::patterns::{LABEL_VALUE, QUALIFIED_NAME};
use crate::labels::{self, aws};
use crate::types::TaintEffect;
use serde_json::json;

/// Longest key: a prefix of 253, a slash, a name of 63, less one.
const KEY_LENGTH_MAX: u64 = 316;
/// Keys of Kubernetes that could be set before all of them could.
const KUBERNETES_KEYS: &[&str] = &[
    "beta.kubernetes.io/instance-type",
    "failure-domain.beta.kubernetes.io/region",
    "failure-domain.beta.kubernetes.io/zone",
    "beta.kubernetes.io/os",
    "beta.kubernetes.io/arch",
    labels::ZONE,
    labels::REGION,
    labels::ARCH,
    labels::OS,
    labels::WINDOWS_BUILD,
];
/// Keys of AWS that v1alpha5 had besides those of today.
pub(crate) const DROPPED_KEYS: &[&str] = &[
    "karpenter.k8s.aws/instance-pods",
    "karpenter.k8s.aws/instance-ami-id",
];
const OPERATORS: &[&str] = &["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"];

/// The key that a pool puts on its nodes itself, by version.
pub(super) const PROVISIONER_NAME: &str = labels::OLD_PROVISIONER_NAME;

/// Requirements of a kind whose pools are named by the label `reserved`, if users may not set it.
pub(super) fn requirements(reserved: Option<&str>) -> Field {
    let item = object("A wish about one label.")
        .required(
            "key",
            string("The label.")
                .max_length(KEY_LENGTH_MAX)
                .pattern(QUALIFIED_NAME)
                .rules(conditions(reserved, "self")),
        )
        .required(
            "operator",
            string("How the label is compared.").one_of(OPERATORS),
        )
        .field(
            "values",
            list("What it is compared with.", string("A label value.")),
        )
        .field(
            "minValues",
            integer("How many different values must stay possible.").range(1, 50),
        )
        .rule(
            "self.operator != 'In' || (has(self.values) && size(self.values) > 0)",
            "the operator In needs at least one value",
        )
        .rule(
            COMPARISON_RULE.0,
            "the operators Gt and Lt need exactly one value, a whole number that is not negative",
        );
    list(
        "What the labels of a node must be. All of them apply.",
        item,
    )
    .max_items(100)
}

/// Labels that nodes get.
pub(super) fn template_labels(reserved: &str) -> Field {
    let rules = conditions(Some(reserved), "x");
    let for_all = |(rule, message)| (format!("self.all(x, {rule})"), message);
    crate::crd::build::map(
        "Labels for nodes.",
        string("A label value.").max_length(63).pattern(LABEL_VALUE),
    )
    .max_entries(100)
    .rules(rules.into_iter().map(for_all).collect())
}

/// Taints. Before v1 their values could be empty.
pub(super) fn taints(description: &str) -> Field {
    let effects: Vec<&str> = TaintEffect::ALL.iter().map(|e| e.as_str()).collect();
    let item = object("Keeps pods off the node unless they tolerate it.")
        .required(
            "key",
            string("Key that tolerations match.")
                .not_empty()
                .pattern(QUALIFIED_NAME),
        )
        .field(
            "value",
            string("Value that tolerations match.").pattern(LABEL_VALUE),
        )
        .required(
            "effect",
            string("What happens to other pods.").one_of(&effects),
        )
        .field("timeAdded", crate::crd::build::time("When it was added."));
    list(description, item)
}

/// A reference of the versions before v1, of which only the name is needed.
pub(super) fn reference(description: &str) -> Field {
    object(description)
        .field("apiVersion", string("Group and version."))
        .field("kind", string("Kind."))
        .required("name", string("Name.").not_empty())
}

/// The most that a resource may be, as users wrote it.
pub(super) fn volume_size() -> Field {
    crate::crd::build::int_or_string("Size such as 50Gi.").pattern(crate::crd::patterns::QUANTITY)
}

/// Conditions, as far back as they were loosely checked.
pub(super) fn loose(description: &str) -> Field {
    object(description).with("x-kubernetes-preserve-unknown-fields", json!(true))
}

/// What a key must be, bound to `key`.
fn conditions(reserved: Option<&str>, key: &str) -> Vec<(String, String)> {
    let mut rules = Vec::new();
    if let Some(reserved) = reserved {
        rules.push((
            format!("{key} != '{reserved}'"),
            format!("{reserved} is set by the pool itself"),
        ));
    }
    rules.push((
        format!("{key} != '{}'", labels::HOSTNAME),
        format!(
            "{} differs on every node and cannot be chosen",
            labels::HOSTNAME
        ),
    ));
    let core = [labels::CAPACITY_TYPE, labels::NODE_POOL, PROVISIONER_NAME];
    rules.push(domain(key, labels::GROUP, &core, &[]));
    let exceptions = ["node.kubernetes.io", "node-restriction.kubernetes.io"];
    rules.push(domain(key, "kubernetes.io", KUBERNETES_KEYS, &exceptions));
    rules.push(domain(key, "k8s.io", &[], &["kops.k8s.io"]));
    let mut of_aws: Vec<&str> = aws::HARDWARE_LABELS.to_vec();
    of_aws.extend(aws::PLACEMENT_LABELS);
    of_aws.extend(DROPPED_KEYS);
    rules.push(domain(key, aws::GROUP, &of_aws, &[]));
    rules
}

/// The key is outside of a domain, or known inside, or in one of the open domains within.
fn domain(key: &str, domain: &str, known: &[&str], open: &[&str]) -> (String, String) {
    let prefix = format!("{key}.find('^([^/]+)')");
    let known: Vec<String> = known.iter().map(|known| format!("'{known}'")).collect();
    let mut rule = format!(
        "!{prefix}.endsWith('{domain}') || {key} in [{}]",
        known.join(", ")
    );
    for open in open {
        rule.push_str(&format!(" || {prefix}.endsWith('{open}')"));
    }
    let message =
        format!("the label domain {domain} was reserved: only its well-known labels could be set");
    (rule, message)
}
