//! Which pods have nobody left to look after them?

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use joiner_machinery::meta;

use super::Watch;
use super::eviction::PodPlace;
use crate::cache::Cache;
use crate::fields::after;
use crate::scheduler::{NODES, PODS};
use crate::view::Action;

/// Seconds that a node may be missing before its pods go: it may just be late to appear.
const QUARANTINE_SECS: i64 = 40;
/// Finished pods that are kept.
const FINISHED_MAX: usize = 12_500;

/// Removes pods of nodes that are gone, pods that were deleted before they got a node, and the
/// oldest finished ones when there are too many.
pub(crate) fn collect(
    watch: &mut Watch<'_>,
    pods: &Cache<PodPlace>,
    missed: &mut BTreeMap<String, Timestamp>,
) {
    let nodes: BTreeSet<&str> = watch.view.all(NODES).map(|node| meta::name(node)).collect();
    let mut still = BTreeMap::new();
    let mut finished: Vec<&PodPlace> = Vec::new();
    for pod in pods.iter() {
        if pod.finished {
            finished.push(pod);
        }
        if pod.node.is_empty() {
            if pod.deleting == Some(false) {
                let why = ("DeletionByPodGC", "PodGC: unscheduled pod is being deleted");
                watch.remove(pod, why, true, Some(0));
            }
            continue;
        }
        // A pod without time left has been let go already.
        if nodes.contains(&*pod.node) || pod.deleting == Some(true) {
            continue;
        }
        let since = missed.get(&pod.node).copied().unwrap_or(watch.view.now);
        still.insert(pod.node.clone(), since);
        let due = after(since, QUARANTINE_SECS);
        if watch.view.now < due {
            watch.look_again(due);
        } else {
            watch.remove(
                pod,
                ("DeletionByPodGC", "PodGC: node no longer exists"),
                true,
                Some(0),
            );
        }
    }
    *missed = still;
    thin_out(watch, finished);
}

fn thin_out(watch: &mut Watch<'_>, mut finished: Vec<&PodPlace>) {
    let Some(surplus) = finished
        .len()
        .checked_sub(FINISHED_MAX)
        .filter(|count| *count > 0)
    else {
        return;
    };
    finished.sort_by_key(|pod| (pod.created, pod.key.clone()));
    for pod in finished.into_iter().take(surplus) {
        watch.step.actions.push(Action::Delete {
            resource: PODS,
            key: pod.key.clone(),
            uid: pod.uid.clone(),
            grace_secs: Some(0),
            propagation: None,
        });
    }
}
