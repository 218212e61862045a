//! How the time to solve grows: with pods, with instance types, with nodes that are there.
//!
//! `cargo xtask bench` runs this and makes tables of it. Runs are few and long, so each sample is
//! one of them: ten are enough to see a change of a few percent.

use std::cell::LazyCell;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode};
use joiner_solver::solve;
use joiner_testkit::Growth;

/// The allocator of the product, so that figures are those of the product.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    for growth in Growth::ALL {
        let mut group = criterion.benchmark_group(growth.as_str());
        group.sampling_mode(SamplingMode::Flat);
        for size in growth.sizes() {
            // Made once, and only if the benchmark is asked for.
            let problem = LazyCell::new(|| growth.case(*size).problem());
            group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
                let problem = LazyCell::force(&problem);
                bencher.iter(|| solve(black_box(problem)));
            });
        }
        group.finish();
    }
    criterion.final_summary();
}
