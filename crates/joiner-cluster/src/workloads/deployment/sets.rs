//! The ReplicaSets of a Deployment: which is the new one, what it is told, and how it is made.

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::{Map, Value, json};

use super::super::owned::Child;
use super::{REPLICA_SETS, Rollout};
use crate::fields;
use crate::names::{template_digest, template_hash};
use crate::view::Action;

/// Number of the template among all that the deployment had.
pub(super) const REVISION: &str = "deployment.kubernetes.io/revision";
/// Numbers that a set had before.
const REVISION_HISTORY: &str = "deployment.kubernetes.io/revision-history";
/// Size of the deployment when the set last changed.
const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
/// The same, with surge.
const MAXIMUM: &str = "deployment.kubernetes.io/max-replicas";
/// Annotations of a deployment that its sets do not get.
const NOT_COPIED: [&str; 6] = [
    "kubectl.kubernetes.io/last-applied-configuration",
    "deprecated.deployment.rollback.to",
    REVISION,
    REVISION_HISTORY,
    DESIRED,
    MAXIMUM,
];
/// Characters of history that a set carries at most.
const HISTORY_MAX: usize = 2000;
/// Characters of a name at most.
const NAME_MAX: usize = 253;

/// One set, with the size that this step gives it.
pub(super) struct RolloutSet<'a> {
    /// The object; none when this step creates it.
    pub(super) object: Option<&'a Value>,
    pub(super) name: String,
    pub(super) replicas: i64,
    pub(super) available: i64,
    created: Timestamp,
    digest: u64,
}

impl<'a> RolloutSet<'a> {
    fn of(object: &'a Value) -> Self {
        Self {
            object: Some(object),
            name: meta::name(object).to_owned(),
            replicas: fields::count(&object["spec"]["replicas"], 1),
            available: fields::count(&object["status"]["availableReplicas"], 0),
            created: fields::created(object),
            digest: template_digest(&object["spec"]["template"]),
        }
    }

    /// A count of its status.
    pub(super) fn status(&self, field: &str) -> i64 {
        let status = self.object.map(|object| &object["status"][field]);
        status.map_or(0, |value| fields::count(value, 0))
    }

    /// The number of its template, 0 when it has none.
    pub(super) fn revision(&self) -> i64 {
        self.number(REVISION).unwrap_or(0)
    }

    /// The deployment's size when it last heard of it.
    pub(super) fn desired(&self) -> Option<i64> {
        self.number(DESIRED)
    }

    /// The same, with surge.
    pub(super) fn maximum(&self) -> Option<i64> {
        self.number(MAXIMUM)
    }

    /// True when it has no pods and knows it.
    pub(super) fn is_idle(&self) -> bool {
        self.replicas == 0 && self.status("replicas") == 0 && !self.is_behind()
    }

    /// True when it has pods, also such that are on their way out, or might have.
    pub(super) fn may_run_pods(&self) -> bool {
        let pods = self.status("replicas") + self.status("terminatingReplicas");
        pods > 0 || self.is_behind()
    }

    /// True when its status does not tell of its latest spec.
    fn is_behind(&self) -> bool {
        let generation = self.object.map_or(0, |object| {
            fields::count(&object["metadata"]["generation"], 0)
        });
        generation > self.status("observedGeneration")
    }

    fn number(&self, annotation: &str) -> Option<i64> {
        meta::annotation(self.object?, annotation)?.parse().ok()
    }
}

/// All sets of a deployment, oldest first.
pub(super) struct Sets<'a> {
    pub(super) all: Vec<RolloutSet<'a>>,
    /// The one with the deployment's template.
    pub(super) new: Option<usize>,
    digest: u64,
}

impl<'a> Sets<'a> {
    pub(super) fn of(deployment: &Value, claimed: &[&'a Child]) -> Self {
        let digest = template_digest(&deployment["spec"]["template"]);
        let mut all: Vec<_> = claimed
            .iter()
            .map(|child| RolloutSet::of(&child.object))
            .collect();
        all.sort_by(|a, b| (a.created, &a.name).cmp(&(b.created, &b.name)));
        let new = all.iter().position(|set| set.digest == digest);
        Self { all, new, digest }
    }

    /// Indexes of all but the new one, oldest first.
    pub(super) fn old(&self) -> impl Iterator<Item = usize> + use<> {
        let new = self.new;
        (0..self.all.len()).filter(move |at| Some(*at) != new)
    }

    /// Replicas that all sets together ask for.
    pub(super) fn total(&self) -> i64 {
        self.all.iter().map(|set| set.replicas).sum()
    }

    /// Available pods of all sets.
    pub(super) fn available(&self) -> i64 {
        self.all.iter().map(|set| set.available).sum()
    }
}

impl Rollout<'_, '_> {
    /// Tells the new set, if it is there, its number and the deployment's annotations.
    pub(super) fn adjust_new_set(&mut self) {
        let Some(set) = self.sets.new.map(|new| &self.sets.all[new]) else {
            return;
        };
        let Some(object) = set.object else {
            return;
        };
        let revision = self.next_revision();
        let known = |key: &str, value: &Value| object["metadata"]["annotations"][key] == *value;
        let mut annotations = self.copied_annotations();
        annotations.retain(|key, value| !known(key, value));
        if set.revision() < revision {
            annotations.insert(REVISION.to_owned(), json!(revision.to_string()));
            if let Some(before) = meta::annotation(object, REVISION) {
                let history = meta::annotation(object, REVISION_HISTORY).unwrap_or_default();
                let history = Value::String(lengthen(history, before));
                annotations.insert(REVISION_HISTORY.to_owned(), history);
            }
        }
        let own = set.revision().max(revision);
        let name = set.name.clone();
        let min_ready = fields::count(&self.deployment["spec"]["minReadySeconds"], 0);
        let mut patch = json!({});
        if !annotations.is_empty() {
            patch["metadata"] = json!({"annotations": annotations});
        }
        if fields::count(&object["spec"]["minReadySeconds"], 0) != min_ready {
            patch["spec"] = json!({"minReadySeconds": min_ready});
        }
        if patch != json!({}) {
            self.actions
                .push(fields::patch(REPLICA_SETS, object, patch));
        }
        self.take_revision(own);
        if self.deadline().is_some() && self.condition("Progressing").is_none() {
            let message = format!("Found new replica set \"{name}\"");
            self.set_condition("Progressing", "True", "FoundNewReplicaSet", &message);
        }
    }

    /// Creates the set for the deployment's template. False when its name is taken: the next step
    /// tries another hash.
    pub(super) fn create_set(&mut self) -> bool {
        let hash = template_hash(self.sets.digest, self.collisions.unwrap_or(0));
        let mut base = meta::name(self.deployment);
        while base.len() + 1 + hash.len() > NAME_MAX {
            base = &base[..base.floor_char_boundary(base.len() - 1)];
        }
        let name = format!("{base}-{hash}");
        let namespace = meta::namespace(self.deployment);
        if self.view.get(REPLICA_SETS, namespace, &name).is_some() {
            self.collisions = Some(self.collisions.unwrap_or(0) + 1);
            return false;
        }
        let replicas = self.room(0);
        let revision = self.next_revision();
        let set = self.new_object(&name, &hash, replicas, revision);
        self.actions.push(Action::Create(REPLICA_SETS, set));
        if replicas > 0 {
            self.tell_scaling(&format!(
                "Scaled up replica set {name} from 0 to {replicas}"
            ));
        }
        self.take_revision(revision);
        if self.deadline().is_some() {
            let message = format!("Created new replica set \"{name}\"");
            self.set_condition("Progressing", "True", "NewReplicaSetCreated", &message);
        }
        self.sets.new = Some(self.sets.all.len());
        self.sets.all.push(RolloutSet {
            object: None,
            name,
            replicas,
            available: 0,
            created: self.view.now,
            digest: self.sets.digest,
        });
        true
    }

    fn new_object(&self, name: &str, hash: &str, replicas: i64, revision: i64) -> Value {
        let spec = &self.deployment["spec"];
        let mut template = spec["template"].clone();
        super::super::pods::label(&mut template, "pod-template-hash", hash);
        let mut selector = spec["selector"].clone();
        if !selector["matchLabels"].is_object() {
            selector["matchLabels"] = json!({});
        }
        selector["matchLabels"]["pod-template-hash"] = json!(hash);
        let mut annotations = self.copied_annotations();
        annotations.insert(REVISION.to_owned(), json!(revision.to_string()));
        annotations.extend(self.size_annotations());
        let mut set = json!({
            "apiVersion": "apps/v1",
            "kind": "ReplicaSet",
            "metadata": {
                "name": name,
                "namespace": meta::namespace(self.deployment),
                "labels": template["metadata"]["labels"],
                "annotations": annotations,
                "ownerReferences": [self.owner.reference()],
            },
            "spec": {"replicas": replicas, "selector": selector, "template": template},
        });
        let min_ready = fields::count(&spec["minReadySeconds"], 0);
        if min_ready > 0 {
            set["spec"]["minReadySeconds"] = json!(min_ready);
        }
        set
    }

    /// What a set remembers of the deployment's size.
    pub(super) fn size_annotations(&self) -> Map<String, Value> {
        let maximum = self.replicas + self.surge;
        Map::from_iter([
            (DESIRED.to_owned(), json!(self.replicas.to_string())),
            (MAXIMUM.to_owned(), json!(maximum.to_string())),
        ])
    }

    /// One more than any old set has.
    fn next_revision(&self) -> i64 {
        let old = self.sets.old().map(|at| self.sets.all[at].revision());
        old.max().unwrap_or(0) + 1
    }

    /// Shows the number of the new set on the deployment, too.
    fn take_revision(&mut self, revision: i64) {
        let revision = revision.to_string();
        if meta::annotation(self.deployment, REVISION) != Some(&revision) {
            let patch = json!({"metadata": {"annotations": {REVISION: revision}}});
            let resource = super::DEPLOYMENTS;
            self.actions
                .push(fields::patch(resource, self.deployment, patch));
        }
    }

    fn copied_annotations(&self) -> Map<String, Value> {
        let own = self.deployment["metadata"]["annotations"].as_object();
        let copied = own.into_iter().flatten();
        copied
            .filter(|(key, _)| !NOT_COPIED.contains(&key.as_str()))
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }
}

/// Adds a number to a list of numbers; the oldest go when it gets too long.
fn lengthen(history: &str, revision: &str) -> String {
    let mut numbers: Vec<&str> = history.split(',').filter(|n| !n.is_empty()).collect();
    numbers.push(revision);
    let mut length = numbers.iter().map(|n| n.len() + 1).sum::<usize>();
    let mut first = 0;
    while length > HISTORY_MAX && first + 1 < numbers.len() {
        length -= numbers[first].len() + 1;
        first += 1;
    }
    numbers[first..].join(",")
}
