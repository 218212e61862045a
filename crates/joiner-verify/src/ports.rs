//! Host ports: each can be taken once on a node.

use joiner_model::{HostPort, PodIx};

use crate::ground::Ground;
use crate::violation::{Report, Rule};

/// Reports ports that two of `new` take, or one of them and a `bound` pod or a daemon.
pub(crate) fn check(
    ground: &Ground<'_>,
    node: &str,
    new: &[PodIx],
    bound: &[PodIx],
    daemons: &[usize],
    report: &mut Report,
) {
    let with_ports = |pods: &[PodIx]| -> Vec<PodIx> {
        let ports = |pod: &PodIx| !ground.shape(*pod).ports.is_empty();
        pods.iter().copied().filter(ports).collect()
    };
    let new = with_ports(new);
    if new.is_empty() {
        return;
    }
    let bound = with_ports(bound);
    for (i, pod) in new.iter().enumerate() {
        let mine = &ground.shape(*pod).ports;
        let name = ground.pod_name(*pod);
        for other in new[i + 1..].iter().chain(&bound) {
            if let Some(port) = shared(mine, &ground.shape(*other).ports) {
                let other = ground.pod_name(*other);
                report.say(
                    Rule::Port,
                    format_args!("node {node}: pods {name} and {other} both take host port {port}"),
                );
            }
        }
        for daemon in daemons {
            let daemon = &ground.problem.daemons[*daemon];
            if let Some(port) = shared(mine, &daemon.shape.ports) {
                let other = &daemon.name;
                report.say(
                    Rule::Port,
                    format_args!(
                        "node {node}: pod {name} takes host port {port} of daemon {other}"
                    ),
                );
            }
        }
    }
}

/// A port of `mine` that is also one of `theirs`.
pub(crate) fn shared(mine: &[HostPort], theirs: &[HostPort]) -> Option<u16> {
    let clashes = |port: &&HostPort| theirs.iter().any(|other| port.conflicts(other));
    mine.iter().find(clashes).map(|port| port.port)
}
