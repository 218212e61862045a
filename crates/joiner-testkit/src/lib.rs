//! Builders and seeded generators for tests and benches.
