//! Vocabulary of the planning core, and nothing that decides or does I/O.
//!
//! Reading order: [`Resources`] and [`NanoDollars`] (units), [`Requirement`] (what a label may be),
//! [`PodShape`], [`Node`], [`Pool`], [`InstanceType`] (what there is), [`Problem`] (all that a
//! decision may rest on), [`Plan`] (what to do and why), [`Refusal`] (why not).
//!
//! Types here are not serializable on purpose: the wire lives in `joiner-api`, and the inside stays
//! free to change.

mod catalog;
mod instance_types;
pub mod keys;
mod labels;
mod money;
mod near;
mod node;
mod plan;
mod pod;
mod pool;
mod problem;
mod refusal;
mod requirement;
mod resources;
mod selector;
mod taint;

pub use catalog::{InstanceType, Offering, OfferingIx, TypeIx};
pub use instance_types::InstanceTypes;
pub use labels::Labels;
pub use money::NanoDollars;
pub use near::{edits, nearest};
pub use node::{Node, NodeIx};
pub use plan::{Cost, Launch, Placement, Plan, Unplaced};
pub use pod::{
    Claim, HostPort, Pod, PodIx, PodShape, PodTerm, Precedence, Preference, Protocol, ShapeIx,
    Spread, Terms,
};
pub use pool::{Daemon, DaemonIx, Pool, PoolIx, none_ready};
pub use problem::{MinValuesPolicy, Policy, PreferencePolicy, Problem, StepLimit};
pub use refusal::{Absent, PoolRefusal, Refusal, Ruling};
pub use requirement::{Incompatible, Operator, Requirement, RequirementError, Requirements};
pub use resources::{ResourceName, Resources, render_amount};
pub use selector::{Selector, SelectorExpr, SelectorOp};
pub use taint::{Effect, Taint, Toleration, TolerationOp, tolerates_all};

/// A shared, immutable piece of text: names, label keys and values.
pub type Name = std::sync::Arc<str>;
