//! Whether a machine is still what its class asks for.
//!
//! The order of the checks is upstream's, and the first that finds something names the reason. What cannot be
//! told is an error, not drift.

use std::collections::{BTreeMap, BTreeSet};

use joiner_api::labels::aws::{
    EC2_NODE_CLASS_HASH, EC2_NODE_CLASS_HASH_VERSION, PLACEMENT_GROUP_ID,
};
use joiner_api::types::{Ec2NodeClassStatus, NodeClaim};

/// Why a machine is to be replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    /// A static field of the class changed.
    NodeClass,
    /// The class selects another image for its type.
    Ami,
    /// The class selects other security groups.
    SecurityGroup,
    /// The class no longer selects its subnet.
    Subnet,
    /// The class no longer selects the reservation that it runs in.
    CapacityReservation,
    /// The class selects another placement group.
    PlacementGroup,
}

impl Drift {
    /// As the condition says it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::NodeClass => "NodeClassDrift",
            Self::Ami => "AMIDrift",
            Self::SecurityGroup => "SecurityGroupDrift",
            Self::Subnet => "SubnetDrift",
            Self::CapacityReservation => "CapacityReservationDrift",
            Self::PlacementGroup => "PlacementGroupDrift",
        }
    }
}

/// Why it cannot be told whether a machine has drifted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DriftError {
    /// The class has resolved nothing of this kind.
    #[error("EC2NodeClass {class}: status.{field} is empty; wait until the class is ready")]
    NothingResolved {
        /// Name of the class.
        class: String,
        /// The field of its status.
        field: &'static str,
    },
    /// The claim does not say what it was launched with.
    #[error("NodeClaim {claim}: {field} is missing; it is set when the claim is launched")]
    NothingLaunched {
        /// Name of the claim.
        claim: String,
        /// The field or label.
        field: &'static str,
    },
}

/// A machine as far as drift looks at it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Machine {
    /// Its security groups.
    pub security_groups: BTreeSet<String>,
    /// Its subnet.
    pub subnet: String,
    /// The reservation that it runs in, if it is paid for by one.
    pub reservation: Option<String>,
}

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub struct Compared<'a> {
    /// Name of the class.
    pub class: &'a str,
    /// Annotations of the class.
    pub class_annotations: &'a BTreeMap<String, String>,
    /// What its selectors came to.
    pub status: &'a Ec2NodeClassStatus,
    /// Id of the placement group that it selects, if it does.
    pub placement_group: Option<&'a str>,
    /// The claim.
    pub claim: &'a NodeClaim,
    /// Its machine.
    pub machine: &'a Machine,
}

impl Compared<'_> {
    /// Whether the machine has drifted. `selected_ami` is the image that the class gives to machines of the
    /// claim's type, see [`crate::ami::for_type`]; `None` if it gives none.
    ///
    /// A machine that seems to have left its reservation must be looked at again before
    /// [`Drift::CapacityReservation`] is believed: it may have gone over to on-demand, which is no drift.
    ///
    /// # Errors
    /// The claim or the class does not say enough.
    pub fn drift(&self, selected_ami: Option<&str>) -> Result<Option<Drift>, DriftError> {
        if hashes_differ(self.class_annotations, &self.claim.metadata.annotations) {
            return Ok(Some(Drift::NodeClass));
        }
        if self.ami(selected_ami)? {
            return Ok(Some(Drift::Ami));
        }
        if self.security_groups()? {
            return Ok(Some(Drift::SecurityGroup));
        }
        if self.subnet()? {
            return Ok(Some(Drift::Subnet));
        }
        if self.reservation() {
            return Ok(Some(Drift::CapacityReservation));
        }
        let group = self.claim.metadata.labels.get(PLACEMENT_GROUP_ID);
        let has_group = group.map_or("", String::as_str);
        Ok(
            (has_group != self.placement_group.unwrap_or_default())
                .then_some(Drift::PlacementGroup),
        )
    }

    fn ami(&self, selected: Option<&str>) -> Result<bool, DriftError> {
        let amis = self.status.amis.as_deref().unwrap_or_default();
        if amis.is_empty() {
            return Err(self.nothing_resolved("amis"));
        }
        let status = self.claim.status.as_ref();
        let image = status.and_then(|status| status.image_id.as_deref());
        let image = image.filter(|image| !image.is_empty());
        let image = image.ok_or_else(|| self.nothing_launched("status.imageID"))?;
        Ok(selected != Some(image))
    }

    fn security_groups(&self) -> Result<bool, DriftError> {
        let groups = self.status.security_groups.as_deref().unwrap_or_default();
        if groups.is_empty() {
            return Err(self.nothing_resolved("securityGroups"));
        }
        let selected: BTreeSet<&str> = groups.iter().map(|group| group.id.as_str()).collect();
        let present: BTreeSet<&str> = (self.machine.security_groups.iter())
            .map(String::as_str)
            .collect();
        Ok(selected != present)
    }

    fn subnet(&self) -> Result<bool, DriftError> {
        let subnets = self.status.subnets.as_deref().unwrap_or_default();
        if subnets.is_empty() {
            return Err(self.nothing_resolved("subnets"));
        }
        Ok(subnets
            .iter()
            .all(|subnet| subnet.id != self.machine.subnet))
    }

    fn reservation(&self) -> bool {
        let selected = self.status.capacity_reservations.as_deref();
        let mut selected = selected.unwrap_or_default().iter();
        let reservation = self.machine.reservation.as_deref();
        reservation.is_some_and(|id| selected.all(|reservation| reservation.id != id))
    }

    fn nothing_resolved(&self, field: &'static str) -> DriftError {
        DriftError::NothingResolved {
            class: self.class.to_owned(),
            field,
        }
    }

    fn nothing_launched(&self, field: &'static str) -> DriftError {
        DriftError::NothingLaunched {
            claim: self.claim.name().to_owned(),
            field,
        }
    }
}

/// Whether a static field changed: both sides carry hash and version, the versions are the same, and the
/// hashes are not.
fn hashes_differ(class: &BTreeMap<String, String>, claim: &BTreeMap<String, String>) -> bool {
    let pair = |annotations: &BTreeMap<String, String>| {
        let hash = annotations.get(EC2_NODE_CLASS_HASH)?.clone();
        Some((hash, annotations.get(EC2_NODE_CLASS_HASH_VERSION)?.clone()))
    };
    match (pair(class), pair(claim)) {
        (Some((class_hash, class_version)), Some((hash, version))) => {
            class_version == version && class_hash != hash
        }
        _ => false,
    }
}

/// What to write on the claims of a class whose hash was computed by another version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rehash {
    /// The new hash; `None` for a claim that has drifted already and stays so.
    pub hash: Option<String>,
    /// The new version.
    pub version: &'static str,
}

/// How the annotations of a claim follow those of its class to `version`. `None` when the class is at that
/// version: then nothing is to be written on claims.
#[must_use]
pub fn rehash(
    class_annotations: &BTreeMap<String, String>,
    is_drifted: bool,
    hash: &str,
    version: &'static str,
) -> Option<Rehash> {
    let present = class_annotations.get(EC2_NODE_CLASS_HASH_VERSION);
    (present.map(String::as_str) != Some(version)).then(|| Rehash {
        hash: (!is_drifted).then(|| hash.to_owned()),
        version,
    })
}
