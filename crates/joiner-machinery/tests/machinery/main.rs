//! What an API server does to objects, from the outside.

mod any_object;
mod merging;
mod recorded;
