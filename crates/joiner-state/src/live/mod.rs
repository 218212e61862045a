//! A live cluster: watch events in, immutable snapshots out.
//!
//! [`ClusterState`] has one owner, who feeds it what watches and our own writes say;
//! [`Snapshot`] is what everybody else reads. A snapshot is cheap to clone and never changes.
//! [`Snapshot::problem`] turns it into a problem for the solver.
//!
//! Only the fields in use are kept, pods that look alike share what they ask for, and no object is
//! kept as it came but those of which there are few.

mod claim;
mod command;
mod kind;
mod meta;
mod moves;
mod node;
mod overlays;
mod owners;
mod planned;
mod pod;
mod pool;
mod problem;
mod reading;
mod rest;
mod scalable;
mod shelf;
mod snapshot;
mod state;
mod surge;

pub use crate::containers::{ContainerRole, PodContainer};
pub use claim::{Conditions, LiveClaim};
pub use command::{COMMAND, CommandIntent};
pub use kind::{Kind, KindApi};
pub(crate) use meta::labels_of;
pub use meta::{Meta, Owner, rfc3339, time};
pub use moves::{MOVES, MoveTally};
pub use node::{LiveNode, NodeCondition};
pub use overlays::OverlayVerdict;
pub use owners::PodOwner;
pub use planned::{PLANNED, Planned, planned_text};
pub use pod::{DoNotDisrupt, LivePod, PROPOSED, Phase};
pub(crate) use pool::READY_NEEDS;
pub use pool::{LiveClass, LivePool};
pub use problem::{Ask, Asked, VirtualPod};
pub use reading::{Live, Reading};
pub use rest::{LiveAttachment, LiveBudget, LiveBuffer, LiveOverlay, LiveTemplate};
pub use scalable::LiveScalable;
pub use snapshot::Snapshot;
pub use state::{Change, ClusterState, What};
pub use surge::{SURGE, SURGE_ON_MOVE, Surge, SurgeStage};

#[cfg(test)]
mod tests;
