//! Upstream behaviors 267, 268, 272 and 273: how replacements are paid for.

use joiner_model::keys;
use joiner_testkit::{CAPACITY_TYPE, INSTANCE_TYPE, PoolBuilder, World, instance_type, pod, pool};

use crate::stage::{Stage, dollars, own};

/// `count` spot types of rising price, each large enough, and a dear one that is in use.
fn spot_world(count: usize) -> World {
    spot_world_of(count, pool("default"))
}

fn spot_world_of(count: usize, pool: PoolBuilder) -> World {
    let types: Vec<_> = (0..count)
        .map(|n| {
            let price = 0.1 + 0.001 * n as f64;
            instance_type(&format!("t{n:02}"))
                .cpu("4")
                .spot_price(price)
        })
        .collect();
    World::new()
        .add(pool)
        .add(types)
        .add(instance_type("dear").cpu("8").spot_price(0.5))
        .add(own("n0", ("dear", "8", "16Gi")).capacity_type("spot"))
        .add(pod("web").cpu("3").on("n0"))
}

fn gated(world: &World) -> Stage {
    Stage::of(world).settings(|s| s.spot_to_spot = true)
}

#[test]
fn core_267_spot_to_spot() {
    let mut off = Stage::of(&spot_world(20));
    assert_eq!(off.gone(), None);
    let words = "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node";
    assert_eq!(off.why("n0"), words);
    let mut few = gated(&spot_world(14));
    assert_eq!(few.gone(), None);
    assert!(
        few.why("n0")
            .contains("requires 15 cheaper instance type options")
    );
    assert!(few.why("n0").ends_with("got 14"));
    assert_eq!(gated(&spot_world(15)).gone().as_deref(), Some("n0"));
}

#[test]
fn core_267_a_node_among_the_cheapest_stays() {
    let mut stage = gated(&spot_world(20)).with("n0", |m| {
        m.type_name = "t10".into();
        m.price = Some(dollars(0.11));
    });
    assert_eq!(stage.gone(), None);
    assert!(stage.why("n0").ends_with("got 10"), "{}", stage.why("n0"));
}

#[test]
fn core_268_cut_to_the_cheapest_fifteen() {
    let figures = [(None, 15), (Some(5), 15), (Some(18), 18)];
    for (min_values, expected) in figures {
        let bare = pool("default");
        let pool = match min_values {
            Some(count) => bare.min_values(INSTANCE_TYPE, "Exists", "", count),
            None => bare,
        };
        let mut stage = gated(&spot_world_of(20, pool));
        let decision = stage.decide();
        let launch = &decision.commands[0].plan.launches[0];
        let names: Vec<_> = (launch.types.iter())
            .map(|t| stage.problem[*t].name.to_string())
            .collect();
        let cheapest: Vec<_> = (0..expected).map(|n| format!("t{n:02}")).collect();
        assert_eq!(names, cheapest, "{min_values:?}");
    }
}

fn paid_for(stage: &mut Stage) -> Option<Vec<String>> {
    let decision = stage.decide();
    let launch = decision.commands.first()?.plan.launches.first()?.clone();
    let of_key = |r: &&joiner_model::Requirement| r.key().as_ref() == keys::CAPACITY_TYPE;
    let open = launch.requirements.iter().find(of_key)?.members()?.clone();
    Some(open.iter().map(ToString::to_string).collect())
}

#[test]
fn core_272_a_dearer_spot_market_is_no_saving() {
    // What would be launched is spot, and the dearest zone decides.
    let world = |dearest: f64| {
        let small = instance_type("small").cpu("2").price(0.39);
        let small = small
            .zone_price("a", "spot", 0.05)
            .zone_price("b", "spot", dearest);
        World::new()
            .add(pool("default"))
            .add(small)
            .add(instance_type("large").cpu("8").price(0.4))
            .add(own("n0", ("large", "8", "16Gi")))
            .add(pod("web").cpu("1").on("n0"))
    };
    assert_eq!(Stage::of(&world(0.45)).gone(), None);
    assert_eq!(Stage::of(&world(0.2)).gone().as_deref(), Some("n0"));
}

#[test]
fn core_273_pinned_to_spot_where_both_are_allowed() {
    let both = |name: &str, cpu: &str, price: f64| {
        instance_type(name)
            .cpu(cpu)
            .price(price)
            .spot_price(price / 2.0)
    };
    let world = |capacity_types: &str| {
        World::new()
            .add(pool("default").requirement(CAPACITY_TYPE, "In", capacity_types))
            .add([both("small", "2", 0.1), both("large", "8", 0.4)])
            .add(own("n0", ("large", "8", "16Gi")))
            .add(pod("web").cpu("1").on("n0"))
    };
    let mut stage = Stage::of(&world("on-demand spot"));
    assert_eq!(paid_for(&mut stage), Some(vec!["spot".to_owned()]));
    let mut stage = Stage::of(&world("on-demand"));
    assert_eq!(paid_for(&mut stage), Some(vec!["on-demand".to_owned()]));
}

#[test]
fn spot_nodes_may_always_go_without_a_successor() {
    let world = spot_world(0)
        .add(own("n1", ("dear", "8", "16Gi")).capacity_type("spot"))
        .add(pod("api").cpu("4").on("n1"));
    let mut stage = Stage::of(&world);
    let decision = stage.decide();
    assert!(decision.commands[0].is_delete());
}
