//! What a cloud must do for Joiner.
//!
//! [`Cloud`] is the contract, with each promise written on its method; [`Order`] is what is asked
//! for, [`Instance`] what comes; [`error`] sorts failures by what is to be done about them.
//!
//! Parts that clouds have in common are here, too: [`SoldOut`] remembers what was refused, [`Batcher`]
//! makes few calls of many requests.
//!
//! The feature `conformance` adds the tests that every provider must pass.
//!
//! Nothing here knows of a particular cloud, and nothing here decides which node to buy.

mod batcher;
#[cfg(feature = "conformance")]
pub mod conformance;
mod contract;
pub mod error;
mod instance;
mod sold_out;

pub use batcher::{Batch, BatchCall, BatchError, BatchLimits, Batcher};
pub use contract::{
    ClassKind, ClassStatus, ClassVerdict, Cloud, Interruption, InterruptionKind, Pending,
    Registration, RepairPolicy, Termination,
};
pub use error::{CatalogError, CloudError, LaunchError, Retry};
pub use instance::{Instance, NodeClass, Order, ProviderId};
pub use sold_out::{OfferingKey, SoldOut, SoldOutScope};
