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
            | Self::Affinity => false,
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
        };
        f.write_str(text)
    }
}

/// How many nodes there are against a pod, by reason.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    reasons: BTreeMap<Reason, usize>,
    nodes: usize,
    crowded: usize,
}

impl Tally {
    /// Counts one node with all that speaks against it.
    pub(crate) fn add(&mut self, reasons: Vec<Reason>) {
        self.nodes += 1;
        self.crowded += usize::from(reasons.iter().all(Reason::is_about_room));
        for reason in reasons {
            *self.reasons.entry(reason).or_default() += 1;
        }
    }

    /// Counts nodes that were not looked at.
    pub(crate) fn add_unnamed(&mut self, nodes: usize) {
        if nodes > 0 {
            self.nodes += nodes;
            *self.reasons.entry(Reason::NotNamed).or_default() += nodes;
        }
    }

    /// The whole message.
    pub(crate) fn message(&self, never_preempts: bool) -> String {
        let mut texts: Vec<String> = self
            .reasons
            .iter()
            .map(|(reason, nodes)| format!("{nodes} {reason}"))
            .collect();
        texts.sort();
        let none = format!("0/{} nodes are available", self.nodes);
        let after = preemption(self.nodes, self.crowded, never_preempts);
        format!("{none}: {}. {after}", texts.join(", "))
    }
}

/// The message when a pod is refused before any node is looked at.
pub(crate) fn refused_everywhere(nodes: usize, why: &str, never_preempts: bool) -> String {
    let after = preemption(nodes, 0, never_preempts);
    format!("0/{nodes} nodes are available: {why}. {after}")
}

/// The message when there is no node at all.
pub(crate) const NO_NODES: &str = "no nodes available to schedule pods";

/// Nobody is displaced here, so the closing sentence says that it would not help.
fn preemption(nodes: usize, crowded: usize, never_preempts: bool) -> String {
    if never_preempts {
        return "preemption: not eligible due to preemptionPolicy=Never.".to_owned();
    }
    let mut texts = Vec::new();
    if crowded > 0 {
        texts.push(format!(
            "{crowded} No preemption victims found for incoming pod"
        ));
    }
    if nodes > crowded {
        let rest = nodes - crowded;
        texts.push(format!("{rest} Preemption is not helpful for scheduling"));
    }
    texts.sort();
    format!(
        "preemption: 0/{nodes} nodes are available: {}.",
        texts.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_counts_nodes_by_reason() {
        let mut tally = Tally::default();
        tally.add(vec![Reason::Insufficient("cpu".into(), false)]);
        tally.add(vec![Reason::Taint]);
        tally.add(vec![Reason::Taint]);
        assert_eq!(
            tally.message(false),
            "0/3 nodes are available: 1 Insufficient cpu, 2 node(s) had untolerated taint(s). \
             preemption: 0/3 nodes are available: 1 No preemption victims found for incoming pod, \
             2 Preemption is not helpful for scheduling."
        );
        assert!(
            tally
                .message(true)
                .ends_with("not eligible due to preemptionPolicy=Never.")
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
