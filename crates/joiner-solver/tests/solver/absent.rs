//! Zones and instance types that are named and that there are none of.

use joiner_testkit::{World, node, pod};

#[test]
fn a_zone_that_does_not_exist_is_the_first_reason() {
    let outcome = World::standard().add(pod("web").zone("d")).solve();
    let said = "zone \"d\" does not exist in the catalog (did you mean \"a\", \"b\" or \"c\"?)";
    assert!(outcome.reasons("web").starts_with(said), "{outcome}");
    let told = joiner_solver::absent(&outcome.problem);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(told[0].0.to_string(), said);
    assert_eq!(told[0].1, "pod default/web");
}

#[test]
fn a_zone_of_a_node_exists() {
    let outcome = World::standard()
        .add(node("there").zone("d").cpu("1"))
        .add(pod("web").zone("d").cpu("4"))
        .solve();
    assert!(
        !outcome.reasons("web").contains("does not exist"),
        "{outcome}"
    );
    assert!(joiner_solver::absent(&outcome.problem).is_empty());
}

#[test]
fn pods_that_name_the_same_are_told_of_together() {
    let outcome = World::standard()
        .add(pod("web").replicas(3).zone("mars"))
        .solve();
    let told = joiner_solver::absent(&outcome.problem);
    assert_eq!(told.len(), 1, "{told:?}");
    assert_eq!(
        told[0].0.to_string(),
        "zone \"mars\" does not exist in the catalog"
    );
    assert!(told[0].1.ends_with(" and 2 more"), "{told:?}");
}
