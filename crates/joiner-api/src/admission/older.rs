//! Kinds of earlier Karpenter releases: named, explained, not read.

use std::fmt;

/// A kind that has been replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OlderApi {
    /// Group and version of the old kind.
    pub api_version: &'static str,
    /// The old kind.
    pub kind: &'static str,
    /// Group and version of its successor.
    pub new_api_version: &'static str,
    /// Its successor.
    pub new_kind: &'static str,
    /// Which fields went where.
    pub mapping: &'static str,
}

impl fmt::Display for OlderApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} {} is an older API that is no longer read; write it as {} {}: {}",
            self.api_version, self.kind, self.new_api_version, self.new_kind, self.mapping
        )
    }
}

const POOL: (&str, &str) = ("karpenter.sh/v1", "NodePool");
const CLAIM: (&str, &str) = ("karpenter.sh/v1", "NodeClaim");
const EC2_CLASS: (&str, &str) = ("karpenter.k8s.aws/v1", "EC2NodeClass");

const fn older(
    api_version: &'static str,
    kind: &'static str,
    new: (&'static str, &'static str),
    mapping: &'static str,
) -> OlderApi {
    OlderApi {
        api_version,
        kind,
        new_api_version: new.0,
        new_kind: new.1,
        mapping,
    }
}

const OLDER: &[OlderApi] = &[
    older(
        "karpenter.sh/v1alpha5",
        "Provisioner",
        POOL,
        "spec.requirements, taints and startupTaints move to spec.template.spec, labels and \
         annotations to spec.template.metadata; providerRef becomes \
         spec.template.spec.nodeClassRef with group, kind and name; limits.resources becomes \
         limits; ttlSecondsUntilExpired becomes spec.template.spec.expireAfter (Never if it was \
         absent); ttlSecondsAfterEmpty becomes disruption.consolidateAfter with \
         consolidationPolicy WhenEmpty; consolidation.enabled becomes consolidationPolicy \
         WhenEmptyOrUnderutilized; kubeletConfiguration moves to the node class; requirements \
         that used to be implied (linux, amd64, on-demand, categories c, m and r, generation \
         above 2) must be written out",
    ),
    older(
        "karpenter.sh/v1alpha5",
        "Machine",
        CLAIM,
        "machineTemplateRef becomes spec.nodeClassRef with group, kind and name; claims are made \
         by pools, so usually there is nothing to convert",
    ),
    older(
        "karpenter.sh/v1beta1",
        "NodePool",
        POOL,
        "nodeClassRef takes group, kind and name instead of apiVersion; expireAfter moves from \
         spec.disruption to spec.template.spec; consolidationPolicy WhenUnderutilized becomes \
         WhenEmptyOrUnderutilized with consolidateAfter 0s; spec.template.spec.kubelet moves to \
         the node class",
    ),
    older(
        "karpenter.sh/v1beta1",
        "NodeClaim",
        CLAIM,
        "nodeClassRef takes group, kind and name instead of apiVersion, and kubelet moves to the \
         node class; claims are made by pools, so usually there is nothing to convert",
    ),
    older(
        "karpenter.k8s.aws/v1alpha1",
        "AWSNodeTemplate",
        EC2_CLASS,
        "subnetSelector, securityGroupSelector and amiSelector become subnetSelectorTerms, \
         securityGroupSelectorTerms and amiSelectorTerms, one term for each combination of \
         comma-separated values; instanceProfile stays or becomes role; without amiSelector use \
         an alias such as al2023@latest; launchTemplate has no successor",
    ),
    older(
        "karpenter.k8s.aws/v1beta1",
        "EC2NodeClass",
        EC2_CLASS,
        "without amiSelectorTerms, amiFamily X becomes the term alias: x@latest; amiFamily Ubuntu \
         becomes AL2 with amiSelectorTerms and a root volume of its own; the kubelet settings of \
         the NodePool come here, under spec.kubelet",
    ),
    older(
        "autoscaling.x-k8s.io/v1alpha1",
        "CapacityBuffer",
        ("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer"),
        "the fields keep their names, so a new apiVersion is all it takes",
    ),
];

/// What has become of a kind, if it is one of Karpenter's older ones.
#[must_use]
pub fn older_api(api_version: &str, kind: &str) -> Option<&'static OlderApi> {
    OLDER
        .iter()
        .find(|older| older.api_version == api_version && older.kind == kind)
}
