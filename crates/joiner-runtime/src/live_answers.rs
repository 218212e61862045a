//! Pods and nodes of a snapshot, as answers to `joiner why` show them.

use jiff::Timestamp;
use joiner_receipts::why::{Live, NodeState, PodState};
use joiner_state::live::{Conditions as _, LivePod, Phase, Snapshot};

/// The cluster at a time.
#[derive(Clone, Copy, Debug)]
pub struct Now<'s> {
    /// The cluster.
    pub snapshot: &'s Snapshot,
    /// The time, on the clock of the controller.
    pub time: Timestamp,
}

impl Live for Now<'_> {
    fn time(&self) -> Timestamp {
        self.time
    }

    fn pods(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.snapshot.pods().map(|pod| &*pod.name))
    }

    fn nodes(&self) -> Box<dyn Iterator<Item = &str> + '_> {
        Box::new(self.snapshot.nodes().map(|node| &**node.name()))
    }

    fn pod(&self, name: &str) -> Option<PodState> {
        let pod = self.snapshot.pod(name)?;
        Some(pod_state(self.snapshot, pod))
    }

    fn node(&self, name: &str) -> Option<NodeState> {
        live_node(self.snapshot, name)
    }
}

fn live_node(snapshot: &Snapshot, wanted: &str) -> Option<NodeState> {
    let by_name = snapshot.node(wanted);
    let claim = snapshot
        .claim(wanted)
        .or_else(|| by_name.and_then(|node| snapshot.claim_of(node)));
    let node = by_name.or_else(|| claim.and_then(|claim| snapshot.node_of(claim)));
    let state = match (node, claim) {
        (None, None) => return None,
        (_, Some(claim)) if claim.meta.deleting.is_some() => "is going",
        (Some(node), _) if node.meta.deleting.is_some() => "is going",
        (Some(_), None) => "is none of ours: no NodeClaim stands for it, so it is never disrupted",
        (Some(node), Some(claim)) if !claim.is_true("Initialized") => match node.is_ready() {
            true => "is up, and not initialized yet",
            false => "has joined, and is not ready yet",
        },
        (Some(node), Some(_)) if !node.is_ready() => "is not ready",
        (Some(_), Some(_)) => "is up",
        (None, Some(claim)) if claim.is_true("Launched") => "is launched, and has not joined yet",
        (None, Some(_)) => "is not launched yet",
    };
    let name = node
        .map(|node| node.name())
        .or(claim.map(|claim| claim.name()))?;
    Some(NodeState {
        node: name.to_string(),
        node_claim: claim.map(|claim| claim.name().to_string()),
        state: state.to_owned(),
    })
}

fn pod_state(snapshot: &Snapshot, pod: &LivePod) -> PodState {
    let phase = match pod.phase {
        _ if pod.deleting.is_some() => "Terminating",
        Phase::Pending => "Pending",
        Phase::Running => "Running",
        Phase::Succeeded => "Succeeded",
        Phase::Failed => "Failed",
        Phase::Unknown => "Unknown",
    };
    let node = pod.node.as_ref().and_then(|name| snapshot.node(name));
    let claim = node.and_then(|node| snapshot.claim_of(node));
    PodState {
        phase: phase.to_owned(),
        node: pod.node.as_ref().map(ToString::to_string),
        node_claim: claim.map(|claim| claim.name().to_string()),
        requests: pod.requests().to_string(),
        created: pod.created,
        waits_for: waits_for(snapshot, pod),
    }
}

/// What a pod without a node waits for, where no decision would tell.
fn waits_for(snapshot: &Snapshot, pod: &LivePod) -> Option<String> {
    if pod.node.is_some() || !pod.is_active() {
        return None;
    }
    if pod.is_daemon() {
        return Some("its node: pods of DaemonSets get no node of their own".to_owned());
    }
    if !pod.unschedulable {
        return Some("the scheduler, which has not said yet that it fits nowhere".to_owned());
    }
    if let Some(node) = &pod.nominated {
        return Some(format!(
            "the scheduler, which has chosen node {node} for it"
        ));
    }
    let why = snapshot.why_no_pool()?;
    Some(format!("a NodePool to buy a node from: {why}"))
}
