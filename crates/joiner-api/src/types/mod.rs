//! Objects as they travel: one Rust type per kind, field for field what the wire carries.
//!
//! These types hold and print what users wrote; they refuse to interpret it. Quantities and
//! durations stay text, and an absent list differs from an empty one. Unknown fields are tolerated
//! on reading and lost on writing: never send one of these back in place of the stored object.

mod capacity_buffer;
mod common;
mod duration;
mod ec2_node_class;
mod ec2_status;
mod kwok_node_class;
mod meta;
mod node_claim;
mod node_overlay;
mod node_pool;
mod quantity;

pub use capacity_buffer::{
    ACTIVE_CAPACITY, CapacityBuffer, CapacityBufferSpec, CapacityBufferStatus, LocalRef,
    ScalableRef,
};
pub use common::{
    Condition, ConditionStatus, NodeClassRef, Operator, Requirement, ResourceMap, Taint,
    TaintEffect,
};
pub use duration::{DurationError, DurationText, parse_go_duration};
pub use ec2_node_class::{
    AmiFamily, AmiTerm, BlockDevice, BlockDeviceMapping, CapacityReservationTerm,
    ConnectionTracking, CpuOptions, Ec2NodeClass, Ec2NodeClassSpec, HttpTokens,
    InstanceStorePolicy, InterfaceType, Kubelet, MatchCriteria, MaxPods, MetadataOptions,
    NetworkInterface, PlacementGroupSelector, SecurityGroupTerm, SubnetTerm, Toggle, VolumeType,
};
pub use ec2_status::{
    Ami, CapacityReservation, Ec2NodeClassStatus, ReservationState, ReservationType, SecurityGroup,
    Subnet,
};
pub use kwok_node_class::{KwokNodeClass, KwokNodeClassSpec, KwokNodeClassStatus};
pub use meta::{Object, ObjectMeta, OwnerReference, Resource};
pub use node_claim::{NodeClaim, NodeClaimResources, NodeClaimSpec, NodeClaimStatus};
pub use node_overlay::{NodeOverlay, NodeOverlaySpec, NodeOverlayStatus};
pub use node_pool::{
    Budget, ConsolidationPolicy, Disruption, DisruptionReason, NodeClaimTemplate,
    NodeClaimTemplateSpec, NodePool, NodePoolSpec, NodePoolStatus, TemplateMeta,
};
pub use quantity::Quantity;

/// An enum whose variants are fixed words on the wire.
macro_rules! wire_enum {
    ($(#[$meta:meta])* $name:ident { $($(#[$vmeta:meta])* $variant:ident = $text:literal,)+ }) => {
        $(#[$meta])*
        #[derive(
            Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash,
            serde::Serialize, serde::Deserialize,
        )]
        pub enum $name {
            $($(#[$vmeta])* #[serde(rename = $text)] $variant,)+
        }

        impl $name {
            /// Every variant, in the order of the schema's enum.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The word on the wire.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)+
                }
            }
        }

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str(self.as_str())
            }
        }
    };
}
pub(crate) use wire_enum;
