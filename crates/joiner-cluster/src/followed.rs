//! What has changed since the last look.
//!
//! With ten thousand pods, reading each of them at every look would take most of the time. Objects
//! are shared and never change in place, so a pointer tells whether one is still the same.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value;

use crate::view::{ObjectKey, Objects};

/// The objects of one kind at the last look.
#[derive(Default)]
pub(crate) struct Followed {
    seen: Vec<(ObjectKey, Arc<Value>)>,
}

/// One difference between two looks.
pub(crate) struct Change<'a> {
    /// Namespace and name.
    pub(crate) key: &'a ObjectKey,
    /// As it was, if it was there.
    pub(crate) old: Option<&'a Arc<Value>>,
    /// As it is, if it is there.
    pub(crate) new: Option<&'a Arc<Value>>,
}

impl Followed {
    /// Reports every difference to the last look, in order of namespace and name.
    pub(crate) fn follow(&mut self, objects: Option<&Objects>, mut report: impl FnMut(Change<'_>)) {
        let empty = Objects::new();
        let objects = objects.unwrap_or(&empty);
        if self.is_current(objects) {
            return;
        }
        let mut old = std::mem::take(&mut self.seen).into_iter().peekable();
        let mut seen = Vec::with_capacity(objects.len());
        for (key, object) in objects {
            let gone_before = |(own, was): &(ObjectKey, Arc<Value>)| {
                !Arc::ptr_eq(was, object) && own.cmp(key) == Ordering::Less
            };
            while let Some((key, was)) = old.next_if(gone_before) {
                report(Change {
                    key: &key,
                    old: Some(&was),
                    new: None,
                });
            }
            match old.next_if(|(own, was)| Arc::ptr_eq(was, object) || own == key) {
                Some((own, was)) => {
                    if !Arc::ptr_eq(&was, object) {
                        report(Change {
                            key,
                            old: Some(&was),
                            new: Some(object),
                        });
                    }
                    seen.push((own, Arc::clone(object)));
                }
                None => {
                    report(Change {
                        key,
                        old: None,
                        new: Some(object),
                    });
                    seen.push((key.clone(), Arc::clone(object)));
                }
            }
        }
        for (key, was) in old {
            report(Change {
                key: &key,
                old: Some(&was),
                new: None,
            });
        }
        self.seen = seen;
    }

    fn is_current(&self, objects: &Objects) -> bool {
        let same =
            |((_, was), object): (&(ObjectKey, Arc<Value>), &Arc<Value>)| Arc::ptr_eq(was, object);
        self.seen.len() == objects.len() && self.seen.iter().zip(objects.values()).all(same)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_change_is_reported_once() {
        let object = |name: &str| ((String::new(), name.to_owned()), Arc::new(json!(name)));
        let mut objects: Objects = ["a", "b", "d"].map(object).into();
        let mut followed = Followed::default();
        let look = |followed: &mut Followed, objects: &Objects| {
            let mut changes = Vec::new();
            followed.follow(Some(objects), |change| {
                let sign = match (change.old, change.new) {
                    (None, _) => '+',
                    (_, None) => '-',
                    (Some(_), Some(_)) => '!',
                };
                changes.push(format!("{sign}{}", change.key.1));
            });
            changes.join(" ")
        };
        assert_eq!(look(&mut followed, &objects), "+a +b +d");
        assert_eq!(look(&mut followed, &objects.clone()), "");
        objects.remove(&(String::new(), "a".to_owned()));
        objects.extend(["b", "c", "e"].map(object));
        assert_eq!(look(&mut followed, &objects), "-a !b +c +e");
        objects.clear();
        assert_eq!(look(&mut followed, &objects), "-b -c -d -e");
    }
}
