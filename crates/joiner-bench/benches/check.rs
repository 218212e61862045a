//! How long the verifier takes for 50,000 pods on 10,000 new nodes, and among as many that exist.

use std::cell::LazyCell;
use std::hint::black_box;
use std::time::Duration;

use criterion::{Criterion, SamplingMode};
use joiner_verify::check;

#[path = "../../joiner-verify/tests/rules/large.rs"]
mod large;
#[path = "../../joiner-verify/tests/rules/support.rs"]
#[expect(dead_code, reason = "tests use more of it")]
mod support;

use support::Case;

/// A problem that is made when it is asked for.
type Make = fn() -> Case;

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    let mut group = criterion.benchmark_group("check");
    group.sampling_mode(SamplingMode::Flat);
    let cases: [(&str, Make); 4] = [
        ("alone", || large::large(10_000, 900)),
        ("in a crowd", || large::crowded(10_000, 900)),
        ("one app", || large::one_app(9_999)),
        ("many apps", || large::many_apps(1_000)),
    ];
    for (name, make) in cases {
        // Made once, and only if the benchmark is asked for.
        let case = LazyCell::new(make);
        group.bench_function(name, |bencher| {
            let case = LazyCell::force(&case);
            bencher.iter(|| check(black_box(&case.problem), &case.plan));
        });
    }
    group.finish();
    criterion.final_summary();
}
