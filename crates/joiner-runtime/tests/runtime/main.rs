//! Events and elections on the embedded control plane, in virtual time.

mod election;
mod events;
