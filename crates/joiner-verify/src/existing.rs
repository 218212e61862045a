//! Pods for nodes there are.

use std::collections::{BTreeMap, BTreeSet};

use joiner_model::{Node, PodIx, Problem, render_amount};

use crate::census::Seats;
use crate::demands::{Amounts, add, one_holds, shortage};
use crate::ground::{Ground, node_label};
use crate::ports;
use crate::violation::{Report, Rule};

/// Checks every existing node that gets a pod.
pub(crate) fn check(ground: &Ground<'_>, seats: &Seats, report: &mut Report) {
    let bound = bound_pods(ground.problem, seats);
    for (ix, node) in ground.problem.nodes.iter().enumerate() {
        let new = &seats.nodes[ix];
        if new.is_empty() {
            continue;
        }
        if node.closed {
            let text = format_args!("node {} takes no pods, but gets {}", node.name, new.len());
            report.say(Rule::ClosedNode, text);
        }
        let bound = bound.get(&ix).map_or(&[][..], Vec::as_slice);
        for pod in new {
            welcome(ground, node, *pod, report);
        }
        let daemons = missing_daemons(ground, node, bound, new);
        fit(ground, node, (new, bound, &daemons), report);
        ports::check(ground, &node.name, new, bound, &daemons, report);
        volume_limits(ground, node, new, bound, report);
    }
}

/// The pods already on each node that gets new ones, those on their way out included.
fn bound_pods(problem: &Problem, seats: &Seats) -> BTreeMap<usize, Vec<PodIx>> {
    let mut bound: BTreeMap<usize, Vec<PodIx>> = BTreeMap::new();
    for (ix, pod) in (0..).map(PodIx).zip(&problem.pods) {
        if let Some(node) = pod.node.map(|node| node.0 as usize)
            && seats.nodes.get(node).is_some_and(|new| !new.is_empty())
        {
            bound.entry(node).or_default().push(ix);
        }
    }
    bound
}

/// Labels, volumes and taints.
fn welcome(ground: &Ground<'_>, node: &Node, pod: PodIx, report: &mut Report) {
    let demand = ground.demand(pod);
    let label = |key: &str| node_label(node, key);
    let (name, node_name) = (ground.pod_name(pod), &node.name);
    if !ground.demands.selection(demand.selection).holds(label) {
        let text = format_args!("node {node_name}: pod {name} does not select its labels");
        report.say(Rule::Selection, text);
    }
    if !one_holds(ground.demands.volumes(demand.volumes), &label) {
        let text = format_args!("node {node_name}: pod {name} cannot reach its volumes there");
        report.say(Rule::Volumes, text);
    }
    if let Some(taint) = ground.untolerated(demand, &node.taints) {
        let text = format_args!("node {node_name}: pod {name} does not tolerate {taint}");
        report.say(Rule::Taint, text);
    }
}

/// Daemons that belong on the node and have no pod there.
fn missing_daemons(ground: &Ground<'_>, node: &Node, bound: &[PodIx], new: &[PodIx]) -> Vec<usize> {
    let there: BTreeSet<usize> = bound
        .iter()
        .chain(new)
        .filter_map(|pod| ground.problem[*pod].daemon)
        .map(|daemon| daemon.0 as usize)
        .collect();
    let belongs = |daemon: &usize| {
        let demand = ground.demands.daemons[*daemon];
        let selection = ground.demands.selection(demand.selection);
        ground.untolerated(demand, &node.taints).is_none()
            && selection.holds(|key| node_label(node, key))
    };
    let all = 0..ground.demands.daemons.len();
    all.filter(|d| !there.contains(d)).filter(belongs).collect()
}

fn fit(
    ground: &Ground<'_>,
    node: &Node,
    (new, bound, daemons): (&[PodIx], &[PodIx], &[usize]),
    report: &mut Report,
) {
    let mut need: Amounts = vec![0; ground.demands.resources.len()];
    for pod in bound.iter().chain(new) {
        add(
            &mut need,
            ground.demands.amounts(ground.demand(*pod).amounts),
        );
    }
    for daemon in daemons {
        add(
            &mut need,
            ground
                .demands
                .amounts(ground.demands.daemons[*daemon].amounts),
        );
    }
    let room = ground.demands.amounts_of(&node.allocatable);
    if let Some(short) = shortage(&need, &room) {
        let resource = ground.demands.resources[short];
        let amount =
            |amount: i128| render_amount(resource, u64::try_from(amount).unwrap_or(u64::MAX));
        report.say(
            Rule::Fit,
            format_args!(
                "node {} is overfull: its pods and daemons need {} of {resource}, it has {}",
                node.name,
                amount(need[short]),
                amount(room[short])
            ),
        );
    }
}

/// Distinct claims per driver; only a driver that gets one more can be at fault.
fn volume_limits(
    ground: &Ground<'_>,
    node: &Node,
    new: &[PodIx],
    bound: &[PodIx],
    report: &mut Report,
) {
    let claims = |pods: &[PodIx], driver: &str| -> BTreeSet<&str> {
        let claims = pods.iter().flat_map(|pod| &ground.problem[*pod].claims);
        let of_driver = claims.filter(|claim| claim.driver.as_ref() == driver);
        of_driver.map(|claim| claim.claim.as_ref()).collect()
    };
    for (driver, most) in &node.volume_limits {
        let before = claims(bound, driver);
        let more = claims(new, driver);
        let n_more = more.difference(&before).count();
        let n_all = before.len() + n_more;
        if n_more > 0 && n_all > *most as usize {
            let name = &node.name;
            report.say(
                Rule::VolumeLimit,
                format_args!(
                    "node {name} takes {most} volumes of {driver}, but would have {n_all}"
                ),
            );
        }
    }
}
