//! Lean forms of objects, parsed once per version.

use std::cmp::Ordering;
use std::sync::Arc;

use joiner_machinery::meta;
use serde_json::Value;

use crate::view::{ObjectKey, Objects};

/// What a controller keeps of the objects of one kind.
///
/// Beside each lean form is a note that the controller may write; it is gone when the object changes.
pub(crate) struct Cache<T, N = ()> {
    entries: Vec<Entry<T, N>>,
    generation: u64,
}

struct Entry<T, N> {
    key: ObjectKey,
    source: Arc<Value>,
    parsed: Arc<T>,
    note: N,
}

impl<T, N> Default for Cache<T, N> {
    fn default() -> Self {
        Self {
            entries: Vec::new(),
            generation: 0,
        }
    }
}

impl<T: PartialEq, N: Default> Cache<T, N> {
    /// Follows the objects; only what is new or has changed is read. The generation goes up when a
    /// lean form that matters has come, gone or changed.
    pub(crate) fn refresh(
        &mut self,
        objects: Option<&Objects>,
        read: impl Fn(&Value) -> T,
        matters: impl Fn(&T) -> bool,
    ) {
        let empty = Objects::new();
        let objects = objects.unwrap_or(&empty);
        if self.is_current(objects) {
            return;
        }
        let mut changed = false;
        let mut old = std::mem::take(&mut self.entries).into_iter().peekable();
        let mut entries = Vec::with_capacity(objects.len());
        for (key, object) in objects {
            while let Some(gone) = old.next_if(|entry| entry.key < *key) {
                changed |= matters(&gone.parsed);
            }
            let previous = old.next_if(|entry| entry.key.cmp(key) == Ordering::Equal);
            let entry = match previous {
                Some(mut entry) => {
                    if !is_same(&entry.source, object) {
                        entry.note = N::default();
                        let parsed = read(object);
                        if *entry.parsed != parsed {
                            changed |= matters(&entry.parsed) || matters(&parsed);
                            entry.parsed = Arc::new(parsed);
                        }
                    }
                    entry.source = Arc::clone(object);
                    entry
                }
                None => {
                    let parsed = read(object);
                    changed |= matters(&parsed);
                    Entry {
                        key: key.clone(),
                        source: Arc::clone(object),
                        parsed: Arc::new(parsed),
                        note: N::default(),
                    }
                }
            };
            entries.push(entry);
        }
        changed |= old.any(|gone| matters(&gone.parsed));
        self.entries = entries;
        self.generation += u64::from(changed);
    }

    fn is_current(&self, objects: &Objects) -> bool {
        self.entries.len() == objects.len()
            && self
                .entries
                .iter()
                .zip(objects)
                .all(|(entry, (key, object))| {
                    Arc::ptr_eq(&entry.source, object) && entry.key == *key
                })
    }

    /// Goes up with every change that matters.
    pub(crate) fn generation(&self) -> u64 {
        self.generation
    }

    /// The lean forms, in order of namespace and name.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.entries.iter().map(|entry| &entry.parsed)
    }

    /// The lean forms beside their objects.
    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&Arc<Value>, &Arc<T>)> {
        self.entries
            .iter()
            .map(|entry| (&entry.source, &entry.parsed))
    }

    /// Forgets the note on one object.
    pub(crate) fn forget_note(&mut self, key: &ObjectKey) {
        if let Ok(ix) = self.entries.binary_search_by(|entry| entry.key.cmp(key)) {
            self.entries[ix].note = N::default();
        }
    }

    /// The lean forms beside their objects and notes.
    pub(crate) fn notes(&mut self) -> impl Iterator<Item = (&Arc<Value>, &Arc<T>, &mut N)> {
        self.entries
            .iter_mut()
            .map(|entry| (&entry.source, &entry.parsed, &mut entry.note))
    }
}

/// The same version of the same object.
fn is_same(one: &Arc<Value>, other: &Arc<Value>) -> bool {
    let version = |object: &Value| !meta::text(object, "resourceVersion").is_empty();
    let equal = |field: &str| meta::text(one, field) == meta::text(other, field);
    Arc::ptr_eq(one, other) || (version(one) && equal("resourceVersion") && equal("uid"))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde_json::json;

    use super::*;

    fn object(name: &str, version: &str, size: i64) -> (ObjectKey, Arc<Value>) {
        let object = json!({"metadata": {"name": name, "resourceVersion": version}, "size": size});
        ((String::new(), name.to_owned()), Arc::new(object))
    }

    #[test]
    fn reads_what_changed_and_counts_what_matters() {
        let reads = Cell::new(0);
        let read = |object: &Value| {
            reads.set(reads.get() + 1);
            object["size"].as_i64().unwrap_or(0)
        };
        let matters = |size: &i64| *size > 10;
        let mut cache: Cache<i64> = Cache::default();
        let mut objects: Objects = [object("a", "1", 5), object("b", "2", 20)].into();
        cache.refresh(Some(&objects), read, matters);
        assert_eq!((reads.get(), cache.generation()), (2, 1));
        cache.refresh(Some(&objects.clone()), read, matters);
        assert_eq!((reads.get(), cache.generation()), (2, 1), "nothing new");
        objects.extend([object("a", "3", 6)]);
        cache.refresh(Some(&objects), read, matters);
        assert_eq!(
            (reads.get(), cache.generation()),
            (3, 1),
            "small ones do not matter"
        );
        objects.extend([object("b", "4", 20)]);
        cache.refresh(Some(&objects), read, matters);
        assert_eq!(
            (reads.get(), cache.generation()),
            (4, 1),
            "the same after all"
        );
        objects.remove(&(String::new(), "b".to_owned()));
        cache.refresh(Some(&objects), read, matters);
        assert_eq!((reads.get(), cache.generation()), (4, 2));
        assert_eq!(cache.iter().map(|size| **size).collect::<Vec<_>>(), [6]);
        cache.refresh(None, read, matters);
        assert_eq!((cache.iter().count(), cache.generation()), (0, 2));
    }
}
