//! Upstream behaviors 266 to 289 as far as they are decisions, and what goes beyond them.

use joiner_disruption::{Method, Reason, Settings};
use joiner_model::{MinValuesPolicy, NanoDollars, PreferencePolicy};
use joiner_testkit::{HOSTNAME, INSTANCE_TYPE, World, ZONE, instance_type, node, pod, pool};

use crate::stage::{LARGE, MEDIUM, SMALL, Stage, budget, dollars, of_pool, own, sold};

fn types_of(stage: &Stage, command: &joiner_disruption::Command) -> Vec<String> {
    let launches = command.plan.launches.iter();
    let mut names: Vec<String> = launches
        .map(|l| stage.problem[l.offering.0].name.to_string())
        .collect();
    names.sort();
    names
}

#[test]
fn core_266_a_cheaper_type() {
    let world = World::standard()
        .add(own("n0", LARGE))
        .add(pod("web").cpu("1500m").on("n0"));
    let mut stage = Stage::of(&world);
    let decision = stage.decide();
    let command = &decision.commands[0];
    assert_eq!(
        (command.method, command.reason),
        (Method::Single, Reason::Underutilized)
    );
    assert_eq!(types_of(&stage, command), ["small"]);
    assert_eq!(
        (command.price_before, command.price_after),
        (dollars(0.4), dollars(0.1))
    );
    assert_eq!(command.move_cost, dollars(0.003));
    let words = "1 node becomes 1; $0.40 an hour before, $0.10 after; 1 pod moves for $0.003";
    assert_eq!(command.why, words);
    // Only types that are sure to be cheaper stay on the list.
    let listed = command.plan.launches[0].types.iter();
    let listed: Vec<_> = listed.map(|t| stage.problem[*t].name.as_ref()).collect();
    assert_eq!(listed, ["small", "medium"]);
}

/// A large node for a small pod, in a pool that asks for so many different types; three are sold.
fn picky(count: u32) -> World {
    World::new()
        .add(sold([0.1, 0.2, 0.4]))
        .add(pool("default").min_values(INSTANCE_TYPE, "Exists", "", count))
        .add(own("n0", LARGE))
        .add(pod("web").cpu("1500m").on("n0"))
}

#[test]
fn core_269_price_filter_and_min_values() {
    assert_eq!(Stage::of(&picky(2)).gone().as_deref(), Some("n0"));
    let mut stage = Stage::of(&picky(3));
    assert_eq!(stage.gone(), None);
    assert!(
        stage.why("n0").contains("Filtering by price"),
        "{}",
        stage.why("n0")
    );
}

#[test]
fn core_103_best_effort_does_not_lower_min_values_for_money() {
    let relaxed = |count| Stage::of(&picky(count).min_values(MinValuesPolicy::BestEffort));
    assert_eq!(relaxed(2).gone().as_deref(), Some("n0"), "two are cheaper");
    // Three types are sold, two of them are cheaper; four cannot be had at any price.
    for count in [3, 4] {
        assert_eq!(relaxed(count).gone(), None, "{count}");
        assert!(relaxed(count).why("n0").contains("minValues"), "{count}");
    }
    // What must go is replaced all the same, and nodes that are not needed go.
    let mut drifted = relaxed(4);
    drifted.member("n0").drifted = Some(drifted.now);
    let command = drifted.decide().commands.remove(0);
    assert_eq!(command.reason, Reason::Drifted);
    assert!(command.plan.launches[0].min_values_relaxed);
    let world = picky(4).min_values(MinValuesPolicy::BestEffort);
    let mut two = Stage::of(
        &world
            .add(own("n1", SMALL))
            .add(pod("api").cpu("1").on("n1")),
    );
    two.member("n0").do_not_disrupt = true;
    assert_eq!(two.gone().as_deref(), Some("n1"));
}

#[test]
fn core_270_a_pool_that_sells_nothing_is_nobodys_trouble() {
    let world = World::standard()
        .add(pool("closed").not_ready("no class"))
        .add(own("n0", LARGE))
        .add(pod("web").cpu("1500m").on("n0"));
    assert_eq!(Stage::of(&world).gone().as_deref(), Some("n0"));
}

#[test]
fn with_no_pool_ready_nothing_is_asked() {
    let world = World::new()
        .add(instance_type("medium").cpu("4").price(0.2))
        .add(pool("default").not_ready("no class"))
        .add([own("n0", MEDIUM), own("n1", MEDIUM)])
        .add(pod("web").cpu("1").on("n0"))
        .add(pod("api").cpu("2").on("n1"));
    let mut stage = Stage::of(&world);
    assert_eq!(stage.gone(), None);
    let why = stage.why("n0");
    assert!(
        why.contains("no NodePool is ready: default (it is not ready: no class)"),
        "{why}"
    );
}

#[test]
fn core_274_pods_that_fit_elsewhere() {
    let world = World::standard()
        .add([own("n0", MEDIUM), own("n1", MEDIUM)])
        .add(pod("web").replicas(3).cpu("1").on("n0"))
        .add(pod("api").cpu("1").on("n1"));
    let mut stage = Stage::of(&world);
    let decision = stage.decide();
    assert_eq!(stage.names(&decision), "n1");
    assert!(decision.commands[0].is_delete());
    // Also on nodes that are not ours.
    let world = World::standard()
        .add(node("theirs"))
        .add(own("n1", MEDIUM))
        .add(pod("api").cpu("1").on("n1"));
    let mut stage = Stage::of(&world);
    let decision = stage.decide();
    assert_eq!(stage.names(&decision), "n1");
    assert!(decision.commands[0].is_delete());
}

#[test]
fn core_277_a_node_that_boots_is_no_place() {
    let world = World::standard()
        .add([own("n0", SMALL), own("coming", MEDIUM)])
        .add(pod("web").cpu("1500m").on("n0"));
    let mut stage = Stage::of(&world);
    stage
        .problem
        .nodes
        .iter_mut()
        .for_each(|n| n.initialized = n.name.as_ref() == "n0");
    stage.member("coming").initialized = false;
    assert_eq!(stage.gone(), None);
    let why = stage.why("n0");
    assert!(
        why.contains("would schedule against uninitialized"),
        "{why}"
    );
}

#[test]
fn core_278_a_node_inside_its_quiet_time_is_no_place() {
    let world = World::standard()
        .add(pool("other"))
        .add([own("n0", SMALL), of_pool("quiet", "other", MEDIUM)])
        .add(pod("web").cpu("1500m").on("n0"))
        .add(pod("api").cpu("1").on("quiet"));
    let resting = |never: bool| {
        let stage = Stage::of(&world).with("quiet", |m| m.consolidatable = false);
        stage.terms(|t| t.consolidate_after_never = never && t.name.as_ref() == "other")
    };
    assert_eq!(resting(false).gone(), None);
    assert_eq!(
        resting(true).gone().as_deref(),
        Some("n0"),
        "Never is no quiet time"
    );
    // A new node is another matter.
    let world = World::standard()
        .add([own("n0", LARGE), own("quiet", SMALL)])
        .add(pod("web").cpu("1500m").on("n0"))
        .add(pod("api").cpu("1").on("quiet"));
    let mut stage = Stage::of(&world).with("quiet", |m| m.consolidatable = false);
    assert_eq!(stage.decide().commands[0].plan.launches.len(), 1);
}

#[test]
fn core_279_and_286_pods_that_wait() {
    let world = World::standard()
        .add([own("n0", MEDIUM), own("n1", SMALL)])
        .add(pod("web").replicas(2).cpu("1").on("n0"))
        .add(pod("api").cpu("1").on("n1"));
    // One that never finds a place keeps nobody.
    let world_with = |waiting| Stage::of(&world.clone().add(waiting));
    assert_eq!(
        world_with(pod("lost").cpu("1000")).gone().as_deref(),
        Some("n1")
    );
    // One that is about to take the room does.
    let mut stage = world_with(pod("next").cpu("2"));
    let decision = stage.decide();
    assert!(decision.commands.is_empty(), "{:?}", decision.commands);
}

#[test]
fn core_281_several_become_one() {
    let world = World::standard()
        .add([own("n0", MEDIUM), own("n1", MEDIUM), own("n2", MEDIUM)])
        .add(pod("a").cpu("600m").memory("7Gi").on("n0"))
        .add(pod("b").cpu("600m").memory("7Gi").on("n1"))
        .add(pod("c").cpu("600m").memory("7Gi").on("n2"));
    let mut stage = Stage::of(&world);
    let mut price = stage.price();
    for _ in 0..4 {
        let decision = stage.decide();
        let Some(command) = decision.commands.first() else {
            break;
        };
        stage.apply(command);
        assert!(stage.price() < price);
        price = stage.price();
    }
    // Three times 7 GiB: a medium node and a small one.
    assert_eq!(stage.price(), dollars(0.3));
}

#[test]
fn core_281_not_by_one_of_their_own_kind() {
    // By price alone two could become one of the same type; deleting one of them is the way.
    let world = World::standard()
        .add([own("n0", LARGE), own("n1", LARGE)])
        .add(pod("a").replicas(4).cpu("1").on("n0"))
        .add(pod("b").replicas(3).cpu("1").on("n1"));
    let mut stage = Stage::of(&world);
    let decision = stage.decide();
    let command = &decision.commands[0];
    assert!(command.is_delete(), "{}", command.why);
    assert_eq!(command.members.len(), 1);
}

#[test]
fn core_284_order_by_price_over_disruption() {
    let world = World::standard()
        .add([own("few", MEDIUM), own("many", MEDIUM), own("host", LARGE)])
        .add(pod("a").replicas(2).cpu("500m").on("few"))
        .add(pod("b").replicas(8).cpu("125m").on("many"))
        .add(pod("c").replicas(6).cpu("1").on("host"));
    let mut stage = Stage::of(&world).settings(|s| s.nodes_max = 1);
    assert_eq!(stage.gone().as_deref(), Some("few"));
}

#[test]
fn core_285_topology_is_kept() {
    let spread = |name: &str, on: &str| pod(name).label("app", "web").cpu("100m").on(on);
    let zonal = |name: &str, on: &str| {
        spread(name, on).spread_with(
            ZONE,
            1,
            serde_json::json!({
            "labelSelector": {"matchLabels": {"app": "web"}}}),
        )
    };
    let world = World::standard()
        .add([
            own("a", LARGE),
            own("b", LARGE).zone("b"),
            own("c", LARGE).zone("c"),
        ])
        .add([
            zonal("web-a", "a"),
            zonal("web-b", "b"),
            zonal("web-c", "c"),
        ]);
    let mut stage = Stage::of(&world);
    for _ in 0..5 {
        let decision = stage.decide();
        let Some(command) = decision.commands.first() else {
            break;
        };
        stage.apply(command);
    }
    let mut zones: Vec<&str> = stage.members.iter().map(|m| m.zone.as_ref()).collect();
    zones.sort_unstable();
    assert_eq!(zones, ["a", "b", "c"]);
    assert_eq!(stage.price(), dollars(0.3));
    // Pods that keep apart keep their nodes.
    let world = World::standard()
        .add([own("n0", SMALL), own("n1", SMALL)])
        .add(
            pod("x")
                .label("app", "db")
                .cpu("100m")
                .anti_affinity_to(HOSTNAME, "db")
                .on("n0"),
        )
        .add(
            pod("y")
                .label("app", "db")
                .cpu("100m")
                .anti_affinity_to(HOSTNAME, "db")
                .on("n1"),
        );
    assert_eq!(Stage::of(&world).gone(), None);
}

#[test]
fn core_287_preferences_count_unless_they_are_ignored() {
    let world = World::standard()
        .add([own("n0", SMALL), own("n1", SMALL)])
        .add(pod("x").label("app", "db").cpu("100m").on("n0"))
        .add(
            (pod("y").label("app", "db").cpu("100m"))
                .prefer_anti_affinity_to(1, HOSTNAME, "db")
                .on("n1"),
        );
    let world = |policy| world.clone().preferences(policy);
    // Only by ignoring the preference y may join x; x may always join y.
    let only_y = |policy| Stage::of(&world(policy)).with("n0", |m| m.do_not_disrupt = true);
    assert_eq!(only_y(PreferencePolicy::Respect).gone(), None);
    assert_eq!(
        only_y(PreferencePolicy::Ignore).gone().as_deref(),
        Some("n1")
    );
}

#[test]
fn one_node_becomes_two_smaller_ones() {
    // One pod is all cores, the other all memory: together they need the large node.
    let world = World::new()
        .add(pool("default"))
        .add(instance_type("cores").cpu("8").memory("4Gi").price(0.1))
        .add(instance_type("memory").cpu("1").memory("32Gi").price(0.1))
        .add(instance_type("large").cpu("8").memory("32Gi").price(0.4))
        .add(own("n0", LARGE))
        .add(pod("cores").cpu("7").memory("2Gi").on("n0"))
        .add(pod("memory").cpu("500m").memory("30Gi").on("n0"));
    let mut stage = Stage::of(&world);
    let decision = stage.decide();
    let command = &decision.commands[0];
    assert_eq!(types_of(&stage, command), ["cores", "memory"]);
    assert!(
        command.why.starts_with("1 node becomes 2;"),
        "{}",
        command.why
    );
    let mut upstream = Stage::of(&world).settings(|s| *s = s.as_upstream());
    assert_eq!(upstream.gone(), None);
    assert_eq!(
        upstream.why("n0"),
        "Can't remove without creating 2 candidates"
    );
}

#[test]
fn moving_must_pay_within_the_horizon() {
    let world = World::standard()
        .add(own("n0", MEDIUM))
        .add(pod("web").replicas(100).cpu("10m").on("n0"));
    // Half the price is 0.10 dollars an hour, and moving 100 pods costs 0.10 and a launch.
    let mut stage = Stage::of(&world);
    assert_eq!(stage.gone(), None);
    let words = "moving its pods costs $0.10 and saves only $0.10 an hour";
    assert_eq!(stage.why("n0"), words);
    let mut patient = Stage::of(&world).settings(|s| s.horizon_minutes = 120);
    assert_eq!(patient.gone().as_deref(), Some("n0"));
    let mut upstream = Stage::of(&world).settings(|s| *s = s.as_upstream());
    assert_eq!(upstream.gone().as_deref(), Some("n0"));
    assert_eq!(
        Settings::default().as_upstream().move_price,
        NanoDollars::ZERO
    );
}

#[test]
fn a_small_saving_is_left_alone() {
    let world = World::new()
        .add(pool("default"))
        .add(instance_type("large").cpu("8").memory("32Gi").price(10.0))
        .add(instance_type("almost").cpu("8").memory("32Gi").price(9.96))
        .add(own("n0", LARGE))
        .add(pod("web").cpu("6").on("n0"));
    let mut stage = Stage::of(&world);
    assert_eq!(stage.gone(), None);
    assert!(
        stage.why("n0").contains("saves only $0.04"),
        "{}",
        stage.why("n0")
    );
    let mut eager = Stage::of(&world).settings(|s| s.threshold_ppm = 0);
    assert_eq!(eager.gone().as_deref(), Some("n0"));
}

#[test]
fn a_plan_that_the_scheduler_may_miss_is_tight() {
    // Two holes of 2 and 1 cores, and pods of 2 and 1: the small one must not take the large hole.
    let hole = |name: &str| own(name, ("large", "8", "32Gi"));
    let world = World::standard()
        .add([hole("h0"), hole("h1"), own("n0", MEDIUM)])
        .add(pod("a").cpu("6").on("h0"))
        .add(pod("b").cpu("7").on("h1"))
        .add(pod("large").cpu("2").on("n0"))
        .add(pod("small").cpu("1").on("n0"));
    let tight = |world: &World| {
        let mut stage = Stage::of(world);
        for member in stage.members.iter_mut().filter(|m| &*m.name != "n0") {
            member.do_not_disrupt = true;
        }
        let decision = stage.decide();
        assert_eq!(stage.names(&decision), "n0");
        decision.commands[0].is_tight
    };
    assert!(tight(&world));
    let roomy = world
        .clone()
        .add(hole("h2"))
        .add(pod("c").cpu("1").on("h2"));
    assert!(!tight(&roomy));
}

#[test]
fn several_new_nodes_must_be_well_worth_it() {
    // One node becomes two: 1.00 an hour saved, by moving 120 pods.
    let world = World::new()
        .add(pool("default"))
        .add(instance_type("large").cpu("8").memory("32Gi").price(5.0))
        .add(instance_type("half").cpu("4").memory("16Gi").price(2.0))
        .add(own("n0", LARGE))
        .add(pod("web").replicas(120).cpu("60m").on("n0"));
    let mut stage = Stage::of(&world);
    assert_eq!(stage.gone(), None, "{}", stage.why("n0"));
    let mut eager = Stage::of(&world).settings(|s| s.several_factor = 1);
    assert_eq!(eager.gone().as_deref(), Some("n0"));
}

#[test]
fn budgets_limit_a_set_together() {
    let mut world = World::standard().add(own("host", ("large", "8", "32Gi")));
    for n in 0..6 {
        world = world
            .add(own(&format!("n{n}"), SMALL))
            .add(pod(&format!("p{n}")).cpu("100m").on(&format!("n{n}")));
    }
    world = world.add(pod("big").cpu("6").on("host"));
    for (nodes, most) in [("2", 2), ("50%", 4), ("100%", 7), ("0", 0)] {
        let mut stage = Stage::of(&world).terms(|t| t.budgets = vec![budget(nodes)]);
        let decision = stage.decide();
        let gone: usize = decision.commands.iter().map(|c| c.members.len()).sum();
        assert!(gone <= most, "{gone} of {nodes}");
        assert!(gone > 0 || most == 0, "{nodes}");
    }
}

#[test]
fn a_pod_that_pins_its_node_is_named_with_the_hole_it_needs() {
    let world = World::standard()
        .add([own("n0", ("odd", "64", "64Gi")), own("n1", SMALL)])
        .add(pod("huge").cpu("60").on("n0"))
        .add(pod("web").cpu("1500m").on("n1"));
    let stage = Stage::of(&world).with("n1", |m| m.do_not_disrupt = true);
    let mut stage = stage.with("n0", |m| {
        m.price = Some(dollars(5.0));
        m.type_name = "odd".into();
    });
    let why = stage.why("n0");
    // No type for sale holds it: its going can save nothing.
    assert!(why.contains("Can't replace with a cheaper node"), "{why}");
    let world = World::standard()
        .add([own("n0", LARGE), own("n1", SMALL)])
        .add(pod("odd").cpu("3").node_selector("disk", "here").on("n0"))
        .add(pod("web").cpu("1500m").on("n1"));
    let mut stage = Stage::of(&world).with("n1", |m| m.do_not_disrupt = true);
    let why = stage.why("n0");
    assert!(why.contains("default/odd (cpu 3, pods 1)"), "{why}");
    assert!(why.contains("\"disk\""), "{why}");
    assert!(
        why.contains("the largest hole elsewhere is cpu 500m, memory 8Gi"),
        "{why}"
    );
}

#[test]
fn bounds_hold_and_tell_the_hopeless_from_the_rest() {
    let world = World::standard()
        .add([own("full", SMALL), own("spare", LARGE)])
        .add(pod("a").cpu("2").on("full"))
        .add(pod("b").cpu("1").on("spare"));
    let mut stage = Stage::of(&world).with("full", |m| m.do_not_disrupt = true);
    let decision = stage.decide();
    // A pod of two cores fits the large node; one of one core needs a small node elsewhere.
    assert_eq!(decision.verdicts[0].bound, dollars(0.1));
    assert_eq!(decision.verdicts[1].bound, dollars(0.3));
    assert_eq!(decision.commands[0].savings(), dollars(0.3));
}

#[test]
fn nothing_to_do_is_remembered_until_something_changes() {
    let world = World::standard()
        .add([own("n0", SMALL), own("n1", SMALL)])
        .add(pod("a").cpu("1500m").on("n0"))
        .add(pod("b").cpu("1500m").on("n1"));
    let mut stage = Stage::of(&world);
    assert_eq!(stage.gone(), None);
    let again = stage.decide();
    assert_eq!(again.n_what_ifs, 0);
    assert!(again.verdicts.iter().all(|v| v.stays.is_some()));
    stage.changed = stage.now + jiff::SignedDuration::from_secs(1);
    assert!(!stage.memory.is_idle(&stage.fleet()));
    // Not so when a budget was all that kept them.
    let world = World::standard()
        .add([own("n0", MEDIUM), own("n1", MEDIUM)])
        .add(pod("a").cpu("1").on("n0"))
        .add(pod("b").cpu("1").on("n1"));
    let mut stage = Stage::of(&world).terms(|t| t.budgets = vec![budget("0")]);
    assert_eq!(stage.gone(), None);
    stage.pools[0].budgets.clear();
    assert!(stage.gone().is_some());
}

#[test]
fn the_search_goes_on_in_the_next_pass() {
    // Twelve nodes that stay, which only questions tell, and few of these a pass.
    let mut world = World::standard();
    for n in 0..12 {
        let apart = pod(&format!("p{n:02}")).label("app", "db").cpu("500m");
        let apart = apart.anti_affinity_to(HOSTNAME, "db");
        world = world
            .add(own(&format!("n{n:02}"), SMALL))
            .add(apart.on(&format!("n{n:02}")));
    }
    let mut stage = Stage::of(&world).settings(|s| s.what_ifs_max = 8);
    let mut n_passes = 0;
    while !stage.memory.is_idle(&stage.fleet()) {
        assert_eq!(stage.gone(), None);
        n_passes += 1;
        assert!(n_passes < 6, "it does not come to an end");
    }
    assert!(n_passes > 1);
    let decision = stage.decide();
    let said = decision
        .verdicts
        .iter()
        .map(|v| v.stays.as_ref().unwrap().to_string());
    assert!(said.into_iter().all(|why| !why.contains("turn")));
}
