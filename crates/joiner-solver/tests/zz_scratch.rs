//! scratch
use joiner_testkit::*;
use serde_json::json;
use std::collections::BTreeMap;

struct R(u64);
impl R {
    fn n(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
    fn p(&mut self, pct: u64) -> bool {
        self.n(100) < pct
    }
    fn of<'a>(&mut self, v: &[&'a str]) -> &'a str {
        v[self.n(v.len() as u64) as usize]
    }
}
const T: &str = "example.com/team";
fn features() -> Vec<String> {
    std::env::var("FEAT")
        .unwrap_or_default()
        .split(',')
        .map(str::to_owned)
        .collect()
}
fn build(seed: u64) -> (World, Vec<String>) {
    build_without(seed, 99)
}
fn build_without(seed: u64, drop: u64) -> (World, Vec<String>) {
    let f = features();
    let on = |n: &str| f.iter().any(|x| x == n) || f.iter().any(|x| x == "all");
    let mut r = R(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1);
    for _ in 0..5 {
        r.n(2);
    }
    let mut log = vec![];
    let mut w = World::new();
    for i in 0..1 + r.n(3) {
        let mut t = instance_type(&format!("t{i}"))
            .cpu(r.of(&["2", "4", "8"]))
            .memory(r.of(&["4Gi", "8Gi", "16Gi"]))
            .pods(r.n(5) as u32 + 2);
        if on("arch") && r.p(30) {
            t = t.arch("arm64");
        }
        if on("typelabel") && r.p(40) {
            t = t.label("example.com/tier", r.of(&["1", "2"]));
        }
        let mut any = false;
        for z in ["a", "b", "c"] {
            for c in ["on-demand", "spot"] {
                if r.p(60) {
                    any = true;
                    t = t.zone_price(z, c, (r.n(9) + 1) as f64 / 20.0);
                }
            }
        }
        if !any {
            t = t.zone_price("a", "on-demand", 0.5);
        }
        log.push(serde_json::to_string(&t.clone().wire()).unwrap());
        if drop != i {
            w = w.add(t);
        }
    }
    let np = 1 + r.n(3);
    for i in 0..np {
        let mut p = pool(&format!("p{i}"));
        if on("weight") && r.p(50) {
            p = p.weight(r.n(3) as u32 * 10 + 1);
        }
        if on("limit") && r.p(40) {
            p = p.limit(r.of(&["cpu", "nodes"]), r.of(&["2", "4", "8"]));
        }
        if on("poolzone") && r.p(30) {
            p = p.zones(r.of(&["a", "b", "a b", "b c"]));
        }
        if on("poollabel") && r.p(30) {
            p = p.label(T, r.of(&["red", "blue"]));
        }
        if on("custom") && r.p(30) {
            p = p.requirement("example.com/k", "In", "x y");
        }
        if on("taint") && r.p(30) {
            p = p.taint(r.of(&["t=1:NoSchedule", "u=1:PreferNoSchedule"]));
        }
        if on("minvalues") && r.p(40) {
            p = p.min_values(
                r.of(&[INSTANCE_TYPE, ZONE, "kubernetes.io/arch"]),
                "Exists",
                "",
                2,
            );
        }
        log.push(serde_json::to_string(&p.clone().wire()["spec"]).unwrap());
        w = w.add(p);
    }
    if on("nodes") {
        for i in 0..r.n(3) {
            let mut n = node(&format!("n{i}"))
                .cpu(r.of(&["1", "2", "4"]))
                .zone(r.of(&["a", "b"]));
            if r.p(60) {
                n = n.pool("p0");
            }
            log.push(format!(
                "{:?}",
                n.clone().wire()[0]["status"]["allocatable"].to_string()
                    + &n.clone().wire()[0]["metadata"].to_string()
            ));
            if drop != 10 + i {
                w = w.add(n);
            }
        }
    }
    if on("daemon") {
        for i in 0..r.n(3) {
            let mut d = daemon(&format!("d{i}")).cpu(r.of(&["100m", "500m", "1"]));
            if r.p(30) {
                d = d.zone(r.of(&["a", "b"]));
            }
            if r.p(20) {
                d = d.capacity_type("spot");
            }
            if r.p(20) {
                d = d.host_port(80);
            }
            if on("custom") && r.p(30) {
                d = d.node_selector("example.com/k", "x");
            }
            log.push(d.clone().wire()[0]["spec"]["template"]["spec"].to_string());
            w = w.add(d);
        }
    }
    for i in 0..1 + r.n(4) {
        let n = 1 + r.n(4) as usize;
        let mut p = pod(&format!("q{i}"))
            .replicas(n)
            .cpu(r.of(&["100m", "500m", "1", "1500m", "2", "3"]))
            .memory(r.of(&["100Mi", "1Gi", "3Gi"]));
        let app = format!("q{i}");
        let other = format!("q{}", r.n(4));
        if on("podsel") {
            if r.p(20) {
                p = p.zone(r.of(&["a", "b", "c"]));
            }
            if r.p(15) {
                p = p.node_affinity(ZONE, "NotIn", r.of(&["a", "b"]));
            }
            if r.p(15) {
                p = p.capacity_type(r.of(&["spot", "on-demand"]));
            }
            if r.p(15) {
                p = p.or_node_affinity(ZONE, "In", "b").or_node_affinity(
                    CAPACITY_TYPE,
                    "In",
                    "spot",
                );
            }
        }
        if on("custom") && r.p(30) {
            p = p.node_selector("example.com/k", r.of(&["x", "y"]));
        }
        if on("poollabel") && r.p(30) {
            p = p.node_selector(T, r.of(&["red", "blue"]));
        }
        if on("typelabel") && r.p(20) {
            p = p.node_affinity("example.com/tier", r.of(&["Exists", "DoesNotExist"]), "");
        }
        if on("taint") && r.p(40) {
            p = p.tolerate("t");
        }
        if on("arch") && r.p(30) {
            p = p.arch(r.of(&["amd64", "arm64"]));
        }
        if on("port") && r.p(30) {
            p = p.host_port(r.of(&["80", "81"]).parse().unwrap());
        }
        if on("prio") && r.p(30) {
            p = p.priority(r.n(3) as i32 * 100);
        }
        if on("spread") {
            if r.p(20) {
                p = p.spread_over_zones(1 + r.n(2) as u32);
            }
            if r.p(20) {
                p = p.spread_over_hosts(1 + r.n(2) as u32);
            }
            if r.p(10) {
                p = p.spread_over(CAPACITY_TYPE, 1);
            }
        }
        if on("anti") {
            if r.p(20) {
                p = p.anti_affinity_to(HOSTNAME, &app);
            }
            if r.p(10) {
                p = p.anti_affinity_to(ZONE, &app);
            }
            if r.p(15) {
                p = p.anti_affinity_to(HOSTNAME, &other);
            }
            if r.p(10) {
                p = p.anti_affinity_to(ZONE, &other);
            }
        }
        if on("aff") {
            if r.p(15) {
                p = p.affinity_to(ZONE, &app);
            }
            if r.p(10) {
                p = p.affinity_to(HOSTNAME, &app);
            }
            if r.p(15) {
                p = p.affinity_to(ZONE, &other);
            }
            if r.p(10) {
                p = p.affinity_to(HOSTNAME, &other);
            }
        }
        if on("pref") {
            if r.p(20) {
                p = p.prefer_node(r.n(9) as u8 + 1, ZONE, "In", r.of(&["a", "b", "z"]));
            }
            if r.p(20) {
                p = p.prefer_node(r.n(9) as u8 + 1, CAPACITY_TYPE, "In", "spot");
            }
            if r.p(20) {
                p = p.prefer_spread_over(r.of(&[ZONE, HOSTNAME]), 1);
            }
            if r.p(20) {
                p = p.prefer_anti_affinity_to(1, r.of(&[ZONE, HOSTNAME]), &app);
            }
            if r.p(10) {
                p = p.prefer_affinity_to(1, r.of(&[ZONE, HOSTNAME]), &other);
            }
        }
        log.push(format!("{n} x {}", p.clone().wire()[0]["spec"]));
        w = w.add(p);
    }
    let _ = json!(1);
    (w, log)
}
#[test]
fn fuzz() {
    let from: u64 = std::env::var("FROM")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(1);
    let n: u64 = std::env::var("CNT")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(2000);
    std::panic::set_hook(Box::new(|_| {}));
    let mut kinds: BTreeMap<String, (usize, u64, usize, String)> = BTreeMap::new();
    let mut slow = 0.0f64;
    for seed in from..from + n {
        let (w, log) = build(seed);
        let t = std::time::Instant::now();
        let res = std::panic::catch_unwind(|| w.solve());
        let dt = t.elapsed().as_secs_f64();
        if dt > slow {
            slow = dt;
            println!("slowest {seed} {dt:.2}s");
        }
        let e = match res {
            Ok(o) => {
                let rev = w.clone().reversed();
                match std::panic::catch_unwind(|| rev.solve()) {
                    Ok(o2)
                        if (o2.price() - o.price()).abs() < 1e-9
                            && o2.plan.unplaced.len() == o.plan.unplaced.len() =>
                    {
                        continue;
                    }
                    Ok(o2) => format!("  Order: differs\n{o}\n---\n{o2}"),
                    Err(_) => continue,
                }
            }
            Err(e) => e
                .downcast_ref::<String>()
                .cloned()
                .or_else(|| e.downcast_ref::<&str>().map(|s| (*s).to_owned()))
                .unwrap_or_default(),
        };
        let line = e
            .lines()
            .find(|l| l.starts_with("  "))
            .unwrap_or_else(|| e.lines().next().unwrap_or(""));
        let kind = line
            .trim()
            .split(':')
            .next()
            .unwrap_or("")
            .chars()
            .take(60)
            .collect::<String>();
        let size: usize = log.iter().map(String::len).sum();
        let entry = kinds
            .entry(kind)
            .or_insert((0, seed, usize::MAX, String::new()));
        entry.0 += 1;
        if size < entry.2 {
            entry.1 = seed;
            entry.2 = size;
            entry.3 = format!("{e}\n  WORLD\n  {}", log.join("\n  "));
        }
    }
    for (k, (c, s, _, t)) in kinds {
        println!("=== {k} x{c} seed {s}\n{t}\n");
    }
}

#[test]
fn meta() {
    let from: u64 = std::env::var("FROM")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(1);
    let n: u64 = std::env::var("CNT")
        .ok()
        .and_then(|v| v.parse().ok())
        .unwrap_or(2000);
    std::panic::set_hook(Box::new(|_| {}));
    let mut kinds: BTreeMap<String, (usize, u64, usize, String)> = BTreeMap::new();
    for seed in from..from + n {
        let (w, log) = build(seed);
        let Ok(o) = std::panic::catch_unwind(|| w.solve()) else {
            continue;
        };
        for drop in [0, 1, 2, 10, 11, 12] {
            let (v, _) = build_without(seed, drop);
            let Ok(q) = std::panic::catch_unwind(|| v.solve()) else {
                continue;
            };
            let (a, b) = (o.plan.unplaced.len(), q.plan.unplaced.len());
            let names = |o: &Outcome| {
                let mut v: Vec<_> = o
                    .plan
                    .unplaced
                    .iter()
                    .map(|u| o.problem.pods[u.pod.0 as usize].name.to_string())
                    .collect();
                v.sort();
                v
            };
            let kind = if a > b {
                "fewer placed with more"
            } else if a == b && names(&o) == names(&q) && o.price() > q.price() + 1e-9 {
                "dearer with more"
            } else {
                continue;
            };
            let size: usize = log.iter().map(String::len).sum();
            let entry = kinds
                .entry(format!("{kind} {}", if drop < 9 { "type" } else { "node" }))
                .or_insert((0, seed, usize::MAX, String::new()));
            entry.0 += 1;
            if size < entry.2 {
                entry.1 = seed;
                entry.2 = size;
                entry.3 = format!(
                    "drop {drop}\nWITH {} bound gap {:.3}\n{o}\nWITHOUT {}\n{q}\n  WORLD\n  {}",
                    o.price(),
                    o.gap(),
                    q.price(),
                    log.join("\n  ")
                );
            }
        }
    }
    for (k, (c, s, _, t)) in kinds {
        println!("=== {k} x{c} seed {s}\n{t}\n");
    }
}
