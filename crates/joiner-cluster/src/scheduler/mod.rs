//! Which node does each waiting pod get?
//!
//! The filters and scores are those of upstream's default profile; nobody is displaced. A pod takes
//! this way: [`pod`] and [`node`] hold what matters of objects, [`cluster`] who is where, [`claims`]
//! what volumes demand, [`trial`] filters, [`score`] chooses, [`reasons`] says why not.

pub(crate) mod amounts;
mod claims;
mod cluster;
pub(crate) mod labels;
pub(crate) mod node;
mod pod;
mod queue;
mod reasons;
mod score;
mod trial;

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::{Value, json};

use self::claims::{Attached, VolumeRules};
use self::cluster::Cluster;
use self::labels::Labels;
use self::node::NodeInfo;
use self::pod::{PodInfo, Spread};
use self::queue::Attempts;
use self::reasons::{NO_NODES, Tally, refused_everywhere};
use self::trial::Trial;
use crate::cache::Cache;
use crate::events::Recorder;
use crate::fields::{after, set_condition};
use crate::view::{Action, Controller, Resource, Step, View};
use crate::volumes;

pub(crate) const PODS: Resource = ("", "pods");
pub(crate) const NODES: Resource = ("", "nodes");
const NAMESPACES: Resource = ("", "namespaces");

/// The name that pods ask for.
const NAME: &str = "default-scheduler";

/// Binds waiting pods to nodes.
#[derive(Default)]
pub struct Scheduler {
    pods: Cache<PodInfo>,
    nodes: Cache<NodeInfo>,
    namespaces: Cache<(String, Labels)>,
    attempts: Attempts,
}

impl Controller for Scheduler {
    fn name(&self) -> &'static str {
        NAME
    }

    fn reads(&self) -> &'static [Resource] {
        &[
            PODS,
            NODES,
            NAMESPACES,
            volumes::CLAIMS,
            volumes::VOLUMES,
            volumes::CLASSES,
            volumes::CSI_NODES,
        ]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        self.refresh(view);
        let mut round = Round::new(view);
        let waiting = queue::waiting(&self.pods);
        for (object, pod) in &waiting {
            if !pod.gates.is_empty() {
                round.hold_back(object, pod);
            }
        }
        let world = self.pods.generation() + self.nodes.generation() + self.namespaces.generation();
        self.attempts.keep(&waiting);
        let due: Vec<_> = waiting
            .into_iter()
            .filter(|(_, pod)| pod.gates.is_empty() && self.attempts.is_due(pod, world))
            .collect();
        if due.is_empty() {
            return round.step;
        }
        let labels = self
            .namespaces
            .iter()
            .map(|one| (one.0.clone(), one.1.clone()));
        let mut cluster = Cluster::new(
            self.nodes.iter().cloned(),
            self.pods.iter(),
            labels.collect(),
        );
        for (object, pod) in due {
            match round.place(&mut cluster, object, pod) {
                Ok(()) => self.attempts.forget(&pod.uid),
                Err(message) => {
                    let loud = self.attempts.fail(pod, world, &message, view.now);
                    round.refuse(object, pod, &message, loud);
                }
            }
        }
        round.step
    }

    fn refused(&mut self, action: &Action, _message: &str, now: Timestamp) -> Option<Timestamp> {
        matches!(action, Action::Bind { .. }).then(|| after(now, 1))
    }
}

impl Scheduler {
    fn refresh(&mut self, view: &View<'_>) {
        let read_namespace = |object: &Value| {
            let labels = Labels::read(&object["metadata"]["labels"]);
            (meta::name(object).to_owned(), labels)
        };
        self.pods
            .refresh(view.objects(PODS), PodInfo::read, PodInfo::is_placed);
        self.nodes
            .refresh(view.objects(NODES), NodeInfo::read, |_| true);
        self.namespaces
            .refresh(view.objects(NAMESPACES), read_namespace, |_| true);
    }
}

/// Namespace, kind and name of a controller of pods.
type OwnerKey = (String, Box<str>, Box<str>);

/// The work of one step.
struct Round<'v> {
    view: View<'v>,
    recorder: Recorder<'v>,
    attached: Attached,
    defaults: BTreeMap<OwnerKey, Arc<Vec<Spread>>>,
    /// The last pod that failed with its message: the next one like it fails alike.
    failed: Option<(Arc<PodInfo>, String)>,
    step: Step,
}

impl<'v> Round<'v> {
    fn new(view: &View<'v>) -> Self {
        Self {
            view: *view,
            recorder: Recorder::new(view, NAME),
            attached: Attached::default(),
            defaults: BTreeMap::new(),
            failed: None,
            step: Step::default(),
        }
    }

    /// Binds the pod, or has its claims bound first; the error says why not.
    fn place(
        &mut self,
        cluster: &mut Cluster,
        object: &Value,
        pod: &Arc<PodInfo>,
    ) -> Result<(), String> {
        if let Some((failed, message)) = &self.failed
            && failed.is_like(pod)
        {
            return Err(message.clone());
        }
        let (nodes, never) = (cluster.rooms.len(), pod.never_preempts);
        if nodes == 0 {
            return Err(NO_NODES.to_owned());
        }
        let rules = VolumeRules::read(&self.view, pod, &mut self.attached, cluster)
            .map_err(|why| refused_everywhere(nodes, &why, never))?;
        let open = rules.is_open();
        let (told, to_tell) = (rules.told.clone(), rules.to_tell.clone());
        let trial = Trial::new(cluster, pod, rules);
        let wanted = [pod.nominated.as_deref(), told.as_deref()];
        let wanted = wanted
            .into_iter()
            .flatten()
            .filter_map(|name| cluster.index(name));
        let preset = wanted
            .into_iter()
            .find(|node| trial.against(cluster, *node).is_empty());
        let node = match preset {
            Some(node) => node,
            None => match self.choose(cluster, pod, &trial) {
                Ok(node) => node,
                Err(tally) => {
                    let message = tally.message(never);
                    self.failed = Some((Arc::clone(pod), message.clone()));
                    return Err(message);
                }
            },
        };
        drop(trial);
        self.attached.place(&self.view, node, pod);
        cluster.place(node, Arc::clone(pod));
        self.failed = None;
        let name = cluster.rooms[node].info.name.clone();
        if !open {
            self.bind(object, pod, name);
        } else if told.as_deref() == Some(&name) {
            self.tell(pod, &to_tell, &name);
        } else {
            // The node that was named before is no good any more, or none was named.
            let all: Vec<String> = pod.claims.iter().map(|used| used.name.clone()).collect();
            self.tell(pod, &all, &name);
        }
        Ok(())
    }

    fn choose(
        &mut self,
        cluster: &mut Cluster,
        pod: &PodInfo,
        trial: &Trial<'_>,
    ) -> Result<usize, Tally> {
        let all = cluster.rooms.len();
        let candidates: Vec<usize> = match pod.rule.only() {
            None => (0..all).collect(),
            Some(names) => names
                .iter()
                .filter_map(|name| cluster.index(name))
                .collect(),
        };
        let mut feasible = Vec::new();
        for node in &candidates {
            if trial.fits(cluster, *node) {
                feasible.push(*node);
            }
        }
        let defaults = self.default_spread(pod, feasible.len());
        let seed = self.view.seed;
        score::best(cluster, pod, trial, &feasible, &defaults, seed).ok_or_else(|| {
            let mut tally = Tally::default();
            for node in &candidates {
                tally.add(trial.against(cluster, *node));
            }
            tally.add_unnamed(all - candidates.len());
            tally
        })
    }

    /// The cluster's own soft constraints for pods that a controller or a Service chooses.
    fn default_spread(&mut self, pod: &PodInfo, choices: usize) -> Arc<Vec<Spread>> {
        let Some((kind, owner)) = pod
            .owner
            .clone()
            .filter(|_| choices > 1 && pod.spread.is_empty())
        else {
            return Arc::default();
        };
        let view = self.view;
        let key = (pod.key.0.clone(), kind, owner);
        let known = self
            .defaults
            .entry(key)
            .or_insert_with_key(|(namespace, kind, owner)| {
                Arc::new(queue::default_spread(
                    &view,
                    namespace,
                    (kind, owner),
                    &pod.labels,
                ))
            });
        Arc::clone(known)
    }

    fn bind(&mut self, object: &Value, pod: &PodInfo, node: String) {
        let message = format!(
            "Successfully assigned {}/{} to {node}",
            pod.key.0, pod.key.1
        );
        self.step.actions.push(Action::Bind {
            pod: pod.key.clone(),
            uid: pod.uid.clone(),
            node,
        });
        let event = self.recorder.normal(object, "Scheduled", &message);
        self.step.actions.push(event);
    }

    /// Names the node to claims that wait for it; the pod is bound once they are.
    fn tell(&mut self, pod: &PodInfo, claims: &[String], node: &str) {
        for name in claims {
            let claim = self.view.get(volumes::CLAIMS, &pod.key.0, name);
            if claim.is_none_or(|claim| volumes::is_bound(claim)) {
                continue;
            }
            self.step.actions.push(Action::Patch {
                resource: volumes::CLAIMS,
                key: (pod.key.0.clone(), name.clone()),
                subresource: None,
                patch: json!({"metadata": {"annotations": {volumes::SELECTED_NODE: node}}}),
            });
        }
    }

    fn refuse(&mut self, object: &Value, pod: &PodInfo, message: &str, loud: bool) {
        let same = |(reason, old): &(String, String)| reason == "Unschedulable" && old == message;
        let known = pod.verdict.as_ref().is_some_and(same);
        if !known {
            self.write_verdict(object, pod, "Unschedulable", message);
        }
        if !known || loud {
            let event = self.recorder.warning(object, "FailedScheduling", message);
            self.step.actions.push(event);
        }
    }

    fn hold_back(&mut self, object: &Value, pod: &PodInfo) {
        const GATED: &str = "Scheduling is blocked due to non-empty scheduling gates";
        if pod
            .verdict
            .as_ref()
            .is_none_or(|(reason, _)| reason != "SchedulingGated")
        {
            self.write_verdict(object, pod, "SchedulingGated", GATED);
        }
    }

    fn write_verdict(&mut self, object: &Value, pod: &PodInfo, reason: &str, message: &str) {
        let mut conditions = object["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        set_condition(
            &mut conditions,
            json!({
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": null,
                "lastTransitionTime": meta::time(self.view.now),
                "reason": reason,
                "message": message,
            }),
        );
        self.step.actions.push(Action::Patch {
            resource: PODS,
            key: pod.key.clone(),
            subresource: Some("status"),
            patch: json!({
                "metadata": {"resourceVersion": meta::text(object, "resourceVersion")},
                "status": {"conditions": conditions},
            }),
        });
    }
}
