//! Upstream behavior 204: nodes move into reservations that are cheaper.

use joiner_disruption::{Settings, confirm};
use joiner_model::{Launch, Requirement, keys};
use joiner_testkit::{
    CAPACITY_TYPE, InstanceTypeBuilder, NodeBuilder, PoolBuilder, World, ZONE, instance_type, pod,
    pool,
};
use serde_json::json;

use crate::stage::{LARGE, Stage, dollars, own};

const RESERVATION_ID: &str = "karpenter.k8s.aws/capacity-reservation-id";
/// Upstream prices what is reserved like this, so that it is cheaper than anything on the market.
const PER_MARKET_PRICE: f64 = 1e-6;

/// A type that is sold in zone a, on demand and as spot, and under reservations: id, how many are
/// left, and price.
fn sold(
    name: &str,
    cpu: &str,
    price: f64,
    reservations: &[(&str, u32, f64)],
) -> InstanceTypeBuilder {
    let is = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    let mut offerings: Vec<_> = (reservations.iter())
        .map(|(id, left, price)| {
            json!({"Price": price, "ReservationCapacity": left, "Available": *left > 0,
                "Requirements": [
                    is(CAPACITY_TYPE, "reserved"), is(ZONE, "a"), is(RESERVATION_ID, id)]})
        })
        .collect();
    for (capacity_type, price) in [("on-demand", price), ("spot", price / 2.0)] {
        offerings.push(json!({"Price": price,
            "Requirements": [is(CAPACITY_TYPE, capacity_type), is(ZONE, "a")]}));
    }
    instance_type(name)
        .cpu(cpu)
        .memory("32Gi")
        .patch(json!({"offerings": offerings}))
}

/// A large type of which `cr-large` has as many left as said, and a small one with `cr-small`.
fn world(n_large: u32, n_small: u32) -> World {
    world_of(pool("default"), n_large, n_small)
}

fn world_of(pool: PoolBuilder, n_large: u32, n_small: u32) -> World {
    let reserved = |price: f64| price * PER_MARKET_PRICE;
    World::new()
        .add(pool)
        .add(sold(
            "large",
            "8",
            0.4,
            &[("cr-large", n_large, reserved(0.4))],
        ))
        .add(sold(
            "small",
            "2",
            0.1,
            &[("cr-small", n_small, reserved(0.1))],
        ))
}

/// A large node out of a reservation.
fn of_reservation(name: &str, id: &str) -> NodeBuilder {
    own(name, LARGE)
        .capacity_type("reserved")
        .label(RESERVATION_ID, id)
}

fn like_upstream(world: &World) -> Stage {
    Stage::of(world).settings(|s| *s = Settings::default().as_upstream())
}

/// What takes the place of the only node that goes, as `type capacity-types reservations`.
#[track_caller]
fn replacement(stage: &mut Stage, gone: &str) -> String {
    let decision = stage.decide();
    assert_eq!(stage.names(&decision), gone);
    let launches = &decision.commands[0].plan.launches;
    assert_eq!(launches.len(), 1, "{launches:?}");
    let types: Vec<&str> = (launches[0].types.iter())
        .map(|ty| stage.problem[*ty].name.as_ref())
        .collect();
    let open = |key: &str| open(&launches[0], key);
    format!(
        "{} {} {}",
        types.join(","),
        open(CAPACITY_TYPE),
        open(RESERVATION_ID)
    )
}

/// Values of a label that a launch leaves open.
fn open(launch: &Launch, key: &str) -> String {
    let of_key = |r: &&Requirement| r.key().as_ref() == key;
    let own = launch.requirements.iter().find(of_key);
    let values = own.and_then(Requirement::members).cloned();
    let values: Vec<String> = values.iter().flatten().map(ToString::to_string).collect();
    values.join(",")
}

#[test]
fn core_204_from_a_reservation_to_a_cheaper_one() {
    let world = world(0, 1)
        .add(of_reservation("n0", "cr-large"))
        .add(pod("web").cpu("1").on("n0"));
    let mut stage = like_upstream(&world);
    assert_eq!(replacement(&mut stage, "n0"), "small reserved cr-small");
    // What is reserved is paid for in any case; that alone is not worth moving pods for.
    let why = Stage::of(&world).why("n0");
    assert!(why.contains("costs $0.001 and saves only"), "{why}");
}

#[test]
fn core_204_between_reservations_of_one_type() {
    let both = |n_dear: u32, n_cheap: u32| {
        let reservations = [("cr-dear", n_dear, 2e-6), ("cr-cheap", n_cheap, 1e-6)];
        World::new()
            .add(pool("default"))
            .add(sold("large", "8", 0.4, &reservations))
            .add(pod("web").cpu("6").on("n0"))
    };
    let dear = both(0, 1).add(of_reservation("n0", "cr-dear"));
    assert_eq!(
        replacement(&mut like_upstream(&dear), "n0"),
        "large reserved cr-cheap"
    );
    let cheap = both(1, 1).add(of_reservation("n0", "cr-cheap"));
    assert_eq!(like_upstream(&cheap).gone(), None, "it is in the cheapest");
}

#[test]
fn core_204_from_the_market_to_a_reservation() {
    for capacity_type in ["on-demand", "spot"] {
        let node = || own("n0", LARGE).capacity_type(capacity_type);
        for (cpu, expected) in [
            ("1", "small reserved cr-small"),
            // A node of the same type, but paid for already.
            ("6", "large reserved cr-large"),
        ] {
            let world = world(1, 1).add(node()).add(pod("web").cpu(cpu).on("n0"));
            for mut stage in [Stage::of(&world), like_upstream(&world)] {
                assert_eq!(replacement(&mut stage, "n0"), expected, "{capacity_type}");
            }
        }
    }
}

#[test]
fn core_204_only_where_the_pool_allows_what_is_reserved() {
    let figures = [("on-demand", None), ("on-demand reserved", Some("n0"))];
    for (capacity_types, expected) in figures {
        let closed = world_of(pool("default").capacity_types(capacity_types), 1, 1)
            .add(own("n0", LARGE))
            .add(pod("web").cpu("6").on("n0"));
        assert_eq!(Stage::of(&closed).gone().as_deref(), expected);
    }
}

#[test]
fn core_204_what_a_node_gives_back_is_not_there_for_its_successor() {
    // The successor is launched first, so the unit of the old node is still in use by then.
    let world = world(0, 0)
        .add(of_reservation("n0", "cr-large"))
        .add(pod("web").cpu("6").on("n0"));
    for price in [4e-7, 0.9] {
        let mut stage = like_upstream(&world).with("n0", |m| m.price = Some(dollars(price)));
        let decision = stage.decide();
        for launch in decision.commands.iter().flat_map(|c| &c.plan.launches) {
            assert!(
                !open(launch, CAPACITY_TYPE).contains("reserved"),
                "{launch:?}"
            );
        }
        assert_eq!(decision.commands.is_empty(), price < 0.1, "{price}");
    }
}

#[test]
fn core_204_one_unit_is_given_out_once() {
    let mut all = world(0, 1);
    for n in ["n0", "n1", "n2"] {
        all = all
            .add(own(n, LARGE))
            .add(pod(&format!("web-{n}")).cpu("1500m").on(n));
    }
    let mut stage = Stage::of(&all);
    let mut n_reserved = 0;
    for _ in 0..5 {
        let Some(command) = stage.decide().commands.into_iter().next() else {
            break;
        };
        let reserved = |launch: &&Launch| open(launch, CAPACITY_TYPE) == "reserved";
        n_reserved += command.plan.launches.iter().filter(reserved).count();
        assert!(n_reserved <= 1, "{}", command.why);
        stage.apply(&command);
        for ty in &mut stage.problem.types {
            for offering in &mut ty.offerings {
                if let Some((_, left)) = &mut offering.reservation {
                    *left = u32::try_from(1 - n_reserved).unwrap().min(*left);
                }
            }
        }
    }
    assert_eq!(n_reserved, 1);
    let paid = stage.problem.nodes.iter().filter(|node| {
        let own = node.labels.get(keys::CAPACITY_TYPE);
        node.pool.is_some() && own.is_some_and(|own| own.as_ref() == "reserved")
    });
    assert_eq!(paid.count(), 1);
}

#[test]
fn core_204_a_reservation_taken_by_somebody_else_in_the_meantime() {
    let stage = |n_large: u32| {
        let all = world(n_large, 0)
            .add(own("n0", LARGE))
            .add(pod("web").cpu("6").on("n0"));
        Stage::of(&all)
    };
    let command = stage(1).decide().commands.remove(0);
    let still = confirm(&stage(1).fleet(), &command).expect("it is left");
    assert_eq!(still.price_after, command.price_after);
    // What can be had in its stead saves half as much.
    let other = confirm(&stage(0).fleet(), &command).expect("worth it");
    assert!(other.price_after > command.price_after);
    let strict = stage(0).settings(|own| *own = own.as_upstream());
    let rejection = confirm(&strict.fleet(), &command).expect_err("none is left");
    assert_eq!(rejection.as_str(), "scheduling", "{rejection}");
}
