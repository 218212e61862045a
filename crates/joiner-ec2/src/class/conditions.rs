//! Conditions of a node class.

use std::time::Duration;

use joiner_api::types::{ConditionStatus, Ec2NodeClassSpec, Ec2NodeClassStatus};

use super::kubelet;
use crate::{family, tags};

/// Images were found.
pub const AMIS_READY: &str = "AMIsReady";
/// Capacity reservations were looked up.
pub const CAPACITY_RESERVATIONS_READY: &str = "CapacityReservationsReady";
/// The placement group was found.
pub const PLACEMENT_GROUP_READY: &str = "PlacementGroupReady";
/// Subnets were found.
pub const SUBNETS_READY: &str = "SubnetsReady";
/// Security groups were found.
pub const SECURITY_GROUPS_READY: &str = "SecurityGroupsReady";
/// There is an instance profile.
pub const INSTANCE_PROFILE_READY: &str = "InstanceProfileReady";
/// A launch would be allowed.
pub const VALIDATION_SUCCEEDED: &str = "ValidationSucceeded";

/// Conditions that validation waits for.
const DEPENDENCIES: [&str; 4] = [
    AMIS_READY,
    INSTANCE_PROFILE_READY,
    SECURITY_GROUPS_READY,
    SUBNETS_READY,
];

/// A condition that was worked out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassCondition {
    /// Its type.
    pub kind: &'static str,
    /// What it says.
    pub status: ConditionStatus,
    /// Why, in one word; that it is so, where it is True.
    pub reason: &'static str,
    /// Why, in words; nothing where it is True.
    pub message: String,
}

impl ClassCondition {
    /// It is so.
    #[must_use]
    pub fn is_true(kind: &'static str) -> Self {
        Self {
            kind,
            status: ConditionStatus::True,
            reason: kind,
            message: String::new(),
        }
    }

    /// It is not so.
    #[must_use]
    pub fn is_false(kind: &'static str, reason: &'static str, message: impl Into<String>) -> Self {
        Self {
            kind,
            status: ConditionStatus::False,
            reason,
            message: message.into(),
        }
    }

    /// It is not known yet.
    #[must_use]
    pub fn is_unknown(
        kind: &'static str,
        reason: &'static str,
        message: impl Into<String>,
    ) -> Self {
        Self {
            status: ConditionStatus::Unknown,
            ..Self::is_false(kind, reason, message)
        }
    }
}

/// The conditions of a class as far as they follow from its status. `reserving` is the feature gate
/// `ReservedCapacity`.
#[must_use]
pub fn resolved(status: &Ec2NodeClassStatus, reserving: bool) -> Vec<ClassCondition> {
    let found = |kind, reason, is_there: bool, message: &str| match is_there {
        true => ClassCondition::is_true(kind),
        false => ClassCondition::is_false(kind, reason, message),
    };
    let some = |len: Option<usize>| len.unwrap_or_default() > 0;
    let mut all = vec![
        found(
            AMIS_READY,
            "AMINotFound",
            some(status.amis.as_ref().map(Vec::len)),
            "spec.amiSelectorTerms selects no image that is available and of an architecture that nodes can have; \
             check ids, names, tags and owners of its terms",
        ),
        found(
            SUBNETS_READY,
            "SubnetsNotFound",
            some(status.subnets.as_ref().map(Vec::len)),
            "spec.subnetSelectorTerms selects no subnet; check its ids and tags, or tag the cluster's subnets \
             accordingly",
        ),
        found(
            SECURITY_GROUPS_READY,
            "SecurityGroupsNotFound",
            some(status.security_groups.as_ref().map(Vec::len)),
            "spec.securityGroupSelectorTerms selects no security group; check its ids, names and tags, or tag the \
             cluster's groups accordingly",
        ),
    ];
    if reserving {
        all.push(ClassCondition::is_true(CAPACITY_RESERVATIONS_READY));
    }
    all
}

/// The condition of the placement group: a class that selects none is ready.
#[must_use]
pub fn placement_group(spec: &Ec2NodeClassSpec, found: Result<bool, &str>) -> ClassCondition {
    let is_selected = spec.placement_group_selector.is_some();
    let field = "spec.placementGroupSelector";
    match found {
        _ if !is_selected => ClassCondition::is_true(PLACEMENT_GROUP_READY),
        Ok(true) => ClassCondition::is_true(PLACEMENT_GROUP_READY),
        Ok(false) => ClassCondition::is_false(
            PLACEMENT_GROUP_READY,
            "PlacementGroupNotFound",
            format!("{field} selects no placement group that is available; check its name or id"),
        ),
        Err(why) => ClassCondition::is_false(
            PLACEMENT_GROUP_READY,
            "PlacementGroupResolutionFailed",
            format!("{field} could not be looked up, {why}"),
        ),
    }
}

/// What stands in the way of a class, of what can be told without asking EC2; `None` where nothing does.
/// `others` are its other conditions.
#[must_use]
pub fn validation(spec: &Ec2NodeClassSpec, others: &[ClassCondition]) -> Option<ClassCondition> {
    let failed = |reason, message| {
        Some(ClassCondition::is_false(
            VALIDATION_SUCCEEDED,
            reason,
            message,
        ))
    };
    let family = family::of(spec);
    if let Some(given) = &spec.kubelet {
        let problems = kubelet::problems(given);
        if !problems.is_empty() {
            return failed("InvalidKubeletConfiguration", problems.join("; "));
        }
        if let Some(problem) = kubelet::unsupported(given, family) {
            return failed("UnsupportedKubeletConfiguration", problem);
        }
    }
    let with = |status: ConditionStatus| {
        let dependencies = others
            .iter()
            .filter(|condition| DEPENDENCIES.contains(&condition.kind));
        let dependencies = dependencies.filter(|condition| condition.status == status);
        dependencies
            .map(|condition| condition.kind)
            .collect::<Vec<_>>()
    };
    let known = |kind: &&&str| others.iter().all(|condition| condition.kind != **kind);
    let missing = DEPENDENCIES.iter().filter(known).copied();
    let unknown: Vec<&str> = with(ConditionStatus::Unknown)
        .into_iter()
        .chain(missing)
        .collect();
    let dependencies = |kinds: &[&str]| format!("waiting for {}", kinds.join(", "));
    match (with(ConditionStatus::False), unknown) {
        (bad, _) if !bad.is_empty() => return failed("DependenciesNotReady", dependencies(&bad)),
        (_, unknown) if !unknown.is_empty() => {
            let message = dependencies(&unknown);
            return Some(ClassCondition::is_unknown(
                VALIDATION_SUCCEEDED,
                "DependenciesNotReady",
                message,
            ));
        }
        _ => {}
    }
    let key = spec.tags.as_ref().and_then(tags::restricted)?;
    let message = format!("spec.tags has {key}, which only the controller sets; remove it");
    failed("TagValidationFailed", message)
}

/// When to look again at what a condition rests on, although nothing changed; sooner where nothing was found.
#[must_use]
pub fn again_after(condition: &ClassCondition) -> Option<Duration> {
    let is_true = condition.status == ConditionStatus::True;
    let minutes = match condition.kind {
        AMIS_READY | SECURITY_GROUPS_READY if is_true => 5,
        AMIS_READY | SECURITY_GROUPS_READY | SUBNETS_READY | CAPACITY_RESERVATIONS_READY => 1,
        VALIDATION_SUCCEEDED => 10,
        _ => return None,
    };
    Some(Duration::from_secs(minutes * 60))
}

/// What `Ready` says: True if all are, False if any is, else Unknown.
#[must_use]
pub fn ready(all: &[ClassCondition]) -> ConditionStatus {
    let any = |status: ConditionStatus| all.iter().any(|condition| condition.status == status);
    match (any(ConditionStatus::False), any(ConditionStatus::Unknown)) {
        (true, _) => ConditionStatus::False,
        (false, true) => ConditionStatus::Unknown,
        (false, false) => ConditionStatus::True,
    }
}
