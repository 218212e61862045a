//! What the pods, pools and nodes of each family look like.

use joiner_model::{ResourceName, keys};
use serde_json::{Value, json};

use super::catalogs::{self, CATEGORY, CPU, FAMILY, Listed, ZONES};
use super::{Case, Family};
use crate::builders::{PodBuilder, PoolBuilder, daemon, node, pod, pool};
use crate::random::Random;

/// Common sizes of pods: millicores and MiB.
const SIZES: [(u64, u64); 14] = [
    (100, 128),
    (250, 256),
    (250, 1024),
    (500, 512),
    (500, 4096),
    (1000, 1024),
    (1000, 2048),
    (1000, 8192),
    (2000, 2048),
    (2000, 4096),
    (2000, 16384),
    (4000, 8192),
    (4000, 30720),
    (8000, 16384),
];

/// A deployment that is still without its rules.
struct App {
    name: String,
    replicas: usize,
    size: (u64, u64),
}

impl App {
    fn pods(&self) -> PodBuilder {
        sized(pod(&self.name).replicas(self.replicas), self.size)
    }
}

/// A case in the making.
struct Draft {
    random: Random,
    types: Vec<Listed>,
    objects: Vec<Value>,
}

pub(super) fn generate(family: Family, seed: u64, size: usize) -> Case {
    let mut random = Random::new(&format!("{family}/{seed}/{size}"));
    let types = if family == Family::Bench {
        Vec::new()
    } else {
        catalogs::ec2_types(&mut Random::new(&format!("{family}/{seed}/catalog")))
    };
    let apps = if matches!(family, Family::Jitter | Family::Bench) {
        Vec::new()
    } else {
        apps(&mut random, size)
    };
    let mut draft = Draft {
        random,
        types,
        objects: Vec::new(),
    };
    match family {
        Family::Generic => draft.generic(&apps),
        Family::Jitter => draft.jitter(size),
        Family::Selectors => draft.selectors(&apps),
        Family::Pools => draft.pools(&apps, size),
        Family::Spread => draft.spread(&apps),
        Family::Affinity => draft.affinity(&apps),
        Family::Existing => draft.existing(&apps, (size / 20).max(2)),
        Family::Mixed => draft.mixed(&apps),
        Family::Bench => draft.bench(size),
    }
    draft.finish(family)
}

/// The plain mix on a catalog of so many types, spot and on demand.
pub(super) fn on_types(n_types: usize, n_pods: usize) -> Case {
    let mut random = Random::new(&format!("types/{n_pods}"));
    let types = catalogs::ec2_types_evenly(&mut Random::new("types/catalog"), n_types);
    let apps = apps(&mut random, n_pods);
    let mut draft = Draft {
        random,
        types,
        objects: Vec::new(),
    };
    draft.pool(any_capacity("default"));
    for app in &apps {
        draft.pods(app.pods());
    }
    draft.finish(Family::Generic)
}

/// The plain mix in a cluster of so many nodes with room left.
pub(super) fn beside_nodes(n_nodes: usize, n_pods: usize) -> Case {
    let mut random = Random::new(&format!("nodes/{n_pods}"));
    let apps = apps(&mut random, n_pods);
    let mut draft = Draft {
        random,
        types: catalogs::ec2_types(&mut Random::new("nodes/catalog")),
        objects: Vec::new(),
    };
    draft.existing(&apps, n_nodes);
    draft.finish(Family::Existing)
}

/// Splits the pods over deployments: most are small, a few are large, none has more than a third.
fn apps(random: &mut Random, size: usize) -> Vec<App> {
    let largest = (size / 3).max(1);
    let (mut apps, mut left) = (Vec::new(), size);
    while left > 0 {
        let drawn = usize::try_from(random.heavy_tailed()).unwrap_or(usize::MAX);
        let replicas = drawn.min(largest).min(left);
        apps.push(App {
            name: format!("app{}", apps.len()),
            replicas,
            size: random.pick(&SIZES),
        });
        left -= replicas;
    }
    apps
}

fn sized(pod: PodBuilder, (cpu, memory): (u64, u64)) -> PodBuilder {
    pod.cpu(&format!("{cpu}m")).memory(&format!("{memory}Mi"))
}

fn on_demand(name: &str) -> PoolBuilder {
    pool(name).capacity_types("on-demand")
}

fn any_capacity(name: &str) -> PoolBuilder {
    pool(name).capacity_types("spot on-demand")
}

impl Draft {
    fn pool(&mut self, pool: PoolBuilder) {
        self.objects.push(pool.wire());
    }

    fn pods(&mut self, pods: PodBuilder) {
        self.objects.extend(pods.wire());
    }

    fn finish(self, family: Family) -> Case {
        let list = json!({"apiVersion": "v1", "kind": "List", "items": self.objects});
        let types = if family == Family::Bench {
            catalogs::bench_types()
        } else {
            self.types.into_iter().map(|listed| listed.wire).collect()
        };
        Case {
            objects_json: list.to_string(),
            instance_types_json: Value::from(types).to_string(),
        }
    }

    fn generic(&mut self, apps: &[App]) {
        let make = self.random.pick(&[on_demand, any_capacity]);
        self.pool(make("default"));
        for app in apps {
            self.pods(app.pods());
        }
    }

    fn jitter(&mut self, size: usize) {
        self.pool(on_demand("default"));
        for ix in 0..size {
            let size = (
                self.random.between(50, 7999),
                self.random.between(64, 32767),
            );
            self.pods(sized(pod(&format!("solo{ix}")), size));
        }
    }

    fn selectors(&mut self, apps: &[App]) {
        self.pool(any_capacity("default"));
        let mut families: Vec<String> = (self.types.iter())
            .map(|listed| listed.label(FAMILY).to_owned())
            .collect();
        families.dedup();
        for app in apps {
            let pods = app.pods();
            let random = &mut self.random;
            let zone = random.pick(&ZONES);
            let pods = match random.below(8) {
                0 => pods.zone(zone),
                1 => pods.arch(random.pick(&["amd64", "arm64"])),
                2 => pods.capacity_type(random.pick(&["spot", "on-demand"])),
                3 => {
                    let three: Vec<&str> = (random.sample(&families, 3).into_iter())
                        .map(String::as_str)
                        .collect();
                    pods.node_affinity(FAMILY, "In", &three.join(" "))
                }
                4 => (pods.node_affinity(CPU, "Lt", "17")).node_affinity(keys::ZONE, "NotIn", zone),
                5 => (pods.node_affinity(CPU, "Gt", "7")).node_affinity(keys::ARCH, "In", "amd64"),
                6 => pods.node_affinity(CATEGORY, "In", "c r"),
                _ => pods,
            };
            self.pods(pods);
        }
    }

    fn pools(&mut self, apps: &[App], size: usize) {
        self.pool(any_capacity("fallback"));
        let gold = any_capacity("gold")
            .requirement(CATEGORY, "In", "m")
            .weight(50);
        let limit = (size / 4).max(8).to_string();
        self.pool(gold.limit("cpu", &limit).label("tier", "gold"));
        let arm = any_capacity("arm").arch("arm64").weight(10);
        self.pool(arm.taint("arch=arm64:NoSchedule"));
        let team = on_demand("team-a").label("team", "a");
        self.pool(team.taint("team=a:NoSchedule"));
        for app in apps {
            let pods = app.pods();
            let pods = match self.random.below(5) {
                0 => pods.tolerate("arch"),
                1 => pods
                    .tolerate("team=a:NoSchedule")
                    .node_selector("team", "a"),
                2 => pods.node_selector("tier", "gold"),
                _ => pods,
            };
            self.pods(pods);
        }
    }

    fn spread(&mut self, apps: &[App]) {
        self.pool(any_capacity("default"));
        for app in apps {
            let pods = app.pods();
            let pods = match self.random.below(5) {
                0 => pods.spread_over_zones(self.random.pick(&[1, 1, 2])),
                1 => pods.spread_over_hosts(self.random.pick(&[1, 2, 4])),
                2 => pods.spread_over_zones(1).spread_over_hosts(2),
                3 => pods.spread_over(keys::CAPACITY_TYPE, 1),
                _ => pods,
            };
            self.pods(pods);
        }
    }

    fn affinity(&mut self, apps: &[App]) {
        self.pool(any_capacity("default"));
        let mut free: Vec<&str> = Vec::new();
        for app in apps {
            let (pods, name) = (app.pods(), app.name.as_str());
            // Together on one node only what the largest node can hold.
            let n = app.replicas as u64;
            let one_node = n * app.size.0 <= 60_000 && n * app.size.1 <= 200_000;
            let pods = match self.random.below(6) {
                0 => pods.anti_affinity_to(keys::HOSTNAME, name),
                1 if n <= 3 => pods.anti_affinity_to(keys::ZONE, name),
                2 => pods.affinity_to(keys::ZONE, name),
                3 if one_node => pods.affinity_to(keys::HOSTNAME, name),
                4 if !free.is_empty() => {
                    let other = self.random.pick(&free);
                    pods.affinity_to(keys::ZONE, other)
                }
                _ => {
                    free.push(name);
                    pods
                }
            };
            self.pods(pods);
        }
    }

    fn existing(&mut self, apps: &[App], n_nodes: usize) {
        self.pool(on_demand("default"));
        let mid = |listed: &&Listed| {
            let cores: u32 = listed.label(CPU).parse().unwrap_or_default();
            (8..=32).contains(&cores) && listed.label(keys::ARCH) == "amd64"
        };
        let types: Vec<Listed> = std::mem::take(&mut self.types);
        let machines: Vec<&Listed> = types.iter().filter(mid).collect();
        for ix in 0..n_nodes {
            let machine = self.random.pick(&machines);
            self.node(ix, machine);
        }
        self.types = types;
        let agent = daemon("agent").namespace("kube-system").tolerate("");
        self.pods(agent.cpu("100m").memory("200Mi"));
        for app in apps {
            self.pods(app.pods());
        }
    }

    /// A node of the pool with a few pods on it, at most four fifths full.
    fn node(&mut self, ix: usize, machine: &Listed) {
        let (name, ty) = (format!("node-{ix}"), &machine.model);
        let room = ty.allocatable().unwrap_or_default();
        let mut wire = node(&name)
            .pool("default")
            .instance_type(&ty.name)
            .zone(self.random.pick(&ZONES));
        for key in [FAMILY, CATEGORY, CPU] {
            wire = wire.label(key, machine.label(key));
        }
        let wire = wire.patch(json!({"status": {
            "capacity": catalogs::amounts(&ty.capacity),
            "allocatable": catalogs::amounts(&room),
        }}));
        self.objects.extend(wire.wire());
        let mut cpu = room.get(&ResourceName::Cpu) * 4 / 5;
        let mut memory = (room.get(&ResourceName::Memory) >> 20) * 4 / 5;
        for old in 0..self.random.below(10) {
            let size = self.random.pick(&SIZES);
            if size.0 <= cpu && size.1 <= memory {
                (cpu, memory) = (cpu - size.0, memory - size.1);
                self.pods(sized(pod(&format!("old{ix}-{old}")), size).on(&name));
            }
        }
    }

    fn mixed(&mut self, apps: &[App]) {
        self.pool(any_capacity("default"));
        let critical = on_demand("on-demand").weight(10);
        self.pool(critical.taint("critical=true:NoSchedule"));
        for app in apps {
            let (pods, name) = (app.pods(), app.name.as_str());
            let pods = match self.random.below(12) {
                0 => pods.spread_over_zones(1),
                1 => pods.spread_over_hosts(2),
                2 => pods.anti_affinity_to(keys::HOSTNAME, name),
                3 => pods.affinity_to(keys::ZONE, name),
                4 => pods.arch("arm64"),
                5 => pods.tolerate("critical"),
                6 => pods.zone(self.random.pick(&ZONES)),
                7 => pods.host_port(self.random.pick(&[9000, 9001, 9002])),
                8 => pods.node_affinity(CPU, "Lt", "33"),
                _ => pods,
            };
            self.pods(pods);
        }
        self.pods(sized(pod("impossible"), (10_000_000, 128)));
        self.pods(sized(pod("nowhere").replicas(2), (100, 128)).zone("mars-1a"));
    }

    /// A fifth each: plain pods, zone spread, node spread, zone affinity, node anti-affinity.
    fn bench(&mut self, size: usize) {
        let limits = pool("default").limit("cpu", "10000000");
        self.pool(limits.limit("memory", "10000000Gi"));
        let fifth = size / 5;
        for ix in 0..size {
            let kind = ix.checked_div(fifth).unwrap_or(0);
            let pods = self.bench_pod(ix, kind);
            self.pods(pods);
        }
    }

    fn bench_pod(&mut self, ix: usize, kind: usize) -> PodBuilder {
        const LETTERS: [&str; 7] = ["a", "b", "c", "d", "e", "f", "g"];
        let random = &mut self.random;
        let cpu = random.pick(&[100, 250, 500, 1000, 1500]);
        let memory = random.pick(&[100, 256, 512, 1024, 2048, 4096]);
        let (own, other) = (random.pick(&LETTERS), random.pick(&LETTERS));
        let pods = sized(pod(&format!("p{ix}")).without_labels(), (cpu, memory));
        let spread = |pods: PodBuilder, key: &str| {
            let selector = json!({"labelSelector": {"matchLabels": {"my-label": other}}});
            pods.label("my-label", own).spread_with(key, 1, selector)
        };
        match kind {
            1 => spread(pods, keys::ZONE),
            2 => spread(pods, keys::HOSTNAME),
            3 => {
                let term = json!({"topologyKey": keys::ZONE,
                    "labelSelector": {"matchLabels": {"my-affinity": own}}});
                let required = "requiredDuringSchedulingIgnoredDuringExecution";
                let affinity = json!({"podAffinity": {required: [term]}});
                (pods.label("my-affinity", own)).patch(json!({"spec": {"affinity": affinity}}))
            }
            4 => (pods.label("app", "nginx")).anti_affinity_to(keys::HOSTNAME, "nginx"),
            _ => pods.label("my-label", own),
        }
    }
}
