//! The wire: CRD types, schemas, defaults, CEL rules, label and taint constants.
//!
//! Everything that Kubernetes and we must agree on, and nothing else: no clients, no clocks, no
//! decisions. [`crd::crds`] prints the definitions, [`admission::admit`] applies the very same
//! schemas and rules to an object, [`types`] holds what was admitted, and
//! [`validation::validate_node_pool`] says what no schema can.

pub mod admission;
pub mod conditions;
pub mod crd;
mod hash;
pub mod labels;
pub mod legacy;
pub mod names;
pub mod schema;
pub mod structural;
pub mod types;
pub mod validation;

pub use admission::{Admitted, Rejection, admit, admit_update};
pub use crd::crds;
pub use hash::node_pool_hash;
pub use schema::{FieldError, Schema};
