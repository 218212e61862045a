//! Upstream behaviors 80 to 85 and 90 to 92: what pods need, and how they share nodes.
//!
//! Each test is named after the number of the behavior that it pins.

use joiner_testkit::{PodBuilder, World, daemon, instance_type, pod, pool};
use serde_json::json;

#[test]
fn core_080_small_pods_get_the_cheapest_type() {
    let world = || {
        let odd = instance_type("odd").cpu("1").memory("1Gi").price(0.09);
        World::standard().add(odd)
    };
    let outcome = world().add(pod("web").cpu("100m")).solve();
    outcome.assert_type("web", "odd").assert_price(0.09);
    let types = outcome.plan.launches[0].types.iter();
    let names: Vec<_> = types.map(|ty| &*outcome.problem[*ty].name).collect();
    assert_eq!(names, ["odd", "small", "medium", "large"]);
    world()
        .add(pod("web").replicas(10).cpu("100m"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_price(0.09);
    world()
        .add(pod("web").replicas(10).cpu("200m"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_type("web-0", "small");
}

#[test]
fn core_081_runtime_overhead_counts() {
    let overhead = json!({"spec": {"runtimeClassName": "vm", "overhead": {"cpu": "1"}}});
    World::standard()
        .add(pod("web").cpu("1500m").patch(overhead.clone()))
        .solve()
        .assert_type("web", "medium");
    World::standard()
        .add(pod("huge").cpu("7500m").patch(overhead))
        .solve()
        .assert_left_over("huge", "cpu");
}

#[test]
fn core_082_large_and_small_pods_mix() {
    let four = || World::new().add(pool("default")).add(instance_type("four"));
    four()
        .add(pod("small").replicas(2).cpu("1"))
        .add(pod("large").replicas(2).cpu("3"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(2)
        .assert_apart("large-0", "large-1")
        .assert_apart("small-0", "small-1");
    four()
        .add(pod("tiny").replicas(40).cpu("100m").memory("100Mi"))
        .add(pod("middle").replicas(20).cpu("1").memory("1Gi"))
        .add(pod("big").replicas(10).cpu("2").memory("1Gi"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(11);
}

#[test]
fn core_082_complements_share_nodes() {
    World::new()
        .add(pool("default"))
        .add(instance_type("four").cpu("4").memory("4Gi"))
        .add(pod("cpu").replicas(5).cpu("3").memory("1Gi"))
        .add(pod("memory").replicas(5).cpu("1").memory("3Gi"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(5);
}

#[test]
fn core_083_zero_is_nothing() {
    World::standard()
        .add(pod("web").cpu("0").request("example.com/gpu", "0"))
        .add(pod("init").init_container("0", "0"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_type("web", "small");
}

#[test]
fn core_084_pods_per_node() {
    World::new()
        .add(pool("default"))
        .add(instance_type("tight").pods(2))
        .add(pod("web").replicas(5))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(3);
    World::new()
        .add(pool("default"))
        .add(instance_type("tight").pods(2))
        .add(daemon("agent"))
        .add(pod("web").replicas(3))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(3);
}

#[test]
fn core_084_a_node_without_room_for_pods() {
    World::new()
        .add(pool("default"))
        .add(instance_type("none").pods(0))
        .add(pod("web"))
        .solve()
        .assert_left_over("web", "pods");
}

#[test]
fn core_085_init_containers_size_the_node() {
    World::standard()
        .add(pod("web").cpu("1").init_container("3", "1Gi"))
        .solve()
        .assert_type("web", "medium");
    World::standard()
        .add(pod("web").cpu("1").init_container("9", "1Gi"))
        .solve()
        .assert_left_over("web", "cpu");
    World::standard()
        .add(
            pod("web")
                .cpu("1")
                .init_container("2", "1Gi")
                .init_container("2", "8Gi"),
        )
        .solve()
        .assert_type("web", "small");
}

fn around_eleven() -> World {
    let sizes = [
        ("ten", "10", "4Gi", 1.0),
        ("eleven", "11", "5Gi", 1.1),
        ("twelve", "12", "6Gi", 1.2),
    ];
    let types = sizes
        .map(|(name, cpu, memory, price)| instance_type(name).cpu(cpu).memory(memory).price(price));
    World::new().add(pool("default")).add(types)
}

#[test]
fn core_090_sidecars_and_init_containers() {
    let main = |cpu: &str| pod("web").cpu(cpu).memory("2Gi");
    let pods: [PodBuilder; 3] = [
        main("6")
            .init_container("10", "1Gi")
            .sidecar("4900m", "2969Mi"),
        main("6")
            .sidecar("4900m", "2969Mi")
            .init_container("5", "1Gi"),
        main("5")
            .sidecar("4900m", "2969Mi")
            .init_container("6", "2Gi"),
    ];
    for pod in pods {
        around_eleven()
            .add(pod)
            .solve()
            .assert_type("web", "eleven");
    }
    let early = main("5").init_container("6", "2Gi").sidecar("4900m", "1Gi");
    around_eleven().add(early).solve().assert_type("web", "ten");
}

#[test]
fn core_091_pod_level_requests_override() {
    let level = json!({"spec": {"resources": {"requests": {"cpu": "9900m"}}}});
    let web = pod("web").cpu("6").sidecar("5", "1Gi").patch(level);
    around_eleven().add(web).solve().assert_type("web", "ten");
}

#[test]
fn core_092_limits_stand_for_requests() {
    World::standard()
        .add(pod("web").limit("cpu", "3"))
        .solve()
        .assert_type("web", "medium");
    World::standard()
        .add(pod("web").limit("cpu", "3").cpu("1"))
        .solve()
        .assert_type("web", "small");
    World::standard()
        .add(daemon("agent").limit("cpu", "3"))
        .add(pod("web").cpu("1500m"))
        .solve()
        .assert_type("web", "large");
}

/// Nodes for three pods at 0.25 and for five pods at 0.35.
fn three_or_five() -> World {
    World::new()
        .add(pool("default"))
        .add(instance_type("three").pods(3).price(0.25))
        .add(instance_type("five").pods(5).price(0.35))
}

#[test]
fn core_080_two_of_the_smaller_type_when_that_is_cheaper() {
    three_or_five()
        .add(pod("web").replicas(6))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(2)
        .assert_price(0.5);
    three_or_five()
        .add(pod("one").replicas(3).cpu("100m"))
        .add(pod("other").replicas(3).cpu("500m"))
        .solve()
        .assert_all_placed()
        .assert_price(0.5);
}
