//! Random small clusters: a few Deployments under many rules at once, as people run them.
//!
//! Up to eight Deployments with 5 to 100 pods in all; one to three pools with limits, weights and taints;
//! preferences, host ports, spreads, affinities; sometimes nodes with room left, and overlays.

use joiner_model::keys;
use serde_json::{Value, json};

use super::Case;
use super::catalogs::{self, CATEGORY, Listed, ZONES};
use crate::builders::{PodBuilder, PoolBuilder, daemon, node, pod, pool};
use crate::random::Random;

/// Sizes of pods: millicores and MiB.
const SIZES: [(u64, u64); 8] = [
    (100, 128),
    (250, 512),
    (500, 1024),
    (1000, 1024),
    (1000, 4096),
    (2000, 2048),
    (2000, 8192),
    (4000, 8192),
];
const APPS_MAX: u64 = 8;
const PODS_MIN: u64 = 5;
const PODS_MAX: u64 = 100;
/// How many types a catalog has.
const CATALOGS: [usize; 4] = [24, 120, 400, usize::MAX];
const LIMITS: [u64; 7] = [8, 16, 24, 40, 64, 100, 200];
const PORTS: [u16; 3] = [8080, 9000, 9100];

/// The small cluster with this seed.
#[must_use]
pub fn small(seed: u64) -> Case {
    let mut random = Random::new(&format!("small/{seed}"));
    let n_types = random.pick(&CATALOGS);
    let types = catalogs::ec2_types_evenly(&mut Random::new("small/catalog"), n_types);
    let mut objects = pools(&mut random);
    if random.percent(30) {
        objects.extend(nodes(&mut random, &types));
    }
    if random.percent(30) {
        let agent = daemon("agent").namespace("kube-system").tolerate("");
        objects.extend(agent.cpu("100m").memory("200Mi").wire());
    }
    if random.percent(10) {
        objects.push(overlay(&mut random));
    }
    objects.extend(apps(&mut random));
    let list = json!({"apiVersion": "v1", "kind": "List", "items": objects});
    let types: Vec<Value> = types.into_iter().map(|listed| listed.wire).collect();
    Case {
        objects_json: list.to_string(),
        instance_types_json: Value::from(types).to_string(),
    }
}

fn pools(random: &mut Random) -> Vec<Value> {
    let n_pools = random.between(1, 3);
    let mut pools: Vec<Value> = Vec::new();
    for ix in 0..n_pools {
        let mut some = pool(&format!("pool-{ix}"));
        some = some.capacity_types(random.pick(&["on-demand", "spot on-demand", "spot"]));
        if random.percent(50) {
            some = limited(random, some);
        }
        if random.percent(40) {
            some = some.weight(random.pick(&[1, 10, 50]));
        }
        // At least one pool takes everything.
        if ix > 0 && random.percent(30) {
            some = some.taint("team=a:NoSchedule");
        }
        if ix > 0 && random.percent(30) {
            some = some.requirement(CATEGORY, "In", random.pick(&["c", "m", "c m"]));
        }
        if ix > 0 && random.percent(20) {
            some = some.zones(random.pick(&["us-east-1a", "us-east-1a us-east-1b"]));
        }
        if random.percent(20) {
            some = some.taint("noisy=true:PreferNoSchedule");
        }
        pools.push(some.wire());
    }
    pools
}

fn limited(random: &mut Random, some: PoolBuilder) -> PoolBuilder {
    let cores = random.pick(&LIMITS);
    let some = some.limit("cpu", &cores.to_string());
    match random.percent(20) {
        true => some.limit("memory", &format!("{}Gi", cores * 3)),
        false => some,
    }
}

/// Nodes of the first pool with some pods on them.
fn nodes(random: &mut Random, types: &[Listed]) -> Vec<Value> {
    let mut objects = Vec::new();
    for ix in 0..random.between(1, 6) {
        let name = format!("node-{ix}");
        let listed = &types[usize::try_from(random.below(types.len() as u64)).unwrap_or(0)];
        let room = listed.model.allocatable().unwrap_or_default();
        let there = node(&name)
            .pool("pool-0")
            .instance_type(&listed.model.name)
            .zone(random.pick(&ZONES))
            .patch(json!({"status": {
                "capacity": catalogs::amounts(&listed.model.capacity),
                "allocatable": catalogs::amounts(&room),
            }}));
        objects.extend(there.wire());
        for old in 0..random.below(4) {
            let old = pod(&format!("old{ix}-{old}")).cpu("100m").memory("128Mi");
            objects.extend(old.on(&name).wire());
        }
    }
    objects
}

fn overlay(random: &mut Random) -> Value {
    json!({"apiVersion": "karpenter.sh/v1alpha1", "kind": "NodeOverlay",
        "metadata": {"name": "discount"},
        "spec": {"weight": 10, "priceAdjustment": random.pick(&["-20%", "+30%"]),
            "requirements": [{"key": CATEGORY, "operator": "In", "values": ["c"]}]}})
}

fn apps(random: &mut Random) -> Vec<Value> {
    let n_apps = random.between(1, APPS_MAX);
    let n_pods = random.between(PODS_MIN, PODS_MAX);
    let mut objects = Vec::new();
    let mut left = n_pods;
    for ix in 0..n_apps {
        let share = (n_pods / n_apps).max(1);
        let replicas = match ix + 1 == n_apps {
            true => left,
            false => random.between(1, share * 2).min(left),
        };
        left -= replicas;
        let name = format!("app{ix}");
        let (cpu, memory) = random.pick(&SIZES);
        let pods = pod(&name)
            .replicas(usize::try_from(replicas).unwrap_or(0))
            .cpu(&format!("{cpu}m"))
            .memory(&format!("{memory}Mi"));
        objects.extend(under_rules(random, pods, &name, ix).wire());
    }
    objects
}

/// Up to three rules and wishes for one Deployment.
fn under_rules(random: &mut Random, mut pods: PodBuilder, name: &str, ix: u64) -> PodBuilder {
    for _ in 0..random.below(4) {
        let zone = random.pick(&ZONES);
        let other = format!("app{}", random.below(ix + 1));
        let weight = random.pick(&[1, 50, 100]);
        pods = match random.below(15) {
            0 => pods.spread_over_zones(1),
            1 => pods.spread_over_hosts(random.pick(&[1, 2])),
            2 => pods.prefer_spread_over(keys::ZONE, 1),
            3 => pods.prefer_spread_over(keys::HOSTNAME, 1),
            4 => pods.prefer_node(weight, keys::ZONE, "In", zone),
            5 => pods.prefer_node(weight, CATEGORY, "In", random.pick(&["c", "r"])),
            6 => pods.prefer_anti_affinity_to(weight, keys::HOSTNAME, name),
            7 => pods.prefer_anti_affinity_to(weight, keys::ZONE, &other),
            8 => pods.prefer_affinity_to(weight, keys::ZONE, &other),
            9 => pods.host_port(random.pick(&PORTS)),
            10 => pods.tolerate("team=a:NoSchedule"),
            11 => pods.zone(zone),
            12 => pods.arch(random.pick(&["amd64", "arm64"])),
            13 => pods.anti_affinity_to(keys::HOSTNAME, &other),
            _ => pods.priority(random.pick(&[0, 100, 1000])),
        };
    }
    pods
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_clusters_are_small_and_readable() {
        for seed in 0..40 {
            let problem = small(seed).problem();
            let n_pods = problem.pending().count() as u64;
            assert!((PODS_MIN..=PODS_MAX).contains(&n_pods), "{seed}: {n_pods}");
            assert!((1..=3).contains(&problem.pools.len()), "{seed}");
        }
    }
}
