//! What it costs to admit a NodePool with every field set.

use std::hint::black_box;

use criterion::{BatchSize, Criterion};
use joiner_api::admit;

#[path = "../../joiner-api/tests/api/support/mod.rs"]
mod support;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let pool = support::full_node_pool();
    criterion.bench_function("admit", |bencher| {
        bencher.iter_batched(
            || pool.clone(),
            |mut pool| black_box(admit(&mut pool).is_ok()),
            BatchSize::SmallInput,
        );
    });
    criterion.final_summary();
}
