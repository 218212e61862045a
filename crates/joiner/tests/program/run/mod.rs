//! `joiner run` as people and kubelets run it: a process that is killed, elected, refused, lied to
//! and stopped, on the embedded control plane and on a real one.
//!
//! The real one needs `cargo xtask control-plane build`, and some tests `cargo xtask helm`. Without
//! these they are skipped, unless `CI=true`.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    reason = "a test that cannot go on should stop, and one that is skipped should say so"
)]

mod bad_input;
mod classes;
mod cluster;
mod crash;
mod drift;
mod faults;
mod leader;
mod lines;
mod permissions;
mod process;
mod proxy;
mod watched;
mod why;
