//! Upstream behaviors 52 to 62 and 73 to 75: hard constraints between pods and pools.
//!
//! Each test is named after the number of the behavior that it pins.

use joiner_testkit::{
    ARCH, CAPACITY_TYPE, HOSTNAME, INSTANCE_TYPE, InstanceTypeBuilder, Outcome, PodBuilder,
    PoolBuilder, World, ZONE, instance_type, pod, pool,
};
use serde_json::json;

const TEAM: &str = "example.com/team";
const CORES: &str = "example.com/cores";

/// The catalog of [`World::standard`] with a pool of one's own.
fn world(pool: PoolBuilder) -> World {
    World::new().add(pool).add(sizes())
}

fn sizes() -> [InstanceTypeBuilder; 3] {
    [
        ("small", "2", 0.1),
        ("medium", "4", 0.2),
        ("large", "8", 0.4),
    ]
    .map(|(name, cpu, price)| instance_type(name).cpu(cpu).label(CORES, cpu).price(price))
}

/// One pod on one pool.
fn meet(pool: PoolBuilder, pod: PodBuilder) -> Outcome {
    world(pool).add(pod).solve()
}

#[test]
fn core_052_pod_without_constraints() {
    World::standard()
        .add(pod("web"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_type("web", "small");
}

#[test]
fn core_053_selector_against_pool_label() {
    let pool = pool("default").label(TEAM, "red");
    meet(pool, pod("web").node_selector(TEAM, "blue"))
        .assert_left_over("web", TEAM)
        .assert_left_over("web", "blue")
        .assert_new_nodes(0);
}

#[test]
fn core_054_undefined_custom_label() {
    for (operator, values) in [("In", "red"), ("Exists", ""), ("Gt", "1"), ("Lt", "1")] {
        meet(
            pool("default"),
            pod("web").node_affinity(TEAM, operator, values),
        )
        .assert_left_over("web", TEAM)
        .assert_new_nodes(0);
    }
    for (operator, values) in [("NotIn", "red"), ("DoesNotExist", "")] {
        meet(
            pool("default"),
            pod("web").node_affinity(TEAM, operator, values),
        )
        .assert_all_placed()
        .assert_new_nodes(1);
    }
    meet(pool("default"), pod("web").node_selector(TEAM, "red")).assert_left_over("web", TEAM);
}

#[test]
fn core_055_negated_selection_of_a_defined_label() {
    for (operator, values) in [
        ("NotIn", "red"),
        ("NotIn", "blue red"),
        ("DoesNotExist", ""),
    ] {
        let pool = pool("default").label(TEAM, "red");
        meet(pool, pod("web").node_affinity(TEAM, operator, values))
            .assert_left_over("web", TEAM)
            .assert_new_nodes(0);
    }
    let pool = pool("default").label(TEAM, "red");
    meet(pool, pod("web").node_affinity(TEAM, "NotIn", "blue")).assert_all_placed();
}

#[test]
fn core_055_negated_selection_of_a_required_key() {
    let pool = || pool("default").requirement(TEAM, "In", "red blue");
    meet(pool(), pod("web").node_affinity(TEAM, "DoesNotExist", "")).assert_left_over("web", TEAM);
    meet(pool(), pod("web").node_affinity(TEAM, "NotIn", "red blue")).assert_left_over("web", TEAM);
    meet(pool(), pod("web").node_affinity(TEAM, "NotIn", "red")).assert_all_placed();
}

/// Whether the new node of a pod may get this value of the team label.
fn may_have_team(outcome: &Outcome, pod: &str, team: &str) -> bool {
    let name = &outcome.seat(pod).node;
    let mut launches = outcome.plan.launches.iter();
    let launch = launches.find(|launch| *launch.name == **name);
    let launch = launch.expect("the pod is on a new node");
    let template = &outcome.problem[launch.pool].requirements;
    let said = launch.requirements.iter().chain(template.iter());
    let mut said = said.filter(|requirement| &**requirement.key() == TEAM);
    said.all(|requirement| requirement.has(team))
}

#[test]
fn core_056_custom_key_gets_a_value_of_the_pool() {
    let pool = || pool("default").requirement(TEAM, "In", "red blue");
    for pod in [pod("web"), pod("web").node_affinity(TEAM, "Exists", "")] {
        let outcome = meet(pool(), pod);
        outcome.assert_all_placed();
        let may = |team| may_have_team(&outcome, "web", team);
        assert!(may("red") || may("blue"), "no value is left\n{outcome}");
        assert!(!may("green"), "a value that the pool does not have");
    }
    let outcome = meet(pool(), pod("web").node_affinity(TEAM, "NotIn", "red"));
    assert!(may_have_team(&outcome, "web", "blue"), "{outcome}");
    assert!(!may_have_team(&outcome, "web", "red"), "{outcome}");
}

#[test]
fn core_056_custom_key_parts_pods_that_want_different_values() {
    let outcome = world(pool("default").requirement(TEAM, "In", "red blue"))
        .add(pod("red").node_selector(TEAM, "red"))
        .add(pod("blue").node_selector(TEAM, "blue"))
        .add(pod("any").node_affinity(TEAM, "Exists", ""))
        .solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(2)
        .assert_apart("red", "blue");
    for team in ["red", "blue"] {
        assert!(may_have_team(&outcome, "red", team) == (team == "red"));
        assert!(may_have_team(&outcome, "blue", team) == (team == "blue"));
    }
}

#[test]
fn core_056_custom_key_that_only_has_to_exist_takes_what_pods_ask() {
    let outcome = world(pool("default").requirement(TEAM, "Exists", ""))
        .add(pod("red").node_selector(TEAM, "red"))
        .add(pod("blue").node_selector(TEAM, "blue"))
        .add(pod("not-red").node_affinity(TEAM, "NotIn", "red"))
        .solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(2)
        .assert_apart("red", "blue")
        .assert_together("not-red", "blue");
    meet(
        pool("default").requirement(TEAM, "Exists", ""),
        pod("web").node_affinity(TEAM, "DoesNotExist", ""),
    )
    .assert_left_over("web", TEAM);
}

#[test]
fn core_057_compatible_selectors_share_a_node() {
    let outcome = World::standard()
        .add(pod("one").zone("b"))
        .add(pod("other").node_affinity(ZONE, "In", "b c"))
        .solve();
    outcome
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_together("one", "other")
        .assert_zone("other", "b");
}

#[test]
fn core_057_incompatible_selectors_make_two_nodes() {
    World::standard()
        .add(pod("one").node_affinity(ZONE, "In", "a b"))
        .add(pod("other").node_affinity(ZONE, "NotIn", "a b"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(2)
        .assert_apart("one", "other")
        .assert_zone("other", "c");
}

#[test]
fn core_058_zone_of_the_pool() {
    let pool = || pool("default").zones("a b");
    meet(pool(), pod("web").zone("b"))
        .assert_all_placed()
        .assert_zone("web", "b");
    for zone in ["c", "nowhere"] {
        meet(pool(), pod("web").zone(zone))
            .assert_left_over("web", ZONE)
            .assert_left_over("web", zone)
            .assert_new_nodes(0);
    }
    World::standard()
        .add(pod("web").zone("nowhere"))
        .solve()
        .assert_left_over("web", "nowhere");
}

#[test]
fn core_058_zone_in_its_old_spelling() {
    let old = "failure-domain.beta.kubernetes.io/zone";
    meet(
        pool("default").zones("a b"),
        pod("web").node_selector(old, "b"),
    )
    .assert_zone("web", "b");
    meet(pool("default").requirement(old, "In", "c"), pod("web")).assert_zone("web", "c");
}

#[test]
fn core_059_hostname_of_a_node_that_is_not_there() {
    World::standard()
        .add(pod("web").node_selector(HOSTNAME, "red"))
        .add(pod("term").node_affinity(HOSTNAME, "In", "red blue"))
        .solve()
        .assert_left_over("web", HOSTNAME)
        .assert_left_over("term", HOSTNAME)
        .assert_new_nodes(0);
}

#[test]
fn core_060_restricted_labels() {
    for key in [
        "karpenter.sh/x",
        "sub.karpenter.sh/x",
        "karpenter.k8s.aws/x",
    ] {
        World::standard()
            .add(pod("web").node_selector(key, "y"))
            .add(pod("term").node_affinity(key, "Exists", ""))
            .add(pod("plain"))
            .solve()
            .assert_left_over("web", key)
            .assert_left_over("term", key)
            .assert_on_new_node("plain");
    }
}

#[test]
fn core_061_kubernetes_domains_are_free() {
    for key in [
        "kubernetes.io/tier",
        "node-restriction.kubernetes.io/team",
        "kops.k8s.io/instancegroup",
        "node.kubernetes.io/exclude-from-external-load-balancers",
    ] {
        meet(
            pool("default").label(key, "x"),
            pod("web").node_selector(key, "x"),
        )
        .assert_all_placed()
        .assert_new_nodes(1);
        meet(
            pool("default").requirement(key, "In", "x y"),
            pod("web").node_affinity(key, "In", "y z"),
        )
        .assert_all_placed();
    }
}

#[test]
fn core_062_bounds_of_a_pod() {
    let cases = [
        ("Gt", "4", "large"),
        ("Gt", "2", "medium"),
        ("Lt", "8", "small"),
        ("Gt", "3", "medium"),
        ("Lt", "3", "small"),
    ];
    for (operator, bound, expected) in cases {
        meet(
            pool("default"),
            pod("web").node_affinity(CORES, operator, bound),
        )
        .assert_type("web", expected);
    }
    let between = pod("web")
        .node_affinity(CORES, "Gt", "2")
        .node_affinity(CORES, "Lt", "8");
    meet(pool("default"), between).assert_type("web", "medium");
    meet(pool("default"), pod("web").node_affinity(CORES, "Gt", "8"))
        .assert_left_over("web", CORES);
    meet(pool("default"), pod("web").node_affinity(CORES, "Lt", "2"))
        .assert_left_over("web", CORES);
    let nothing = pod("web")
        .node_affinity(CORES, "Gt", "4")
        .node_affinity(CORES, "Lt", "5");
    meet(pool("default"), nothing).assert_left_over("web", CORES);
}

#[test]
fn core_062_bounds_of_a_pool() {
    let cases = [
        ("Gt", "4", "large"),
        ("Gte", "4", "medium"),
        ("Gte", "5", "large"),
        ("Lt", "4", "small"),
        ("Lte", "4", "small"),
    ];
    for (operator, bound, expected) in cases {
        meet(
            pool("default").requirement(CORES, operator, bound),
            pod("web"),
        )
        .assert_type("web", expected);
    }
    let between = pool("default")
        .requirement(CORES, "Gte", "4")
        .requirement(CORES, "Lte", "4");
    let outcome = meet(between, pod("web"));
    outcome.assert_type("web", "medium");
    assert_eq!(outcome.plan.launches[0].types.len(), 1, "{outcome}");
    let pool = || pool("default").requirement(CORES, "Lte", "4");
    meet(pool(), pod("web").cpu("5")).assert_left_over("web", "cpu");
    meet(pool(), pod("web").node_affinity(CORES, "Gt", "2")).assert_type("web", "medium");
}

#[test]
fn core_062_a_bound_is_not_met_by_text() {
    World::new()
        .add(pool("default"))
        .add(instance_type("odd").label(CORES, "many").price(0.01))
        .add(instance_type("bare").price(0.01))
        .add(sizes())
        .add(pod("more").node_affinity(CORES, "Gt", "1"))
        .add(pod("less").node_affinity(CORES, "Lt", "100"))
        .solve()
        .assert_all_placed()
        .assert_type("more", "small")
        .assert_together("more", "less");
}

#[test]
fn core_073_taints_of_a_pool() {
    let pool = || pool("default").taint("team=red:NoSchedule");
    for refused in [
        pod("web"),
        pod("web").tolerate("team=blue:NoSchedule"),
        pod("web").tolerate("team=red:NoExecute"),
        pod("web").tolerate("other"),
    ] {
        meet(pool(), refused)
            .assert_left_over("web", "team=red:NoSchedule")
            .assert_new_nodes(0);
    }
    for toleration in [
        "team=red:NoSchedule",
        "team=red",
        "team",
        "team:NoSchedule",
        "",
    ] {
        meet(pool(), pod("web").tolerate(toleration)).assert_all_placed();
    }
}

#[test]
fn core_073_every_taint_must_be_tolerated() {
    let pool = || {
        let first = pool("default").taint("team=red:NoSchedule");
        first.taint("gpu:NoExecute")
    };
    meet(pool(), pod("web").tolerate("team")).assert_left_over("web", "gpu");
    meet(pool(), pod("web").tolerate("team").tolerate("gpu")).assert_all_placed();
}

#[test]
fn core_073_a_refused_pod_does_not_join_one_that_is_not() {
    World::standard()
        .add(pool("tainted").taint("team=red:NoSchedule").weight(50))
        .add(pod("red").cpu("500m").tolerate("team"))
        .add(pod("plain").cpu("500m"))
        .solve()
        .assert_all_placed()
        .assert_pool("plain", "default");
}

#[test]
fn core_074_startup_taints_keep_nobody_out() {
    let pool = pool("default").startup_taint("boot:NoSchedule");
    meet(pool.startup_taint("late=x:NoExecute"), pod("web"))
        .assert_all_placed()
        .assert_new_nodes(1);
}

#[test]
fn core_075_a_toleration_makes_no_taint() {
    let everything = pod("any").tolerate("").tolerate("team").cpu("500m");
    World::standard()
        .add(everything)
        .add(pod("plain").cpu("500m"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(1)
        .assert_together("any", "plain");
}

#[test]
fn core_060_well_known_labels_of_restricted_domains_are_free() {
    World::standard()
        .add(pod("capacity").node_selector(CAPACITY_TYPE, "on-demand"))
        .add(pod("pool").node_selector("karpenter.sh/nodepool", "default"))
        .add(pod("exists").node_affinity("karpenter.sh/nodepool", "Exists", ""))
        .add(pod("arch").node_affinity(ARCH, "Exists", ""))
        .add(pod("type").node_affinity(INSTANCE_TYPE, "NotIn", "large"))
        .solve()
        .assert_all_placed()
        .assert_new_nodes(1);
}

#[test]
fn core_060_a_pod_that_wants_no_pool_is_left_alone() {
    let key = "karpenter.sh/nodepool";
    let outcome = World::standard()
        .add(pod("web").node_affinity(key, "DoesNotExist", ""))
        .solve();
    outcome.assert_new_nodes(0);
    assert!(outcome.find("web").is_none(), "{outcome}");
}

#[test]
fn core_060_match_fields_are_not_supported() {
    let term = json!({"matchFields": [
        {"key": "metadata.name", "operator": "In", "values": ["node-1"]}]});
    let affinity = json!({"nodeAffinity": {
        "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": [term]}}});
    World::standard()
        .add(pod("web").patch(json!({"spec": {"affinity": affinity}})))
        .solve()
        .assert_left_over("web", "matchFields")
        .assert_new_nodes(0);
}
