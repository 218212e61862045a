//! What holds for every fleet: commands come to an end, the price falls, budgets hold, plans verify.

use joiner_disruption::{Decision, Method, Reason, Settings};
use joiner_model::NanoDollars;
use joiner_testkit::{HOSTNAME, Random, World, instance_type, pod, pool};

use crate::stage::{Stage, budget, of_pool};

const SEEDS: u64 = 6;
const PASSES_MAX: usize = 60;

const SIZES: [(&str, u64, u64, f64); 5] = [
    ("small", 2, 8, 0.1),
    ("medium", 4, 16, 0.2),
    ("large", 8, 32, 0.4),
    ("cores", 8, 16, 0.34),
    ("memory", 4, 32, 0.26),
];

/// Nodes of all sizes in two pools, half full of pods, some of them with rules.
fn any_world(seed: u64) -> World {
    let mut random = Random::new(&format!("fleets/{seed}"));
    let types = SIZES.map(|(name, cpu, memory, price)| {
        let sized = instance_type(name).cpu(&cpu.to_string());
        sized
            .memory(&format!("{memory}Gi"))
            .price(price)
            .spot_price(price * 0.4)
    });
    let mut world = World::new()
        .add(types)
        .add(pool("default"))
        .add(pool("other"));
    let n_nodes = random.between(3, 14);
    for n in 0..n_nodes {
        let (name, cpu, memory, _) = random.pick(&SIZES);
        let pool = random.pick(&["default", "default", "other"]);
        let (cores, gib) = (cpu.to_string(), format!("{memory}Gi"));
        let node = of_pool(&format!("n{n}"), pool, (name, &cores, &gib));
        let paid = random.pick(&["on-demand", "on-demand", "spot"]);
        world = world.add(node.zone(random.pick(&["a", "b", "c"])).capacity_type(paid));
        let mut left = cpu * 1000;
        for p in 0..random.below(8) {
            let need = random.pick(&[100, 250, 500, 1000]);
            if need > left {
                break;
            }
            left -= need;
            let app = random.pick(&["web", "api", "db"]);
            let mut one = pod(&format!("{app}-{n}-{p}")).label("app", app);
            one = one.cpu(&format!("{need}m")).on(&format!("n{n}"));
            if app == "db" && random.percent(30) {
                one = one.capacity_type(paid);
            }
            world = world.add(one);
        }
    }
    world
}

fn check(stage: &Stage, decision: &Decision) {
    for command in &decision.commands {
        let mut n_by_pool = vec![0u32; stage.pools.len()];
        for m in &command.members {
            n_by_pool[stage.members[*m].pool] += 1;
        }
        for (pool, n) in n_by_pool.iter().enumerate() {
            let of = |(p, r, _): &&(usize, Reason, u32)| *p == pool && *r == command.reason;
            let (_, _, allowed) = decision
                .allowed
                .iter()
                .find(of)
                .expect("every pool and reason");
            assert!(n <= allowed, "{n} of {allowed}: {}", command.why);
        }
        let is_consolidation = matches!(command.method, Method::Multi | Method::Single);
        if is_consolidation {
            assert!(
                command.price_after < command.price_before,
                "{}",
                command.why
            );
            assert!(command.savings() > command.move_cost, "{}", command.why);
            no_swap(stage, command);
            // A bound is a bound.
            if let [m] = command.members[..] {
                assert!(
                    decision.verdicts[m].bound >= command.savings(),
                    "{}",
                    command.why
                );
            }
        }
        for m in &command.members {
            assert!(decision.verdicts[*m].stays.is_none());
        }
    }
    let n_going: usize = decision.commands.iter().map(|c| c.members.len()).sum();
    let n_staying = decision
        .verdicts
        .iter()
        .filter(|v| v.stays.is_some())
        .count();
    assert_eq!(
        n_going + n_staying,
        stage.members.len(),
        "everybody gets an answer"
    );
}

/// No node is replaced by one of the same type at the same price.
fn no_swap(stage: &Stage, command: &joiner_disruption::Command) {
    for launch in &command.plan.launches {
        let name = &stage.problem[launch.offering.0].name;
        for m in &command.members {
            let member = &stage.members[*m];
            let same = member.type_name == *name && member.price == Some(launch.price);
            assert!(!same, "{} for {}: {}", name, member.name, command.why);
        }
    }
}

/// Decides and carries out until there is nothing more to do; the price at the end.
fn settle(stage: &mut Stage) -> NanoDollars {
    let mut price = stage.price();
    for _ in 0..PASSES_MAX {
        let decision = stage.decide();
        check(stage, &decision);
        let Some(command) = decision.commands.first() else {
            if stage.memory.is_idle(&stage.fleet()) || decision.n_what_ifs == 0 {
                return price;
            }
            continue;
        };
        stage.apply(command);
        assert!(stage.price() < price, "{}", command.why);
        price = stage.price();
    }
    unreachable!("still busy after {PASSES_MAX} passes");
}

#[test]
fn commands_come_to_an_end_and_the_price_falls() {
    for seed in 0..SEEDS {
        let mut stage = Stage::of(&any_world(seed)).settings(|s| s.spot_to_spot = seed % 2 == 0);
        let before = stage.price();
        let n_pods = stage.problem.pods.len();
        assert!(settle(&mut stage) <= before);
        let bound = stage
            .problem
            .pods
            .iter()
            .filter(|p| p.node.is_some())
            .count();
        assert_eq!(bound, n_pods, "seed {seed}: no pod is lost");
    }
}

#[test]
fn so_they_do_as_upstream_and_within_budgets() {
    for seed in 0..SEEDS / 2 {
        let upstream = Stage::of(&any_world(seed)).settings(|s| *s = s.as_upstream());
        let mut tight = upstream.terms(|t| t.budgets = vec![budget("20%")]);
        settle(&mut tight);
    }
}

#[test]
fn we_save_at_least_what_upstream_saves() {
    let free = |s: &mut joiner_disruption::Settings| {
        let upstream = s.as_upstream();
        s.move_price = upstream.move_price;
        s.launch_price = upstream.launch_price;
        s.threshold_ppm = 0;
    };
    let (mut ours, mut theirs) = (0, 0);
    for seed in 0..SEEDS {
        let mut upstream = Stage::of(&any_world(seed)).settings(|s| *s = s.as_upstream());
        let mut joiner = Stage::of(&any_world(seed)).settings(free);
        theirs += settle(&mut upstream).get();
        ours += settle(&mut joiner).get();
    }
    assert!(ours <= theirs, "{ours} against {theirs}");
}

#[test]
fn the_same_fleet_gives_the_same_decision() {
    for seed in 0..3 {
        let one = Stage::of(&any_world(seed)).decide();
        let other = Stage::of(&any_world(seed)).decide();
        assert_eq!(format!("{one:?}"), format!("{other:?}"));
    }
}

#[test]
fn a_pass_asks_no_more_than_it_may() {
    for (most, seed) in [(1, 1), (2, 2), (5, 3), (24, 4)] {
        for more in [0, 1, 6] {
            let limits = |s: &mut Settings| (s.what_ifs_max, s.variations_max) = (most, more);
            let mut stage = Stage::of(&any_world(seed)).settings(limits);
            assert!(stage.decide().n_what_ifs <= most.max(1) + more);
        }
    }
}

/// More nodes than a question leaves open, with rules that tie pods of many nodes together.
fn wide_world() -> World {
    let mut random = Random::new("fleets/wide");
    let mut world = World::standard();
    for n in 0..70 {
        let on = format!("n{n:02}");
        let zone = random.pick(&["a", "b", "c"]);
        world = world.add(of_pool(&on, "default", ("large", "8", "32Gi")).zone(zone));
        for p in 0..random.between(1, 5) {
            let one = pod(&format!("web-{n}-{p}")).label("app", "web").cpu("700m");
            world = world.add(one.on(&on));
        }
        if random.percent(40) {
            let one = pod(&format!("db-{n}")).label("app", "db").cpu("500m");
            world = world.add(one.anti_affinity_to(HOSTNAME, "db").on(&on));
        }
        if random.percent(40) {
            let one = pod(&format!("port-{n}")).cpu("300m").host_port(80);
            world = world.add(one.on(&on));
        }
        if random.percent(40) {
            let one = pod(&format!("even-{n}")).label("app", "even").cpu("200m");
            world = world.add(one.spread_over_zones(3).on(&on));
        }
    }
    world
}

#[test]
fn wide_fleets_verify_too() {
    let mut stage = Stage::of(&wide_world());
    let mut n_commands = 0;
    for _ in 0..4 {
        let decision = stage.decide();
        check(&stage, &decision);
        let Some(command) = decision.commands.first() else {
            break;
        };
        n_commands += 1;
        stage.apply(command);
    }
    assert!(n_commands > 0, "there is plenty to find");
}

#[test]
fn after_scaling_in_the_price_is_near_a_fresh_plan() {
    let mut world = World::ec2().add(pool("default").capacity_types("on-demand"));
    for (n, (cpu, memory)) in (0..).zip([(100, 256), (250, 512), (500, 2048), (1000, 1024)]) {
        let app = pod(&format!("app{n}")).replicas(75).cpu(&format!("{cpu}m"));
        world = world.add(app.memory(&format!("{memory}Mi")));
    }
    let mut stage = Stage::of(&world);
    stage.provision();
    // Seven of ten pods go, wherever they are.
    let mut random = Random::new("fleets/scale-in");
    for one in &mut stage.problem.pods {
        if random.percent(70) {
            (one.node, one.ignored) = (None, Some("it is gone".into()));
        }
    }
    stage.seat();
    let (price, fresh) = (settle(&mut stage), stage.price_afresh());
    let most = NanoDollars::new(fresh.get() * 105 / 100);
    assert!(price <= most, "${price} is more than 5 % above ${fresh}");
}
