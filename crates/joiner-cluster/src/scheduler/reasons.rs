//! Why does a pod not fit, in upstream's words?

use std::collections::BTreeMap;
use std::fmt;

/// One reason against one node. Autoscalers and people read these words.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Reason {
    /// Cordoned.
    Unschedulable,
    /// A taint stands in the way.
    Taint,
    /// Labels or name of the node are not what the pod demands.
    NodeAffinity,
    /// Left out because the pod names other nodes.
    NotNamed,
    /// A port is taken.
    Ports,
    /// Every place for a pod is taken.
    TooManyPods,
    /// Too little of a resource; not even the empty node has enough when true.
    Insufficient(Box<str>, bool),
    /// A volume that one pod alone may use is in use.
    SingleUse,
    /// No more volumes can be attached.
    VolumeCount,
    /// The volume is elsewhere.
    VolumeAffinity,
    /// No volume can be had there.
    NoVolume,
    /// The claim's volume is gone.
    LostVolume,
    /// The node has not the label to spread over.
    SpreadLabel,
    /// The skew would be too large.
    Spread,
    /// The pods to be with are elsewhere.
    Affinity,
    /// The pods to keep away from are there.
    AntiAffinity,
    /// Pods that want to keep away are there.
    ExistingAntiAffinity,
    /// Nobody is there who could make room.
    NoVictims,
    /// It does not help if anybody makes room.
    NoHelp,
}

impl Reason {
    /// True when fewer pods on the node would help.
    fn is_about_room(&self) -> bool {
        match self {
            Self::Ports
            | Self::TooManyPods
            | Self::SingleUse
            | Self::VolumeCount
            | Self::Spread
            | Self::AntiAffinity
            | Self::ExistingAntiAffinity => true,
            Self::Insufficient(_, hopeless) => !hopeless,
            Self::Unschedulable
            | Self::Taint
            | Self::NodeAffinity
            | Self::NotNamed
            | Self::VolumeAffinity
            | Self::NoVolume
            | Self::LostVolume
            | Self::SpreadLabel
            | Self::Affinity
            | Self::NoVictims
            | Self::NoHelp => false,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = match self {
            Self::Unschedulable => "node(s) were unschedulable",
            Self::Taint => "node(s) had untolerated taint(s)",
            Self::NodeAffinity => "node(s) didn't match Pod's node affinity/selector",
            Self::NotNamed => "node(s) didn't satisfy plugin(s) [NodeAffinity]",
            Self::Ports => "node(s) didn't have free ports for the requested pod ports",
            Self::TooManyPods => "Too many pods",
            Self::Insufficient(name, _) => return write!(f, "Insufficient {name}"),
            Self::SingleUse => {
                "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access \
                 mode already in-use by another pod"
            }
            Self::VolumeCount => "node(s) exceed max volume count",
            Self::VolumeAffinity => "node(s) didn't match PersistentVolume's node affinity",
            Self::NoVolume => "node(s) didn't find available persistent volumes to bind",
            Self::LostVolume => {
                "node(s) unavailable due to one or more pvc(s) bound to non-existent pv(s)"
            }
            Self::SpreadLabel => {
                "node(s) didn't match pod topology spread constraints (missing required label)"
            }
            Self::Spread => "node(s) didn't match pod topology spread constraints",
            Self::Affinity => "node(s) didn't match pod affinity rules",
            Self::AntiAffinity => "node(s) didn't match pod anti-affinity rules",
            Self::ExistingAntiAffinity => {
                "node(s) didn't satisfy existing pods anti-affinity rules"
            }
            Self::NoVictims => "No preemption victims found for incoming pod",
            Self::NoHelp => "Preemption is not helpful for scheduling",
        };
        f.write_str(text)
    }
}

/// How many nodes there are against a pod, by reason.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    reasons: BTreeMap<Reason, usize>,
    nodes: usize,
    /// Nodes that would do if fewer pods were there.
    pub(crate) crowded: Vec<usize>,
}

impl Tally {
    /// Counts one node with all that speaks against it.
    pub(crate) fn add(&mut self, node: usize, reasons: Vec<Reason>) {
        self.nodes += 1;
        if reasons.iter().all(Reason::is_about_room) {
            self.crowded.push(node);
        }
        for reason in reasons {
            *self.reasons.entry(reason).or_default() += 1;
        }
    }

    /// Counts nodes that were not looked at.
    pub(crate) fn add_unseen(&mut self, nodes: usize, reason: Reason) {
        if nodes > 0 {
            self.nodes += nodes;
            *self.reasons.entry(reason).or_default() += nodes;
        }
    }

    /// The whole message.
    pub(crate) fn message(&self) -> String {
        let mut texts: Vec<String> = self
            .reasons
            .iter()
            .map(|(reason, nodes)| format!("{nodes} {reason}"))
            .collect();
        texts.sort();
        let none = format!("0/{} nodes are available", self.nodes);
        format!("{none}: {}.", texts.join(", "))
    }
}

/// The message when a pod is refused before any node is looked at.
pub(crate) fn refused_everywhere(nodes: usize, why: &str, never_preempts: bool) -> String {
    let after = match never_preempts {
        true => NEVER.to_owned(),
        false => {
            let mut tally = Tally::default();
            tally.add_unseen(nodes, Reason::NoHelp);
            format!("preemption: {}", tally.message())
        }
    };
    format!("0/{nodes} nodes are available: {why}. {after}")
}

/// The message when there is no node at all.
pub(crate) const NO_NODES: &str = "no nodes available to schedule pods";

/// The end of the message for a pod that displaces nobody.
pub(crate) const NEVER: &str = "preemption: not eligible due to preemptionPolicy=Never.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_counts_nodes_by_reason() {
        let mut tally = Tally::default();
        tally.add(0, vec![Reason::Insufficient("cpu".into(), false)]);
        tally.add(1, vec![Reason::Taint]);
        tally.add(2, vec![Reason::Taint]);
        tally.add_unseen(1, Reason::NotNamed);
        assert_eq!(tally.crowded, [0]);
        assert_eq!(
            tally.message(),
            "0/4 nodes are available: 1 Insufficient cpu, \
             1 node(s) didn't satisfy plugin(s) [NodeAffinity], 2 node(s) had untolerated taint(s)."
        );
    }

    #[test]
    fn a_pod_can_be_refused_before_nodes_are_looked_at() {
        let message =
            refused_everywhere(2, "pod has unbound immediate PersistentVolumeClaims", false);
        assert_eq!(
            message,
            "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims. \
             preemption: 0/2 nodes are available: 2 Preemption is not helpful for scheduling."
        );
    }
}
