//! Cordon and drain.

use serde_json::json;

use crate::nodes::world::{NODES, PODS, World, node, pod};

#[test]
fn a_cordoned_node_is_left_alone_and_a_drained_one_is_empty() {
    let mut world = World::whole();
    for name in ["a", "b"] {
        world.create(NODES, node(name, json!({})));
    }
    for ix in 0..4 {
        world.create(PODS, pod(&format!("p{ix}"), "100m", json!({})));
    }
    world.pass(5);
    world.patch(NODES, "a", json!({"spec": {"unschedulable": true}}));
    world.settle();
    let taints = world.get(NODES, "a")["spec"]["taints"].clone();
    assert_eq!(taints[0]["key"], "node.kubernetes.io/unschedulable");
    let on_a: Vec<String> = (0..4)
        .map(|ix| format!("p{ix}"))
        .filter(|name| world.node_of(name).as_deref() == Some("a"))
        .collect();
    for name in &on_a {
        world.delete(PODS, name);
    }
    world.pass(2);
    for name in &on_a {
        assert!(world.find(PODS, name).is_none(), "{name}");
        world.create(PODS, pod(name, "100m", json!({})));
    }
    world.pass(5);
    assert!((0..4).all(|ix| world.node_of(&format!("p{ix}")).as_deref() == Some("b")));
    world.patch(NODES, "a", json!({"spec": {"unschedulable": null}}));
    world.settle();
    assert!(world.get(NODES, "a")["spec"]["taints"].is_null());
}
