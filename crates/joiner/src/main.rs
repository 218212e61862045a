//! The binary: flags, settings, wiring, exit codes.

fn main() {}
