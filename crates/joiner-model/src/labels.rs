//! Labels of objects.

use std::collections::{BTreeMap, btree_map};
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

use crate::Name;

/// Labels of an object, by key. Clones share them until one of them changes: a node has about twenty,
/// and is looked at from many sides.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Labels(Arc<BTreeMap<Name, Name>>);

impl Labels {
    /// No labels.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same labels; shared with the others where these are the same.
    #[must_use]
    pub fn shared_with(self, others: &Self) -> Self {
        match self == *others {
            true => others.clone(),
            false => self,
        }
    }
}

impl Deref for Labels {
    type Target = BTreeMap<Name, Name>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl DerefMut for Labels {
    fn deref_mut(&mut self) -> &mut Self::Target {
        Arc::make_mut(&mut self.0)
    }
}

impl From<BTreeMap<Name, Name>> for Labels {
    fn from(labels: BTreeMap<Name, Name>) -> Self {
        Self(Arc::new(labels))
    }
}

impl<const N: usize> From<[(Name, Name); N]> for Labels {
    fn from(labels: [(Name, Name); N]) -> Self {
        BTreeMap::from(labels).into()
    }
}

impl FromIterator<(Name, Name)> for Labels {
    fn from_iter<I: IntoIterator<Item = (Name, Name)>>(labels: I) -> Self {
        BTreeMap::from_iter(labels).into()
    }
}

impl Extend<(Name, Name)> for Labels {
    fn extend<I: IntoIterator<Item = (Name, Name)>>(&mut self, labels: I) {
        Arc::make_mut(&mut self.0).extend(labels);
    }
}

impl IntoIterator for Labels {
    type Item = (Name, Name);
    type IntoIter = btree_map::IntoIter<Name, Name>;

    fn into_iter(self) -> Self::IntoIter {
        Arc::unwrap_or_clone(self.0).into_iter()
    }
}

impl<'a> IntoIterator for &'a Labels {
    type Item = (&'a Name, &'a Name);
    type IntoIter = btree_map::Iter<'a, Name, Name>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_change_stays_with_its_copy() {
        let one = Labels::from([("a".into(), "1".into())]);
        let mut other = one.clone();
        assert!(std::ptr::eq(&*one, &*other));
        other.insert("b".into(), "2".into());
        assert_eq!((one.len(), other.len()), (1, 2));
    }

    #[test]
    fn the_same_labels_are_shared() {
        let one = Labels::from([("a".into(), "1".into())]);
        let same = Labels::from([("a".into(), "1".into())]);
        assert!(!std::ptr::eq(&*one, &*same));
        assert!(std::ptr::eq(&*one, &*same.shared_with(&one)));
        let different = Labels::from([("a".into(), "2".into())]);
        assert_eq!(different.clone().shared_with(&one), different);
    }
}
