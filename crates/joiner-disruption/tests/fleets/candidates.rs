//! Upstream behaviors 247 to 252 and 283: who may go, and what is said about who stays.

use jiff::Timestamp;
use joiner_disruption::{Member, Policy};
use joiner_testkit::{World, pod};

use crate::stage::{LARGE, MEDIUM, Stage, own};

/// A node whose pods fit the other one.
fn one_too_many() -> Stage {
    let world = World::standard()
        .add([own("busy", LARGE), own("spare", MEDIUM)])
        .add(pod("web").replicas(3).cpu("1").on("busy"))
        .add(pod("api").cpu("500m").on("spare"));
    Stage::of(&world)
}

/// The same, where the other one does not come into question.
fn only_spare(change: impl FnOnce(&mut Member)) -> Stage {
    let stage = one_too_many().with("busy", |m| m.do_not_disrupt = true);
    stage.with("spare", change)
}

#[test]
fn nothing_in_the_way() {
    assert_eq!(only_spare(|_| ()).gone().as_deref(), Some("spare"));
}

type Change = fn(&mut Member);

#[test]
fn core_247_to_251_what_blocks_every_graceful_method() {
    let figures: [(Change, &str); 9] = [
        (|m| m.in_command = true, "under way"),
        (|m| m.initialized = false, "Node isn't initialized"),
        (
            |m| m.deleting = true,
            "Node is deleting or marked for deletion",
        ),
        (
            |m| m.nominated = true,
            "Node is nominated for a pending pod",
        ),
        (
            |m| m.do_not_disrupt = true,
            "\"karpenter.sh/do-not-disrupt\" annotation",
        ),
        (
            |m| m.protected_pod = Some("default/api".into()),
            "Pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod=default/api)",
        ),
        (
            |m| m.blocking_budget = Some("default/api".to_owned()),
            "Pdb prevents pod evictions (PodDisruptionBudget=[default/api])",
        ),
        (
            |m| m.several_budgets = Some("default/a default/b".to_owned()),
            "Eviction does not support multiple PDBs",
        ),
        (
            |m| {
                m.protected_pod = Some("default/api".into());
                m.grace_period = true;
            },
            "Pod has \"karpenter.sh/do-not-disrupt\" annotation",
        ),
    ];
    for (change, words) in figures {
        let mut stage = only_spare(change);
        assert_eq!(stage.gone(), None, "{words}");
        let why = stage.why("spare");
        assert!(why.contains(words), "{why:?} does not say {words:?}");
    }
}

#[test]
fn core_248_drift_goes_on_with_a_grace_period() {
    let drifted = |grace_period: bool, change: Change| {
        only_spare(|m| {
            m.drifted = Some(Timestamp::UNIX_EPOCH);
            m.consolidatable = false;
            m.grace_period = grace_period;
            change(m);
        })
    };
    let blocked: [Change; 3] = [
        |m| m.protected_pod = Some("default/api".into()),
        |m| m.blocking_budget = Some("default/api".to_owned()),
        |m| m.several_budgets = Some("default/api".to_owned()),
    ];
    for change in blocked {
        assert_eq!(drifted(true, change).gone().as_deref(), Some("spare"));
        assert_eq!(drifted(false, change).gone(), None);
    }
    // What is said about the node itself is another matter.
    let never: Change = |m| m.do_not_disrupt = true;
    assert_eq!(drifted(true, never).gone(), None);
}

#[test]
fn core_252_and_283_what_keeps_a_node_from_being_consolidated() {
    let figures: [(Change, &str); 5] = [
        (
            |m| m.capacity_type = "".into(),
            "Node does not have label \"karpenter.sh/capacity-type\"",
        ),
        (
            |m| m.zone = "".into(),
            "Node does not have label \"topology.kubernetes.io/zone\"",
        ),
        (
            |m| m.type_name = "".into(),
            "Node does not have label \"node.kubernetes.io/instance-type\"",
        ),
        (
            |m| {
                m.type_name = "odd".into();
                m.price = None;
            },
            "Instance Type \"odd\" not found",
        ),
        (|m| m.consolidatable = false, "consolidateAfter"),
    ];
    for (change, words) in figures {
        let mut stage = only_spare(change);
        assert_eq!(stage.gone(), None, "{words}");
        let why = stage.why("spare");
        assert!(why.contains(words), "{why:?} does not say {words:?}");
    }
    let mut off = only_spare(|_| ()).terms(|t| t.consolidate_after_never = true);
    assert_eq!(off.gone(), None);
    assert!(
        off.why("spare")
            .contains("NodePool \"default\" has consolidation disabled")
    );
    let mut empty = only_spare(|_| ()).terms(|t| t.policy = Policy::WhenEmpty);
    assert_eq!(empty.gone(), None);
    let words = "NodePool \"default\" has consolidation policy WhenEmpty, but node is not empty";
    assert_eq!(empty.why("spare"), words);
    let mut fixed = only_spare(|_| ()).terms(|t| t.static_replicas = Some(2));
    assert_eq!(fixed.gone(), None);
}

#[test]
fn a_workload_is_moved_only_so_often() {
    let mut stage = only_spare(|m| m.pods[0].owner = Some("default/api".into()));
    stage.moves_left = [("default/api".into(), 0)].into();
    assert_eq!(stage.gone(), None);
    assert!(stage.why("spare").contains("default/api"));
    stage.moves_left = [("default/api".into(), 1)].into();
    // Moves come back slowly: until everything is looked at anew, nobody asks.
    stage.changed += jiff::SignedDuration::from_secs(300);
    assert_eq!(stage.gone().as_deref(), Some("spare"));
}
