//! Which node does each waiting pod get?
//!
//! The filters and scores are those of upstream's default profile. A pod takes this way: [`pod`] and
//! [`node`] hold what matters of objects, [`cluster`] who is where, [`claims`] what volumes demand,
//! [`trial`] filters, [`score`] chooses; else [`preemption`] looks for somebody who makes room, and
//! [`reasons`] says why not.

pub(crate) mod amounts;
mod claims;
mod cluster;
pub(crate) mod labels;
pub(crate) mod node;
mod pod;
mod preemption;
mod queue;
mod reasons;
mod score;
mod trial;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::{Value, json};

use self::claims::{Attached, VolumeRules};
use self::cluster::Cluster;
use self::labels::Labels;
use self::node::NodeInfo;
use self::pod::{PREEMPTED, PodInfo, Spread};
use self::preemption::{Nobody, Victims};
use self::queue::Attempts;
use self::reasons::{NO_NODES, Reason, Tally, refused_everywhere};
use self::trial::Trial;
use crate::cache::Cache;
use crate::events::Recorder;
use crate::fields::{after, delete, set_condition};
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
        let is_due = |pod: &Arc<PodInfo>| pod.gates.is_empty() && self.attempts.is_due(pod, world);
        let has_promise = |pod: &PodInfo| pod.gates.is_empty() && pod.nominated.is_some();
        let due = |(_, pod): &(_, &Arc<PodInfo>)| is_due(pod) || has_promise(pod);
        let turns: Vec<_> = waiting.into_iter().filter(due).collect();
        if !turns.iter().any(|(_, pod)| is_due(pod)) {
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
        // What was promised to one pod is not for the others, whoever comes first.
        for (_, pod) in &turns {
            cluster.reserve(pod);
        }
        for (object, pod) in turns {
            if !self.attempts.is_due(pod, world) {
                continue;
            }
            cluster.release(pod);
            match round.place(&mut cluster, object, pod) {
                Ok(()) => self.attempts.forget(&pod.uid),
                Err(refusal) => {
                    let loud = self.attempts.fail(pod, world, &refusal.message, view.now);
                    round.refuse(object, pod, &refusal, loud);
                    if refusal.nominated.is_none() {
                        cluster.reserve(pod);
                    }
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

/// A pod that stays where it is.
#[derive(Clone, Default)]
struct Refusal {
    message: String,
    /// It waits for others to leave its node, and has been told so.
    patient: bool,
    /// A node that others leave for its sake, from now on.
    nominated: Option<String>,
}

impl From<String> for Refusal {
    fn from(message: String) -> Self {
        Self {
            message,
            ..Self::default()
        }
    }
}

/// The work of one step.
struct Round<'v> {
    view: View<'v>,
    recorder: Recorder<'v>,
    attached: Attached,
    defaults: BTreeMap<OwnerKey, Arc<Vec<Spread>>>,
    /// The last pod that failed with its message: the next one like it fails alike.
    failed: Option<(Arc<PodInfo>, String)>,
    /// Pods that have been told to leave, by uid.
    sent_away: BTreeSet<String>,
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
            sent_away: BTreeSet::new(),
            step: Step::default(),
        }
    }

    /// Binds the pod, or has its claims bound first; the error says why not.
    fn place(
        &mut self,
        cluster: &mut Cluster,
        object: &Value,
        pod: &Arc<PodInfo>,
    ) -> Result<(), Refusal> {
        if let Some((failed, message)) = &self.failed
            && failed.is_like(pod)
        {
            return Err(message.clone().into());
        }
        let (nodes, never) = (cluster.rooms.len(), pod.never_preempts);
        if nodes == 0 {
            return Err(NO_NODES.to_owned().into());
        }
        let rules = VolumeRules::read(&self.view, pod, &mut self.attached, cluster)
            .map_err(|why| refused_everywhere(nodes, &why, never))?;
        let open = rules.is_open();
        let (told, to_tell) = (rules.told.clone(), rules.to_tell.clone());
        let mut trial = Trial::new(cluster, pod, rules);
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
                Err(tally) => return Err(self.displace(cluster, &mut trial, pod, &tally)),
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
                tally.add(*node, trial.against(cluster, *node));
            }
            tally.add_unseen(all - candidates.len(), Reason::NotNamed);
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
        if pod.nominated.is_some() {
            let patch = json!({"status": {"nominatedNodeName": null}});
            self.patch_status(pod, patch);
        }
    }

    /// Has less important pods leave a node for this one, if that helps.
    fn displace(
        &mut self,
        cluster: &mut Cluster,
        trial: &mut Trial<'_>,
        pod: &Arc<PodInfo>,
        tally: &Tally,
    ) -> Refusal {
        let message = tally.message();
        match preemption::find(&self.view, cluster, trial, pod, tally) {
            Ok(victims) => {
                let node = cluster.rooms[victims.node].info.name.clone();
                self.send_away(&victims, pod, &node);
                cluster.place(victims.node, Arc::clone(pod));
                Refusal {
                    message,
                    patient: false,
                    nominated: Some(node),
                }
            }
            Err(Nobody::Leaving) => Refusal {
                message,
                patient: true,
                nominated: None,
            },
            Err(Nobody::Because(why)) => {
                let message = format!("{message} {why}");
                self.failed = Some((Arc::clone(pod), message.clone()));
                message.into()
            }
        }
    }

    fn send_away(&mut self, victims: &Victims, pod: &PodInfo, node: &str) {
        for victim in victims.pods.iter().filter(|victim| !victim.deleting) {
            if !self.sent_away.insert(victim.uid.clone()) {
                continue;
            }
            let Some(object) = self.view.get(PODS, &victim.key.0, &victim.key.1) else {
                continue;
            };
            self.write_condition(
                object,
                victim,
                json!({
                    "type": "DisruptionTarget",
                    "status": "True",
                    "lastProbeTime": null,
                    "lastTransitionTime": meta::time(self.view.now),
                    "reason": PREEMPTED,
                    "message": format!("{NAME}: preempting to accommodate a higher priority pod"),
                }),
                None,
            );
            self.step.actions.push(delete(PODS, object, None));
            let message = format!("Preempted by pod {} on node {node}", pod.uid);
            let event = self.recorder.normal(object, "Preempted", &message);
            self.step.actions.push(event);
        }
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

    fn refuse(&mut self, object: &Value, pod: &PodInfo, refusal: &Refusal, loud: bool) {
        if refusal.patient {
            return;
        }
        let message = refusal.message.as_str();
        let same = |(reason, old): &(String, String)| reason == "Unschedulable" && old == message;
        let known = pod.verdict.as_ref().is_some_and(same);
        if !known || refusal.nominated.is_some() {
            let promised = refusal.nominated.as_deref();
            self.write_verdict(object, pod, ("Unschedulable", message), promised);
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
            self.write_verdict(object, pod, ("SchedulingGated", GATED), None);
        }
    }

    fn write_verdict(
        &mut self,
        object: &Value,
        pod: &PodInfo,
        (reason, message): (&str, &str),
        promised: Option<&str>,
    ) {
        let condition = json!({
            "type": "PodScheduled",
            "status": "False",
            "lastProbeTime": null,
            "lastTransitionTime": meta::time(self.view.now),
            "reason": reason,
            "message": message,
        });
        self.write_condition(object, pod, condition, promised);
    }

    fn write_condition(
        &mut self,
        object: &Value,
        pod: &PodInfo,
        mut condition: Value,
        promised: Option<&str>,
    ) {
        let conditions = object["status"]["conditions"].as_array();
        let mut conditions = conditions.cloned().unwrap_or_default();
        if object["metadata"]["generation"].is_i64() {
            condition["observedGeneration"] = object["metadata"]["generation"].clone();
        }
        set_condition(&mut conditions, condition);
        let mut status = json!({"conditions": conditions});
        if let Some(node) = promised {
            status["nominatedNodeName"] = json!(node);
        }
        let version = meta::text(object, "resourceVersion");
        let patch = json!({"metadata": {"resourceVersion": version}, "status": status});
        self.patch_status(pod, patch);
    }

    fn patch_status(&mut self, pod: &PodInfo, patch: Value) {
        self.step.actions.push(Action::Patch {
            resource: PODS,
            key: pod.key.clone(),
            subresource: Some("status"),
            patch,
        });
    }
}
