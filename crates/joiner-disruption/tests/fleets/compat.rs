//! Upstream behaviors that are about several parts at once: 276, 282, 286, 288, 289, 292, 293, 296,
//! 300.

use joiner_disruption::{Command, Decision, Method, Policy, Reason, confirm, judgements};
use joiner_model::NanoDollars;
use joiner_testkit::{World, pod, pool};

use crate::stage::{LARGE, MEDIUM, SMALL, Stage, budget, of_pool, own};

/// A node whose pods fit the other one, which stays.
fn one_too_many() -> Stage {
    let world = World::standard()
        .add([own("busy", LARGE), own("spare", MEDIUM)])
        .add(pod("web").replicas(3).cpu("1").on("busy"))
        .add(pod("api").cpu("500m").on("spare"));
    Stage::of(&world).with("busy", |m| m.do_not_disrupt = true)
}

fn only(decision: Decision) -> Command {
    let mut commands = decision.commands;
    assert_eq!(commands.len(), 1);
    commands.remove(0)
}

#[test]
fn core_276_a_grace_period_does_not_make_consolidation_ruthless() {
    let graced = || one_too_many().with("spare", |m| m.grace_period = true);
    assert_eq!(
        graced().gone().as_deref(),
        Some("spare"),
        "nothing is in the way"
    );
    let protected =
        |m: &mut joiner_disruption::Member| m.protected_pod = Some("default/api".into());
    assert_eq!(graced().with("spare", protected).gone(), None);
    let budget = |m: &mut joiner_disruption::Member| m.blocking_budget = Some("default/b".into());
    assert_eq!(graced().with("spare", budget).gone(), None);
    let several = |m: &mut joiner_disruption::Member| m.several_budgets = Some("a, b".into());
    assert_eq!(graced().with("spare", several).gone(), None);
}

#[test]
fn core_282_one_node_is_looked_at_when_several_fail_the_second_look() {
    let world = World::standard()
        .add([own("home", LARGE), own("n0", MEDIUM), own("n1", MEDIUM)])
        .add(pod("web").replicas(2).cpu("1").on("home"))
        .add(pod("a").cpu("500m").on("n0"))
        .add(pod("b").cpu("500m").on("n1"));
    let mut stage = Stage::of(&world).with("home", |m| m.do_not_disrupt = true);
    let several = only(stage.decide());
    assert_eq!(several.method, Method::Multi);
    let mut later = stage.with("n1", |m| m.nominated = true);
    let rejection = confirm(&later.fleet(), &several).unwrap_err();
    assert_eq!(rejection.as_str(), "churn");
    let one = only(later.decide());
    assert_eq!(
        (one.method, later.members[one.members[0]].name.as_ref()),
        (Method::Single, "n0")
    );
}

#[test]
fn core_286_a_node_that_waiting_pods_count_on_is_not_taken() {
    let stage = one_too_many().with("spare", |m| m.nominated = true);
    assert_eq!(
        stage.clone().gone(),
        None,
        "it was just launched for somebody"
    );
    let free = stage.with("spare", |m| m.nominated = false);
    assert_eq!(free.clone().gone().as_deref(), Some("spare"));
}

#[test]
fn core_288_headroom_protects_empty_nodes_only() {
    let buffered = |stage: Stage, name: &str| stage.with(name, |m| m.has_buffer_pods = true);
    let real = buffered(one_too_many(), "spare");
    assert_eq!(
        real.clone().gone().as_deref(),
        Some("spare"),
        "it has pods of its own, too"
    );
    let world = World::standard().add([own("n0", SMALL), own("n1", SMALL)]);
    let bare = buffered(Stage::of(&world), "n0");
    assert_eq!(
        bare.clone().gone().as_deref(),
        Some("n1"),
        "only the other one"
    );
    let cleared = bare.with("n0", |m| m.has_buffer_pods = false);
    assert_eq!(cleared.clone().gone().as_deref(), Some("n0 n1"));
}

/// Many half-empty nodes.
fn wasteful(n: usize) -> Stage {
    let mut world = World::standard();
    for n in 0..n {
        let name = format!("n{n:02}");
        let pods = pod(&format!("p{n:02}")).replicas(2).cpu("500m").on(&name);
        world = world.add(own(&name, MEDIUM)).add(pods);
    }
    Stage::of(&world)
}

#[test]
fn core_289_a_search_that_is_cut_short_has_the_best_so_far() {
    let mut hurried = wasteful(24).settings(|s| s.what_ifs_max = 3);
    let decision = hurried.decide();
    assert_eq!(decision.cut_short, [Method::Multi]);
    let command = only(decision);
    assert!(command.savings() > NanoDollars::ZERO, "{}", command.why);
    let mut patient = wasteful(24);
    let decision = patient.decide();
    assert!(decision.cut_short.is_empty(), "{:?}", decision.cut_short);
    assert!(only(decision).savings() >= command.savings());
}

fn balanced(stage: Stage) -> Stage {
    stage.terms(|t| t.policy = Policy::Balanced)
}

#[test]
fn core_292_without_totals_nothing_is_approved() {
    let mut stage = balanced(one_too_many());
    assert_eq!(stage.clone().gone().as_deref(), Some("spare"));
    stage.pools[0].total_cost = NanoDollars::ZERO;
    assert_eq!(stage.clone().gone(), None, "a pool that costs nothing");
    let decision = stage.decide();
    assert!(!decision.turned_down.is_empty(), "and that is told");
    assert!(decision.turned_down.iter().all(|own| !own.approves()));
    let none = Command {
        members: Vec::new(),
        claims: Vec::new(),
        group_nodes: Vec::new(),
        ..only(balanced(one_too_many()).decide())
    };
    assert!(
        judgements(&stage.fleet(), &none).is_empty(),
        "nobody is there to approve"
    );
}

#[test]
fn core_293_only_shares_count_and_all_nodes_are_in_the_totals() {
    let judged = |factor: u64| {
        let mut stage = balanced(one_too_many());
        for terms in &mut stage.pools {
            terms.total_cost = terms.total_cost.times(factor);
            terms.total_disruption *= factor;
        }
        let command = only(stage.decide());
        judgements(&stage.fleet(), &command).remove(0).score_milli
    };
    assert_eq!(judged(1), judged(10), "scale does not matter");
    let stage = balanced(one_too_many());
    let all: NanoDollars = stage.members.iter().filter_map(|m| m.price).sum();
    assert_eq!(stage.pools[0].total_cost, all, "those that stay are in it");
    let mut unknown = balanced(one_too_many()).with("spare", |m| m.price = None);
    assert_eq!(unknown.gone(), None, "a price nobody knows saves nothing");
}

#[test]
fn core_296_deleted_where_pods_fit_and_replaced_elsewhere() {
    let mut fits = balanced(one_too_many());
    let command = only(fits.decide());
    assert!(command.is_delete());
    let judged = judgements(&fits.fleet(), &command);
    assert!(
        judged
            .iter()
            .all(|own| own.approves() && own.policy == Policy::Balanced)
    );
    let world = World::standard()
        .add(own("n0", LARGE))
        .add(pod("web").cpu("1500m").on("n0"));
    let mut large = balanced(Stage::of(&world));
    let command = only(large.decide());
    assert_eq!(command.plan.launches.len(), 1);
    let others = judgements(&large.fleet(), &command);
    assert_eq!(others[0].pool.as_ref(), "default");
    // What drift and emptiness do is not weighed.
    let bare = World::standard().add(own("n0", SMALL));
    let mut bare = balanced(Stage::of(&bare));
    let command = only(bare.decide());
    assert!(judgements(&bare.fleet(), &command).is_empty());
}

#[test]
fn core_296_offerings_that_are_not_allowed_do_not_count_as_savings() {
    let world = World::standard()
        .add(own("n0", LARGE))
        .add(pod("web").cpu("1500m").capacity_type("on-demand").on("n0"));
    let mut stage = Stage::of(&world);
    let command = only(stage.decide());
    let launch = &command.plan.launches[0];
    let (ty, offering) = launch.offering;
    let sold = &stage.problem[ty].offerings[offering.0 as usize];
    let paid = sold.labels.get(joiner_model::keys::CAPACITY_TYPE);
    assert_eq!(paid.map(AsRef::as_ref), Some("on-demand"));
    assert_eq!(command.price_after, sold.price);
}

#[test]
fn core_300_pods_that_never_leave_get_no_other_place() {
    let world = World::standard()
        .add(own("old", MEDIUM))
        .add(pod("web").replicas(3).cpu("1").on("old"));
    let stage = || {
        let mut stage = Stage::of(&world);
        stage.member("old").drifted = Some(stage.now);
        stage.member("old").protected_pod = Some("default/web-0".into());
        stage
    };
    assert_eq!(stage().gone(), None, "without a grace period it stays");
    let graced = stage().with("old", |m| m.grace_period = true);
    let command = only(graced.clone().decide());
    assert_eq!(command.plan.launches.len(), 1, "its pods can leave");
    let mut blocked = graced.with("old", |m| {
        for pod in &mut m.pods {
            pod.stuck = true;
        }
    });
    let command = only(blocked.decide());
    assert_eq!(command.reason, Reason::Drifted);
    assert!(command.plan.launches.is_empty(), "nobody looks for a place");
}

#[test]
fn what_could_go_and_what_counts_against_budgets_is_told() {
    let world = World::standard()
        .add(pool("other"))
        .add([own("bare", SMALL), own("n0", MEDIUM), own("n1", LARGE)])
        .add(of_pool("n2", "other", SMALL))
        .add(pod("a").cpu("1").on("n0"))
        .add(pod("b").cpu("1").on("n1"))
        .add(pod("c").cpu("1").on("n2"));
    let mut stage = Stage::of(&world).terms(|t| t.budgets = vec![budget("0")]);
    stage.member("n1").drifted = Some(stage.now);
    stage.member("n2").ready = false;
    let decision = stage.decide();
    let eligible = [
        (Reason::Empty, 1),
        (Reason::Drifted, 1),
        (Reason::Underutilized, 3),
    ];
    assert_eq!(decision.eligible, eligible, "whatever budgets say");
    let of = |name: &str| {
        stage
            .pools
            .iter()
            .position(|own| own.name.as_ref() == name)
            .unwrap()
    };
    assert_eq!(decision.consuming[of("other")], 1);
    assert_eq!(decision.consuming[of("default")], 0);
    assert!(decision.commands.is_empty());
}
