//! All objects, with a revision for every change and a log to watch from.
//!
//! One lock guards everything: a request reads, decides and writes under it, so no two writes can
//! cross. The log is bounded, by count and by size; whoever asks for what has fallen out of it gets
//! "too old".

pub(crate) mod packed;
mod version;

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use joiner_cluster::{ObjectKey, Objects};
use joiner_machinery::meta;
use serde_json::{Value, json};
use tokio::sync::watch;

use self::version::Version;

/// Group and plural of what is stored.
pub type Resource = (String, String);

/// How many changes the log keeps.
pub const LOG_MAX: usize = 20_000;
/// How many bytes of objects that are no longer current the log keeps.
pub const LOG_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Changes whose objects are kept ready: those who watch are rarely further behind.
const FRESH_MAX: usize = 512;

/// What happened to an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// It is new.
    Added,
    /// It has changed.
    Modified,
    /// It is gone.
    Deleted,
}

/// One change.
#[derive(Clone, Debug)]
pub struct Change {
    /// The revision it made.
    pub revision: u64,
    /// Group and plural.
    pub resource: Arc<Resource>,
    /// What happened.
    pub what: What,
    object: Arc<Version>,
    before: Option<Arc<Version>>,
}

impl Change {
    /// The object after the change; as it last was, with the new revision, when it is gone.
    #[must_use]
    pub fn object(&self) -> Arc<Value> {
        self.object.object()
    }

    /// The object before.
    #[must_use]
    pub fn before(&self) -> Option<Arc<Value>> {
        self.before.as_ref().map(|before| before.object())
    }

    /// The object after the change as JSON.
    #[must_use]
    pub fn text(&self) -> Bytes {
        self.object.text()
    }

    /// Lets go of what can be made again, or is not likely to be asked for.
    fn grow_old(&self) {
        if let Some(before) = &self.before {
            before.shrink();
        }
        // Somebody else who has it is, as a rule, the change that came after it.
        if self.what == What::Deleted || Arc::strong_count(&self.object) > 1 {
            self.object.shrink();
        } else {
            self.object.forget_text();
        }
    }
}

/// The objects of a cluster.
#[derive(Debug)]
pub struct Store {
    inner: Mutex<Inner>,
    changed: watch::Sender<u64>,
}

/// The objects and the log, while the lock is held.
#[derive(Debug)]
pub struct Inner {
    revision: u64,
    kinds: BTreeMap<Resource, Objects>,
    /// Kinds by name: their places in `places`.
    names: BTreeMap<Resource, usize>,
    places: Vec<Place>,
    log: VecDeque<Change>,
    /// Bytes of what the log keeps as text.
    log_bytes: Arc<AtomicUsize>,
    compacted: u64,
}

/// What is noted of a kind.
#[derive(Debug)]
struct Place {
    resource: Arc<Resource>,
    /// Of its last change.
    revision: u64,
    is_leases: bool,
}

impl Default for Store {
    fn default() -> Self {
        Self {
            inner: Mutex::new(Inner {
                revision: 1,
                kinds: BTreeMap::new(),
                names: BTreeMap::new(),
                places: Vec::new(),
                log: VecDeque::new(),
                log_bytes: Arc::default(),
                compacted: 1,
            }),
            changed: watch::Sender::new(1),
        }
    }
}

impl Store {
    /// Reads or writes under the lock; watchers are told afterwards.
    pub fn with<T>(&self, act: impl FnOnce(&mut Inner) -> T) -> T {
        let mut inner = self.lock();
        let before = inner.revision;
        let result = act(&mut inner);
        let after = inner.revision;
        drop(inner);
        if after != before {
            self.changed.send_replace(after);
        }
        result
    }

    /// Tells of every new revision.
    #[must_use]
    pub fn subscribe(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A panic under the lock is a bug, but what is stored is whole: each write is one insert.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    /// The revision of the last change.
    #[must_use]
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// The revision of the last change to one kind.
    #[must_use]
    pub fn revision_of(&self, resource: &Resource) -> u64 {
        let place = self.names.get(resource);
        place.map_or(0, |place| self.revision_at(*place))
    }

    /// The number of a kind, for those who ask for its revision often.
    pub fn place(&mut self, resource: &Resource) -> usize {
        if let Some(place) = self.names.get(resource) {
            return *place;
        }
        let place = self.places.len();
        self.names.insert(resource.clone(), place);
        self.places.push(Place {
            resource: Arc::new(resource.clone()),
            revision: 0,
            is_leases: resource.0 == "coordination.k8s.io" && resource.1 == "leases",
        });
        place
    }

    /// The revision of the last change to the kind with this number.
    #[must_use]
    pub fn revision_at(&self, place: usize) -> u64 {
        self.places.get(place).map_or(0, |place| place.revision)
    }

    /// The revision of the last change to any kind but Leases, which change all the time and matter to
    /// nobody else.
    #[must_use]
    pub fn revision_without_leases(&self) -> u64 {
        let kinds = self.places.iter().filter(|place| !place.is_leases);
        kinds.map(|place| place.revision).max().unwrap_or(0)
    }

    /// All objects by kind.
    #[must_use]
    pub fn kinds(&self) -> &BTreeMap<Resource, Objects> {
        &self.kinds
    }

    /// The objects of a kind.
    #[must_use]
    pub fn objects(&self, resource: &Resource) -> Option<&Objects> {
        self.kinds.get(resource)
    }

    /// One object.
    #[must_use]
    pub fn get(&self, resource: &Resource, key: &ObjectKey) -> Option<&Arc<Value>> {
        self.kinds.get(resource)?.get(key)
    }

    /// Writes an object, new or changed, with the next revision in it.
    pub fn put(&mut self, resource: &Resource, key: &ObjectKey, mut object: Value) -> Arc<Value> {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        packed::pack(&mut object);
        let object = Arc::new(object);
        let objects = self.kinds.entry(resource.clone()).or_default();
        let before = objects.insert(key.clone(), Arc::clone(&object));
        let what = if before.is_some() {
            What::Modified
        } else {
            What::Added
        };
        self.note(resource, what, Arc::clone(&object), before);
        object
    }

    /// Removes an object. The last state, with the revision of the removal, is returned.
    pub fn remove(&mut self, resource: &Resource, key: &ObjectKey) -> Option<Arc<Value>> {
        let before = self.kinds.get_mut(resource)?.remove(key)?;
        self.revision += 1;
        let mut object = Value::clone(&before);
        object["metadata"]["resourceVersion"] = json!(self.revision.to_string());
        let object = Arc::new(object);
        self.note(resource, What::Deleted, Arc::clone(&object), Some(before));
        Some(object)
    }

    /// Changes of a kind after a revision; `None` when they are no longer all known.
    #[must_use]
    pub fn changes_since(&self, resource: &Resource, revision: u64) -> Option<Vec<Change>> {
        let changes = self.log_since(revision)?;
        let own = changes.filter(|c| *c.resource == *resource);
        Some(own.cloned().collect())
    }

    /// The first changes of a kind after a revision, at most so many, with the revision up to which
    /// there are no others; `None` when they are no longer all known.
    #[must_use]
    pub fn next_changes(
        &self,
        resource: &Resource,
        revision: u64,
        n_max: usize,
    ) -> Option<(Vec<Change>, u64)> {
        let until = self.revision.max(revision);
        if revision >= self.compacted && self.revision_of(resource) <= revision {
            return Some((Vec::new(), until));
        }
        let changes = self.log_since(revision)?;
        let own = changes.filter(|c| *c.resource == *resource);
        let own: Vec<Change> = own.take(n_max).cloned().collect();
        let until = match own.last() {
            Some(last) if own.len() == n_max => last.revision,
            Some(_) | None => until,
        };
        Some((own, until))
    }

    /// All changes after a revision; `None` when they are no longer all known.
    pub fn log_since(&self, revision: u64) -> Option<impl Iterator<Item = &Change>> {
        let first = self.log.partition_point(|c| c.revision <= revision);
        (revision >= self.compacted).then(|| self.log.range(first..))
    }

    /// Forgets all changes up to now: watches that are behind get "too old".
    pub fn compact(&mut self) {
        self.log.clear();
        self.compacted = self.revision;
    }

    /// The oldest revision from which a watch can start.
    #[must_use]
    pub fn compacted(&self) -> u64 {
        self.compacted
    }

    fn note(
        &mut self,
        resource: &Resource,
        what: What,
        object: Arc<Value>,
        before: Option<Arc<Value>>,
    ) {
        let place = self.place(resource);
        let place = &mut self.places[place];
        place.revision = self.revision;
        let resource = Arc::clone(&place.resource);
        let before = before.map(|before| self.version(before));
        self.log.push_back(Change {
            revision: self.revision,
            resource,
            what,
            object: Arc::new(Version::new(object, &self.log_bytes)),
            before,
        });
        self.trim();
    }

    /// The version of an object that the log has, or a new one when it has none.
    fn version(&self, object: Arc<Value>) -> Arc<Version> {
        let revision: Option<u64> = meta::text(&object, "resourceVersion").parse().ok();
        let found = revision.and_then(|revision| {
            let ix = self.log.binary_search_by_key(&revision, |c| c.revision);
            self.log.get(ix.ok()?)
        });
        match found {
            Some(change) => Arc::clone(&change.object),
            None => Arc::new(Version::new(object, &self.log_bytes)),
        }
    }

    /// Keeps the log within its bounds.
    fn trim(&mut self) {
        let old = self.log.len().checked_sub(FRESH_MAX + 1);
        if let Some(change) = old.and_then(|old| self.log.get(old)) {
            change.grow_old();
        }
        while self.log.len() > LOG_MAX
            || (self.log.len() > FRESH_MAX
                && self.log_bytes.load(Ordering::Relaxed) > LOG_BYTES_MAX)
        {
            let Some(oldest) = self.log.pop_front() else {
                return;
            };
            self.compacted = oldest.revision;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pods() -> Resource {
        (String::new(), "pods".to_owned())
    }

    fn key(name: &str) -> ObjectKey {
        ("default".to_owned(), name.to_owned())
    }

    fn pod(name: &str) -> Value {
        json!({"metadata": {"name": name, "namespace": "default"}})
    }

    #[test]
    fn every_change_has_a_revision_of_its_own() {
        let store = Store::default();
        store.with(|s| {
            let one = s.put(&pods(), &key("one"), pod("one"));
            assert_eq!(one["metadata"]["resourceVersion"], "2");
            s.put(&pods(), &key("one"), pod("one"));
            s.remove(&pods(), &key("one"));
            let changes = s.changes_since(&pods(), 1).expect("nothing is forgotten");
            let what: Vec<What> = changes.iter().map(|c| c.what).collect();
            assert_eq!(what, [What::Added, What::Modified, What::Deleted]);
            assert_eq!(changes[2].object()["metadata"]["resourceVersion"], "4");
            assert_eq!(s.changes_since(&pods(), 3).map(|c| c.len()), Some(1));
        });
        assert_eq!(*store.subscribe().borrow(), 4);
    }

    #[test]
    fn what_fell_out_of_the_log_is_too_old() {
        let store = Store::default();
        store.with(|s| {
            for n in 0..=LOG_MAX {
                s.put(&pods(), &key(&format!("pod-{n}")), pod("any"));
            }
            assert!(s.changes_since(&pods(), 1).is_none());
            assert!(s.changes_since(&pods(), 2).is_some());
            s.compact();
            assert!(s.changes_since(&pods(), s.revision() - 1).is_none());
            assert!(s.changes_since(&pods(), s.revision()).is_some());
        });
    }

    #[test]
    fn old_changes_read_as_fresh_ones_do() {
        let store = Store::default();
        store.with(|s| {
            for n in 0..2 * FRESH_MAX {
                s.put(
                    &pods(),
                    &key("one"),
                    json!({"metadata": {"name": "one"}, "n": n}),
                );
            }
            s.remove(&pods(), &key("one"));
            for change in s.log_since(1).expect("nothing is forgotten") {
                let n = change.revision - 2;
                if change.what != What::Deleted {
                    assert_eq!(change.object()["n"], n);
                }
                let before = change.before().map(|before| before["n"].clone());
                assert_eq!(before, n.checked_sub(1).map(|n| json!(n)));
                assert_eq!(change.text(), change.object().to_string());
            }
            assert!(s.log_bytes.load(Ordering::Relaxed) > 0);
            s.compact();
            assert_eq!(s.log_bytes.load(Ordering::Relaxed), 0);
        });
    }

    #[test]
    fn large_objects_make_a_short_log() {
        let store = Store::default();
        let object = json!({"metadata": {"name": "one"}, "data": "x".repeat(1024 * 1024)});
        store.with(|s| {
            for _ in 0..FRESH_MAX + 100 {
                s.put(&pods(), &key("one"), object.clone());
            }
            assert!(s.log_bytes.load(Ordering::Relaxed) <= LOG_BYTES_MAX);
            assert!(s.changes_since(&pods(), 1).is_none());
            let fresh = s.revision() - FRESH_MAX as u64;
            assert!(s.changes_since(&pods(), fresh).is_some());
        });
    }
}
