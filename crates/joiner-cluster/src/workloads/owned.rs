//! Which objects belong to a controller: those that name it as theirs, and those it takes on.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use joiner_machinery::meta;
use joiner_machinery::selector::LabelSelector;
use serde_json::{Value, json};

use super::pods::Facts;
use crate::fields;
use crate::followed::Followed;
use crate::view::{Action, ObjectKey, Resource, View};

/// An object that somebody may own.
pub(crate) struct Child {
    /// The object.
    pub(crate) object: Arc<Value>,
    /// What is asked of it most often.
    pub(crate) facts: Facts,
}

type Group = BTreeMap<ObjectKey, Child>;

/// Objects of one kind by the uid of their controller, kept from look to look.
pub(crate) struct Children {
    resource: Resource,
    owner_kind: &'static str,
    followed: Followed,
    by_owner: BTreeMap<String, Group>,
    /// Those without a controller, by namespace.
    orphans: BTreeMap<String, Group>,
    /// Owners with a change since the last look.
    touched: BTreeSet<String>,
    /// Namespaces with a change among those without an owner.
    touched_namespaces: BTreeSet<String>,
}

impl Children {
    /// Objects of a kind whose controllers are of another kind.
    pub(crate) fn new(resource: Resource, owner_kind: &'static str) -> Self {
        Self {
            resource,
            owner_kind,
            followed: Followed::default(),
            by_owner: BTreeMap::new(),
            orphans: BTreeMap::new(),
            touched: BTreeSet::new(),
            touched_namespaces: BTreeSet::new(),
        }
    }

    /// Takes in what has changed.
    pub(crate) fn refresh(&mut self, view: &View<'_>) {
        self.touched.clear();
        self.touched_namespaces.clear();
        let mut followed = std::mem::take(&mut self.followed);
        followed.follow(view.objects(self.resource), |change| {
            if let Some(old) = change.old {
                self.remove(change.key, old);
            }
            if let Some(new) = change.new {
                self.insert(change.key, new);
            }
        });
        self.followed = followed;
    }

    fn insert(&mut self, key: &ObjectKey, object: &Arc<Value>) {
        let Some(group) = self.group(object) else {
            return;
        };
        let child = Child {
            facts: Facts::read(object),
            object: Arc::clone(object),
        };
        group.insert(key.clone(), child);
    }

    fn remove(&mut self, key: &ObjectKey, object: &Value) {
        let Some(group) = self.group(object) else {
            return;
        };
        group.remove(key);
        if !group.is_empty() {
            return;
        }
        match meta::controller(object).and_then(|owner| owner["uid"].as_str()) {
            Some(uid) => self.by_owner.remove(uid),
            None => self.orphans.remove(meta::namespace(object)),
        };
    }

    /// Where an object belongs, which counts as touched. None for objects of other owners.
    fn group(&mut self, object: &Value) -> Option<&mut Group> {
        let Some(owner) = meta::controller(object) else {
            let namespace = meta::namespace(object);
            self.touched_namespaces.insert(namespace.to_owned());
            return Some(self.orphans.entry(namespace.to_owned()).or_default());
        };
        let uid = owner["uid"].as_str()?;
        if owner["kind"] != self.owner_kind {
            return None;
        }
        self.touched.insert(uid.to_owned());
        Some(self.by_owner.entry(uid.to_owned()).or_default())
    }

    /// True when something has changed that may belong to an owner.
    pub(crate) fn is_touched(&self, owner: &Value) -> bool {
        self.touched.contains(meta::uid(owner))
            || self.touched_namespaces.contains(meta::namespace(owner))
    }

    /// Objects whose controller has this uid, in order of name.
    pub(crate) fn owned(&self, uid: &str) -> impl Iterator<Item = &Child> {
        self.by_owner
            .get(uid)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    /// All objects with an owner, with its uid.
    pub(crate) fn groups(&self) -> impl Iterator<Item = (&str, impl Iterator<Item = &Child>)> {
        self.by_owner
            .iter()
            .map(|(uid, group)| (uid.as_str(), group.values()))
    }

    /// The objects of an owner: those it has and still selects, and those without an owner that it
    /// selects. The actions let go of the ones it no longer selects and take on the others.
    pub(crate) fn claim(
        &self,
        owner: &Owner<'_>,
        selector: &LabelSelector,
        adoptable: fn(&Facts) -> bool,
        actions: &mut Vec<Action>,
    ) -> Vec<&Child> {
        let owned = self.owned(meta::uid(owner.object));
        if meta::is_deleting(owner.object) {
            return owned.collect();
        }
        let mut takes = Takes::new(selector);
        let mut claimed = Vec::new();
        for child in owned {
            if takes.child(child) {
                claimed.push(child);
            } else if !child.facts.is_deleting {
                actions.push(self.release(&child.object, owner));
            }
        }
        let orphans = self.orphans.get(meta::namespace(owner.object));
        for child in orphans.into_iter().flat_map(BTreeMap::values) {
            if !child.facts.is_deleting && adoptable(&child.facts) && takes.child(child) {
                actions.push(self.adopt(&child.object, owner));
                claimed.push(child);
            }
        }
        claimed
    }

    fn adopt(&self, object: &Value, owner: &Owner<'_>) -> Action {
        let mut owners = owners(object);
        owners.push(owner.reference());
        let patch = json!({"metadata": {"uid": meta::uid(object), "ownerReferences": owners}});
        fields::patch(self.resource, object, patch)
    }

    fn release(&self, object: &Value, owner: &Owner<'_>) -> Action {
        let mut owners = owners(object);
        owners.retain(|reference| reference["uid"] != meta::uid(owner.object));
        let owners = match owners.is_empty() {
            true => Value::Null,
            false => Value::Array(owners),
        };
        let patch = json!({"metadata": {"uid": meta::uid(object), "ownerReferences": owners}});
        fields::patch(self.resource, object, patch)
    }
}

/// Asks a selector once for all objects with the same labels.
pub(crate) struct Takes<'a> {
    selector: &'a LabelSelector,
    known: BTreeMap<u64, bool>,
}

impl<'a> Takes<'a> {
    /// Nothing is known yet.
    pub(crate) fn new(selector: &'a LabelSelector) -> Self {
        Self {
            selector,
            known: BTreeMap::new(),
        }
    }

    /// True when the selector chooses an object.
    pub(crate) fn child(&mut self, child: &Child) -> bool {
        let known = self.known.entry(child.facts.labels);
        *known.or_insert_with(|| self.selector.matches(&child.object))
    }
}

/// The label selector of a workload. One that is missing chooses nothing and one that is empty
/// everything: neither makes a workload, and its controller leaves it alone.
pub(crate) fn selector(workload: &Value) -> Option<LabelSelector> {
    let selector = &workload["spec"]["selector"];
    let parsed = selector.is_object().then(|| LabelSelector::of(selector));
    parsed.filter(|selector| !selector.is_empty())
}

fn owners(object: &Value) -> Vec<Value> {
    let owners = object["metadata"]["ownerReferences"].as_array();
    owners.cloned().unwrap_or_default()
}

/// An object that owns others.
#[derive(Clone, Copy)]
pub(crate) struct Owner<'a> {
    /// `apps/v1`.
    pub(crate) api_version: &'static str,
    /// `ReplicaSet`.
    pub(crate) kind: &'static str,
    /// The object.
    pub(crate) object: &'a Value,
}

impl Owner<'_> {
    /// The reference that makes it the controller of another object.
    pub(crate) fn reference(&self) -> Value {
        json!({
            "apiVersion": self.api_version,
            "kind": self.kind,
            "name": meta::name(self.object),
            "uid": meta::uid(self.object),
            "controller": true,
            "blockOwnerDeletion": true,
        })
    }
}
