//! Controllers and nodes of a cluster, each played until nothing changes any more.

mod controllers;
mod nodes;
