//! Folds watch events and our own writes into snapshots.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use joiner_model::Name;
use serde_json::Value;

use super::kind::{Kind, Store};
use super::meta::Meta;
use super::owners::Owners;
use super::snapshot::Snapshot;
use super::{
    LiveAttachment, LiveBudget, LiveBuffer, LiveClaim, LiveClass, LiveNode, LiveOverlay, LivePod,
    LivePool, LiveScalable, LiveTemplate,
};
use crate::choices::Selecting;
use crate::documents::{Document, Header, Sink as _};
use crate::error::Place;
use crate::objects::Objects;
use crate::spread_defaults::SpreadDefaults;

/// How many objects that are gone are remembered, so that a late answer does not bring them back.
const GONE_MAX: usize = 20_000;
/// Shapes of pods are thrown away and collected anew when there are this many times more than at
/// the last time.
const DRAFTS_GROWTH: usize = 4;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It is new.
    Appeared,
    /// It changed.
    Changed,
    /// It is gone.
    Gone,
}

/// Something changed.
#[derive(Clone, Debug)]
pub struct Change {
    /// The kind.
    pub kind: Kind,
    /// The object, by its name in snapshots.
    pub name: Name,
    /// What happened.
    pub what: What,
    /// Pods: the node it was or is bound to. Nodes and claims: the provider id.
    pub about: Option<Name>,
}

/// The one owner of what is known of the cluster.
#[derive(Debug)]
pub struct ClusterState {
    now: Snapshot,
    /// Parses; holds names and shapes of pods, and no objects.
    reader: Objects,
    drafts_at_last: usize,
    owners: Owners,
    /// Lists that are coming in, and what they have brought so far.
    lists: BTreeMap<(Kind, Name), HashSet<Name>>,
    /// Uids of objects that are gone.
    gone: HashSet<Name>,
    gone_order: VecDeque<Name>,
    /// Objects that could not be understood: why.
    broken: HashMap<(Kind, Name), String>,
    /// Workloads are kept with the templates of their pods.
    keeps_templates: bool,
}

impl Default for ClusterState {
    fn default() -> Self {
        Self {
            now: Snapshot::default(),
            reader: Objects::trusting(),
            drafts_at_last: 0,
            owners: Owners::default(),
            lists: BTreeMap::new(),
            gone: HashSet::new(),
            gone_order: VecDeque::new(),
            broken: HashMap::new(),
            keeps_templates: false,
        }
    }
}

impl ClusterState {
    /// The same, keeping the pod templates of workloads, which capacity buffers need.
    #[must_use]
    pub fn with_templates(mut self) -> Self {
        self.keeps_templates = true;
        self
    }

    /// The same, with spread constraints for pods that declare none; what selects pods is kept then.
    #[must_use]
    pub fn with_spread_defaults(mut self, defaults: Arc<SpreadDefaults>) -> Self {
        self.now.spread_defaults = Some(defaults);
        self
    }

    /// The cluster as it is known now.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        self.now.clone()
    }

    /// How many different shapes of pods are kept.
    #[must_use]
    pub fn n_shapes(&self) -> usize {
        self.reader.drafts.len()
    }

    /// Why an object could not be understood, if so.
    #[must_use]
    pub fn broken(&self, kind: Kind, name: &str) -> Option<&str> {
        let why = self.broken.get(&(kind, Name::from(name)));
        why.map(String::as_str)
    }

    /// A list of all objects of a kind begins to come in. Node classes are told apart by
    /// `group/Kind`; other kinds leave `class` empty.
    pub fn begin(&mut self, kind: Kind, class: &str) {
        self.lists.insert((kind, class.into()), HashSet::new());
    }

    /// The list is complete: what was not on it is gone.
    pub fn finish(&mut self, kind: Kind, class: &str) -> Vec<Change> {
        let key = (kind, Name::from(class));
        let Some(seen) = self.lists.remove(&key) else {
            return Vec::new();
        };
        let lost: Vec<Name> = self
            .names(kind)
            .filter(|name| !seen.contains(name))
            .filter(|name| class.is_empty() || name.starts_with(&format!("{class}/")))
            .collect();
        self.now.listed.insert(key);
        self.now.generation += 1;
        lost.iter()
            .filter_map(|name| self.forget(kind, name))
            .collect()
    }

    /// An object is as given. Older news than what is known is ignored.
    pub fn apply(&mut self, kind: Kind, object: &Value) -> Option<Change> {
        self.accept(kind, object, |known, told| known >= told)
    }

    /// Takes in an object that differs from what its version says: what a dry run would have written to it.
    pub fn pretend(&mut self, kind: Kind, object: &Value) -> Option<Change> {
        self.accept(kind, object, |known, told| known > told)
    }

    /// Takes in an object unless it is stale: `is_stale` compares the version that is known with its own.
    fn accept(
        &mut self,
        kind: Kind,
        object: &Value,
        is_stale: fn(u64, u64) -> bool,
    ) -> Option<Change> {
        let name = name_of(kind, object);
        for ((listing, class), seen) in &mut self.lists {
            if *listing == kind && (class.is_empty() || name.starts_with(&**class)) {
                seen.insert(name.clone());
            }
        }
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let version = object["metadata"]["resourceVersion"].as_str();
        let version = version.and_then(|text| text.parse().ok()).unwrap_or(0);
        let known = self.known(kind, &name);
        let stale = known
            .as_ref()
            .is_some_and(|(known, at)| &**known == uid && is_stale(*at, version) && version > 0);
        if stale || self.gone.contains(uid) {
            return None;
        }
        let what = if known.is_some() {
            What::Changed
        } else {
            What::Appeared
        };
        let before = self.about(kind, &name);
        if let Err(why) = self.put(kind, &name, object) {
            // What cannot be understood is left out: nothing may be decided on half of it. It may be
            // mended later, under the same uid.
            let gone = self.drop_known(kind, &name);
            self.broken.insert((kind, name), why);
            return gone;
        }
        self.broken.remove(&(kind, name.clone()));
        self.now.generation += 1;
        let about = self.about(kind, &name).or(before);
        Some(Change {
            kind,
            name,
            what,
            about,
        })
    }

    /// An object is gone.
    pub fn remove(&mut self, kind: Kind, object: &Value) -> Option<Change> {
        let name = name_of(kind, object);
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        self.bury(uid.into());
        let known = self.known(kind, &name)?;
        if &*known.0 != uid {
            // Somebody else has the name by now.
            return None;
        }
        self.forget(kind, &name)
    }

    fn bury(&mut self, uid: Name) {
        if uid.is_empty() || !self.gone.insert(uid.clone()) {
            return;
        }
        self.gone_order.push_back(uid);
        if self.gone_order.len() > GONE_MAX
            && let Some(oldest) = self.gone_order.pop_front()
        {
            self.gone.remove(&oldest);
        }
    }

    fn names(&self, kind: Kind) -> Box<dyn Iterator<Item = Name> + '_> {
        let now = &self.now;
        match kind.store() {
            Store::Pods => Box::new(now.pods.keys().cloned()),
            Store::Nodes => Box::new(now.nodes.keys().cloned()),
            Store::Claims => Box::new(now.claims.keys().cloned()),
            Store::Pools => Box::new(now.pools.keys().cloned()),
            Store::Classes => Box::new(now.classes.keys().cloned()),
            Store::Budgets => Box::new(now.budgets.keys().cloned()),
            Store::Attachments => Box::new(now.attachments.keys().cloned()),
            Store::Overlays => Box::new(now.overlays.keys().cloned()),
            Store::Buffers => Box::new(now.buffers.keys().cloned()),
            Store::Templates => Box::new(now.templates.keys().cloned()),
            Store::Scalables => {
                let own = now.scalables.keys().filter(move |(own, _)| *own == kind);
                Box::new(own.map(|(_, name)| name.clone()))
            }
            Store::Choices => {
                let own = now.choices.keys().filter(move |(own, _)| *own == kind);
                Box::new(own.map(|(_, name)| name.clone()))
            }
            Store::Others => {
                let own = now.others.keys().filter(move |(own, _)| *own == kind);
                Box::new(own.map(|(_, name)| name.clone()))
            }
        }
    }

    /// Uid and version of what is known under a name.
    fn known(&self, kind: Kind, name: &Name) -> Option<(Name, u64)> {
        let now = &self.now;
        let of = |meta: &Meta| (meta.uid.clone(), meta.version);
        match kind.store() {
            Store::Pods => now.pods.get(name).map(|o| (o.uid.clone(), o.version)),
            Store::Nodes => now.nodes.get(name).map(|o| of(&o.meta)),
            Store::Claims => now.claims.get(name).map(|o| of(&o.meta)),
            Store::Pools => now.pools.get(name).map(|o| of(&o.meta)),
            Store::Classes => now.classes.get(name).map(|o| of(&o.meta)),
            Store::Budgets => now.budgets.get(name).map(|o| of(&o.meta)),
            Store::Attachments => now.attachments.get(name).map(|o| of(&o.meta)),
            Store::Overlays => now.overlays.get(name).map(|o| of(&o.meta)),
            Store::Buffers => now.buffers.get(name).map(|o| of(&o.meta)),
            Store::Templates => now.templates.get(name).map(|o| of(&o.meta)),
            Store::Scalables => {
                let own = now.scalables.get(&(kind, name.clone()));
                own.map(|o| of(&o.meta))
            }
            Store::Choices => {
                let own = now.choices.get(&(kind, name.clone()));
                own.map(|o| (o.uid.clone(), o.version))
            }
            Store::Others => {
                let object = now.others.get(&(kind, name.clone()))?;
                let meta = &object["metadata"];
                let version = meta["resourceVersion"].as_str()?.parse().unwrap_or(0);
                Some((meta["uid"].as_str().unwrap_or_default().into(), version))
            }
        }
    }

    /// What a change of this object is about, beside itself.
    fn about(&self, kind: Kind, name: &Name) -> Option<Name> {
        match kind.store() {
            Store::Pods => self.now.pods.get(name)?.node.clone(),
            Store::Nodes => self.now.nodes.get(name)?.provider_id.clone(),
            Store::Claims => self.now.claims.get(name)?.provider_id.clone(),
            Store::Attachments => Some(self.now.attachments.get(name)?.node.clone()),
            Store::Pools
            | Store::Classes
            | Store::Budgets
            | Store::Overlays
            | Store::Buffers
            | Store::Templates
            | Store::Scalables
            | Store::Choices
            | Store::Others => None,
        }
    }

    /// Parses the object with the planner's reader.
    fn read(&mut self, object: &Value) -> Result<(), String> {
        let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
        let header = Header {
            api_version: text("apiVersion"),
            kind: text("kind"),
        };
        let place = Place::default();
        self.reader.forget_seen();
        let result = self.reader.accept(&header, Document::Value(object), &place);
        result.map_err(|error| error.to_string())
    }

    fn put(&mut self, kind: Kind, name: &Name, object: &Value) -> Result<(), String> {
        match kind.store() {
            Store::Pods => self.put_pod(name, object)?,
            Store::Nodes => self.put_node(name, object)?,
            Store::Claims => self.put_claim(name, object)?,
            Store::Pools => {
                let pool = LivePool::read(object, &mut self.reader.names).map_err(said)?;
                self.now.pools.insert(name.clone(), Arc::new(pool));
                self.now.ground = Arc::default();
            }
            Store::Classes => {
                let class = LiveClass::read(object, &mut self.reader.names);
                self.now.classes.insert(name.clone(), Arc::new(class));
                self.now.ground = Arc::default();
            }
            Store::Budgets => {
                // One without a selector is about no pods.
                let selector = &object["spec"]["selector"];
                let selector = match selector.is_null() {
                    true => None,
                    false => self.reader.selector(selector)?,
                };
                let budget = LiveBudget::read(object, selector, &mut self.reader.names);
                self.now.budgets.insert(name.clone(), Arc::new(budget));
            }
            Store::Attachments => {
                let own = LiveAttachment::read(object, &mut self.reader.names);
                self.now.attachments.insert(name.clone(), Arc::new(own));
            }
            Store::Overlays => {
                let own = LiveOverlay::read(object, &mut self.reader.names).map_err(said)?;
                self.now.overlays.insert(name.clone(), Arc::new(own));
                self.now.ground = Arc::default();
            }
            Store::Buffers => {
                let own = LiveBuffer::read(object, &mut self.reader.names).map_err(said)?;
                self.now.buffers.insert(name.clone(), Arc::new(own));
            }
            Store::Templates => {
                let own = LiveTemplate::read(object, &mut self.reader.names);
                self.now.templates.insert(name.clone(), Arc::new(own));
            }
            Store::Scalables => {
                let keeps = self.keeps_templates;
                let own = LiveScalable::read(object, keeps, &mut self.reader.names);
                self.put_choice(kind, name, object)?;
                self.now
                    .scalables
                    .insert((kind, name.clone()), Arc::new(own));
            }
            Store::Choices => self.put_choice(kind, name, object)?,
            Store::Others => {
                let key = (kind, name.clone());
                self.now.others.insert(key, Arc::new(trimmed(object)));
                self.now.ground = Arc::default();
            }
        }
        Ok(())
    }

    /// Keeps which pods an object selects, if somebody will ask. Most ReplicaSets are old and have no
    /// pods; Deployments leave selecting to their ReplicaSets.
    fn put_choice(&mut self, kind: Kind, name: &Name, object: &Value) -> Result<(), String> {
        if self.now.spread_defaults.is_none() || kind == Kind::Deployment {
            return Ok(());
        }
        let n = |part: &str| object[part]["replicas"].as_i64();
        let key = (kind, name.clone());
        if kind == Kind::ReplicaSet && n("spec") == Some(0) && n("status").unwrap_or(0) == 0 {
            self.now.choices.remove(&key);
            return Ok(());
        }
        let own = Selecting::read(kind, object, &mut self.reader)?;
        self.now.choices.insert(key, Arc::new(own));
        Ok(())
    }

    fn put_pod(&mut self, name: &Name, object: &Value) -> Result<(), String> {
        self.read(object)?;
        let record = self.reader.pods.pop().ok_or("it was not read")?;
        let draft = self.reader.drafts.shared(record.draft);
        let owner = self.owners.of(object, &mut self.reader.names);
        let pod = LivePod::read(object, record, draft, owner);
        self.unindex_pod(name);
        // One copy of the name for the pod and all that point to it.
        let name = &pod.name.clone();
        if let Some(node) = &pod.node {
            self.now.bound.insert((node.clone(), name.clone()));
        }
        if pod.is_provisionable() {
            self.now.waiting.insert(name.clone());
        }
        if pod.is_fresh() {
            self.now.fresh.insert(name.clone());
        }
        self.now.pods.insert(name.clone(), Arc::new(pod));
        self.collect_drafts();
        Ok(())
    }

    /// Shapes that no pod has any more are thrown away now and then.
    fn collect_drafts(&mut self) {
        let n = self.reader.drafts.len();
        if n < 1_000 || n < self.drafts_at_last * DRAFTS_GROWTH {
            return;
        }
        self.reader.drafts.drop_unused();
        self.reader.names.drop_unused();
        self.drafts_at_last = self.reader.drafts.len().max(1_000);
    }

    fn put_node(&mut self, name: &Name, object: &Value) -> Result<(), String> {
        self.read(object)?;
        let record = self.reader.nodes.pop().ok_or("it was not read")?;
        let node = LiveNode::read(object, record, &mut self.reader.names);
        self.unindex_node(name);
        if let Some(id) = &node.provider_id {
            self.now.node_ids.insert((id.clone(), name.clone()));
        }
        self.now.nodes.insert(name.clone(), Arc::new(node));
        Ok(())
    }

    fn put_claim(&mut self, name: &Name, object: &Value) -> Result<(), String> {
        self.read(object)?;
        let record = self.reader.claims.pop().ok_or("it was not read")?;
        let claim: Result<LiveClaim, _> = LiveClaim::read(object, record, &mut self.reader.names);
        let claim = claim.map_err(said)?;
        self.unindex_claim(name);
        if let Some(id) = &claim.provider_id {
            self.now.claim_ids.insert((id.clone(), name.clone()));
        }
        self.now.claims.insert(name.clone(), Arc::new(claim));
        Ok(())
    }

    fn unindex_pod(&mut self, name: &Name) {
        if let Some(node) = self.now.pods.get(name).and_then(|pod| pod.node.clone()) {
            self.now.bound.remove(&(node, name.clone()));
        }
        self.now.waiting.remove(name);
        self.now.fresh.remove(name);
    }

    fn unindex_node(&mut self, name: &Name) {
        let node = self.now.nodes.get(name);
        if let Some(id) = node.and_then(|node| node.provider_id.clone()) {
            self.now.node_ids.remove(&(id, name.clone()));
        }
    }

    fn unindex_claim(&mut self, name: &Name) {
        let claim = self.now.claims.get(name);
        if let Some(id) = claim.and_then(|claim| claim.provider_id.clone()) {
            self.now.claim_ids.remove(&(id, name.clone()));
        }
    }

    /// An object is gone for good: whatever is still heard of it is old.
    fn forget(&mut self, kind: Kind, name: &Name) -> Option<Change> {
        let (uid, _) = self.known(kind, name)?;
        self.bury(uid);
        self.drop_known(kind, name)
    }

    /// Nothing is known of an object any more.
    fn drop_known(&mut self, kind: Kind, name: &Name) -> Option<Change> {
        self.known(kind, name)?;
        let about = self.about(kind, name);
        let now = &mut self.now;
        now.generation += 1;
        match kind.store() {
            Store::Pods => {
                self.unindex_pod(name);
                self.now.pods.remove(name);
            }
            Store::Nodes => {
                self.unindex_node(name);
                self.now.nodes.remove(name);
            }
            Store::Claims => {
                self.unindex_claim(name);
                self.now.claims.remove(name);
            }
            Store::Pools => {
                now.pools.remove(name);
                now.ground = Arc::default();
            }
            Store::Classes => {
                now.classes.remove(name);
                now.ground = Arc::default();
            }
            Store::Budgets => drop(now.budgets.remove(name)),
            Store::Attachments => drop(now.attachments.remove(name)),
            Store::Overlays => {
                now.overlays.remove(name);
                now.ground = Arc::default();
            }
            Store::Buffers => drop(now.buffers.remove(name)),
            Store::Templates => drop(now.templates.remove(name)),
            Store::Scalables => {
                now.scalables.remove(&(kind, name.clone()));
                now.choices.remove(&(kind, name.clone()));
            }
            Store::Choices => drop(now.choices.remove(&(kind, name.clone()))),
            Store::Others => {
                now.others.remove(&(kind, name.clone()));
                now.ground = Arc::default();
            }
        }
        Some(Change {
            kind,
            name: name.clone(),
            what: What::Gone,
            about,
        })
    }
}

fn said(error: serde_json::Error) -> String {
    error.to_string()
}

/// The name of an object in snapshots.
fn name_of(kind: Kind, object: &Value) -> Name {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let meta = &object["metadata"];
    let (namespace, name) = (text(&meta["namespace"]), text(&meta["name"]));
    if kind == Kind::NodeClass {
        let version = text(&object["apiVersion"]);
        let group = version.split_once('/').map_or("", |(group, _)| group);
        return format!("{group}/{}/{name}", text(&object["kind"])).into();
    }
    match namespace.as_str() {
        "" => name.into(),
        _ => format!("{namespace}/{name}").into(),
    }
}

/// The object without what takes room and is not read.
fn trimmed(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(meta) = object["metadata"].as_object_mut() {
        meta.remove("managedFields");
        if let Some(annotations) = meta.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove("kubectl.kubernetes.io/last-applied-configuration");
        }
    }
    object
}
