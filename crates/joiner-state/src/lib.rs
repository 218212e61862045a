//! From the text of Kubernetes manifests to a problem to solve.
//!
//! [`Objects::read`] takes sources of JSON or YAML apart into objects and keeps of each what
//! matters. [`Objects::problem`] puts them together with a [`Catalog`] of instance types. Between
//! the two the caller can look at the node classes of the input, on which the catalog may depend.
//! Pods that look alike share one shape; nothing keeps a parsed document around.

mod admission;
mod catalog_file;
mod class_figures;
mod documents;
mod draft;
mod error;
mod json;
mod label_syntax;
mod names;
mod nodes;
mod objects;
mod overlay;
mod pod;
mod pools;
mod problem;
pub mod quantity;
mod requests;
mod selection;
mod topology;
mod volumes;
mod wire;
mod workloads;
mod yaml;

pub use catalog_file::parse_instance_types;
pub use class_figures::{ClassFigures, DeviceFigures, EvictionThreshold, InterfaceFigures};
pub use documents::Source;
pub use error::{Place, ReadError};
pub use objects::Objects;
pub use pools::{NodeClass, NodeClassRef};
pub use problem::{Catalog, Input, read};

#[cfg(test)]
mod tests;
