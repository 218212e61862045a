//! What every Kubernetes API server does to objects, as pure functions on JSON.
//!
//! Objects are [`serde_json::Value`]s throughout: the server stores what it was given. One module per
//! question:
//!
//! 1. [`kinds`]: which kinds are there, under which names, with which subresources?
//! 2. [`error`]: what does a client get when something is wrong?
//! 3. [`meta`]: names, versions, owners and times of an object.
//! 4. [`selector`]: which objects do a label selector and a field selector choose?
//! 5. [`defaults`]: what does the server fill in?
//! 6. [`admission`]: what of an object is the server's to say?
//! 7. [`validate`]: what is wrong with an object?
//! 8. [`crd`]: which kinds does a definition add, and what do they ask of their objects?
//! 9. [`quantity`]: how much is `500m`?
//! 10. [`discovery`]: which groups, versions and kinds are clients told about?
//! 11. [`openapi`]: what do they look like?
//! 12. [`table`]: how does `kubectl get` show them?
//! 13. [`protobuf`]: what does a body stand for that is not JSON?
//! 14. [`rbac`]: who may do what?
//!
//! There is no store, no clock and no network here: `now` is an argument.

pub mod admission;
pub mod apply;
pub mod crd;
pub mod defaults;
pub mod discovery;
pub mod error;
pub mod kinds;
pub mod merge_keys;
pub mod meta;
pub mod openapi;
pub mod patch;
pub mod protobuf;
pub mod quantity;
pub mod rbac;
pub mod selector;
pub mod table;
pub mod validate;

pub use error::{ApiError, Cause, Reason};
pub use kinds::{Kind, Subresource};
