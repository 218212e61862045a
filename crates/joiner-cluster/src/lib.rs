//! The rest of a Kubernetes cluster, as pure decisions over JSON objects.
//!
//! Each controller is a [`Controller`]: it looks at a [`View`] of all objects and says which
//! [`Action`]s to take and when to look again. The embedded control plane runs them in a fixed order
//! on its own store, and takes the actions through the same API that clients use.

mod account_tokens;
mod annotations;
mod cache;
mod disruption_budget;
mod event_expiry;
mod events;
mod fields;
mod followed;
mod garbage;
mod kubelet;
pub mod metrics;
mod names;
mod namespaces;
mod node_image;
mod node_lifecycle;
mod resources;
mod role_aggregation;
mod scheduler;
mod view;
mod volumes;
mod workloads;

pub use account_tokens::{AccountTokens, MakeToken};
pub use annotations::{Annotations, told_in};
pub use disruption_budget::DisruptionBudgets;
pub use event_expiry::EventExpiry;
pub use events::{Recorder, Severity};
pub use garbage::GarbageCollector;
pub use kubelet::{Kubelets, Settings as KubeletSettings};
pub use names::{Digest, Fresh, hex, suffix, template_digest, template_hash};
pub use namespaces::Namespaces;
pub use node_image::{ImageFamily, Runs, minor, node_info};
pub use node_lifecycle::NodeLifecycle;
pub use role_aggregation::RoleAggregation;
pub use scheduler::Scheduler;
pub use view::{Action, Controller, ObjectKey, Objects, Resource, Step, View};
pub use volumes::{VolumeAttacher, VolumeBinder};
pub use workloads::{CronJobs, DaemonSets, Deployments, Jobs, ReplicaSets, StatefulSets};
