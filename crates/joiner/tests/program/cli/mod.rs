//! Runs the binary the way people and scripts do: exit codes, messages, and the contracts of what
//! it prints.

mod absent;
mod bad_catalog;
mod bad_objects;
mod bad_text;
mod catalog;
mod crds;
mod examples;
mod explain;
mod max_input;
mod plan_json;
mod prices;
mod scheduler_config;
mod shell;
mod support;
