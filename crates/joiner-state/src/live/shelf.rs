//! Where the objects of one kind are kept.

use std::any::Any;
use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use imbl::OrdMap;
use joiner_model::Name;
use serde_json::Value;

use super::reading::{Live, Reading};
use crate::objects::Objects;

/// The objects of one kind, by name. Cheap to clone.
#[derive(Debug)]
pub(super) struct Shelf<L>(OrdMap<Name, Arc<L>>);

impl<L> Default for Shelf<L> {
    fn default() -> Self {
        Self(OrdMap::new())
    }
}

impl<L> Clone for Shelf<L> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<L> Deref for Shelf<L> {
    type Target = OrdMap<Name, Arc<L>>;

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

/// The objects of one kind, whatever is kept of them.
pub(super) trait AnyShelf: fmt::Debug + Send + Sync {
    /// The [`Shelf`] itself.
    fn shelf(&self) -> &dyn Any;
    /// Another one with the same objects.
    fn copied(&self) -> Arc<dyn AnyShelf>;
    /// The name of an object; see [`Live::name_of`].
    fn name_of(&self, object: &Value) -> Name;
    /// The names of all objects.
    fn names(&self) -> Box<dyn Iterator<Item = &Name> + '_>;
    /// Uid and version of an object.
    fn identity(&self, name: &str) -> Option<(&Name, u64)>;
    /// What a change of an object is about.
    fn about(&self, name: &str) -> Option<&Name>;
    /// See [`Live::IS_GROUND`].
    fn is_ground(&self) -> bool;
    /// Gives the planner what it reads of all objects.
    fn add_to(&self, objects: &mut Objects);
    /// Reads an object, and keeps it in place of an earlier one of its name.
    fn put(&mut self, object: &Value, reading: &mut Reading<'_>) -> Result<(), String>;
    /// Forgets an object.
    fn remove(&mut self, name: &Name);
}

impl<L: Live> AnyShelf for Shelf<L> {
    fn shelf(&self) -> &dyn Any {
        self
    }

    fn copied(&self) -> Arc<dyn AnyShelf> {
        Arc::new(self.clone())
    }

    fn name_of(&self, object: &Value) -> Name {
        L::name_of(object)
    }

    fn names(&self) -> Box<dyn Iterator<Item = &Name> + '_> {
        Box::new(self.0.keys())
    }

    fn identity(&self, name: &str) -> Option<(&Name, u64)> {
        self.0.get(name).map(|object| object.identity())
    }

    fn about(&self, name: &str) -> Option<&Name> {
        self.0.get(name)?.about()
    }

    fn is_ground(&self) -> bool {
        L::IS_GROUND
    }

    fn add_to(&self, objects: &mut Objects) {
        for object in self.0.values() {
            object.add_to(objects);
        }
    }

    fn put(&mut self, object: &Value, reading: &mut Reading<'_>) -> Result<(), String> {
        let object = L::read(object, reading)?;
        self.0.insert(reading.name.clone(), Arc::new(object));
        Ok(())
    }

    fn remove(&mut self, name: &Name) {
        self.0.remove(name);
    }
}

/// An object that is also found by something else than its name.
pub(super) trait Indexed: Live {
    /// What finds it.
    type Index: Clone + fmt::Debug + Default + Send + Sync + 'static;

    /// It is to be found.
    fn enter(&self, name: &Name, index: &mut Self::Index);

    /// It is not to be found any more.
    fn leave(&self, name: &Name, index: &mut Self::Index);
}

/// A shelf with an index.
#[derive(Debug)]
pub(super) struct IndexedShelf<L: Indexed> {
    objects: Shelf<L>,
    pub(super) index: L::Index,
}

impl<L: Indexed> Default for IndexedShelf<L> {
    fn default() -> Self {
        Self {
            objects: Shelf::default(),
            index: L::Index::default(),
        }
    }
}

impl<L: Indexed> Clone for IndexedShelf<L> {
    fn clone(&self) -> Self {
        Self {
            objects: self.objects.clone(),
            index: self.index.clone(),
        }
    }
}

impl<L: Indexed> Deref for IndexedShelf<L> {
    type Target = OrdMap<Name, Arc<L>>;

    fn deref(&self) -> &Self::Target {
        &self.objects
    }
}

impl<L: Indexed> AnyShelf for IndexedShelf<L> {
    fn shelf(&self) -> &dyn Any {
        &self.objects
    }

    fn copied(&self) -> Arc<dyn AnyShelf> {
        Arc::new(self.clone())
    }

    fn name_of(&self, object: &Value) -> Name {
        L::name_of(object)
    }

    fn names(&self) -> Box<dyn Iterator<Item = &Name> + '_> {
        self.objects.names()
    }

    fn identity(&self, name: &str) -> Option<(&Name, u64)> {
        self.objects.identity(name)
    }

    fn about(&self, name: &str) -> Option<&Name> {
        self.objects.about(name)
    }

    fn is_ground(&self) -> bool {
        self.objects.is_ground()
    }

    fn add_to(&self, objects: &mut Objects) {
        self.objects.add_to(objects);
    }

    fn put(&mut self, object: &Value, reading: &mut Reading<'_>) -> Result<(), String> {
        let object = L::read(object, reading)?;
        let name = &reading.name;
        if let Some(before) = self.objects.get(name) {
            before.leave(name, &mut self.index);
        }
        object.enter(name, &mut self.index);
        self.objects.0.insert(name.clone(), Arc::new(object));
        Ok(())
    }

    fn remove(&mut self, name: &Name) {
        if let Some(gone) = self.objects.0.remove(name) {
            gone.leave(name, &mut self.index);
        }
    }
}
