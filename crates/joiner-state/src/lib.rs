//! From the text of Kubernetes manifests to a problem to solve.
//!
//! [`Objects::read`] takes sources of JSON or YAML apart into objects and keeps of each what
//! matters. [`Objects::problem`] puts them together with a [`Catalog`] of instance types. Between
//! the two the caller can look at the node classes of the input, on which the catalog may depend.
//! Pods that look alike share one shape; nothing keeps a parsed document around.
//!
//! ```
//! use joiner_state::{Catalog, Objects, Source};
//!
//! let text = "{apiVersion: v1, kind: Pod, metadata: {name: web}}";
//! let objects = Objects::read([Source::new("pods.yaml", text)])?;
//! let input = objects.problem(Catalog::default())?;
//! assert_eq!(&*input.problem.pods[0].name, "default/web");
//! # Ok::<(), joiner_state::ReadError>(())
//! ```
//!
//! Reading follows the API server and kubectl: `null` is absence, missing requests default to
//! limits, a key that one object has twice is an error. Objects of our own kinds pass the same
//! schemas and rules as in a cluster.

mod admission;
mod catalog_file;
mod choices;
mod class_settings;
mod containers;
mod documents;
mod draft;
mod error;
mod json;
pub mod live;
mod names;
mod nodes;
mod objects;
mod overlay;
mod pod;
mod pools;
mod problem;
pub mod quantity;
mod reader;
mod requests;
mod selection;
mod spread_defaults;
mod topology;
mod unique;
mod volumes;
mod wire;
mod wording;
mod workloads;
mod yaml;

pub use catalog_file::parse_instance_types;
pub use class_settings::class_settings;
pub use documents::Source;
pub use error::{Place, ReadError};
pub use objects::Objects;
pub use pools::{NodeClass, NodeClassRef};
pub use problem::{Catalog, Input, read};
pub use spread_defaults::SpreadDefaults;

#[cfg(test)]
mod tests;
