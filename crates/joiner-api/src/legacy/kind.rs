//! Which kinds are old, and what they have become.

use super::fields::text;
use serde_json::Value;

/// A kind of an earlier release.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OldKind {
    /// `karpenter.sh/v1alpha5`, a NodePool today.
    Provisioner,
    /// `karpenter.sh/v1alpha5`, a NodeClaim today.
    Machine,
    /// `karpenter.sh/v1beta1`.
    NodePool,
    /// `karpenter.sh/v1beta1`.
    NodeClaim,
    /// `karpenter.k8s.aws/v1alpha1`, an EC2NodeClass today.
    AwsNodeTemplate,
    /// `karpenter.k8s.aws/v1beta1`.
    Ec2NodeClass,
    /// `autoscaling.x-k8s.io/v1alpha1`.
    CapacityBuffer,
}

impl OldKind {
    /// All of them.
    pub const ALL: &'static [Self] = &[
        Self::Provisioner,
        Self::Machine,
        Self::NodePool,
        Self::NodeClaim,
        Self::AwsNodeTemplate,
        Self::Ec2NodeClass,
        Self::CapacityBuffer,
    ];

    /// Group and version, and kind.
    #[must_use]
    pub const fn header(self) -> (&'static str, &'static str) {
        match self {
            Self::Provisioner => ("karpenter.sh/v1alpha5", "Provisioner"),
            Self::Machine => ("karpenter.sh/v1alpha5", "Machine"),
            Self::NodePool => ("karpenter.sh/v1beta1", "NodePool"),
            Self::NodeClaim => ("karpenter.sh/v1beta1", "NodeClaim"),
            Self::AwsNodeTemplate => ("karpenter.k8s.aws/v1alpha1", "AWSNodeTemplate"),
            Self::Ec2NodeClass => ("karpenter.k8s.aws/v1beta1", "EC2NodeClass"),
            Self::CapacityBuffer => ("autoscaling.x-k8s.io/v1alpha1", "CapacityBuffer"),
        }
    }

    /// Group and version, and kind, of the successor.
    #[must_use]
    pub const fn successor(self) -> (&'static str, &'static str) {
        match self {
            Self::Provisioner | Self::NodePool => ("karpenter.sh/v1", "NodePool"),
            Self::Machine | Self::NodeClaim => ("karpenter.sh/v1", "NodeClaim"),
            Self::AwsNodeTemplate | Self::Ec2NodeClass => ("karpenter.k8s.aws/v1", "EC2NodeClass"),
            Self::CapacityBuffer => ("autoscaling.x-k8s.io/v1beta1", "CapacityBuffer"),
        }
    }

    /// The old kind of this version and name.
    #[must_use]
    pub fn of(api_version: &str, kind: &str) -> Option<Self> {
        let header = (api_version, kind);
        Self::ALL.iter().copied().find(|old| old.header() == header)
    }

    /// The old kind that an object is of.
    pub(super) fn of_object(object: &Value) -> Option<Self> {
        Self::of(text(object, "apiVersion"), text(object, "kind"))
    }

    /// The v1beta1 kind of a v1 object.
    pub(super) fn of_v1(object: &Value) -> Option<Self> {
        let header = (text(object, "apiVersion"), text(object, "kind"));
        let both = [Self::NodePool, Self::NodeClaim, Self::Ec2NodeClass];
        both.into_iter().find(|old| old.successor() == header)
    }
}

/// Whether a kind is one of earlier releases that is converted.
#[must_use]
pub fn is_old(api_version: &str, kind: &str) -> bool {
    OldKind::of(api_version, kind).is_some()
}
