//! Every pod to place once, every other pod never; and who sits where.

use joiner_model::PodIx;

use crate::ground::Ground;
use crate::violation::{Report, Rule};

/// The pods that the plan puts on each node; only pods that may be placed at all.
pub(crate) struct Seats {
    /// By launch.
    pub(crate) launches: Vec<Vec<PodIx>>,
    /// By existing node.
    pub(crate) nodes: Vec<Vec<PodIx>>,
    /// Left over.
    pub(crate) unplaced: Vec<PodIx>,
}

/// Counts where every pod is, and tells who is lost, doubled or not to be touched.
pub(crate) fn check(ground: &Ground<'_>, report: &mut Report) -> Seats {
    let problem = ground.problem;
    let mut n_placed = vec![0u32; problem.pods.len()];
    let mut n_unplaced = vec![0u32; problem.pods.len()];
    let mut seats = Seats {
        launches: Vec::with_capacity(ground.plan.launches.len()),
        nodes: vec![Vec::new(); problem.nodes.len()],
        unplaced: Vec::new(),
    };
    for launch in &ground.plan.launches {
        let pods = seated(ground, &launch.pods, &mut n_placed, report);
        seats.launches.push(pods);
    }
    for placement in &ground.plan.placements {
        let pods = seated(ground, &placement.pods, &mut n_placed, report);
        match seats.nodes.get_mut(placement.node.0 as usize) {
            Some(seat) => seat.extend(pods),
            None => report.say(
                Rule::Reference,
                format_args!(
                    "pods are placed on node {}, which is not there",
                    placement.node.0
                ),
            ),
        }
    }
    left_over(ground, &mut n_unplaced, &mut seats, report);
    for pod in (0..).map(PodIx).take(problem.pods.len()) {
        let (placed, unplaced) = (n_placed[pod.0 as usize], n_unplaced[pod.0 as usize]);
        let name = ground.pod_name(pod);
        let mut say = |text: std::fmt::Arguments<'_>| {
            report.say(Rule::Census, format_args!("pod {name} {text}"));
        };
        if placed > 1 {
            say(format_args!("is placed {placed} times"));
        }
        if unplaced > 1 {
            say(format_args!("is left over {unplaced} times"));
        }
        if placed > 0 && unplaced > 0 {
            say(format_args!("is both placed and left over"));
        }
        if placed + unplaced == 0 && is_pending(ground, pod) {
            say(format_args!("is lost: neither placed nor left over"));
        }
    }
    seats
}

fn is_pending(ground: &Ground<'_>, pod: PodIx) -> bool {
    let pod = &ground.problem[pod];
    pod.node.is_none() && pod.ignored.is_none()
}

/// Those of `pods` that may be placed.
fn seated(
    ground: &Ground<'_>,
    pods: &[PodIx],
    n_placed: &mut [u32],
    report: &mut Report,
) -> Vec<PodIx> {
    let mut seated = Vec::with_capacity(pods.len());
    for ix in pods {
        let Some(pod) = ground.problem.pods.get(ix.0 as usize) else {
            let text = format_args!("pod {} is placed, but is not there", ix.0);
            report.say(Rule::Reference, text);
            continue;
        };
        n_placed[ix.0 as usize] += 1;
        if let Some(why) = &pod.ignored {
            let text = format_args!("pod {} is placed, but set aside: {why}", pod.name);
            report.say(Rule::Census, text);
        } else if pod.node.is_some() {
            let text = format_args!("pod {} is placed, but runs on a node already", pod.name);
            report.say(Rule::Census, text);
        } else {
            seated.push(*ix);
        }
    }
    seated
}

fn left_over(ground: &Ground<'_>, n_unplaced: &mut [u32], seats: &mut Seats, report: &mut Report) {
    for unplaced in &ground.plan.unplaced {
        let ix = unplaced.pod;
        let Some(pod) = ground.problem.pods.get(ix.0 as usize) else {
            let text = format_args!("pod {} is left over, but is not there", ix.0);
            report.say(Rule::Reference, text);
            continue;
        };
        n_unplaced[ix.0 as usize] += 1;
        if pod.node.is_some() {
            let text = format_args!("pod {} is left over, but runs on a node already", pod.name);
            report.say(Rule::Census, text);
        } else if unplaced.refusals.is_empty() {
            let text = format_args!("pod {} is left over without a reason", pod.name);
            report.say(Rule::Census, text);
        }
        if is_pending(ground, ix) {
            seats.unplaced.push(ix);
        }
    }
}
