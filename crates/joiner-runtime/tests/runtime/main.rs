//! Events, elections and metrics of pods on the embedded control plane, in virtual time.

mod election;
mod events;
mod metrics_source;
