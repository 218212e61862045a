//! Folds watch events and our own writes into snapshots.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::Arc;

use joiner_model::Name;
use serde_json::Value;

use super::kind::Kind;
use super::owners::Owners;
use super::reading::{Live, Reading, full_name};
use super::rest::{LiveObject, LiveSelecting};
use super::snapshot::Snapshot;
use super::{
    LiveAttachment, LiveBudget, LiveBuffer, LiveClass, LiveOverlay, LivePool, LiveScalable,
    LiveTemplate,
};
use crate::objects::Objects;
use crate::spread_defaults::SpreadDefaults;

/// How many objects that are gone are remembered, so that a late answer does not bring them back.
const GONE_MAX: usize = 20_000;
/// Shapes of pods are thrown away and collected anew when there are this many times more than at
/// the last time.
const DRAFTS_GROWTH: usize = 4;

/// What is kept of objects of all kinds but pods, nodes and claims, which have shelves of their own.
const TABLE: &[fn(&mut Snapshot)] = &[
    keep::<LivePool>,
    keep::<LiveClass>,
    keep::<LiveBudget>,
    keep::<LiveAttachment>,
    keep::<LiveOverlay>,
    keep::<LiveBuffer>,
    keep::<LiveTemplate>,
    keep::<LiveScalable>,
    keep::<LiveSelecting>,
    keep::<LiveObject>,
];

fn keep<L: Live>(now: &mut Snapshot) {
    for kind in L::KINDS {
        now.keep::<L>(*kind);
    }
}

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

impl Change {
    /// The object that changed, if it is of this kind: what a controller of that kind looks at.
    #[must_use]
    pub fn of_kind(&self, kind: Kind) -> Vec<Name> {
        let changed = (self.kind == kind).then(|| self.name.clone());
        changed.into_iter().collect()
    }
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
        let mut now = Snapshot::default();
        for keep in TABLE {
            keep(&mut now);
        }
        Self {
            now,
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

    /// The same, keeping objects of these kinds, too. Their watches tell of them; they are read
    /// with [`Snapshot::all`] and [`Snapshot::get`].
    #[must_use]
    pub fn with<L: Live>(mut self) -> Self {
        keep::<L>(&mut self.now);
        self
    }

    /// The same, keeping objects of this kind as if it were one of those that the type is for: another
    /// kind of workloads, say. Pods, nodes and claims stay what they are.
    #[must_use]
    pub fn with_kind<L: Live>(mut self, kind: Kind) -> Self {
        self.now.keep::<L>(kind);
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
        let known = self.now.shelf(kind).into_iter();
        let lost: Vec<Name> = known
            .flat_map(|shelf| shelf.names())
            .filter(|name| !seen.contains(*name))
            .filter(|name| class.is_empty() || name.starts_with(&format!("{class}/")))
            .cloned()
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
        let Some(shelf) = self.now.shelf(kind) else {
            let why = "nothing is kept of its kind: name it with ClusterState::with";
            self.broken.insert((kind, full_name(object)), why.into());
            return None;
        };
        let name = shelf.name_of(object);
        for ((listing, class), seen) in &mut self.lists {
            if *listing == kind && (class.is_empty() || name.starts_with(&**class)) {
                seen.insert(name.clone());
            }
        }
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        let version = object["metadata"]["resourceVersion"].as_str();
        let version = version.and_then(|text| text.parse().ok()).unwrap_or(0);
        let known = shelf.identity(&name);
        let stale = known
            .is_some_and(|(known, at)| &**known == uid && is_stale(at, version) && version > 0);
        if stale || self.gone.contains(uid) {
            return None;
        }
        let what = if known.is_some() {
            What::Changed
        } else {
            What::Appeared
        };
        let before = shelf.about(&name).cloned();
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
        let uid = object["metadata"]["uid"].as_str().unwrap_or_default();
        self.bury(uid.into());
        let shelf = self.now.shelf(kind)?;
        let name = shelf.name_of(object);
        let (known, _) = shelf.identity(&name)?;
        if &**known != uid {
            // Another object has the name by now.
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

    fn about(&self, kind: Kind, name: &Name) -> Option<Name> {
        self.now.shelf(kind)?.about(name).cloned()
    }

    fn put(&mut self, kind: Kind, name: &Name, object: &Value) -> Result<(), String> {
        let mut reading = Reading {
            kind,
            name: name.clone(),
            reader: &mut self.reader,
            owners: &mut self.owners,
            keeps_templates: self.keeps_templates,
            keeps_choices: self.now.spread_defaults.is_some(),
            choice: None,
        };
        let shelf = self.now.shelf_mut(kind).ok_or("nothing is kept of it")?;
        shelf.put(object, &mut reading)?;
        let (choice, is_ground) = (reading.choice, shelf.is_ground());
        self.now.choose((kind, name.clone()), choice);
        if is_ground {
            self.now.ground = Arc::default();
        }
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

    /// An object is gone for good: whatever is still heard of it is old.
    fn forget(&mut self, kind: Kind, name: &Name) -> Option<Change> {
        let (uid, _) = self.now.shelf(kind)?.identity(name)?;
        let uid = uid.clone();
        self.bury(uid);
        self.drop_known(kind, name)
    }

    /// Nothing is known of an object any more.
    fn drop_known(&mut self, kind: Kind, name: &Name) -> Option<Change> {
        let shelf = self.now.shelf_mut(kind)?;
        shelf.identity(name)?;
        let about = shelf.about(name).cloned();
        shelf.remove(name);
        let is_ground = shelf.is_ground();
        self.now.choose((kind, name.clone()), None);
        self.now.generation += 1;
        if is_ground {
            self.now.ground = Arc::default();
        }
        Some(Change {
            kind,
            name: name.clone(),
            what: What::Gone,
            about,
        })
    }
}
