use joiner_model::{Effect, NodeIx, PodIx, Protocol, ResourceName};
use joiner_verify::Rule;

use crate::support::*;

/// Three pods of one core on a node of four, where one runs already.
fn case() -> Case {
    let mut case = Case::new();
    let node = case.node("old", "a");
    case.bound(node, &shape("running"));
    let pods = case.pods(3, &shape("web"));
    case.place(node, &pods);
    case.legal()
}

#[test]
fn node_is_open() {
    let case = case();
    case.broken_by(Rule::ClosedNode, "cordoned", |c| {
        c.problem.nodes[0].closed = true
    });
    case.legal_with(|c| {
        c.plan.placements.clear();
        c.problem.nodes[0].closed = true;
        c.launch(&[LARGE], &[], &[PodIx(1), PodIx(2), PodIx(3)]);
    });
}

#[test]
fn labels_volumes_and_taints() {
    let case = case();
    case.broken_by(Rule::Selection, "another zone", |c| {
        c.shape_of(PodIx(1)).node_selector = vec![is(ZONE, "b")];
    });
    case.broken_by(Rule::Selection, "no such label", |c| {
        c.shape_of(PodIx(1)).node_terms = vec![vec![is("team", "red")]];
    });
    case.legal_with(|c| {
        c.shape_of(PodIx(1)).node_terms = vec![vec![is("team", "red")], vec![is(HOST, "old")]];
    });
    case.broken_by(Rule::Volumes, "volume elsewhere", |c| {
        c.shape_of(PodIx(1)).volume_terms = vec![vec![is(ZONE, "b")], vec![is(ZONE, "c")]];
    });
    case.legal_with(|c| {
        c.shape_of(PodIx(1)).volume_terms = vec![vec![is(ZONE, "b")], vec![is(ZONE, "a")]];
    });
    case.broken_by(Rule::Taint, "not tolerated", |c| {
        c.problem.nodes[0]
            .taints
            .push(taint("dedicated", Effect::NoExecute));
    });
    case.legal_with(|c| {
        c.problem.nodes[0]
            .taints
            .push(taint("dedicated", Effect::PreferNoSchedule));
    });
}

#[test]
fn room_beside_what_runs_there() {
    let case = case();
    let text = case.broken_by(Rule::Fit, "one too many", |c| {
        let pod = c.pod(&shape("web"));
        c.place(NodeIx(0), &[pod]);
    });
    assert_eq!(
        text,
        "node old is overfull: its pods and daemons need 5 of cpu, it has 4"
    );
    case.broken_by(Rule::Fit, "those on their way out still use it", |c| {
        let pod = c.bound(NodeIx(0), &shape("leaving"));
        c.problem[pod].terminating = true;
    });
    case.broken_by(Rule::Fit, "allocatable counts, not capacity", |c| {
        c.problem.nodes[0].allocatable.set(ResourceName::Cpu, 3999);
    });
    case.legal_with(|c| c.problem.nodes[0].capacity.set(ResourceName::Cpu, 0));
    case.legal_with(|c| {
        c.node("full", "a");
        for _ in 0..9 {
            c.bound(NodeIx(1), &shape("running"));
        }
    });
}

#[test]
fn daemons_that_have_yet_to_come() {
    let mut case = case();
    case.plan.placements[0].pods.pop();
    case.problem.pods.pop();
    let agent = case.daemon(shape("agent"));
    let case = case.legal();
    case.broken_by(Rule::Fit, "another daemon", |c| {
        c.daemon(shape("second"));
    });
    case.legal_with(|c| {
        let there = c.bound(NodeIx(0), &shape("agent"));
        c.problem[there].daemon = Some(agent);
    });
    case.broken_by(Rule::Fit, "a pod of another daemon is there", |c| {
        let second = c.daemon(shape("second"));
        c.problem[second].shape.node_selector = vec![is(ZONE, "nowhere")];
        let there = c.bound(NodeIx(0), &shape("agent"));
        c.problem[there].daemon = Some(second);
    });
    case.legal_with(|c| {
        let second = c.daemon(shape("second"));
        c.problem[second].shape.node_selector = vec![is(ZONE, "b")];
    });
    case.legal_with(|c| {
        c.daemon(shape("second"));
        c.problem.nodes[0]
            .taints
            .push(taint("dedicated", Effect::NoSchedule));
        c.shape_of(PodIx(1))
            .tolerations
            .push(tolerating("dedicated"));
        let agent = &mut c.problem[agent].shape;
        agent.tolerations = vec![tolerating("dedicated")];
    });
}

#[test]
fn host_ports() {
    let mut case = case();
    case.shape_of(PodIx(0)).ports = vec![port("0.0.0.0", 80, Protocol::Tcp)];
    let case = case.legal();
    let mut taker = shape("taker");
    taker.requests = resources(0, 0, 1);
    taker.ports = vec![port("10.0.0.1", 80, Protocol::Tcp)];
    let place = |c: &mut Case| {
        let pod = c.pod(&taker);
        c.place(NodeIx(0), &[pod]);
    };
    case.broken_by(Rule::Port, "taken by a pod there", place);
    case.broken_by(Rule::Port, "taken by one on its way out", |c| {
        c.problem.pods[0].terminating = true;
        place(c);
    });
    case.legal_with(|c| {
        c.bound(NodeIx(0), &taker);
    });
    case.broken_by(Rule::Port, "taken by a daemon to come", |c| {
        c.problem.pods.remove(0);
        c.plan.placements[0].pods = vec![PodIx(0), PodIx(1), PodIx(2)];
        place(c);
        c.daemon(taker.clone());
    });
}

#[test]
fn volumes_per_driver() {
    let mut case = case();
    case.problem.nodes[0].volume_limits.insert("ebs".into(), 2);
    case.claim(PodIx(0), "web/data");
    case.claim(PodIx(1), "web/more");
    let case = case.legal();
    case.legal_with(|c| c.claim(PodIx(2), "web/data"));
    case.legal_with(|c| c.claim(PodIx(2), "web/more"));
    let text = case.broken_by(Rule::VolumeLimit, "a third claim", |c| {
        c.claim(PodIx(2), "web/third")
    });
    assert_eq!(text, "node old takes 2 volumes of ebs, but would have 3");
    case.legal_with(|c| {
        c.claim(PodIx(2), "web/third");
        c.problem.nodes[0].volume_limits.clear();
    });
    case.broken_by(Rule::VolumeLimit, "none at all", |c| {
        c.problem.nodes[0].volume_limits.insert("ebs".into(), 0);
    });
    case.legal_with(|c| {
        // Overfull before, and nothing is added.
        c.problem.nodes[0].volume_limits.insert("ebs".into(), 0);
        c.problem.pods[1].claims = Box::new([]);
    });
}
