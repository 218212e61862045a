//! Everything that was read, before it becomes a problem.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use jiff::Timestamp;
use joiner_api::names::object_name_error;
use joiner_model::{Labels, Name, Resources, Terms, Toleration};

use crate::choices::Choices;
use crate::documents::{Document, Header, Sink, Source};
use crate::draft::{DraftIx, Drafts};
use crate::error::{Place, ReadError};
use crate::live::Kind;
use crate::names::Names;
use crate::nodes::{ClaimRecord, NodeRecord};
use crate::overlay::OverlayRecord;
use crate::pod::{self, VolumeUse};
use crate::pools::{NodeClass, PoolRecord};
use crate::spread_defaults::SpreadDefaults;
use crate::volumes::VolumeObjects;
use crate::wire::pod::{Pod, PodSpec};
use crate::wire::workload::{PriorityClass, RuntimeClass};
use crate::wire::{Bare, Meta, text};
use crate::workloads::{DaemonRecord, WorkloadRecord};
use crate::{admission, containers, reader, requests, selection, wording};

/// The most pods that one problem may have.
pub(crate) const PODS_MAX: usize = 5_000_000;

/// Kinds that are read, for whoever mistypes one.
const READ: [(&str, &str); 17] = [
    ("Pod", "v1"),
    ("Node", "v1"),
    ("Namespace", "v1"),
    ("PersistentVolumeClaim", "v1"),
    ("PersistentVolume", "v1"),
    ("StorageClass", "storage.k8s.io/v1"),
    ("CSINode", "storage.k8s.io/v1"),
    ("DaemonSet", "apps/v1"),
    ("Deployment", "apps/v1"),
    ("ReplicaSet", "apps/v1"),
    ("StatefulSet", "apps/v1"),
    ("Job", "batch/v1"),
    ("PriorityClass", "scheduling.k8s.io/v1"),
    ("RuntimeClass", "node.k8s.io/v1"),
    ("NodePool", "karpenter.sh/v1"),
    ("NodeClaim", "karpenter.sh/v1"),
    ("NodeOverlay", "karpenter.sh/v1alpha1"),
];

/// Where a pod stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// To be placed, or running on its node.
    Live,
    /// Held back by scheduling gates.
    Gated,
    /// Being deleted.
    Deleting,
    /// Ran to its end, and well.
    Succeeded,
    /// Ran to its end.
    Failed,
    /// In a phase that goes with a node, but without one.
    Stray,
}

/// Who made an object.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Owner {
    pub(crate) kind: Name,
    /// `namespace/name`.
    pub(crate) name: Name,
}

/// One pod of the input.
#[derive(Clone, Debug)]
pub(crate) struct PodRecord {
    pub(crate) name: Name,
    pub(crate) draft: DraftIx,
    pub(crate) node: Option<Name>,
    pub(crate) owner: Option<Owner>,
    pub(crate) volumes: Box<[VolumeUse]>,
    /// When it was created; pods of DaemonSets only.
    pub(crate) created: Option<Timestamp>,
    pub(crate) stage: Stage,
    /// Its owner is in control, and its selector tells its pods.
    pub(crate) is_selected_by_owner: bool,
}

/// What a pod is by itself.
#[derive(Debug)]
pub(crate) struct PodParts {
    pub(crate) draft: DraftIx,
    pub(crate) node: Option<Name>,
    pub(crate) volumes: Box<[VolumeUse]>,
    pub(crate) stage: Stage,
}

/// A runtime class: what it adds to its pods.
#[derive(Clone, Debug)]
pub(crate) struct RuntimeRecord {
    pub(crate) overhead: Resources,
    pub(crate) node_selector: Terms,
    pub(crate) tolerations: Vec<Toleration>,
}

/// Everything that was read.
#[derive(Clone, Debug, Default)]
pub struct Objects {
    pub(crate) names: Names,
    pub(crate) drafts: Drafts,
    pub(crate) pods: Vec<PodRecord>,
    pub(crate) workloads: Vec<WorkloadRecord>,
    pub(crate) daemons: Vec<DaemonRecord>,
    pub(crate) nodes: Vec<NodeRecord>,
    pub(crate) claims: Vec<ClaimRecord>,
    pub(crate) volume_limits: HashMap<Name, BTreeMap<Name, u32>>,
    pub(crate) pools: Vec<PoolRecord>,
    pub(crate) node_classes: Vec<NodeClass>,
    pub(crate) overlays: Vec<OverlayRecord>,
    pub(crate) namespaces: BTreeMap<Name, Labels>,
    pub(crate) priorities: HashMap<Name, i32>,
    pub(crate) default_priority: Option<i32>,
    pub(crate) runtimes: HashMap<Name, RuntimeRecord>,
    pub(crate) volumes: VolumeObjects,
    pub(crate) warnings: Vec<String>,
    /// How many objects were skipped, by kind and version.
    skipped: BTreeMap<(String, String), usize>,
    seen: HashMap<(Name, Name), (u32, u32)>,
    sources: Vec<Name>,
    /// What has been warned about.
    noted: HashSet<String>,
    /// How many of the sources have nothing in them.
    n_empty: usize,
    /// Objects come from a server that has admitted them already.
    pub(crate) trusting: bool,
    /// Spread constraints for pods that declare none.
    pub(crate) spread_defaults: Option<Arc<SpreadDefaults>>,
    /// What selects pods; looked for only when there are such constraints.
    pub(crate) choices: Choices,
}

/// Where a pod stands.
fn stage(pod: &Pod<'_>) -> Stage {
    let spec = pod.spec.as_ref();
    let gates = spec.and_then(|spec| spec.scheduling_gates.as_ref());
    let is_gated = gates.is_some_and(|own| !own.is_empty());
    let is_bound = spec.is_some_and(|spec| !text(&spec.node_name).is_empty());
    match pod.status.as_ref().map_or("", |own| text(&own.phase)) {
        "Succeeded" => Stage::Succeeded,
        "Failed" => Stage::Failed,
        _ if pod.metadata.as_ref().is_some_and(Meta::deleting) => Stage::Deleting,
        _ if is_bound => Stage::Live,
        _ if is_gated => Stage::Gated,
        "" | "Pending" => Stage::Live,
        _ => Stage::Stray,
    }
}

impl Objects {
    /// Reads all objects of all sources.
    ///
    /// # Errors
    /// The first piece of input that cannot be used.
    pub fn read(sources: impl IntoIterator<Item = Source>) -> Result<Self, ReadError> {
        let mut objects = Self::default();
        for source in sources {
            objects.add(&source)?;
        }
        Ok(objects)
    }

    /// Nothing yet; pods that declare no spread constraints will get these.
    #[must_use]
    pub fn with_spread_defaults(defaults: SpreadDefaults) -> Self {
        let spread_defaults = (!defaults.is_empty()).then(|| Arc::new(defaults));
        Self {
            spread_defaults,
            ..Self::default()
        }
    }

    /// Nothing yet, from a server that has admitted everything that will come.
    pub(crate) fn trusting() -> Self {
        Self {
            trusting: true,
            ..Self::default()
        }
    }

    /// The next object may have a name that was there before.
    pub(crate) fn forget_seen(&mut self) {
        self.seen.clear();
    }

    /// A label selector of an object; `None` for one that selects nothing.
    pub(crate) fn selector(
        &mut self,
        value: &serde_json::Value,
    ) -> Result<Option<joiner_model::Selector>, String> {
        let given = crate::wire::LabelSelector::deserialize(value).map_err(|e| e.to_string())?;
        let selector = crate::topology::selector(&given, &mut self.names);
        selector.map(Result::ok).map_err(|error| error.to_string())
    }

    /// Reads the objects of one more source.
    ///
    /// # Errors
    /// The first piece of input that cannot be used.
    pub fn add(&mut self, source: &Source) -> Result<(), ReadError> {
        self.sources.push(source.name.as_str().into());
        if !reader::feed(source, self)? {
            self.n_empty += 1;
            let warning = format!("{}: there is no object in it", source.name);
            self.warnings.push(warning);
        }
        Ok(())
    }

    /// True when no source had an object in it, nor even an empty list of objects.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.n_empty == self.sources.len()
    }

    /// The node classes that were read.
    #[must_use]
    pub fn node_classes(&self) -> &[NodeClass] {
        &self.node_classes
    }

    /// Things worth telling that did not stop the reading.
    pub(crate) fn all_warnings(&self) -> Vec<String> {
        let skipped = self.skipped.iter().map(|((kind, version), count)| {
            let objects = if *count == 1 { "object" } else { "objects" };
            let alike = |(known, _): &&(&str, &str)| known.eq_ignore_ascii_case(kind);
            let hint = match READ.iter().find(alike) {
                Some((kind, version)) => format!("; did you mean {kind} ({version})?"),
                None => String::new(),
            };
            format!("skipped {count} {objects} of kind {kind} ({version}), which is not read{hint}")
        });
        skipped.chain(self.warnings.iter().cloned()).collect()
    }

    /// Warns about something odd, once for all objects that have it.
    pub(crate) fn note(&mut self, title: &str, note: &str) {
        if self.noted.insert(note.to_owned()) {
            self.warnings.push(format!("{title}: {note}"));
        }
    }

    /// Registers an object; two of the same name are an error. Returns `namespace/name`, or the
    /// name alone when there is no namespace.
    pub(crate) fn register(
        &mut self,
        kind: &str,
        namespace: Option<&str>,
        name: &str,
        place: &Place,
    ) -> Result<Name, ReadError> {
        let wrong = |field: &str, problem: String| {
            let title = match name {
                "" => kind.to_owned(),
                name => format!("{kind} {name}"),
            };
            let error = ReadError::new(problem).field(format!("metadata.{field}"));
            Err(error.of(title).at(place.clone()))
        };
        if name.is_empty() {
            return wrong("name", "there is no name".to_owned());
        }
        if let Some(why) = object_name_error(name) {
            return wrong("name", format!("{:?} {why}", wording::shown(name)));
        }
        if let Some(namespace) = namespace
            && let Some(why) = object_name_error(namespace)
        {
            return wrong(
                "namespace",
                format!("{:?} {why}", wording::shown(namespace)),
            );
        }
        let full: Name = match namespace {
            Some(namespace) => format!("{namespace}/{name}").into(),
            None => self.names.get(name),
        };
        let source = self.sources.len().saturating_sub(1);
        let short = |figure: usize| u32::try_from(figure).unwrap_or(u32::MAX);
        let here = (short(source), short(place.line));
        let key = (self.names.get(kind), full.clone());
        if let Some((source, line)) = self.seen.insert(key, here) {
            let first = &self.sources[source as usize];
            let problem = format!("is there twice, first at {first}:{line}; remove one of them");
            let error = ReadError::new(problem).of(format!("{kind} {full}"));
            return Err(error.at(place.clone()));
        }
        Ok(full)
    }

    fn take_pod(&mut self, document: Document<'_>, place: &Place) -> Result<(), ReadError> {
        let pod: Pod<'_> = document.parse(place)?;
        let no_meta = Meta::default();
        let meta = pod.metadata.as_ref().unwrap_or(&no_meta);
        let own_name = meta.own_name(self.pods.len());
        let name = self.register("Pod", Some(meta.namespace()), &own_name, place)?;
        let parts = self.pod_parts(&pod, &name);
        let parts = parts.map_err(|e| e.of(format!("Pod {name}")).at(place.clone()))?;
        let owner = self.owner(meta);
        let is_daemon = owner.as_ref().is_some_and(|own| &*own.kind == "DaemonSet");
        let created = meta.creation_timestamp.as_deref().filter(|_| is_daemon);
        self.pods.push(PodRecord {
            name,
            draft: parts.draft,
            node: parts.node,
            owner,
            volumes: parts.volumes,
            created: created.and_then(|text| text.parse().ok()),
            stage: parts.stage,
            is_selected_by_owner: meta.is_selected_by_owner(),
        });
        Ok(())
    }

    /// What a pod is by itself, whatever it belongs to.
    pub(crate) fn pod_parts(&mut self, pod: &Pod<'_>, name: &str) -> Result<PodParts, ReadError> {
        let (no_meta, no_spec) = (Meta::default(), PodSpec::default());
        let meta = pod.metadata.as_ref().unwrap_or(&no_meta);
        let spec = pod.spec.as_ref().unwrap_or(&no_spec);
        let told = (spec, pod.status.as_ref());
        let names = &mut self.names;
        let (mut draft, notes) = pod::draft(meta.namespace(), meta.labels.as_ref(), told, names)?;
        if self.trusting {
            let containers = containers::read(spec, names);
            draft.containers = self.drafts.containers.get(containers);
        }
        for note in notes {
            self.note(&format!("Pod {name}"), &note);
        }
        let node = match text(&spec.node_name) {
            "" => None,
            node => Some(self.names.get(node)),
        };
        Ok(PodParts {
            volumes: pod::volumes(spec, &mut self.names)?,
            draft: self.drafts.intern(draft),
            stage: stage(pod),
            node,
        })
    }

    /// The owner in control of an object.
    pub(crate) fn owner(&mut self, meta: &Meta<'_>) -> Option<Owner> {
        let owner = meta.owner()?;
        let full = format!("{}/{}", meta.namespace(), text(&owner.name));
        Some(Owner {
            kind: self.names.get(text(&owner.kind)),
            name: self.names.get(&full),
        })
    }

    fn skip(&mut self, header: &Header) {
        let kind = (header.kind.clone(), header.api_version.clone());
        *self.skipped.entry(kind).or_default() += 1;
    }

    /// A ReplicationController: no pods are made for it, but those it has made are its own.
    fn take_controller(
        &mut self,
        header: &Header,
        document: Document<'_>,
        place: &Place,
    ) -> Result<(), ReadError> {
        self.skip(header);
        if self.spread_defaults.is_none() {
            return Ok(());
        }
        self.take_map_selecting(Kind::ReplicationController, document, place)
    }

    fn take_namespace(&mut self, document: Document<'_>, place: &Place) -> Result<(), ReadError> {
        let meta = document
            .parse::<Bare<'_>>(place)?
            .metadata
            .unwrap_or_default();
        let name = self.register("Namespace", None, meta.name(), place)?;
        let labels = pod::labels(meta.labels.as_ref(), &mut self.names);
        self.namespaces.insert(name, labels);
        Ok(())
    }

    fn take_priority(&mut self, document: Document<'_>, place: &Place) -> Result<(), ReadError> {
        let class: PriorityClass<'_> = document.parse(place)?;
        let meta = class.metadata.unwrap_or_default();
        let name = self.register("PriorityClass", None, meta.name(), place)?;
        let value = class.value.unwrap_or(0);
        if class.global_default == Some(true) {
            // Of several defaults the API server takes the lowest.
            let lowest = self
                .default_priority
                .map_or(value, |known| known.min(value));
            self.default_priority = Some(lowest);
        }
        self.priorities.insert(name, value);
        Ok(())
    }

    fn take_runtime(&mut self, document: Document<'_>, place: &Place) -> Result<(), ReadError> {
        let class: RuntimeClass<'_> = document.parse(place)?;
        let meta = class.metadata.unwrap_or_default();
        let name = self.register("RuntimeClass", None, meta.name(), place)?;
        let overhead = class.overhead.and_then(|o| o.pod_fixed).unwrap_or_default();
        let scheduling = class.scheduling.unwrap_or_default();
        let node_selector = pod::labels(scheduling.node_selector.as_ref(), &mut self.names);
        let tolerations = scheduling.tolerations.unwrap_or_default();
        let tolerations =
            selection::tolerations(&tolerations, "scheduling.tolerations", &mut self.names)
                .map_err(|e| e.of(format!("RuntimeClass {name}")).at(place.clone()))?;
        let record = RuntimeRecord {
            overhead: requests::overhead(&overhead),
            node_selector: node_selector
                .into_iter()
                .map(|(key, value)| joiner_model::Requirement::is(&key, value))
                .collect(),
            tolerations,
        };
        self.runtimes.insert(name, record);
        Ok(())
    }
}

impl Sink for Objects {
    fn accept(
        &mut self,
        header: &Header,
        document: Document<'_>,
        place: &Place,
    ) -> Result<(), ReadError> {
        admission::refuse_older(header, document, place)?;
        let group = header
            .api_version
            .split_once('/')
            .map_or("", |(group, _)| group);
        match (group, header.kind.as_str()) {
            ("", "Pod") => self.take_pod(document, place),
            ("", "Node") => self.take_node(document, place),
            ("", "Namespace") => self.take_namespace(document, place),
            ("", "PersistentVolumeClaim") => self.take_volume_claim(document, place),
            ("", "PersistentVolume") => self.take_volume(document, place),
            ("storage.k8s.io", "StorageClass") => self.take_storage_class(document, place),
            ("storage.k8s.io", "CSINode") => self.take_csi_node(document, place),
            ("apps", "DaemonSet") => self.take_daemon(document, place),
            ("apps", kind @ ("Deployment" | "ReplicaSet" | "StatefulSet"))
            | ("batch", kind @ "Job") => self.take_workload(kind, document, place),
            ("scheduling.k8s.io", "PriorityClass") => self.take_priority(document, place),
            ("node.k8s.io", "RuntimeClass") => self.take_runtime(document, place),
            ("", "Service") if self.spread_defaults.is_some() => {
                self.take_map_selecting(Kind::Service, document, place)
            }
            ("", "ReplicationController") => self.take_controller(header, document, place),
            ("policy", "PodDisruptionBudget") => Ok(()),
            ("karpenter.sh", "NodePool") => self.take_pool(header, document, place),
            ("karpenter.sh", "NodeOverlay") => self.take_overlay(header, document, place),
            ("karpenter.sh", "NodeClaim") => self.take_claim(header, document, place),
            (_, kind) if kind.ends_with("NodeClass") => {
                self.take_node_class(header, document, place)
            }
            _ => {
                self.skip(header);
                Ok(())
            }
        }
    }
}
