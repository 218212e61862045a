//! How the time of one pass grows with the fleet, 30 pods on a node, on the EC2 catalog.
//!
//! Fleets are of two kinds: `packed`, where hardly anything is to be found and a pass asks all it may,
//! and `wasteful`, where two thirds of the pods are gone and the whole catalog is for sale.

use std::cell::LazyCell;
use std::fmt::Write as _;
use std::hint::black_box;
use std::time::Duration;

use criterion::{BenchmarkId, Criterion, SamplingMode};
use joiner_disruption::{Memory, decide};
use joiner_testkit::{Random, World};

#[path = "../../joiner-disruption/tests/fleets/stage.rs"]
#[expect(dead_code, reason = "tests use more of it")]
mod stage;

use stage::Stage;

/// The allocator of the product, so that figures are those of the product.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const SIZES: [usize; 4] = [100, 500, 2000, 5000];
const PODS: usize = 30;
const APPS: u64 = 40;
/// Types with cores and memory in gibibytes.
const TYPES: [(&str, u64, u64); 4] = [
    ("m5.2xlarge", 8, 32),
    ("c5.4xlarge", 16, 32),
    ("m5.4xlarge", 16, 64),
    ("r5.2xlarge", 8, 64),
];

/// Zones and their ids in the catalog.
const ZONES: [(&str, &str); 3] = [
    ("us-east-1a", "use1-az6"),
    ("us-east-1b", "use1-az1"),
    ("us-east-1c", "use1-az2"),
];

/// A fleet whose nodes keep so many percent of their pods.
fn fleet(n_nodes: usize, kept: u64) -> Stage {
    let mut random = Random::new(&format!("pass/{n_nodes}"));
    let mut text = String::new();
    let mut pods = String::new();
    for n in 0..n_nodes {
        let (ty, cores, gib) = random.pick(&TYPES);
        let zone = random.pick(&ZONES);
        node(&mut text, n, (ty, cores, gib), zone);
        for p in 0..PODS {
            let app = random.below(APPS);
            // About all of the cores are taken.
            let milli = cores * 1000 * 95 / 100 / PODS as u64 * (50 + (app * 37) % 100) / 100;
            let mib = gib * 1024 * 9 / 10 / PODS as u64 * (50 + (app * 61) % 100) / 100;
            if random.percent(kept) {
                let spread = if app < 4 { spread(app) } else { String::new() };
                let _ = write!(
                    pods,
                    "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: app{app}-{n}-{p}, labels: \
                     {{app: app{app}}}}}\nspec: {{nodeName: n{n}, containers: [{{name: c, image: i, \
                     resources: {{requests: {{cpu: {milli}m, memory: {mib}Mi}}}}}}]{spread}}}\n\
                     status: {{phase: Running}}\n"
                );
            }
        }
    }
    text.push_str(&pods);
    let pool = joiner_testkit::pool("default").capacity_types("on-demand");
    let mut stage = Stage::of(&World::ec2().add(pool).add(text.as_str()));
    if kept == 100 {
        // Bought so well that nothing on sale is better.
        for price in stage.members.iter_mut().filter_map(|m| m.price.as_mut()) {
            *price = joiner_model::NanoDollars::new(price.get() * 2 / 5);
        }
    }
    stage
}

fn spread(app: u64) -> String {
    format!(
        ", topologySpreadConstraints: [{{topologyKey: topology.kubernetes.io/zone, maxSkew: 5, \
         whenUnsatisfiable: DoNotSchedule, labelSelector: {{matchLabels: {{app: app{app}}}}}}}]"
    )
}

fn node(
    text: &mut String,
    n: usize,
    (ty, cores, gib): (&str, u64, u64),
    (zone, zone_id): (&str, &str),
) {
    let _ = write!(
        text,
        "---\napiVersion: v1\nkind: Node\nmetadata: {{name: n{n}, labels: {{\
         kubernetes.io/hostname: n{n}, kubernetes.io/os: linux, kubernetes.io/arch: amd64, \
         topology.kubernetes.io/zone: {zone}, topology.k8s.aws/zone-id: {zone_id}, \
         node.kubernetes.io/instance-type: {ty}, \
         karpenter.sh/capacity-type: on-demand, karpenter.sh/nodepool: default, \
         karpenter.sh/registered: \"true\", karpenter.sh/initialized: \"true\"}}}}\n\
         status: {{capacity: {{cpu: \"{cores}\", memory: {gib}Gi, pods: 110}}, allocatable: {{cpu: \
         \"{cores}\", memory: {gib}Gi, pods: 110}}, conditions: [{{type: Ready, status: \"True\"}}]}}\n"
    );
}

fn main() {
    let mut criterion = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(1))
        .measurement_time(Duration::from_secs(1))
        .configure_from_args();
    for (kind, kept) in [("packed", 100), ("wasteful", 35)] {
        let mut group = criterion.benchmark_group(kind);
        group.sampling_mode(SamplingMode::Flat);
        for size in SIZES {
            // Made once, and only if the benchmark is asked for.
            let stage = LazyCell::new(|| fleet(size, kept));
            group.bench_function(BenchmarkId::from_parameter(size), |bencher| {
                let fleet = LazyCell::force(&stage).fleet();
                // A pass without questions is no measure of anything.
                assert!(decide(&fleet, &Memory::default()).n_what_ifs > 1);
                bencher.iter(|| decide(black_box(&fleet), &Memory::default()));
            });
        }
        group.finish();
    }
    criterion.final_summary();
}
