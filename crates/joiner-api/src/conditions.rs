//! Types of conditions, by upstream's names.

use std::fmt;
use std::ops::Deref;

/// The type of a condition. There is one constant for each that is read or written anywhere, so that a
/// name that is mistyped does not compile.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ConditionType(&'static str);

impl ConditionType {
    /// A type that only one provider knows.
    #[must_use]
    pub const fn new(name: &'static str) -> Self {
        Self(name)
    }

    /// As it is written.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        self.0
    }
}

impl Deref for ConditionType {
    type Target = str;

    fn deref(&self) -> &str {
        self.0
    }
}

impl fmt::Display for ConditionType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// The root that the others of an object feed.
pub const READY: ConditionType = ConditionType("Ready");

/// NodeClaim: the cloud has answered a launch.
pub const LAUNCHED: ConditionType = ConditionType("Launched");
/// NodeClaim: its Node has joined.
pub const REGISTERED: ConditionType = ConditionType("Registered");
/// NodeClaim: its Node can take all of its pods.
pub const INITIALIZED: ConditionType = ConditionType("Initialized");
/// NodeClaim: nothing has happened on its Node for long enough.
pub const CONSOLIDATABLE: ConditionType = ConditionType("Consolidatable");
/// NodeClaim: it is not what its pool or class asks for any more.
pub const DRIFTED: ConditionType = ConditionType("Drifted");
/// NodeClaim: no pod of its Node is waited for.
pub const DRAINED: ConditionType = ConditionType("Drained");
/// NodeClaim: no volume of its Node is waited for.
pub const VOLUMES_DETACHED: ConditionType = ConditionType("VolumesDetached");
/// NodeClaim: the cloud was asked to end its machine.
pub const INSTANCE_TERMINATING: ConditionType = ConditionType("InstanceTerminating");
/// NodeClaim: its Node is as large as it should be.
pub const CONSISTENT_STATE_FOUND: ConditionType = ConditionType("ConsistentStateFound");
/// NodeClaim: why it is disrupted.
pub const DISRUPTION_REASON: ConditionType = ConditionType("DisruptionReason");

/// NodePool, EC2NodeClass, NodeOverlay: what it says can be carried out.
pub const VALIDATION_SUCCEEDED: ConditionType = ConditionType("ValidationSucceeded");
/// NodePool: its class is ready.
pub const NODE_CLASS_READY: ConditionType = ConditionType("NodeClassReady");
/// NodePool: its nodes have joined of late.
pub const NODE_REGISTRATION_HEALTHY: ConditionType = ConditionType("NodeRegistrationHealthy");

/// CapacityBuffer: it is known which pods room is kept for.
pub const READY_FOR_PROVISIONING: ConditionType = ConditionType("ReadyForProvisioning");
/// CapacityBuffer: how room for it is kept.
pub const PROVISIONING: ConditionType = ConditionType("Provisioning");

/// EC2NodeClass: its subnets are known.
pub const SUBNETS_READY: ConditionType = ConditionType("SubnetsReady");
/// EC2NodeClass: its security groups are known.
pub const SECURITY_GROUPS_READY: ConditionType = ConditionType("SecurityGroupsReady");
/// EC2NodeClass: its images are known.
pub const AMIS_READY: ConditionType = ConditionType("AMIsReady");
/// EC2NodeClass: its instance profile is there.
pub const INSTANCE_PROFILE_READY: ConditionType = ConditionType("InstanceProfileReady");
/// EC2NodeClass: its capacity reservations are known.
pub const CAPACITY_RESERVATIONS_READY: ConditionType = ConditionType("CapacityReservationsReady");
/// EC2NodeClass: its placement group is known.
pub const PLACEMENT_GROUP_READY: ConditionType = ConditionType("PlacementGroupReady");
