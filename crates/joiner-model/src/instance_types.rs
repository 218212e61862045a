//! The instance types of a problem, shared with others.

use std::iter::FlatMap;
use std::ops::{Index, IndexMut};
use std::sync::Arc;

use crate::{InstanceType, TypeIx};

type List = (usize, Arc<Vec<InstanceType>>);
type Items<'a> = std::slice::Iter<'a, InstanceType>;
type ItemsMut<'a> = std::slice::IterMut<'a, InstanceType>;

/// Instance types by [`TypeIx`]: whole lists, one after the other, that many problems share. A list is
/// copied before a type of it is changed.
#[derive(Clone, Debug, Default)]
pub struct InstanceTypes {
    /// None of them is empty. Each with the number of types before it.
    lists: Vec<List>,
}

impl InstanceTypes {
    /// How many there are.
    #[must_use]
    pub fn len(&self) -> usize {
        self.lists
            .last()
            .map_or(0, |(before, list)| before + list.len())
    }

    /// True when there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.lists.is_empty()
    }

    /// Adds a list, and returns the indexes of its types. It is not copied.
    pub fn append(&mut self, list: Arc<Vec<InstanceType>>) -> impl Iterator<Item = TypeIx> + use<> {
        let short = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        let before = self.len();
        let after = before + list.len();
        if !list.is_empty() {
            self.lists.push((before, list));
        }
        (short(before)..short(after)).map(TypeIx)
    }

    /// Adds a type.
    pub fn push(&mut self, instance_type: InstanceType) {
        if let Some((_, list)) = self.lists.last_mut()
            && let Some(list) = Arc::get_mut(list)
        {
            return list.push(instance_type);
        }
        self.lists.push((self.len(), Arc::new(vec![instance_type])));
    }

    /// Takes all types away.
    pub fn clear(&mut self) {
        self.lists.clear();
    }

    /// A type by its number.
    #[must_use]
    pub fn get(&self, ix: usize) -> Option<&InstanceType> {
        let (before, list) = self.lists.get(self.list_of(ix)?)?;
        list.get(ix - before)
    }

    /// All types, in order.
    pub fn iter(&self) -> impl Iterator<Item = &InstanceType> + Clone {
        self.into_iter()
    }

    /// All types, to change. Lists that are shared are copied.
    pub fn iter_mut(&mut self) -> impl Iterator<Item = &mut InstanceType> {
        self.into_iter()
    }

    /// The list that a type is in, if there is one of this number.
    fn list_of(&self, ix: usize) -> Option<usize> {
        self.lists
            .partition_point(|(before, _)| *before <= ix)
            .checked_sub(1)
    }
}

fn items(list: &List) -> Items<'_> {
    list.1.iter()
}

fn items_mut(list: &mut List) -> ItemsMut<'_> {
    Arc::make_mut(&mut list.1).iter_mut()
}

impl Index<usize> for InstanceTypes {
    type Output = InstanceType;

    fn index(&self, ix: usize) -> &InstanceType {
        let (before, list) = &self.lists[self.list_of(ix).unwrap_or_default()];
        &list[ix - before]
    }
}

impl IndexMut<usize> for InstanceTypes {
    fn index_mut(&mut self, ix: usize) -> &mut InstanceType {
        let at = self.list_of(ix).unwrap_or_default();
        let (before, list) = &mut self.lists[at];
        &mut Arc::make_mut(list)[ix - *before]
    }
}

impl Index<TypeIx> for InstanceTypes {
    type Output = InstanceType;

    fn index(&self, ix: TypeIx) -> &InstanceType {
        &self[ix.0 as usize]
    }
}

impl<'a> IntoIterator for &'a InstanceTypes {
    type Item = &'a InstanceType;
    type IntoIter = FlatMap<std::slice::Iter<'a, List>, Items<'a>, fn(&'a List) -> Items<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.lists.iter().flat_map(items)
    }
}

impl<'a> IntoIterator for &'a mut InstanceTypes {
    type Item = &'a mut InstanceType;
    type IntoIter =
        FlatMap<std::slice::IterMut<'a, List>, ItemsMut<'a>, fn(&'a mut List) -> ItemsMut<'a>>;

    fn into_iter(self) -> Self::IntoIter {
        self.lists.iter_mut().flat_map(items_mut)
    }
}

impl From<Vec<InstanceType>> for InstanceTypes {
    fn from(types: Vec<InstanceType>) -> Self {
        types.into_iter().collect()
    }
}

impl FromIterator<InstanceType> for InstanceTypes {
    fn from_iter<I: IntoIterator<Item = InstanceType>>(types: I) -> Self {
        let mut all = Self::default();
        let _ = all.append(Arc::new(types.into_iter().collect()));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Resources;

    fn named(name: &str) -> InstanceType {
        InstanceType {
            name: name.into(),
            labels: std::collections::BTreeMap::new(),
            capacity: Resources::new(),
            overhead: Resources::new(),
            offerings: Vec::new(),
        }
    }

    fn list(names: &[&str]) -> Arc<Vec<InstanceType>> {
        Arc::new(names.iter().map(|name| named(name)).collect())
    }

    fn names(types: &InstanceTypes) -> Vec<&str> {
        types.iter().map(|found| &*found.name).collect()
    }

    #[test]
    fn lists_follow_one_another() {
        let mut types = InstanceTypes::default();
        assert!(types.is_empty() && types.get(0).is_none());
        assert_eq!(types.append(list(&[])).count(), 0);
        let first: Vec<TypeIx> = types.append(list(&["a", "b"])).collect();
        let second: Vec<TypeIx> = types.append(list(&["c"])).collect();
        types.push(named("d"));
        assert_eq!(
            (first, second),
            (vec![TypeIx(0), TypeIx(1)], vec![TypeIx(2)])
        );
        assert_eq!((types.len(), names(&types)), (4, vec!["a", "b", "c", "d"]));
        let by_number: Vec<&str> = (0..4).map(|ix| &*types[ix].name).collect();
        assert_eq!(by_number, ["a", "b", "c", "d"]);
        assert_eq!(&*types[TypeIx(2)].name, "c");
        assert!(types.get(4).is_none());
    }

    #[test]
    fn a_change_stays_with_its_copy() {
        let shared = list(&["a", "b"]);
        let mut types = InstanceTypes::default();
        let _ = types.append(Arc::clone(&shared));
        let other = types.clone();
        assert!(std::ptr::eq(&raw const types[1], &raw const shared[1]));
        types.push(named("c"));
        types[0].name = "changed".into();
        assert_eq!(names(&types), ["changed", "b", "c"]);
        assert_eq!(names(&other), ["a", "b"]);
        assert_eq!(&*shared[0].name, "a");
        for found in &mut types {
            found.name = format!("{}2", found.name).into();
        }
        assert_eq!(names(&types), ["changed2", "b2", "c2"]);
        types.clear();
        assert_eq!(types.len(), 0);
    }
}
