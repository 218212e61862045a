//! All that a decision about the end of one Node rests on.

use std::collections::BTreeSet;

use jiff::Timestamp;
use joiner_api::labels::node_class_label;
use joiner_model::Name;
use joiner_state::live::{LiveAttachment, LiveClaim, LiveNode, LivePod, Snapshot};

use super::drain::is_drainable;
use crate::nodeclaim::lifecycle::Terms;

/// All that a decision about the end of one Node rests on.
#[derive(Clone, Debug)]
pub struct NodeView<'a> {
    /// The Node.
    pub node: &'a LiveNode,
    /// Its claim; none when there is none, or several.
    pub claim: Option<&'a LiveClaim>,
    /// Pods bound to it.
    pub pods: Vec<&'a LivePod>,
    /// Volumes that have to be detached first, by name, in order.
    pub volumes: Vec<Name>,
    /// It is one of ours.
    pub is_managed: bool,
}

impl<'a> NodeView<'a> {
    /// The view of a Node by name.
    #[must_use]
    pub fn of(
        snapshot: &'a Snapshot,
        name: &'a str,
        terms: &Terms,
        now: Timestamp,
    ) -> Option<Self> {
        let node = snapshot.node(name)?;
        let pods: Vec<&LivePod> = snapshot.pods_on(name).map(AsRef::as_ref).collect();
        let claim = snapshot.claim_of(node).map(AsRef::as_ref);
        let mut classes = terms.classes.iter();
        let is_labeled = classes.any(|class| {
            let key = node_class_label(class.group, class.kind);
            node.meta.label(&key).is_some()
        });
        // A claim made by hand may not have brought the label yet.
        let is_managed = is_labeled || claim.is_some_and(|claim| is_supported(claim, terms));
        Some(Self {
            node,
            claim,
            volumes: volumes(snapshot, name, &pods, now),
            pods,
            is_managed,
        })
    }
}

fn is_supported(claim: &LiveClaim, terms: &Terms) -> bool {
    let class = &claim.claim.spec.node_class_ref;
    terms.supports(&class.group, &class.kind)
}

/// Volumes that are still attached and will not stay so: not those of pods that stay to the end.
fn volumes(snapshot: &Snapshot, node: &str, pods: &[&LivePod], now: Timestamp) -> Vec<Name> {
    let staying = pods.iter().filter(|pod| !is_drainable(pod, now));
    let kept: BTreeSet<&str> = staying
        .flat_map(|pod| pod.volume_claims())
        .filter_map(|claim| snapshot.volume_of(&claim))
        .collect();
    let blocks = |own: &&LiveAttachment| !own.volume.is_empty() && !kept.contains(&*own.volume);
    let attached = snapshot.attachments_of(node).map(AsRef::as_ref);
    let mut names: Vec<Name> = attached
        .filter(blocks)
        .map(|own| own.meta.name.clone())
        .collect();
    names.sort();
    names
}
