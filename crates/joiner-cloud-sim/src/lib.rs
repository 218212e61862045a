//! A simulated cloud behind the contract of `joiner-cloud`.
//!
//! It sells what a catalog lists, through KWOKNodeClasses and EC2NodeClasses. A machine is one
//! ConfigMap, named from the uid of its NodeClaim: creating it is the launch, so no claim gets two,
//! and machines outlive the process that launched them. They have a namespace of their own.
//! [`SimulatedCloud::run`] plays what a cloud does by itself: machines boot and join as Nodes, are
//! taken back, and go.
//!
//! Reading order: [`Settings`] and [`Faults`] (what can be told to it), `offers` (what is bought),
//! `record` (what is remembered), `home` (where), `node` (what joins), `life` (what happens next),
//! `engine` (who makes it happen), [`SimulatedKubelets`] (who runs pods on it).
//!
//! Decisions are functions of their arguments; chance derives from the seed and the claim's uid.

mod account;
mod catalog;
mod class_status;
mod cloud;
mod delays;
mod engine;
mod faults;
mod home;
mod hooks;
mod ids;
mod images;
mod kubelets;
mod ledger;
mod life;
mod market;
mod node;
mod notices;
mod objects;
mod offers;
mod purchase;
mod record;
mod server;
mod settings;
mod watch;

pub use cloud::SimulatedCloud;
pub use delays::{Delay, DelayError, Delays};
pub use faults::{
    Faults, FaultsError, HeldRegistration, InterruptionOrder, Match, Notice, PriceChange, Quotas,
    Shortage, Throttle,
};
pub use kubelets::SimulatedKubelets;
pub use record::{Image, Record, State, Upcoming};
pub use settings::{
    FAULTS_CONFIG_MAP, INSTANCE_LABEL, MACHINES_NAMESPACE, SIMULATED_LABEL, Settings,
};
