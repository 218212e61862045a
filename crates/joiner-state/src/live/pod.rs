//! Pods.

use std::sync::Arc;
use std::time::Duration;

use imbl::OrdSet;
use jiff::Timestamp;
use joiner_api::labels::{DISRUPTED_TAINT, DO_NOT_DISRUPT, POD_DELETION_COST};
use joiner_api::types::DurationText;
use joiner_model::{Effect, Name, Precedence, Resources, Taint, Toleration, tolerates_all};
use serde_json::Value;

use super::kind::Kind;
use super::meta::{list, time};
use super::owners::PodOwner;
use super::reading::{Live, Reading};
use super::shelf::Indexed;
use crate::containers::PodContainer;
use crate::documents::Document;
use crate::draft::{Draft, DraftIx};
use crate::error::{Place, ReadError};
use crate::objects::{PodParts, PodRecord, Stage};
use crate::pod::VolumeUse;
use crate::wire;

/// Pods by what else they are looked for.
#[derive(Clone, Debug, Default)]
pub(super) struct PodIndex {
    /// (node, pod).
    pub(super) bound: OrdSet<(Name, Name)>,
    /// Pods that wait for a node to be bought.
    pub(super) waiting: OrdSet<Name>,
    /// Pods that the scheduler has not come to yet.
    pub(super) fresh: OrdSet<Name>,
}

/// Where a pod is in its life.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Phase {
    /// Not all containers have started.
    #[default]
    Pending,
    /// It runs.
    Running,
    /// It ran to its end, and well.
    Succeeded,
    /// It ran to its end.
    Failed,
    /// Its node is lost.
    Unknown,
}

/// Condition of pods: the scheduler was asked to try the node in its message first, since the plan
/// has the pod there.
pub use joiner_api::labels::ours::PROPOSED;

/// What the do-not-disrupt annotation of a pod says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DoNotDisrupt {
    /// For ever.
    Forever,
    /// For this long after its start.
    For(Duration),
    /// Nothing that could be understood: it does not count.
    Invalid(Name),
}

/// A pod of the cluster.
#[derive(Clone, Debug)]
pub struct LivePod {
    /// `namespace/name`.
    pub name: Name,
    /// Uid.
    pub uid: Name,
    /// Version, as a number.
    pub version: u64,
    /// When it was created.
    pub created: Timestamp,
    /// When it is to be gone, once somebody asked for its deletion; its grace is in it.
    pub deleting: Option<Timestamp>,
    /// The owner in control.
    pub owner: Option<Arc<PodOwner>>,
    /// Phase.
    pub phase: Phase,
    /// The node it is bound to.
    pub node: Option<Name>,
    /// A node was cleared for it by preemption.
    pub nominated: Option<Name>,
    /// The node that was proposed to the scheduler, as long as that stands.
    pub proposed: Option<Name>,
    /// The scheduler said that it fits nowhere.
    pub unschedulable: bool,
    /// The scheduler has said something about it.
    pub looked_at: bool,
    /// Its Ready condition is true, and since when.
    pub ready: Option<Timestamp>,
    /// When it was bound.
    pub scheduled: Option<Timestamp>,
    /// When the kubelet took it on.
    pub started: Option<Timestamp>,
    /// Seconds it may take to end.
    pub grace_secs: u32,
    /// What its annotation says.
    pub do_not_disrupt: Option<DoNotDisrupt>,
    /// How dear it is to delete.
    pub deletion_cost: i32,
    /// Scheduling priority.
    pub priority: i32,
    /// The cluster cannot do without it.
    pub critical: bool,
    /// It stays on a node that is going away.
    pub tolerates_disrupted: bool,
    /// Made by a kubelet from a file.
    pub mirror: bool,
    /// Another scheduler than the cluster's own looks after it.
    pub elsewhere: bool,
    /// What it asks for, shared by all that look alike.
    pub(crate) draft: Arc<Draft>,
    /// What it mounts through claims.
    volumes: Box<[VolumeUse]>,
    /// Where it stands, as the planner sees it.
    stage: Stage,
}

impl LivePod {
    /// Reads what is left to read of a pod; `pod` and `parts` are what the planner has read.
    fn new(
        object: &Value,
        pod: &wire::pod::Pod<'_>,
        parts: PodParts,
        reading: &mut Reading<'_>,
    ) -> Self {
        let (meta, spec, status) = (&object["metadata"], &object["spec"], &object["status"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = reading.name.clone();
        let namespace = name.split_once('/').map_or("", |(namespace, _)| namespace);
        let owner = (reading.owners).of(object, namespace, &mut reading.reader.names);
        let draft = reading.reader.drafts.shared(parts.draft);
        let told = pod.metadata.as_ref();
        let at = |text: &Option<wire::Text<'_>>| text.as_deref()?.parse().ok();
        let asked = pod.spec.as_ref();
        let class = asked.map_or("", |value| wire::text(&value.priority_class_name));
        let condition = |kind: &str| {
            list(&status["conditions"]).find(|value| value["type"].as_str() == Some(kind))
        };
        let scheduled = condition("PodScheduled");
        let holds = |value: &&Value| value["status"].as_str() == Some("True");
        let since =
            |value: &Value| time(&value["lastTransitionTime"]).unwrap_or(Timestamp::UNIX_EPOCH);
        let nominated = status["nominatedNodeName"].as_str();
        let nominated = nominated.filter(|node| !node.is_empty());
        // What we proposed to the scheduler is a hint, and no promise.
        let proposal = condition(PROPOSED).and_then(|value| value["message"].as_str());
        let is_proposed = nominated.is_some() && proposal == nominated;
        Self {
            name,
            uid: text(&meta["uid"]).into(),
            version: text(&meta["resourceVersion"]).parse().unwrap_or(0),
            created: told
                .and_then(|value| at(&value.creation_timestamp))
                .unwrap_or(Timestamp::UNIX_EPOCH),
            deleting: told.and_then(|value| at(&value.deletion_timestamp)),
            phase: phase(
                pod.status
                    .as_ref()
                    .map_or("", |value| wire::text(&value.phase)),
            ),
            node: parts.node,
            nominated: nominated.filter(|_| !is_proposed).map(Name::from),
            proposed: nominated.filter(|_| is_proposed).map(Name::from),
            looked_at: scheduled.is_some(),
            unschedulable: scheduled
                .is_some_and(|value| value["reason"].as_str() == Some("Unschedulable")),
            ready: condition("Ready").filter(holds).map(since),
            scheduled: scheduled.filter(holds).map(since),
            started: time(&status["startTime"]),
            elsewhere: (spec["schedulerName"].as_str())
                .is_some_and(|name| name != "default-scheduler"),
            grace_secs: spec["terminationGracePeriodSeconds"]
                .as_u64()
                .map_or(30, |secs| u32::try_from(secs).unwrap_or(u32::MAX)),
            do_not_disrupt: meta["annotations"][DO_NOT_DISRUPT]
                .as_str()
                .map(do_not_disrupt),
            deletion_cost: text(&meta["annotations"][POD_DELETION_COST])
                .parse()
                .unwrap_or(0),
            priority: asked.and_then(|value| value.priority).unwrap_or(0),
            critical: matches!(class, "system-cluster-critical" | "system-node-critical"),
            tolerates_disrupted: tolerates_disrupted(&draft.shape.tolerations),
            mirror: meta["annotations"]["kubernetes.io/config.mirror"].is_string()
                || owner.as_ref().is_some_and(|value| &*value.kind == "Node"),
            owner,
            draft,
            volumes: parts.volumes,
            stage: parts.stage,
        }
    }

    /// What the planner is told of it, where its draft has this index there.
    pub(super) fn record(&self, draft: DraftIx) -> PodRecord {
        let owner = self.owner.as_deref();
        PodRecord {
            name: self.name.clone(),
            draft,
            node: self.node.clone(),
            owner: owner.map(|value| value.planned.clone()),
            volumes: self.volumes.clone(),
            created: self.is_daemon().then_some(self.created),
            stage: self.stage,
            is_selected_by_owner: owner.is_some_and(|value| value.tells_pods),
        }
    }

    /// The namespace.
    #[must_use]
    pub fn namespace(&self) -> &str {
        self.name
            .split_once('/')
            .map_or("", |(namespace, _)| namespace)
    }

    /// The name without the namespace.
    #[must_use]
    pub fn own_name(&self) -> &str {
        self.name
            .split_once('/')
            .map_or(&self.name, |(_, name)| name)
    }

    /// What it requests, `pods: 1` included.
    #[must_use]
    pub fn requests(&self) -> &Resources {
        &self.draft.shape.requests
    }

    /// Who looks for a place first.
    #[must_use]
    pub fn precedence(&self) -> Precedence {
        self.draft.shape.precedence()
    }

    /// Its limits, `pods: 1` included.
    #[must_use]
    pub fn limits(&self) -> &Resources {
        &self.draft.limits
    }

    /// Its containers: first those that run on, then those before them.
    #[must_use]
    pub fn containers(&self) -> &[PodContainer] {
        &self.draft.containers
    }

    /// Its labels.
    #[must_use]
    pub fn labels(&self) -> &joiner_model::Labels {
        &self.draft.shape.labels
    }

    /// Its tolerations.
    #[must_use]
    pub fn tolerations(&self) -> &[Toleration] {
        &self.draft.shape.tolerations
    }

    /// Claims it mounts, as `namespace/name`.
    pub fn volume_claims(&self) -> impl Iterator<Item = Name> {
        let (namespace, pod) = (self.namespace(), self.own_name());
        self.volumes
            .iter()
            .map(move |value| value.claim(namespace, pod))
    }

    /// It ran to its end.
    #[must_use]
    pub fn is_terminal(&self) -> bool {
        matches!(self.phase, Phase::Succeeded | Phase::Failed)
    }

    /// Neither finished nor being deleted.
    #[must_use]
    pub fn is_active(&self) -> bool {
        !self.is_terminal() && self.deleting.is_none()
    }

    /// Made by a DaemonSet.
    #[must_use]
    pub fn is_daemon(&self) -> bool {
        self.owned_by("DaemonSet")
    }

    /// True when a pod of this kind of owner.
    #[must_use]
    pub fn owned_by(&self, kind: &str) -> bool {
        self.owner
            .as_ref()
            .is_some_and(|value| &*value.kind == kind)
    }

    /// A node is to be bought for it: it waits, and the scheduler found no place.
    #[must_use]
    pub fn is_provisionable(&self) -> bool {
        self.unschedulable
            && self.node.is_none()
            && self.nominated.is_none()
            && self.is_active()
            && !self.is_daemon()
            && !self.mirror
    }

    /// It has no place and nobody promised it one, whether the scheduler has tried already or not.
    #[must_use]
    pub fn is_homeless(&self) -> bool {
        self.is_provisionable() || (self.is_fresh() && self.nominated.is_none())
    }

    /// It was created a moment ago, and the scheduler has not come to it yet.
    #[must_use]
    pub fn is_fresh(&self) -> bool {
        !self.looked_at
            && self.node.is_none()
            && self.is_active()
            && !self.is_daemon()
            && !self.mirror
    }

    /// True when whatever takes the other one takes this one: it asks for no more, and any node that
    /// the other may go to will do.
    #[must_use]
    pub(crate) fn is_easier_than(&self, other: &Self) -> bool {
        let (value, harder) = (&self.draft.shape, &other.draft.shape);
        self.is_content()
            && self.elsewhere == other.elsewhere
            && self.priority >= other.priority
            && value.requests.fits(&harder.requests)
            && (harder.tolerations.iter()).all(|one| value.tolerations.contains(one))
    }

    /// It takes any node that has room and no taints.
    pub(crate) fn is_content(&self) -> bool {
        let shape = &self.draft.shape;
        !shape.precedence().choosy
            && shape.ports.is_empty()
            && self.draft.runtime_class.is_none()
            && self.draft.ignored.is_none()
            && self.volumes.is_empty()
    }

    /// It would need a place elsewhere if its node went.
    #[must_use]
    pub fn is_reschedulable(&self) -> bool {
        let may_come_back = self.is_active()
            || (!self.is_terminal() && self.deleting.is_some() && self.owned_by("StatefulSet"));
        may_come_back && !self.is_daemon() && !self.mirror
    }

    /// Its annotation keeps it where it is at this time.
    #[must_use]
    pub fn is_protected(&self, now: Timestamp) -> bool {
        self.is_active() && self.protected_until(now).is_some()
    }

    /// Until when its annotation keeps it where it is, if it does: `Timestamp::MAX` for ever, or
    /// as long as it has not started.
    #[must_use]
    pub fn protected_until(&self, now: Timestamp) -> Option<Timestamp> {
        match self.do_not_disrupt.as_ref()? {
            DoNotDisrupt::Forever => Some(Timestamp::MAX),
            DoNotDisrupt::Invalid(_) => None,
            DoNotDisrupt::For(duration) => {
                let until = self.started.map_or(Timestamp::MAX, |started| {
                    started.checked_add(*duration).unwrap_or(Timestamp::MAX)
                });
                (now < until).then_some(until)
            }
        }
    }
}

impl Live for LivePod {
    const KINDS: &'static [Kind] = &[Kind::Pod];

    fn read(object: &Value, reading: &mut Reading<'_>) -> Result<Self, String> {
        let name = reading.name.clone();
        let said = |error: ReadError| error.of(format!("Pod {name}")).to_string();
        let pod = Document::Value(object).parse(&Place::default());
        let pod: wire::pod::Pod<'_> = pod.map_err(|error| error.to_string())?;
        let parts = reading.reader.pod_parts(&pod, &name).map_err(said)?;
        Ok(Self::new(object, &pod, parts, reading))
    }

    fn identity(&self) -> (&Name, u64) {
        (&self.uid, self.version)
    }

    fn about(&self) -> Option<&Name> {
        self.node.as_ref()
    }
}

impl Indexed for LivePod {
    type Index = PodIndex;

    fn enter(&self, name: &Name, index: &mut PodIndex) {
        if let Some(node) = &self.node {
            index.bound.insert((node.clone(), name.clone()));
        }
        if self.is_provisionable() {
            index.waiting.insert(name.clone());
        }
        if self.is_fresh() {
            index.fresh.insert(name.clone());
        }
    }

    fn leave(&self, name: &Name, index: &mut PodIndex) {
        if let Some(node) = &self.node {
            index.bound.remove(&(node.clone(), name.clone()));
        }
        index.waiting.remove(name);
        index.fresh.remove(name);
    }
}

fn phase(text: &str) -> Phase {
    match text {
        "Running" => Phase::Running,
        "Succeeded" => Phase::Succeeded,
        "Failed" => Phase::Failed,
        "Unknown" => Phase::Unknown,
        _ => Phase::Pending,
    }
}

fn do_not_disrupt(text: &str) -> DoNotDisrupt {
    if text == "true" {
        return DoNotDisrupt::Forever;
    }
    match DurationText(text.to_owned()).parse() {
        Ok(Some(duration)) if !duration.is_zero() => DoNotDisrupt::For(duration),
        Ok(_) | Err(_) => DoNotDisrupt::Invalid(text.into()),
    }
}

fn tolerates_disrupted(tolerations: &[Toleration]) -> bool {
    let taint = Taint {
        key: DISRUPTED_TAINT.key.into(),
        value: "".into(),
        effect: Effect::NoSchedule,
    };
    tolerates_all(tolerations, std::slice::from_ref(&taint), false).is_ok()
}
