//! What becomes of claims, step by step.

mod ending;
mod hooks;
mod joining;

use jiff::Timestamp;
use joiner_cloud::{Instance, LaunchError, Order, ProviderId, Registration, Termination};
use joiner_model::{Labels, ResourceName, Resources};
use joiner_state::live::Kind;
use serde_json::{Value, json};

use super::launch::{self, NotLaunched};
use super::made::{Cluster, at, claim, launched, merge, node, pool, terms, text};
use super::{Answer, ClaimStep, ClaimView, Terms, next_step};
use crate::nodepool::registrations::RegistrationOutcome;

/// How a cloud answers an order.
type Launches = fn(&Order) -> Result<Instance, LaunchError>;

/// What registration hooks say.
type Hooks = fn() -> Registration;

/// A cloud that launches as given and says this of machines that are to end and of Nodes that join.
struct FakeCloud {
    launch: Launches,
    end: Termination,
    hooks: Option<Hooks>,
}

const GOOD: FakeCloud = FakeCloud {
    launch: |order| Ok(machine(order)),
    end: Termination::Gone,
    hooks: None,
};

fn machine(order: &Order) -> Instance {
    let labels = [
        ("node.kubernetes.io/instance-type", &*order.types[0]),
        ("topology.kubernetes.io/zone", "test-zone-a"),
        ("karpenter.sh/nodepool", "not the pool"),
    ];
    Instance {
        id: ProviderId("kwok://n".into()),
        claim: Some(order.claim.clone()),
        claim_uid: Some(order.claim_uid.clone()),
        labels: labels.map(|(k, v)| (k.into(), v.into())).into(),
        annotations: Labels::from([("example.com/rack".into(), "7".into())]),
        image_id: Some("image-1".into()),
        capacity: Resources::new().with(ResourceName::Cpu, 2000),
        allocatable: Resources::new().with(ResourceName::Cpu, 1900),
        launched: at(0),
        terminating: false,
    }
}

/// Takes steps until there is nothing to do but wait; tells which.
fn settle(cluster: &mut Cluster, cloud: &FakeCloud, now: Timestamp) -> Vec<String> {
    let mut told: Vec<String> = Vec::new();
    let mut asked = None;
    for _ in 0..20 {
        let snapshot = cluster.snapshot();
        let terms = Terms {
            has_registration_hooks: cloud.hooks.is_some(),
            ..terms()
        };
        let view = ClaimView::of(&snapshot, "c", terms).unwrap();
        let step = next_step(&view, asked.as_ref(), now);
        told.push(word(&step));
        match step {
            ClaimStep::Wait(_) => return told,
            ClaimStep::AddFinalizer(patch) => cluster.change(Kind::NodeClaim, "c", &patch),
            ClaimStep::Launch(order) => match (cloud.launch)(&order) {
                Ok(instance) => {
                    let written = launch::launched(&view, &instance, now);
                    let mut status = written.status.patch;
                    if let Some(patch) = written.metadata {
                        cluster.change(Kind::NodeClaim, "c", &patch);
                        let claim = cluster.get(Kind::NodeClaim, "c");
                        let version = &claim["metadata"]["resourceVersion"];
                        status["metadata"]["resourceVersion"] = version.clone();
                    }
                    cluster.change(Kind::NodeClaim, "c", &status);
                }
                Err(error) => match launch::failed(&view, &error, now) {
                    NotLaunched::GiveUp(given_up) => {
                        told.push(format!("give up: {}", given_up.reason));
                        return told;
                    }
                    NotLaunched::Retry(write) => {
                        cluster.change(Kind::NodeClaim, "c", &write.patch);
                        return told;
                    }
                },
            },
            ClaimStep::AskRegistration => {
                let answer = cloud.hooks.unwrap()();
                asked = Some(Answer::Registration(answer));
            }
            ClaimStep::AddLabels(patch) => cluster.change(Kind::NodeClaim, "c", &patch),
            ClaimStep::SyncNode { node, patch, .. } => cluster.change(Kind::Node, &node, &patch),
            ClaimStep::MarkInitialized(node) => {
                let patch = json!({"metadata": {"labels": {"karpenter.sh/initialized": "true"}}});
                cluster.change(Kind::Node, &node, &patch);
            }
            ClaimStep::Write(write) => cluster.change(Kind::NodeClaim, "c", &write.patch),
            ClaimStep::SetDeadline(at) => {
                let at = joiner_state::live::rfc3339(at);
                let key = "karpenter.sh/nodeclaim-termination-timestamp";
                let patch = json!({"metadata": {"annotations": {key: at}}});
                cluster.change(Kind::NodeClaim, "c", &patch);
            }
            ClaimStep::DeleteNodes(nodes) => {
                for (node, _) in nodes {
                    cluster.delete(Kind::Node, &node, now);
                }
            }
            ClaimStep::Terminate(_) => asked = Some(Answer::Termination(cloud.end)),
            ClaimStep::RemoveFinalizer(patch) => {
                cluster.change(Kind::NodeClaim, "c", &patch);
                return told;
            }
            ClaimStep::Invalid(_) | ClaimStep::GiveUp(_) | ClaimStep::HooksFailed(_) => {
                return told;
            }
        }
    }
    panic!("it never settles: {told:?}");
}

fn word(step: &ClaimStep) -> String {
    match step {
        ClaimStep::Wait(None) => "wait".to_owned(),
        ClaimStep::Wait(Some(wait)) => format!("wait {} s", wait.as_secs()),
        ClaimStep::AddFinalizer(_) => "hold".to_owned(),
        ClaimStep::Launch(_) => "launch".to_owned(),
        ClaimStep::Invalid(why) => format!("misunderstood: {why}"),
        ClaimStep::AskRegistration => "ask hooks".to_owned(),
        ClaimStep::AddLabels(_) => "add labels".to_owned(),
        ClaimStep::SyncNode { opens: false, .. } => "take in".to_owned(),
        ClaimStep::SyncNode { lacks_taint, .. } if *lacks_taint => "sync a bare node".to_owned(),
        ClaimStep::SyncNode { .. } => "sync".to_owned(),
        ClaimStep::MarkInitialized(_) => "mark".to_owned(),
        ClaimStep::Write(_) => "write".to_owned(),
        ClaimStep::HooksFailed(failure) => failure.clone(),
        ClaimStep::GiveUp(given_up) => format!("give up: {}", given_up.reason),
        ClaimStep::SetDeadline(_) => "set deadline".to_owned(),
        ClaimStep::DeleteNodes(nodes) => format!("delete {} nodes", nodes.len()),
        ClaimStep::Terminate(_) => "terminate".to_owned(),
        ClaimStep::RemoveFinalizer(_) => "release".to_owned(),
    }
}

fn with(claim: Value) -> Cluster {
    Cluster::default().with(Kind::NodeClaim, claim)
}

#[test]
fn core_215_a_new_claim_is_held_and_launched() {
    let mut cluster = with(claim(
        &json!({"metadata": {"finalizers": ["example.com/mine"]}}),
    ));
    let told = settle(&mut cluster, &GOOD, at(3));
    assert_eq!(told, ["hold", "launch", "wait 897 s"]);
    let claim = cluster.get(Kind::NodeClaim, "c");
    let finalizers = json!(["example.com/mine", "karpenter.sh/termination"]);
    assert_eq!(claim["metadata"]["finalizers"], finalizers);
    assert_eq!(cluster.condition("Launched"), "True Launched");
    assert_eq!(
        cluster.condition("Registered"),
        "Unknown NodeNotFound Node not registered with cluster"
    );
    assert_eq!(claim["status"]["providerID"], "kwok://n");
    assert_eq!(claim["status"]["imageID"], "image-1");
    assert_eq!(claim["status"]["allocatable"]["cpu"], "1900m");
    let labels = &claim["metadata"]["labels"];
    assert_eq!(labels["topology.kubernetes.io/zone"], "test-zone-a");
    assert_eq!(
        labels["karpenter.sh/capacity-type"], "spot",
        "from a requirement"
    );
    assert_eq!(labels["karpenter.sh/nodepool"], "p", "the claim's own stay");
    assert_eq!(claim["metadata"]["annotations"]["example.com/rack"], "7");
}

#[test]
fn core_215_claims_of_other_classes_are_not_touched() {
    let other = json!({"spec": {"nodeClassRef": {"group": "other.example.com"}}});
    let mut cluster = with(claim(&other));
    assert_eq!(settle(&mut cluster, &GOOD, at(3)), ["wait"]);
    cluster.delete(Kind::NodeClaim, "c", at(4));
    assert_eq!(settle(&mut cluster, &GOOD, at(5)), ["wait"]);
}

#[test]
fn an_order_says_what_the_claim_says() {
    let requests = json!({"spec": {"resources": {"requests": {"cpu": "1500m", "pods": "3"}}}});
    let snapshot = with(claim(&requests)).snapshot();
    let view = ClaimView::of(&snapshot, "c", terms()).unwrap();
    let order = launch::order(&view).unwrap();
    assert_eq!(&*order.claim_uid, "uid-c");
    assert_eq!(order.pool.as_deref(), Some("p"));
    let types: Vec<&str> = order.types.iter().map(AsRef::as_ref).collect();
    assert_eq!(types, ["m-2x", "c-2x", "a-1x"], "in the order of the claim");
    assert_eq!(order.requests.get(&ResourceName::Cpu), 1500);
    assert!(
        order
            .requirements
            .get("karpenter.sh/capacity-type")
            .unwrap()
            .has("spot")
    );
    assert!(order.class.is_none());
}

#[test]
fn core_216_a_launch_that_cannot_be_had_gives_the_claim_up() {
    let cases: [(Launches, &str); 2] = [
        (
            |_| Err(LaunchError::InsufficientCapacity("all sold out".to_owned())),
            "give up: insufficient_capacity",
        ),
        (
            |_| Err(LaunchError::ClassNotReady("no such class".to_owned())),
            "give up: nodeclass_not_ready",
        ),
    ];
    for (launch, wanted) in cases {
        let cloud = FakeCloud { launch, ..GOOD };
        let mut cluster = with(claim(&json!({})));
        let told = settle(&mut cluster, &cloud, at(3));
        assert_eq!(told.last().map(String::as_str), Some(wanted));
    }
}

#[test]
fn core_216_a_refused_launch_says_why_and_is_tried_again() {
    let refused = FakeCloud {
        launch: |_| {
            Err(LaunchError::Refused {
                reason: "QuotaExceeded".into(),
                message: "32 vCPUs are all you get".to_owned(),
            })
        },
        ..GOOD
    };
    let mut cluster = with(claim(&json!({})));
    assert_eq!(settle(&mut cluster, &refused, at(3)), ["hold", "launch"]);
    assert_eq!(
        cluster.condition("Launched"),
        "Unknown QuotaExceeded 32 vCPUs are all you get"
    );
    let broken = FakeCloud {
        launch: |_| Err(LaunchError::Other("x".repeat(400))),
        ..GOOD
    };
    settle(&mut cluster, &broken, at(9));
    let wanted = format!("Unknown LaunchFailed {}...", "x".repeat(300));
    assert_eq!(cluster.condition("Launched"), wanted);
    assert_eq!(
        settle(&mut cluster, &GOOD, at(20)),
        ["launch", "wait 880 s"],
        "time runs from the creation"
    );
}

#[test]
fn core_224_a_launch_that_takes_too_long_is_given_up() {
    let broken = FakeCloud {
        launch: |_| Err(LaunchError::Throttled("slow down".to_owned())),
        ..GOOD
    };
    for (secs, gives_up) in [(299, false), (300, true)] {
        let mut cluster = with(claim(&json!({})));
        let told = settle(&mut cluster, &broken, at(secs));
        let gave_up = told
            .last()
            .is_some_and(|word| word == "give up: launch_timeout");
        assert_eq!(gave_up, gives_up, "after {secs} s");
    }
    // The time of the condition counts, not that of the claim.
    let unknown = json!([{"type": "Launched", "status": "Unknown", "reason": "LaunchFailed",
        "lastTransitionTime": text(200), "observedGeneration": 1}]);
    let mut cluster = with(claim(&json!({"status": {"conditions": unknown}})));
    let told = settle(&mut cluster, &broken, at(400));
    assert_eq!(told.last().map(String::as_str), Some("launch"));
    // A launch that works after all is not given up.
    let mut late = with(claim(&json!({})));
    settle(&mut late, &GOOD, at(400));
    assert_eq!(late.condition("Launched"), "True Launched");
}

#[test]
fn core_224_a_node_that_never_registers_is_given_up() {
    let mut cluster = with(launched(&["Launched"], &json!({})));
    assert_eq!(settle(&mut cluster, &GOOD, at(30)), ["write", "wait 870 s"]);
    assert!(cluster.condition("Registered").starts_with("Unknown"));
    assert!(cluster.condition("Initialized").starts_with("Unknown"));
    assert_eq!(settle(&mut cluster, &GOOD, at(899)), ["wait 1 s"]);
    let told = settle(&mut cluster, &GOOD, at(900));
    assert_eq!(told, ["give up: registration_timeout"]);
    // One that came late, and is looked at later still, is kept.
    cluster.put(Kind::Node, node(&json!({})));
    let told = settle(&mut cluster, &GOOD, at(2000));
    assert_eq!(told[0], "sync");
    assert_eq!(cluster.condition("Initialized"), "True Initialized");
}

#[test]
fn core_225_the_cloud_says_how_long_a_launch_may_take() {
    let snapshot = with(claim(&json!({}))).snapshot();
    let mut terms = terms();
    terms.launch_timeout = std::time::Duration::from_secs(60);
    let view = ClaimView::of(&snapshot, "c", terms).unwrap();
    let error = LaunchError::Other("no".to_owned());
    assert!(matches!(
        launch::failed(&view, &error, at(59)),
        NotLaunched::Retry(_)
    ));
    assert!(matches!(
        launch::failed(&view, &error, at(60)),
        NotLaunched::GiveUp(_)
    ));
}

#[test]
fn core_226_what_is_given_up_counts_against_the_pool_that_owns_it() {
    let error = LaunchError::Refused {
        reason: "QuotaExceeded".into(),
        message: "no more".to_owned(),
    };
    for (uid, owned) in [("uid-p", true), ("another", false)] {
        let cluster = with(claim(&json!({}))).with(Kind::NodePool, pool(uid));
        let snapshot = cluster.snapshot();
        let view = ClaimView::of(&snapshot, "c", terms()).unwrap();
        assert_eq!(view.pool.is_some(), owned);
        let NotLaunched::GiveUp(given_up) = launch::failed(&view, &error, at(300)) else {
            panic!("it is not given up");
        };
        let wanted = RegistrationOutcome::Failed {
            reason: "QuotaExceeded".to_owned(),
            message: "no more".to_owned(),
        };
        assert_eq!(given_up.outcome, Some(wanted));
    }
    let sold_out = LaunchError::InsufficientCapacity("sold out".to_owned());
    let snapshot = with(claim(&json!({}))).snapshot();
    let view = ClaimView::of(&snapshot, "c", terms()).unwrap();
    let NotLaunched::GiveUp(given_up) = launch::failed(&view, &sold_out, at(1)) else {
        panic!("it is not given up");
    };
    assert_eq!(given_up.outcome, None, "that is not the pool's fault");
    assert_eq!(
        given_up.event.as_deref(),
        Some("insufficient capacity, sold out")
    );
}

/// A claim that is launched, and its Node.
fn joined(claim_more: &Value, node_more: &Value) -> Cluster {
    let claim = launched(&["Launched"], claim_more);
    with(claim).with(Kind::Node, node(node_more))
}

/// A claim that is registered, and its Node.
fn registered(claim_more: &Value, node_more: &Value) -> Cluster {
    let claim = launched(&["Launched", "Registered"], claim_more);
    let mut node = node(&json!({
        "metadata": {"labels": {"karpenter.sh/registered": "true"}},
        "spec": {"taints": []},
    }));
    merge(&mut node, node_more);
    with(claim).with(Kind::Node, node)
}
