//! Pods that are left over: how offerings are ruled out for them, and which single change helps.

use joiner_model::{NanoDollars, PodIx};
use joiner_solver::{Place, explain, remedies};
use joiner_testkit::{HOSTNAME, Outcome, World, ZONE, instance_type, node, pod, pool};
use serde_json::json;

/// Everything that helps a pod, best first, as text.
fn helps(outcome: &Outcome, name: &str) -> Vec<String> {
    let shown = |own: &joiner_solver::Remedy| {
        let place = match &own.place {
            Place::Node(node) => node.to_string(),
            Place::New { instance_type, .. } => format!("new {instance_type}"),
        };
        format!("{} => {place} at {}", own.change, own.price)
    };
    let all = remedies(&outcome.problem, &outcome.plan, ix(outcome, name));
    all.iter().map(shown).collect()
}

fn ix(outcome: &Outcome, name: &str) -> PodIx {
    let full = format!("default/{name}");
    let at = outcome
        .problem
        .pods
        .iter()
        .position(|own| *own.name == *full);
    PodIx(
        at.and_then(|at| u32::try_from(at).ok())
            .expect("the pod is there"),
    )
}

/// The last step of each pool's funnel.
fn ends(outcome: &Outcome, name: &str) -> Vec<(String, String, usize)> {
    let funnel = explain(&outcome.problem, &outcome.plan, ix(outcome, name));
    let last = |(pool, steps): &(joiner_model::Name, Vec<joiner_solver::FunnelStep>)| {
        let last = steps.last().expect("a funnel has steps");
        (pool.to_string(), last.question.clone(), last.n_left)
    };
    funnel.pools.iter().map(last).collect()
}

/// Solves a world in which `web` is left over; the first change that helps must be this one, and
/// the funnels of all pools end with none.
fn first(world: &World, change: &str) {
    let outcome = world.solve();
    let found = helps(&outcome, "web");
    assert_eq!(
        found.first().map(String::as_str),
        Some(change),
        "{found:#?}"
    );
    for (pool, question, n_left) in ends(&outcome, "web") {
        assert_eq!(n_left, 0, "{pool}: {question}");
    }
}

fn types() -> [joiner_testkit::InstanceTypeBuilder; 2] {
    [("small", "2", 0.1), ("large", "8", 0.4)]
        .map(|(name, cpu, price)| instance_type(name).cpu(cpu).memory("32Gi").price(price))
}

fn world(pool: joiner_testkit::PoolBuilder) -> World {
    World::new().add(pool).add(types())
}

#[test]
fn a_toleration() {
    first(
        &world(pool("db").taint("team=db:NoSchedule")).add(pod("web").cpu("1")),
        "let the pod tolerate team=db:NoSchedule => new small at 0.10",
    );
}

#[test]
fn two_taints_are_two_changes() {
    let pool = pool("db")
        .taint("team=db:NoSchedule")
        .taint("gpu=yes:NoSchedule");
    let outcome = world(pool).add(pod("web").cpu("1")).solve();
    assert_eq!(helps(&outcome, "web"), Vec::<String>::new());
}

#[test]
fn nobody_is_told_to_tolerate_a_node_that_is_out_of_order() {
    let outcome = World::new()
        .add(
            node("old")
                .cpu("8")
                .taint("node.kubernetes.io/unreachable:NoSchedule"),
        )
        .add(pod("web").cpu("1"))
        .solve();
    assert_eq!(helps(&outcome, "web"), Vec::<String>::new());
}

#[test]
fn a_node_selector() {
    first(
        &world(pool("general").zones("a b")).add(pod("web").cpu("1").zone("z")),
        "drop topology.kubernetes.io/zone=z from the pod's node selector => new small at 0.10",
    );
}

#[test]
fn a_required_node_affinity() {
    first(
        &world(pool("general")).add(pod("web").cpu("1").node_affinity(ZONE, "In", "y z")),
        "drop topology.kubernetes.io/zone In [y z] from the pod's required node affinity => \
         new small at 0.10",
    );
}

#[test]
fn a_larger_limit_as_large_as_it_has_to_be() {
    let there = node("old").cpu("3").pool("general").instance_type("old");
    first(
        &world(pool("general").limit("cpu", "4"))
            .add(there)
            .add(pod("there").cpu("3").on("old"))
            .add(pod("web").cpu("1")),
        "raise the cpu limit of NodePool \"general\" from 4 to 5 => new small at 0.10",
    );
}

#[test]
fn what_the_plan_buys_counts_against_the_limit() {
    let outcome = world(pool("general").limit("cpu", "2"))
        .add(pod("a").cpu("1800m"))
        .add(pod("web").cpu("1500m"))
        .solve();
    let left = outcome.plan.unplaced[0].pod;
    let name = outcome.problem[left].name.clone();
    let name = name.split_once('/').unwrap().1;
    let found = helps(&outcome, name);
    let raised = "raise the cpu limit of NodePool \"general\" from 2 to 4 => new small at 0.10";
    assert!(found.contains(&raised.to_owned()), "{found:#?}");
    let ends = ends(&outcome, name);
    assert_eq!(ends[0].1, "within the limits of the pool (cpu 2, 0 left)");
    assert_eq!(ends[0].2, 0);
}

#[test]
fn a_smaller_request() {
    first(
        &world(pool("general")).add(pod("web").cpu("9")),
        "request 8 of cpu instead of 9 => new large at 0.40",
    );
}

#[test]
fn a_request_that_is_cut_by_much_comes_last() {
    let outcome = world(pool("general").limit("cpu", "4"))
        .add(pod("web").cpu("6"))
        .solve();
    let raised = "raise the cpu limit of NodePool \"general\" from 4 to 8 => new large at 0.40";
    // Two cores would do for six only by name.
    assert_eq!(helps(&outcome, "web"), [raised]);
    let outcome = world(pool("general").limit("cpu", "4"))
        .add(pod("web").cpu("3"))
        .solve();
    assert_eq!(
        helps(&outcome, "web"),
        [raised, "request 2 of cpu instead of 3 => new small at 0.10"]
    );
}

#[test]
fn a_hole_in_a_node_there_is() {
    first(
        &World::new()
            .add(node("old").cpu("4").memory("16Gi"))
            .add(pod("there").cpu("1").on("old"))
            .add(pod("web").cpu("3500m")),
        "request 3 of cpu instead of 3500m => old at 0.00",
    );
}

#[test]
fn a_pool_that_allows_too_little() {
    let arm = instance_type("arm")
        .cpu("8")
        .memory("32Gi")
        .price(0.05)
        .arch("arm64");
    let arm_pool = world(pool("general").arch("amd64")).add(arm);
    let outcome = arm_pool.add(pod("web").cpu("1").arch("arm64")).solve();
    let found = helps(&outcome, "web");
    let widened = "let NodePool \"general\" have kubernetes.io/arch In [arm64] => new arm at 0.05";
    assert_eq!(found[0], widened, "{found:#?}");
}

#[test]
fn a_label_that_no_pool_has() {
    let outcome = world(pool("general"))
        .add(pod("web").cpu("1").node_selector("example.com/team", "db"))
        .solve();
    assert_eq!(
        helps(&outcome, "web"),
        [
            "drop example.com/team=db from the pod's node selector => new small at 0.10",
            "give NodePool \"general\" the label example.com/team=db => new small at 0.10"
        ]
    );
}

#[test]
fn a_requirement_of_the_pool() {
    let outcome = world(pool("general").types("small"))
        .add(pod("web").cpu("4"))
        .solve();
    let found = helps(&outcome, "web");
    assert_eq!(
        found[0],
        "drop node.kubernetes.io/instance-type In [small] from NodePool \"general\" => \
         new large at 0.40",
        "{found:#?}"
    );
}

#[test]
fn min_values() {
    let pool = pool("general").min_values("node.kubernetes.io/instance-type", "Exists", "", 5);
    let outcome = world(pool).add(pod("web").cpu("1")).solve();
    let found = helps(&outcome, "web");
    let dropped = "drop minValues of node.kubernetes.io/instance-type from NodePool \"general\" \
                   => new small at 0.10";
    assert!(found.contains(&dropped.to_owned()), "{found:#?}");
}

#[test]
fn a_pool_that_is_not_in_use() {
    let world = world(pool("general").not_ready("its class is gone")).add(pod("web").cpu("1"));
    let outcome = world.solve();
    let found = helps(&outcome, "web");
    assert!(
        found[0].starts_with("put NodePool \"general\" in use: "),
        "{found:#?}"
    );
    assert!(found[0].ends_with("new small at 0.10"), "{found:#?}");
    assert!(
        ends(&outcome, "web")[0]
            .1
            .starts_with("in use, which the pool is not")
    );
}

#[test]
fn company_that_is_not_to_be_had() {
    let apart = || pod("web").cpu("1").anti_affinity_to(ZONE, "busy");
    let busy = |zone: &str| {
        let name = format!("in-{zone}");
        let there = node(&name).cpu("1").zone(zone);
        let pod = pod(&format!("busy-{zone}")).label("app", "busy").cpu("1");
        (there, pod.on(&name))
    };
    let mut world = world(pool("general")).add(apart());
    for zone in ["a", "b", "c"] {
        let (there, pod) = busy(zone);
        world = world.add(there).add(pod);
    }
    first(
        &world,
        "make the pod's anti-affinity over topology.kubernetes.io/zone a preference => \
         new small at 0.10",
    );
}

#[test]
fn affinity_to_pods_that_are_not_there() {
    first(
        &world(pool("general")).add(pod("web").cpu("1").affinity_to(HOSTNAME, "nobody")),
        "make the pod's affinity over kubernetes.io/hostname a preference => new small at 0.10",
    );
}

#[test]
fn a_spread_that_leaves_no_zone() {
    let there = node("there").cpu("1").zone("a");
    let world = world(pool("general").zones("a"))
        .add(there)
        .add(node("empty").cpu("100m").zone("b"))
        .add(pod("one").label("app", "web").cpu("1").on("there"))
        .add(pod("web").cpu("1").spread_over_zones(1));
    first(
        &world,
        "make the pod's spread over topology.kubernetes.io/zone ScheduleAnyway => \
         new small at 0.10",
    );
}

#[test]
fn a_host_port_that_daemons_have() {
    let world = world(pool("general"))
        .add(joiner_testkit::daemon("agent").cpu("100m").host_port(80))
        .add(pod("web").cpu("1").host_port(80));
    first(&world, "give up host port 80 => new small at 0.10");
}

#[test]
fn volumes_that_are_elsewhere() {
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume",
        "metadata": {"name": "v"}, "spec": {
            "csi": {"driver": "ebs.csi.aws.com", "volumeHandle": "vol"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions":
                [{"key": ZONE, "operator": "In", "values": ["z"]}]}]}}}});
    let claim = json!({"apiVersion": "v1", "kind": "PersistentVolumeClaim",
        "metadata": {"name": "v", "namespace": "default",
            "annotations": {"pv.kubernetes.io/bind-completed": "yes"}},
        "spec": {"storageClassName": "", "volumeName": "v"}, "status": {"phase": "Bound"}});
    let world = world(pool("general")).add([volume, claim]);
    first(
        &world.add(pod("web").cpu("1").volume_claim("v")),
        "use volumes that can be reached from where a node can be had => new small at 0.10",
    );
}

#[test]
fn the_cheapest_comes_first() {
    let cheap = instance_type("spotty")
        .cpu("8")
        .memory("32Gi")
        .spot_price(0.01);
    let outcome = world(
        pool("dear")
            .capacity_types("on-demand")
            .taint("a=1:NoSchedule"),
    )
    .add(cheap)
    .add(pool("cheap").capacity_types("spot").taint("b=1:NoSchedule"))
    .add(pod("web").cpu("1"))
    .solve();
    assert_eq!(
        helps(&outcome, "web"),
        [
            "let the pod tolerate b=1:NoSchedule => new spotty at 0.01",
            "let the pod tolerate a=1:NoSchedule => new small at 0.10"
        ]
    );
}

#[test]
fn a_bound_number_of_questions() {
    let mut world = World::new().add(types()).add(pod("web").cpu("1"));
    for n in 0..60 {
        world = world.add(pool(&format!("p{n}")).taint(&format!("t{n}=1:NoSchedule")));
    }
    let outcome = world.solve();
    let found = remedies(&outcome.problem, &outcome.plan, ix(&outcome, "web"));
    assert!((1..=24).contains(&found.len()), "{}", found.len());
    assert!(
        found
            .iter()
            .all(|own| own.price == NanoDollars::new(100_000_000))
    );
}

#[test]
fn the_funnel_of_a_pod_that_is_placed_leaves_some() {
    let outcome = world(pool("general").zones("a b"))
        .add(pod("web").cpu("3"))
        .solve();
    let funnel = explain(&outcome.problem, &outcome.plan, ix(&outcome, "web"));
    let (_, steps) = &funnel.pools[0];
    let counts: Vec<usize> = steps.iter().map(|own| own.n_left).collect();
    // Two types in three zones; two zones; and the small type is too small.
    assert_eq!(counts, [6, 4, 4, 4, 2, 2]);
}

#[test]
fn a_pod_is_not_in_its_own_way() {
    let outcome = world(pool("general").limit("cpu", "2"))
        .add(pod("web").cpu("1"))
        .solve();
    let last = &ends(&outcome, "web")[0];
    assert_eq!(last.1, "within the limits of the pool (cpu 2, 2 left)");
    assert_eq!(last.2, 3, "the small type in three zones");
}
