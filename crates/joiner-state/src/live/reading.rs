//! How an object of a kind is read, and what a change of it means.

use std::fmt;

use joiner_model::{Name, Selector};
use serde_json::Value;

use super::kind::Kind;
use super::meta::Meta;
use super::owners::Owners;
use crate::choices::Choice;
use crate::documents::{Document, Header, Sink as _};
use crate::error::Place;
use crate::names::Names;
use crate::objects::Objects;

/// What is kept of an object of some kinds.
///
/// A kind is followed when its type is in the table of [`ClusterState`](super::ClusterState), or was
/// named with [`ClusterState::with`](super::ClusterState::with).
pub trait Live: fmt::Debug + Send + Sync + Sized + 'static {
    /// The kinds whose objects are read like this.
    const KINDS: &'static [Kind];

    /// The planner reads such objects once for all snapshots that have the same: a change of one
    /// makes it read them anew.
    const IS_GROUND: bool = false;

    /// The name of an object in snapshots: `namespace/name`, or the name alone where there are no
    /// namespaces.
    #[must_use]
    fn name_of(object: &Value) -> Name {
        full_name(object)
    }

    /// Reads an object.
    ///
    /// # Errors
    /// What cannot be understood: the object is left out then.
    fn read(object: &Value, reading: &mut Reading<'_>) -> Result<Self, String>;

    /// Uid, and version as a number.
    fn identity(&self) -> (&Name, u64);

    /// What a change of it is about, beside itself: the node of a pod, the machine of a node.
    fn about(&self) -> Option<&Name> {
        None
    }

    /// Gives the planner what it reads of it, when the type [is ground](Self::IS_GROUND).
    fn add_to(&self, objects: &mut Objects) {
        let _ = objects;
    }
}

/// An object that is being read, and what helps with that.
#[derive(Debug)]
pub struct Reading<'r> {
    pub(super) kind: Kind,
    /// Its name in snapshots.
    pub(super) name: Name,
    /// Parses; holds names and shapes of pods.
    pub(super) reader: &'r mut Objects,
    pub(super) owners: &'r mut Owners,
    /// Workloads are kept with the templates of their pods.
    pub(super) keeps_templates: bool,
    /// What selects pods is kept.
    pub(super) keeps_choices: bool,
    /// Which pods it selects, if that will be asked.
    pub(super) choice: Option<Choice>,
}

impl Reading<'_> {
    /// The kind of the object.
    #[must_use]
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The name of the object in snapshots.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The shared copy of a text that many objects have.
    pub fn text(&mut self, text: &str) -> Name {
        self.reader.names.get(text)
    }

    /// The metadata of the object.
    pub fn meta(&mut self, object: &Value) -> Meta {
        let mut meta = Meta::read(object, &mut self.reader.names);
        if meta.name == self.name {
            // One copy of the name for the object and all that point to it.
            meta.name = self.name.clone();
        }
        meta
    }

    /// A label selector; `None` for one that selects nothing.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn selector(&mut self, selector: &Value) -> Result<Option<Selector>, String> {
        self.reader.selector(selector)
    }

    pub(super) fn names(&mut self) -> &mut Names {
        &mut self.reader.names
    }

    /// Parses the object with the planner's reader, which keeps what it makes of it.
    pub(super) fn parse(&mut self, object: &Value) -> Result<(), String> {
        self.reader.forget_seen();
        let result = accept(self.reader, object);
        result.map_err(|error| error.to_string())
    }

    /// Keeps which pods the object selects, for default spread constraints.
    pub(super) fn choose(&mut self, object: &Value) -> Result<(), String> {
        if self.keeps_choices {
            let selector = &object["spec"]["selector"];
            self.choice = Some(Choice::read(self.kind, selector, self.reader)?);
        }
        Ok(())
    }
}

/// `namespace/name`, or the name alone where there are no namespaces.
pub(super) fn full_name(object: &Value) -> Name {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default();
    match (text("namespace"), text("name")) {
        ("", name) => name.into(),
        (namespace, name) => format!("{namespace}/{name}").into(),
    }
}

/// Lets the planner read an object as a server gave it.
pub(super) fn accept(objects: &mut Objects, object: &Value) -> Result<(), crate::ReadError> {
    let text = |field: &str| object[field].as_str().unwrap_or_default().to_owned();
    let header = Header {
        api_version: text("apiVersion"),
        kind: text("kind"),
    };
    objects.accept(&header, Document::Value(object), &Place::default())
}
