//! Benches of all crates, in a package that tests do not build.
//!
//! `cargo xtask bench` runs them and writes `docs/benchmarks.md`; one alone is
//! `cargo bench --package joiner-bench --bench growth`.
