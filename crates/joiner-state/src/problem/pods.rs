//! Pods of a problem: drafts with everything filled in.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use joiner_api::labels::is_restricted;
use joiner_model::{Daemon, DaemonIx, Labels, Name, NodeIx, Pod, PodShape, Problem, ShapeIx};

use crate::choices::{of_owner, services_of};
use crate::draft::{Draft, DraftIx, Priority};
use crate::objects::{Objects, Owner, PodRecord, Stage};
use crate::spread_defaults::defaulted;
use crate::volumes::Mounts;
use crate::workloads::{DaemonRecord, GATED};

/// Shapes of the problem, each kept once.
#[derive(Default)]
pub(super) struct Shapes {
    known: HashMap<PodShape, ShapeIx>,
    pub(super) all: Vec<PodShape>,
}

impl Shapes {
    fn intern(&mut self, shape: PodShape) -> ShapeIx {
        if let Some(ix) = self.known.get(&shape) {
            return *ix;
        }
        let ix = ShapeIx(u32::try_from(self.all.len()).unwrap_or(u32::MAX));
        self.all.push(shape.clone());
        self.known.insert(shape, ix);
        ix
    }
}

/// A draft with everything known about it.
struct Settled {
    shape: ShapeIx,
    ignored: Option<Name>,
}

/// Builds the pods of a problem.
pub(super) struct Builder<'o> {
    pub(super) objects: &'o Objects,
    namespaces: BTreeMap<Name, Labels>,
    node_ix: HashMap<Name, NodeIx>,
    daemon_ix: HashMap<Name, DaemonIx>,
    well_known: &'o BTreeSet<Name>,
    settled: HashMap<DraftIx, Settled>,
    /// Shapes with default spread constraints, which depend on the owner too.
    spread: HashMap<(DraftIx, Option<Owner>), ShapeIx>,
    /// The DaemonSet whose selector the labels of a draft match.
    alike: HashMap<DraftIx, Option<DaemonIx>>,
    pub(super) shapes: Shapes,
    pub(super) pods: Vec<Pod>,
    /// Nodes that pods are bound to but that are not there, and how many pods each has.
    pub(super) strays: BTreeMap<Name, usize>,
}

impl<'o> Builder<'o> {
    /// A builder for pods on the nodes of `problem`.
    pub(super) fn new(
        objects: &'o Objects,
        namespaces: BTreeMap<Name, Labels>,
        problem: &'o Problem,
    ) -> Self {
        let nodes = (0u32..).zip(&problem.nodes);
        let daemons = (0u32..).zip(&objects.daemons);
        Self {
            objects,
            namespaces,
            node_ix: nodes
                .map(|(ix, node)| (node.name.clone(), NodeIx(ix)))
                .collect(),
            daemon_ix: daemons
                .map(|(ix, d)| (d.name.clone(), DaemonIx(ix)))
                .collect(),
            well_known: &problem.well_known,
            settled: HashMap::new(),
            spread: HashMap::new(),
            alike: HashMap::new(),
            shapes: Shapes::default(),
            pods: Vec::new(),
            strays: BTreeMap::new(),
        }
    }

    /// The shape of a draft, and why its pods are not placed if so.
    pub(super) fn settle(&mut self, ix: DraftIx) -> (ShapeIx, Option<Name>) {
        if let Some(settled) = self.settled.get(&ix) {
            return (settled.shape, settled.ignored.clone());
        }
        let draft = self.objects.drafts.get(ix);
        let (shape, ignored) = self.resolve(draft);
        let shape = self.shapes.intern(shape);
        let settled = Settled {
            shape,
            ignored: ignored.clone(),
        };
        self.settled.insert(ix, settled);
        (shape, ignored)
    }

    /// The same for pods of an owner: those that declare no spread constraints get the default ones.
    pub(super) fn settle_of(
        &mut self,
        ix: DraftIx,
        owner: Option<&Owner>,
    ) -> (ShapeIx, Option<Name>) {
        let (shape, ignored) = self.settle(ix);
        let Some(defaults) = &self.objects.spread_defaults else {
            return (shape, ignored);
        };
        let key = (ix, owner.cloned());
        if let Some(known) = self.spread.get(&key) {
            return (*known, ignored);
        }
        let choices = &self.objects.choices;
        let own = &self.shapes.all[shape.0 as usize];
        let owner = owner.and_then(|owner| of_owner(choices, owner, &own.labels));
        let services = services_of(choices, &own.namespace);
        let spreads = defaulted(defaults, own, services, owner.as_ref());
        let spread = if spreads.is_empty() {
            shape
        } else {
            let mut own = own.clone();
            own.spreads = spreads;
            self.shapes.intern(own)
        };
        self.spread.insert(key, spread);
        (spread, ignored)
    }

    /// The shape of a pod, and why it is not placed if so.
    fn settle_pod(&mut self, record: &PodRecord) -> (ShapeIx, Option<Name>) {
        let owner = record
            .owner
            .as_ref()
            .filter(|_| record.is_selected_by_owner);
        self.settle_of(record.draft, owner)
    }

    /// Fills in what other objects say.
    fn resolve(&self, draft: &Draft) -> (PodShape, Option<Name>) {
        let mut shape = draft.shape.clone();
        let mut ignored = draft.ignored.clone();
        shape.priority = match &draft.priority {
            Priority::Given(priority) => *priority,
            Priority::Class(class) => match self.objects.priorities.get(class) {
                Some(priority) => *priority,
                None => built_in_priority(class),
            },
            Priority::Unset => self.objects.default_priority.unwrap_or(0),
        };
        let runtime = draft.runtime_class.as_ref();
        if let Some(runtime) = runtime.and_then(|class| self.objects.runtimes.get(class)) {
            shape.requests.add(&runtime.overhead);
            shape
                .node_selector
                .extend(runtime.node_selector.iter().cloned());
            shape
                .tolerations
                .extend(runtime.tolerations.iter().cloned());
        }
        for rule in &draft.namespaces {
            let selected = self
                .namespaces
                .iter()
                .filter(|(_, labels)| rule.selector.as_ref().is_some_and(|s| s.matches(labels)));
            if let Some(term) = rule.term(&mut shape) {
                term.namespaces
                    .extend(selected.map(|(name, _)| name.clone()));
                term.namespaces.sort();
                term.namespaces.dedup();
            }
        }
        let selected = shape
            .node_selector
            .iter()
            .chain(shape.node_terms.iter().flatten());
        let restricted = selected
            .map(joiner_model::Requirement::key)
            .find(|key| is_restricted(key) && !self.well_known.contains(*key));
        if let Some(key) = restricted {
            ignored.get_or_insert_with(|| {
                format!("it selects nodes by label {key:?}, which is restricted").into()
            });
        }
        (shape, ignored)
    }

    pub(super) fn daemons(&mut self) -> Vec<Daemon> {
        let mut newest: HashMap<&str, &PodRecord> = HashMap::new();
        for pod in &self.objects.pods {
            let owner = pod
                .owner
                .as_ref()
                .filter(|owner| &*owner.kind == "DaemonSet");
            let (Some(owner), Stage::Live) = (owner, pod.stage) else {
                continue;
            };
            let known = newest.entry(&owner.name).or_insert(pod);
            if known.created <= pod.created {
                *known = pod;
            }
        }
        let mut daemons = Vec::new();
        for record in &self.objects.daemons {
            let (mut shape, _) = self.resolve(self.objects.drafts.get(record.draft));
            if let Some(pod) = newest.get(&*record.name) {
                let (live, _) = self.resolve(self.objects.drafts.get(pod.draft));
                shape = PodShape {
                    node_terms: shape.node_terms,
                    ..live
                };
            }
            daemons.push(Daemon {
                name: record.name.clone(),
                shape,
            });
        }
        daemons
    }

    /// The DaemonSet that owns a pod, or that would adopt it.
    fn daemon_of(&mut self, pod: &PodRecord) -> Option<DaemonIx> {
        if let Some(owner) = &pod.owner {
            let by_daemon = &*owner.kind == "DaemonSet";
            return self
                .daemon_ix
                .get(&owner.name)
                .copied()
                .filter(|_| by_daemon);
        }
        let objects = self.objects;
        *self.alike.entry(pod.draft).or_insert_with(|| {
            let shape = &objects.drafts.get(pod.draft).shape;
            let alike = |daemon: &DaemonRecord| {
                let home = &objects.drafts.get(daemon.draft).shape.namespace;
                let selector = daemon.selector.as_ref();
                *home == shape.namespace
                    && selector.is_some_and(|s| !s.exprs().is_empty() && s.matches(&shape.labels))
            };
            let mut daemons = (0u32..).zip(&objects.daemons);
            daemons
                .find(|(_, daemon)| alike(daemon))
                .map(|(ix, _)| DaemonIx(ix))
        })
    }

    pub(super) fn pod(&mut self, record: &PodRecord) {
        if matches!(record.stage, Stage::Succeeded | Stage::Failed) {
            return;
        }
        match &record.node {
            Some(node) => self.bound_pod(record, node),
            None => self.pending_pod(record),
        }
    }

    fn bound_pod(&mut self, record: &PodRecord, node: &Name) {
        let Some(node_ix) = self.node_ix.get(node).copied() else {
            *self.strays.entry(node.clone()).or_default() += 1;
            return;
        };
        let (shape, _) = self.settle_pod(record);
        let claims = self
            .objects
            .volumes
            .held(&mounts(record, &self.shapes.all[shape.0 as usize]));
        let daemon = self.daemon_of(record);
        self.pods.push(Pod {
            name: record.name.clone(),
            shape,
            claims: claims.into_boxed_slice(),
            node: Some(node_ix),
            daemon,
            terminating: record.stage == Stage::Deleting,
            ignored: None,
        });
    }

    fn pending_pod(&mut self, record: &PodRecord) {
        let owner = record.owner.as_ref().map(|owner| &*owner.kind);
        let others_place_it = matches!(owner, Some("DaemonSet" | "Node"));
        if others_place_it || record.stage == Stage::Deleting {
            return;
        }
        let (shape, mut ignored) = self.settle_pod(record);
        match record.stage {
            Stage::Gated => ignored = Some(GATED.into()),
            Stage::Stray => {
                ignored = Some("it is past Pending, yet has no node".into());
            }
            Stage::Live | Stage::Deleting | Stage::Succeeded | Stage::Failed => {}
        }
        let pod = Pod {
            name: record.name.clone(),
            shape,
            claims: Box::default(),
            node: None,
            daemon: None,
            terminating: false,
            ignored,
        };
        let pod = if record.volumes.is_empty() {
            pod
        } else {
            let own = self.shapes.all[shape.0 as usize].clone();
            self.with_volumes(pod, &mounts(record, &own))
        };
        self.pods.push(pod);
    }

    /// The pod with what its volumes ask of a node.
    pub(super) fn with_volumes(&mut self, mut pod: Pod, mounts: &Mounts<'_>) -> Pod {
        match self.objects.volumes.reach(mounts) {
            Ok(reach) => {
                pod.claims = reach.claims.into_boxed_slice();
                if !reach.terms.is_empty() {
                    let mut shape = self.shapes.all[pod.shape.0 as usize].clone();
                    shape.volume_terms = reach.terms;
                    pod.shape = self.shapes.intern(shape);
                }
            }
            Err(why) => {
                pod.ignored.get_or_insert_with(|| why.into());
            }
        }
        pod
    }
}

fn mounts<'m>(record: &'m PodRecord, shape: &'m PodShape) -> Mounts<'m> {
    Mounts {
        namespace: &shape.namespace,
        pod: record.name.split_once('/').map_or("", |(_, name)| name),
        uses: &record.volumes,
        own_claims: &[],
        expanded: false,
    }
}

/// Priorities that every cluster has.
pub(super) fn built_in_priority(class: &str) -> i32 {
    match class {
        "system-node-critical" => 2_000_001_000,
        "system-cluster-critical" => 2_000_000_000,
        _ => 0,
    }
}
