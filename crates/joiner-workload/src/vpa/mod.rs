//! How large pods are: the recommender and the updater of VPA.
//!
//! One module per question, in the order in which a pass of the recommender meets them:
//!
//! 1. `spec`, `rules`, `pod`: what do VPAs ask for, are they allowed to, and what do pods request?
//! 2. `oom`: where did memory run out?
//! 3. `container`, `aggregate`, `histogram`: which samples count, and how much was used how often?
//! 4. `cluster`: which VPA is about which containers?
//! 5. `recommend`, `policy`, `settings`: what follows from that?
//! 6. `checkpoint`: what should a later process know?
//!
//! And the updater, for each pod:
//!
//! 7. `capping`, `limits`: what of it may this pod have?
//! 8. `resize`: what do its containers request and use then?
//! 9. `updater`: is that worth disturbing it, and when?

mod aggregate;
mod amounts;
mod capping;
mod checkpoint;
mod cluster;
mod conditions;
mod container;
mod histogram;
mod limits;
mod oom;
mod pod;
mod policy;
mod recommend;
mod resize;
mod rules;
mod settings;
mod spec;
#[cfg(test)]
mod tests;
mod updater;

pub use aggregate::Aggregate;
pub use amounts::{AMOUNT_MAX, Resource, Resources};
pub use capping::{Capped, capped};
pub use cluster::{Cluster, Id, Recommended, Usage};
pub use conditions::{conditions, supported};
pub use histogram::{Histogram, N_BUCKETS};
pub use limits::{Bounds, LimitRanges};
pub use oom::{ContainerStatus, Doing, Ended, Oom, of_eviction};
pub use pod::{Pod, PodCondition, PodContainer};
pub use recommend::recommend;
pub use resize::{Resized, completed, resized};
pub use rules::{VpaGates, complaints, fill_in};
pub use settings::{Aggregation, ResourceSettings, Settings};
pub use spec::{
    Boost, BoostBy, Collecting, ContainerPolicy, ContainerRecommendation, Requirement, UpdateMode,
    Vpa,
};
pub use updater::{
    Accepted, Action, Controller, InPlace, Priority, ResizeMemory, Round, Situation,
    UpdaterSettings,
};
