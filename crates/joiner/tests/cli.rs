//! Runs the binary the way people and scripts do: exit codes, messages, and the contracts of what
//! it prints.

#[path = "cli/bad_catalog.rs"]
mod bad_catalog;
#[path = "cli/bad_objects.rs"]
mod bad_objects;
#[path = "cli/bad_text.rs"]
mod bad_text;
#[path = "cli/catalog.rs"]
mod catalog;
#[path = "cli/crds.rs"]
mod crds;
#[path = "cli/examples.rs"]
mod examples;
#[path = "cli/explain.rs"]
mod explain;
#[path = "cli/plan_json.rs"]
mod plan_json;
#[path = "cli/scheduler_config.rs"]
mod scheduler_config;
#[path = "cli/support.rs"]
mod support;
