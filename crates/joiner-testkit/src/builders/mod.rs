//! Kubernetes objects and instance types, valid by default, in strings as users write them.
//!
//! A builder makes wire JSON and knows no rule: whatever it says goes through the parsers of
//! `joiner-state`. Lists of values are one text, split at spaces and commas; taints are written as
//! `kubectl taint` takes them. What has no method of its own goes in with `patch`.

mod instance_type;
mod node;
mod pod;
mod pool;
mod text;

pub use instance_type::{InstanceTypeBuilder, instance_type};
pub use node::{NodeBuilder, node, node_claim};
pub use pod::{PodBuilder, daemon, deployment, pod, stateful_set};
pub use pool::{PoolBuilder, pool};
