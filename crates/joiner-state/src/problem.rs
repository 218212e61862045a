//! From objects to a problem.

mod expand;

use std::collections::{BTreeMap, BTreeSet, HashMap};

use joiner_api::labels::is_restricted;
use joiner_model::{
    Daemon, DaemonIx, InstanceType, Labels, Name, NodeIx, Pod, PodShape, Policy, Problem, ShapeIx,
    TypeIx, keys,
};

use crate::documents::Source;
use crate::draft::{Draft, DraftIx, Priority};
use crate::error::ReadError;
use crate::objects::{Objects, PodRecord, Stage};
use crate::pools::NodeClassRef;
use crate::volumes::Mounts;
use crate::workloads::GATED;

/// The label that every namespace has.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// The instance types on sale, for each node class.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    shared: Vec<InstanceType>,
    per_class: BTreeMap<NodeClassRef, Vec<InstanceType>>,
}

impl Catalog {
    /// One list for all pools.
    #[must_use]
    pub fn shared(types: Vec<InstanceType>) -> Self {
        Self {
            shared: types,
            per_class: BTreeMap::new(),
        }
    }

    /// The list for pools with this class, instead of the shared one.
    #[must_use]
    pub fn with_class(mut self, class: NodeClassRef, types: Vec<InstanceType>) -> Self {
        self.per_class.insert(class, types);
        self
    }
}

/// A problem, and things worth telling the user about how it was read.
#[derive(Debug, Default)]
pub struct Input {
    /// The problem.
    pub problem: Problem,
    /// One line each.
    pub warnings: Vec<String>,
}

/// Reads all sources and puts them together with the catalog.
///
/// # Errors
/// The first piece of input that cannot be used.
pub fn read(
    sources: impl IntoIterator<Item = Source>,
    catalog: Catalog,
) -> Result<Input, ReadError> {
    Objects::read(sources)?.problem(catalog)
}

/// Shapes of the problem, each kept once.
#[derive(Default)]
struct Shapes {
    known: HashMap<PodShape, ShapeIx>,
    all: Vec<PodShape>,
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

impl Objects {
    /// The instance type lists this input needs: the classes of its pools, sorted.
    #[must_use]
    pub fn class_refs(&self) -> BTreeSet<NodeClassRef> {
        self.pools
            .iter()
            .map(|record| record.class.clone())
            .collect()
    }

    /// Turns everything that was read into a problem.
    ///
    /// # Errors
    /// When there are more pods than can be planned for.
    pub fn problem(mut self, catalog: Catalog) -> Result<Input, ReadError> {
        let missing = self.missing()?;
        let mut problem = Problem {
            nodes: self.model_nodes(),
            policy: Policy::default(),
            ..Problem::default()
        };
        self.fill_pools(catalog, &mut problem);
        self.apply_overlays(&mut problem);
        let mut builder = Builder {
            namespaces: self.all_namespaces(),
            node_ix: (0u32..)
                .zip(&problem.nodes)
                .map(|(ix, node)| (node.name.clone(), NodeIx(ix)))
                .collect(),
            objects: &self,
            settled: HashMap::new(),
            shapes: Shapes::default(),
            well_known: &problem.well_known,
            pods: Vec::new(),
            strays: BTreeMap::new(),
        };
        let daemons = builder.daemons();
        let total = missing.iter().map(|m| m.count).sum::<usize>();
        builder.pods.reserve_exact(self.pods.len() + total);
        for pod in &self.pods {
            builder.pod(pod);
        }
        let taken = self.pods.iter().map(|pod| pod.name.clone()).collect();
        builder.expand(&missing, &taken);
        let (pods, shapes, strays) = (builder.pods, builder.shapes.all, builder.strays);
        problem.pods = pods;
        problem.shapes = shapes;
        problem.daemons = daemons;
        let mut warnings = self.all_warnings();
        warnings.extend(strays.into_iter().map(|(node, count)| match count {
            1 => format!("1 pod is bound to node {node}, which is not in the input"),
            _ => format!("{count} pods are bound to node {node}, which is not in the input"),
        }));
        Ok(Input { problem, warnings })
    }

    fn fill_pools(&mut self, catalog: Catalog, problem: &mut Problem) {
        let mut lists = BTreeMap::new();
        let mut append = |types: Vec<InstanceType>| {
            let short = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            let first = short(problem.types.len());
            problem.types.extend(types);
            (first..short(problem.types.len()))
                .map(TypeIx)
                .collect::<Vec<_>>()
        };
        let used: BTreeSet<NodeClassRef> = self.class_refs();
        let needs_shared =
            used.is_empty() || used.iter().any(|c| !catalog.per_class.contains_key(c));
        let shared = if needs_shared {
            append(catalog.shared)
        } else {
            Vec::new()
        };
        for (class, types) in catalog.per_class {
            if used.contains(&class) {
                lists.insert(class, append(types));
            }
        }
        problem.well_known = keys::WELL_KNOWN
            .iter()
            .map(|key| Name::from(*key))
            .collect();
        for instance_type in &problem.types {
            problem
                .well_known
                .extend(instance_type.labels.keys().cloned());
            for offering in &instance_type.offerings {
                problem.well_known.extend(offering.labels.keys().cloned());
            }
        }
        for record in std::mem::take(&mut self.pools) {
            let mut pool = record.pool;
            pool.types = lists.get(&record.class).unwrap_or(&shared).clone();
            let class = self
                .node_classes
                .iter()
                .find(|c| c.reference == record.class);
            if let Some(why) = class.and_then(|c| c.not_ready.as_ref()) {
                let class = &record.class;
                let why = format!("its {} {} {why}", class.kind, class.name);
                pool.closed.get_or_insert(why.into());
            }
            problem.pools.push(pool);
        }
    }

    /// Every namespace that is known of, with its labels.
    fn all_namespaces(&mut self) -> BTreeMap<Name, Labels> {
        let mut all = self.namespaces.clone();
        for draft in self.drafts.iter() {
            all.entry(draft.shape.namespace.clone()).or_default();
        }
        let key = self.names.get(NAMESPACE_NAME);
        for (name, labels) in &mut all {
            labels.entry(key.clone()).or_insert_with(|| name.clone());
        }
        all
    }
}

/// Builds the pods of a problem.
struct Builder<'o> {
    objects: &'o Objects,
    namespaces: BTreeMap<Name, Labels>,
    node_ix: HashMap<Name, NodeIx>,
    well_known: &'o BTreeSet<Name>,
    settled: HashMap<DraftIx, Settled>,
    shapes: Shapes,
    pods: Vec<Pod>,
    /// Nodes that pods are bound to but that are not there, and how many pods each has.
    strays: BTreeMap<Name, usize>,
}

impl Builder<'_> {
    /// The shape of a draft, and why its pods are not placed if so.
    fn settle(&mut self, ix: DraftIx) -> (ShapeIx, Option<Name>) {
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

    fn daemons(&mut self) -> Vec<Daemon> {
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

    fn daemon_of(&self, pod: &PodRecord) -> Option<DaemonIx> {
        let daemons = &self.objects.daemons;
        let found = match &pod.owner {
            Some(owner) if &*owner.kind == "DaemonSet" => {
                daemons.iter().position(|d| d.name == owner.name)
            }
            Some(_) => None,
            None => {
                let shape = &self.objects.drafts.get(pod.draft).shape;
                daemons.iter().position(|daemon| {
                    let home = &self.objects.drafts.get(daemon.draft).shape.namespace;
                    let selector = daemon.selector.as_ref();
                    *home == shape.namespace
                        && selector
                            .is_some_and(|s| !s.exprs().is_empty() && s.matches(&shape.labels))
                })
            }
        };
        found.and_then(|ix| u32::try_from(ix).ok()).map(DaemonIx)
    }

    fn pod(&mut self, record: &PodRecord) {
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
        let (shape, _) = self.settle(record.draft);
        let claims = self
            .objects
            .volumes
            .held(&mounts(record, &self.shapes.all[shape.0 as usize]));
        self.pods.push(Pod {
            name: record.name.clone(),
            shape,
            claims: claims.into_boxed_slice(),
            node: Some(node_ix),
            daemon: self.daemon_of(record),
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
        let (shape, mut ignored) = self.settle(record.draft);
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
    fn with_volumes(&mut self, mut pod: Pod, mounts: &Mounts<'_>) -> Pod {
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
fn built_in_priority(class: &str) -> i32 {
    match class {
        "system-node-critical" => 2_000_001_000,
        "system-cluster-critical" => 2_000_000_000,
        _ => 0,
    }
}
