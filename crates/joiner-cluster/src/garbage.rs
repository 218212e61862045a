//! Deletes what nobody owns any more, and holds back what must go last.
//!
//! *Background:* an object goes once all of its owners are gone. *Foreground:* an owner with the
//! finalizer `foregroundDeletion` waits until the dependents that block it are gone. *Orphan:* an
//! owner with the finalizer `orphan` lets go of its dependents first.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use joiner_machinery::meta;
use serde_json::{Value, json};

use crate::fields;
use crate::followed::Followed;
use crate::resources::Resources;
use crate::view::{Action, Controller, ObjectKey, Objects, Resource, Step, View};

/// Waits for dependents.
const FOREGROUND: &str = "foregroundDeletion";
/// Frees dependents.
const ORPHAN: &str = "orphan";
/// Groups that are always served: an owner of such a kind that is not there is gone.
const BUILT_IN: [&str; 13] = [
    "",
    "apps",
    "batch",
    "policy",
    "storage.k8s.io",
    "scheduling.k8s.io",
    "coordination.k8s.io",
    "autoscaling",
    "rbac.authorization.k8s.io",
    "node.k8s.io",
    "apiextensions.k8s.io",
    "events.k8s.io",
    "discovery.k8s.io",
];

/// The garbage collector.
#[derive(Default)]
pub struct GarbageCollector {
    resources: Resources,
    graph: Graph,
}

impl Controller for GarbageCollector {
    fn name(&self) -> &'static str {
        "generic-garbage-collector"
    }

    fn reads(&self) -> &'static [Resource] {
        &[]
    }

    fn step(&mut self, view: &View<'_>) -> Step {
        self.graph.refresh(view, &mut self.resources);
        let owners = Owners::of(view, &self.graph);
        let mut actions = Vec::new();
        let doubtful: BTreeSet<&Place> = (self.graph.dependents.iter())
            .filter(|(uid, _)| owners.life(uid) != Life::Alive)
            .flat_map(|(_, places)| places)
            .collect();
        for place in doubtful {
            let Some(object) = self.graph.objects.get(place) else {
                continue;
            };
            let is_owner = |uid: &str| self.graph.dependents.contains_key(uid);
            actions.extend(owners.judge(object).action(place.0, object, is_owner));
        }
        for place in &self.graph.waiting {
            let owner = self.graph.objects.get(place);
            actions.extend(
                owner
                    .into_iter()
                    .flat_map(|owner| self.graph.release(place.0, owner)),
            );
        }
        Step {
            actions,
            wake: None,
        }
    }
}

/// Kind, namespace and name.
type Place = (Resource, ObjectKey);

/// Who owns whom, kept from look to look.
#[derive(Default)]
struct Graph {
    followed: BTreeMap<Resource, Followed>,
    /// Objects with owners, and those that wait.
    objects: BTreeMap<Place, Arc<Value>>,
    /// Objects by the uids of their owners.
    dependents: BTreeMap<String, BTreeSet<Place>>,
    /// One reference for each owner that somebody refers to, with the namespace of the referrer.
    references: BTreeMap<String, (String, Value)>,
    /// Objects that are being deleted and have one of our finalizers.
    waiting: BTreeSet<Place>,
}

impl Graph {
    fn refresh(&mut self, view: &View<'_>, resources: &mut Resources) {
        // Events are many and never have owners.
        for (kind, objects) in view
            .kinds
            .iter()
            .filter(|((_, plural), _)| plural != "events")
        {
            let resource = resources.named(kind);
            self.follow(resource, Some(objects));
        }
        let is_gone = |resource: &&Resource| view.objects(**resource).is_none();
        let gone: Vec<Resource> = self.followed.keys().filter(is_gone).copied().collect();
        for resource in gone {
            self.follow(resource, None);
            self.followed.remove(&resource);
        }
    }

    fn follow(&mut self, resource: Resource, objects: Option<&Objects>) {
        let mut followed = self.followed.remove(&resource).unwrap_or_default();
        followed.follow(objects, |change| {
            if change
                .old
                .is_some_and(|old| has_owners(old) || is_waiting(old))
            {
                let place = (resource, change.key.clone());
                self.remove(&place);
            }
            if let Some(new) = change.new.filter(|new| has_owners(new) || is_waiting(new)) {
                self.insert((resource, change.key.clone()), new);
            }
        });
        self.followed.insert(resource, followed);
    }

    fn insert(&mut self, place: Place, object: &Arc<Value>) {
        if is_waiting(object) {
            self.waiting.insert(place.clone());
        }
        for reference in references(object) {
            let uid = reference["uid"].as_str().unwrap_or_default();
            let dependents = self.dependents.entry(uid.to_owned()).or_default();
            dependents.insert(place.clone());
            let sample = (place.1.0.clone(), reference.clone());
            self.references.entry(uid.to_owned()).or_insert(sample);
        }
        self.objects.insert(place, Arc::clone(object));
    }

    fn remove(&mut self, place: &Place) {
        self.waiting.remove(place);
        let Some(object) = self.objects.remove(place) else {
            return;
        };
        for reference in references(&object) {
            let uid = reference["uid"].as_str().unwrap_or_default();
            let Some(dependents) = self.dependents.get_mut(uid) else {
                continue;
            };
            dependents.remove(place);
            if dependents.is_empty() {
                self.dependents.remove(uid);
                self.references.remove(uid);
            }
        }
    }

    /// What an owner that waits needs next: to let go of dependents, or of its finalizer.
    fn release(&self, resource: Resource, owner: &Value) -> Vec<Action> {
        let theirs = self.dependents.get(meta::uid(owner)).into_iter().flatten();
        let theirs = theirs.filter_map(|place| Some((place.0, self.objects.get(place)?)));
        let theirs: Vec<(Resource, &Arc<Value>)> = theirs.collect();
        let (finalizer, is_held) = match has_finalizer(owner, ORPHAN) {
            true => (ORPHAN, !theirs.is_empty()),
            false => (
                FOREGROUND,
                theirs.iter().any(|(_, object)| blocks(object, owner)),
            ),
        };
        if !is_held {
            return vec![without_finalizer(resource, owner, finalizer)];
        }
        if finalizer == FOREGROUND {
            return Vec::new();
        }
        let is_owner = |uid: &str| uid == meta::uid(owner);
        let freed = theirs.into_iter();
        freed
            .map(|(resource, object)| without_owners(resource, object, is_owner))
            .collect()
    }
}

/// How an owner is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Life {
    /// There, or of a kind that nobody knows.
    Alive,
    /// Waits for its dependents to be deleted.
    Waits,
    /// Gone.
    Gone,
}

/// What becomes of an object with owners.
enum Verdict {
    Keep,
    /// No owner is left.
    Delete,
    /// All owners that are left wait for it to go.
    DeleteFor,
    /// One owner lives; references to these go.
    Forget(Vec<String>),
}

impl Verdict {
    fn action(
        self,
        resource: Resource,
        object: &Value,
        is_owner: impl Fn(&str) -> bool,
    ) -> Option<Action> {
        match self {
            Self::Keep => None,
            // What it owns itself must go before it.
            Self::DeleteFor if is_owner(meta::uid(object)) => {
                Some(fields::delete(resource, object, Some("Foreground")))
            }
            Self::Delete | Self::DeleteFor => {
                Some(fields::delete(resource, object, Some("Background")))
            }
            Self::Forget(gone) => Some(without_owners(resource, object, |uid| {
                gone.iter().any(|g| g == uid)
            })),
        }
    }
}

/// How all owners are that somebody refers to.
struct Owners<'g>(BTreeMap<&'g str, Life>);

impl<'g> Owners<'g> {
    fn of(view: &View<'_>, graph: &'g Graph) -> Self {
        let kinds = Kinds::of(view);
        let lives = graph
            .references
            .iter()
            .map(|(uid, (namespace, reference))| (uid.as_str(), kinds.life(reference, namespace)));
        Self(lives.collect())
    }

    fn life(&self, uid: &str) -> Life {
        self.0.get(uid).copied().unwrap_or(Life::Alive)
    }

    fn judge(&self, object: &Value) -> Verdict {
        let (mut alive, mut waits, mut gone) = (false, false, Vec::new());
        for reference in references(object) {
            let uid = reference["uid"].as_str().unwrap_or_default();
            match self.life(uid) {
                Life::Alive => alive = true,
                Life::Waits => waits = true,
                Life::Gone => gone.push(uid.to_owned()),
            }
        }
        if meta::is_deleting(object) {
            Verdict::Keep
        } else if alive || (waits && !gone.is_empty()) {
            match gone.is_empty() {
                true => Verdict::Keep,
                false => Verdict::Forget(gone),
            }
        } else if waits {
            Verdict::DeleteFor
        } else {
            Verdict::Delete
        }
    }
}

/// Which kinds there are, by group and kind.
struct Kinds<'a> {
    /// Those with objects.
    objects: BTreeMap<(&'a str, &'a str), &'a Objects>,
    /// Those that CRDs define.
    custom: BTreeSet<(&'a str, &'a str)>,
}

impl<'a> Kinds<'a> {
    fn of(view: &View<'a>) -> Self {
        let custom = view
            .all(("apiextensions.k8s.io", "customresourcedefinitions"))
            .map(|crd| {
                let group = crd["spec"]["group"].as_str().unwrap_or_default();
                (
                    group,
                    crd["spec"]["names"]["kind"].as_str().unwrap_or_default(),
                )
            });
        let objects = view.kinds.iter().filter_map(|((group, _), objects)| {
            let kind = objects.values().next()?["kind"].as_str()?;
            Some(((group.as_str(), kind), objects))
        });
        Self {
            objects: objects.collect(),
            custom: custom.collect(),
        }
    }

    fn life(&self, reference: &Value, namespace: &str) -> Life {
        let api_version = reference["apiVersion"].as_str().unwrap_or_default();
        let group = api_version.split_once('/').map_or("", |(group, _)| group);
        let kind = (group, reference["kind"].as_str().unwrap_or_default());
        let name = reference["name"].as_str().unwrap_or_default();
        let at = |namespace: &str| {
            let key = (namespace.to_owned(), name.to_owned());
            let owner = self.objects.get(&kind)?.get(&key)?;
            (reference["uid"] == meta::uid(owner)).then_some(owner)
        };
        match at(namespace).or_else(|| at("")) {
            Some(owner) if meta::is_deleting(owner) && has_finalizer(owner, FOREGROUND) => {
                Life::Waits
            }
            Some(_) => Life::Alive,
            None if self.is_known(kind) => Life::Gone,
            None => Life::Alive,
        }
    }

    /// True for kinds that are served: an owner of another kind may well be there.
    fn is_known(&self, kind: (&str, &str)) -> bool {
        self.objects.contains_key(&kind)
            || self.custom.contains(&kind)
            || (BUILT_IN.contains(&kind.0) && !kind.1.is_empty())
    }
}

fn references(object: &Value) -> impl Iterator<Item = &Value> {
    object["metadata"]["ownerReferences"]
        .as_array()
        .into_iter()
        .flatten()
}

fn has_owners(object: &Value) -> bool {
    references(object).next().is_some()
}

/// True while an object is being deleted and we have a say in it.
fn is_waiting(object: &Value) -> bool {
    meta::is_deleting(object)
        && (has_finalizer(object, FOREGROUND) || has_finalizer(object, ORPHAN))
}

fn has_finalizer(object: &Value, finalizer: &str) -> bool {
    let finalizers = object["metadata"]["finalizers"].as_array();
    finalizers.is_some_and(|all| all.iter().any(|own| own == finalizer))
}

/// True when an object keeps its owner from going.
fn blocks(object: &Value, owner: &Value) -> bool {
    references(object).any(|r| r["uid"] == meta::uid(owner) && r["blockOwnerDeletion"] == true)
}

fn without_finalizer(resource: Resource, object: &Value, finalizer: &str) -> Action {
    let finalizers = object["metadata"]["finalizers"].as_array();
    let mut finalizers = finalizers.cloned().unwrap_or_default();
    finalizers.retain(|own| own != finalizer);
    let patch = json!({"metadata": {"finalizers": finalizers}});
    fields::patch(resource, object, patch)
}

fn without_owners(resource: Resource, object: &Value, gone: impl Fn(&str) -> bool) -> Action {
    let owners = object["metadata"]["ownerReferences"].as_array();
    let mut owners = owners.cloned().unwrap_or_default();
    owners.retain(|owner| !owner["uid"].as_str().is_some_and(&gone));
    let owners = match owners.is_empty() {
        true => Value::Null,
        false => Value::Array(owners),
    };
    let patch = json!({"metadata": {"uid": meta::uid(object), "ownerReferences": owners}});
    fields::patch(resource, object, patch)
}
