//! Where the fields of an old object stand in its successor.

use super::kind::OldKind;

/// A field that is found elsewhere, under its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moved {
    /// Keys on the way to it in the old object.
    pub from: &'static [&'static str],
    /// Keys on the way to it in the new one.
    pub to: &'static [&'static str],
    /// Only what is below has moved; the field itself is gone.
    pub only_below: bool,
}

/// What has moved between an old object and one of its successors. All other fields stand where they
/// stood, as far as they are there, unless `is_elsewhere`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Movements {
    /// The fields that have moved.
    pub moved: &'static [Moved],
    /// What is not listed is in another successor.
    pub is_elsewhere: bool,
}

const fn whole(from: &'static [&'static str], to: &'static [&'static str]) -> Moved {
    Moved {
        from,
        to,
        only_below: false,
    }
}

const fn below(from: &'static [&'static str], to: &'static [&'static str]) -> Moved {
    Moved {
        from,
        to,
        only_below: true,
    }
}

const OF_PROVISIONER: &[Moved] = &[
    whole(
        &["spec", "labels"],
        &["spec", "template", "metadata", "labels"],
    ),
    whole(
        &["spec", "annotations"],
        &["spec", "template", "metadata", "annotations"],
    ),
    whole(&["spec", "taints"], &["spec", "template", "spec", "taints"]),
    whole(
        &["spec", "startupTaints"],
        &["spec", "template", "spec", "startupTaints"],
    ),
    whole(
        &["spec", "requirements"],
        &["spec", "template", "spec", "requirements"],
    ),
    below(&["spec", "limits", "resources"], &["spec", "limits"]),
];
const OF_PROVIDER: &[Moved] = &[below(&["spec", "provider"], &["spec"])];
const OF_NODE_POOL: &[Moved] = &[whole(
    &["spec", "disruption", "expireAfter"],
    &["spec", "template", "spec", "expireAfter"],
)];

/// What has moved from an object of an old kind to a successor of kind `new_kind`.
#[must_use]
pub fn moved(old: OldKind, new_kind: &str) -> Movements {
    let (moved, is_elsewhere) = match old {
        OldKind::Provisioner if new_kind == "EC2NodeClass" => (OF_PROVIDER, true),
        OldKind::Provisioner => (OF_PROVISIONER, false),
        OldKind::NodePool => (OF_NODE_POOL, false),
        OldKind::Machine
        | OldKind::NodeClaim
        | OldKind::AwsNodeTemplate
        | OldKind::Ec2NodeClass
        | OldKind::CapacityBuffer => (&[][..], false),
    };
    Movements {
        moved,
        is_elsewhere,
    }
}
