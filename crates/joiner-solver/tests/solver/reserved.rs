//! Reserved capacity: the numbered behaviors 199 to 203. Upstream gives reservations out over
//! several passes; one batch does it here.

use joiner_model::keys::NODE_POOL;
use joiner_testkit::{
    CAPACITY_TYPE, INSTANCE_TYPE, InstanceTypeBuilder, Outcome, PodBuilder, World, ZONE,
    instance_type, pod, pool,
};
use serde_json::{Value, json};

/// Two cores for 0.10 on demand.
fn two_cores(name: &str) -> InstanceTypeBuilder {
    instance_type(name).cpu("2").price(0.1)
}

/// A pod that fills two cores.
fn full(name: &str) -> PodBuilder {
    pod(name).cpu("2")
}

/// A type of two cores, sold on demand and under reservations: id, zone and count of each.
fn with_reservations(name: &str, reservations: &[(&str, &str, u32)]) -> InstanceTypeBuilder {
    let is = |key: &str, value: &str| json!({"key": key, "operator": "In", "values": [value]});
    let mut offerings: Vec<Value> = (reservations.iter())
        .map(|(id, zone, count)| {
            json!({"Price": 0.001, "ReservationCapacity": count, "Requirements": [
                is(CAPACITY_TYPE, "reserved"), is(ZONE, zone),
                is("karpenter.k8s.aws/capacity-reservation-id", id)]})
        })
        .collect();
    offerings.push(json!({"Price": 0.1,
        "Requirements": [is(CAPACITY_TYPE, "on-demand"), is(ZONE, "a")]}));
    instance_type(name)
        .cpu("2")
        .patch(json!({"offerings": offerings}))
}

fn capacity_types(outcome: &Outcome, app: &str) -> String {
    let counts = outcome.count_by(CAPACITY_TYPE, app);
    let counts: Vec<String> = counts.iter().map(|(d, n)| format!("{d}:{n}")).collect();
    counts.join(" ")
}

#[test]
fn core_199_reservations_first_then_the_market() {
    let world = World::new()
        .add(pool("default"))
        .add(two_cores("one").reserved("a", 1, 0.001))
        .add(two_cores("two").reserved("a", 1, 0.001));
    let outcome = world.clone().add(full("web").replicas(3)).solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(3)
        .assert_price(0.102);
    assert_eq!(capacity_types(&outcome, "web"), "on-demand:1 reserved:2");

    let outcome = world.add(full("web").replicas(2)).solve();
    outcome.assert_all_placed().assert_price(0.002);
    outcome.assert_counts(INSTANCE_TYPE, "web", "one:1 two:1");
}

#[test]
fn core_199_a_reservation_without_a_machine_left() {
    let none_left = two_cores("one").reserved("a", 0, 0.001);
    let outcome = World::new()
        .add(pool("default"))
        .add(none_left)
        .add(full("web"))
        .solve();
    outcome
        .assert_all_placed()
        .assert_capacity_type("web", "on-demand")
        .assert_price(0.1);
}

#[test]
fn core_199_pods_that_insist_on_a_reservation() {
    let world = World::new()
        .add(pool("default"))
        .add(two_cores("one").reserved("a", 2, 0.001));
    let outcome = world
        .add(full("web").replicas(3).capacity_type("reserved"))
        .solve();
    assert_eq!(capacity_types(&outcome, "web"), "reserved:2", "{outcome}");
    assert_eq!(outcome.plan.unplaced.len(), 1, "{outcome}");
}

#[test]
fn core_200_one_reservation_in_two_pools() {
    let world = World::new()
        .add(pool("one"))
        .add(pool("two"))
        .add(with_reservations("small", &[("cr-1", "a", 2)]));
    let outcome = world.add(full("web").replicas(4)).solve();
    outcome.assert_all_placed();
    assert_eq!(
        capacity_types(&outcome, "web"),
        "on-demand:2 reserved:2",
        "{outcome}"
    );

    let world = World::new()
        .add(pool("one").label("team", "x"))
        .add(pool("two").label("team", "y"))
        .add(with_reservations("small", &[("cr-1", "a", 2)]));
    let pods = |team: &str| {
        full(team)
            .label("app", "web")
            .replicas(2)
            .node_selector("team", team)
    };
    let outcome = world.add(pods("x")).add(pods("y")).solve();
    outcome.assert_all_placed();
    assert_eq!(
        capacity_types(&outcome, "web"),
        "on-demand:2 reserved:2",
        "{outcome}"
    );
}

#[test]
fn core_200_one_reservation_named_by_two_types() {
    // Two types that draw on the same id share what is left of it.
    let world = World::new()
        .add(pool("default"))
        .add(with_reservations("one", &[("cr-1", "a", 1)]))
        .add(with_reservations("two", &[("cr-1", "a", 1)]));
    let outcome = world.add(full("web").replicas(2)).solve();
    outcome.assert_all_placed();
    assert_eq!(
        capacity_types(&outcome, "web"),
        "on-demand:1 reserved:1",
        "{outcome}"
    );
}

#[test]
fn core_200_several_reservations_are_counted_apart() {
    let several = with_reservations(
        "small",
        &[("cr-1", "a", 1), ("cr-2", "a", 1), ("cr-3", "b", 1)],
    );
    let outcome = World::new()
        .add(pool("default"))
        .add(several)
        .add(full("web").replicas(5));
    let outcome = outcome.solve();
    outcome.assert_all_placed().assert_price(0.203);
    assert_eq!(
        capacity_types(&outcome, "web"),
        "on-demand:2 reserved:3",
        "{outcome}"
    );

    let by_pool = World::new()
        .add(pool("one").types("first"))
        .add(pool("two").types("second"))
        .add(with_reservations("first", &[("cr-1", "a", 1)]))
        .add(with_reservations("second", &[("cr-2", "a", 1)]));
    let outcome = by_pool.add(full("web").replicas(3)).solve();
    outcome.assert_all_placed().assert_price(0.102);
    assert_eq!(
        capacity_types(&outcome, "web"),
        "on-demand:1 reserved:2",
        "{outcome}"
    );
}

#[test]
fn core_201_a_heavier_pool_goes_on_without_its_reservation() {
    let world = World::new()
        .add(pool("heavy").types("one").weight(50))
        .add(pool("light").types("two").weight(1))
        .add(two_cores("one").reserved("a", 1, 0.001))
        .add(instance_type("two").cpu("2").price(0.01));
    let outcome = world.add(full("web").replicas(2)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(NODE_POOL, "web", "heavy:2");
    assert_eq!(
        capacity_types(&outcome, "web"),
        "on-demand:1 reserved:1",
        "{outcome}"
    );
}

#[test]
fn core_201_a_heavier_pool_of_nothing_but_a_reservation() {
    let world = World::new()
        .add(pool("heavy").capacity_types("reserved").weight(50))
        .add(pool("light").capacity_types("on-demand").weight(1))
        .add(two_cores("one").reserved("a", 1, 0.001));
    let outcome = world.add(full("web").replicas(2)).solve();
    outcome
        .assert_all_placed()
        .assert_counts(NODE_POOL, "web", "heavy:1 light:1");
}

#[test]
fn core_202_wishes_outrank_reservations() {
    let world = World::new()
        .add(pool("default"))
        .add(two_cores("one").reserved("a", 1, 0.001));
    let elsewhere = full("web").prefer_node(1, ZONE, "In", "b");
    let outcome = world.clone().add(elsewhere).solve();
    outcome
        .assert_all_placed()
        .assert_zone("web", "b")
        .assert_price(0.1);

    // Another pod has the reservation; the wish for its zone stays.
    let near = full("near").prefer_node(1, ZONE, "In", "a");
    let outcome = world
        .add(full("first").capacity_type("reserved"))
        .add(near)
        .solve();
    outcome
        .assert_all_placed()
        .assert_zone("near", "a")
        .assert_capacity_type("near", "on-demand");
}

#[test]
fn core_202_a_wish_for_a_reservation_falls_when_there_is_none() {
    let world = World::new()
        .add(pool("default"))
        .add(two_cores("one").reserved("a", 1, 0.001));
    let wish = full("web")
        .replicas(2)
        .prefer_node(1, CAPACITY_TYPE, "In", "reserved");
    let outcome = world.add(wish).solve();
    outcome.assert_all_placed();
    assert_eq!(
        capacity_types(&outcome, "web"),
        "on-demand:1 reserved:1",
        "{outcome}"
    );
}

#[test]
fn core_203_one_node_uses_one_unit() {
    let world = World::new()
        .add(pool("default"))
        .add(two_cores("one").reserved("a", 1, 0.001));
    let outcome = world
        .clone()
        .add(pod("web").replicas(4).cpu("500m"))
        .solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_price(0.001);
    assert_eq!(
        outcome
            .open("web-0", CAPACITY_TYPE)
            .into_iter()
            .collect::<Vec<_>>(),
        ["reserved"]
    );

    let outcome = world.add(pod("web").replicas(5).cpu("500m")).solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(2)
        .assert_price(0.101);
}

#[test]
fn core_203_reservations_and_spread() {
    let small = two_cores("one")
        .reserved("a", 2, 0.001)
        .reserved("b", 1, 0.001);
    let world = World::new().add(pool("default")).add(small);
    let outcome = world
        .add(full("web").replicas(6).spread_over_zones(1))
        .solve();
    outcome
        .assert_all_placed()
        .assert_counts(ZONE, "web", "a:2 b:2 c:2")
        .assert_price(0.303);
}
