//! What controllers see and what they ask for.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use serde_json::Value;

/// Group and plural of a kind: `("apps", "deployments")`.
pub type Resource = (&'static str, &'static str);

/// Namespace (empty for cluster-wide objects) and name.
pub type ObjectKey = (String, String);

/// Objects of one kind by namespace and name.
pub type Objects = BTreeMap<ObjectKey, Arc<Value>>;

/// All objects at one moment.
#[derive(Clone, Copy)]
pub struct View<'a> {
    /// Objects by group and plural; a kind without objects may be missing.
    pub kinds: &'a BTreeMap<(String, String), Objects>,
    /// The time.
    pub now: Timestamp,
    /// Seed of the run: whatever looks random derives from it and from the object's uid.
    pub seed: u64,
}

impl<'a> View<'a> {
    /// All objects of a kind, in order of namespace and name.
    pub fn all(&self, resource: Resource) -> impl Iterator<Item = &'a Arc<Value>> {
        self.objects(resource)
            .into_iter()
            .flat_map(BTreeMap::values)
    }

    /// The objects of a kind in one namespace.
    pub fn within(
        &self,
        resource: Resource,
        namespace: &str,
    ) -> impl Iterator<Item = &'a Arc<Value>> {
        let first = (namespace.to_owned(), String::new());
        let own = namespace.to_owned();
        self.objects(resource)
            .into_iter()
            .flat_map(move |objects| objects.range(first.clone()..))
            .take_while(move |((namespace, _), _)| *namespace == own)
            .map(|(_, object)| object)
    }

    /// One object.
    #[must_use]
    pub fn get(&self, resource: Resource, namespace: &str, name: &str) -> Option<&'a Arc<Value>> {
        let key = (namespace.to_owned(), name.to_owned());
        self.objects(resource)?.get(&key)
    }

    /// The map of a kind.
    #[must_use]
    pub fn objects(&self, (group, plural): Resource) -> Option<&'a Objects> {
        self.kinds.get(&(group.to_owned(), plural.to_owned()))
    }
}

/// One thing to do through the API. A refused action is dropped: the next look decides anew, and
/// [`Controller::refused`] tells the one who asked.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Create an object; `metadata.generateName` works.
    Create(Resource, Value),
    /// Replace an object; it carries the `resourceVersion` it was read at.
    Update(Resource, Value),
    /// Merge-patch an object, or its `status`.
    Patch {
        /// The kind.
        resource: Resource,
        /// Which one.
        key: ObjectKey,
        /// `Some("status")` or none.
        subresource: Option<&'static str>,
        /// RFC 7396.
        patch: Value,
    },
    /// Delete an object.
    Delete {
        /// The kind.
        resource: Resource,
        /// Which one.
        key: ObjectKey,
        /// Only if it still has this uid.
        uid: String,
        /// Seconds that a pod gets; the pod's own when absent.
        grace_secs: Option<u64>,
        /// `Background`, `Foreground` or `Orphan`; the kind's default when absent.
        propagation: Option<&'static str>,
    },
    /// Bind a pod to a node.
    Bind {
        /// The pod.
        pod: ObjectKey,
        /// Its uid.
        uid: String,
        /// The node.
        node: String,
    },
    /// Evict a pod, as far as PodDisruptionBudgets allow.
    Evict(ObjectKey),
}

impl Action {
    /// True for an Event that is written or counted up. Such an action tells of the one before it
    /// in its step, and is left out when that one is refused.
    #[must_use]
    pub fn is_event(&self) -> bool {
        let resource = match self {
            Self::Create(resource, _)
            | Self::Update(resource, _)
            | Self::Patch { resource, .. }
            | Self::Delete { resource, .. } => *resource,
            Self::Bind { .. } | Self::Evict(_) => return false,
        };
        resource == ("", "events")
    }
}

/// What came of a look.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step {
    /// What to do, in order. Events follow the actions that they tell of: see
    /// [`Action::is_event`].
    pub actions: Vec<Action>,
    /// Look again at this time even if nothing changes.
    pub wake: Option<Timestamp>,
}

/// One controller of the cluster.
pub trait Controller: Send {
    /// Its name, which is also the field manager and the source of its events.
    fn name(&self) -> &'static str;

    /// Kinds that it looks at: it is asked again when one of them changes. No kinds at all means
    /// every kind, also those of custom resources.
    fn reads(&self) -> &'static [Resource];

    /// Decides what to do now. Memory in `self` may hold caches and back-offs, never truth.
    fn step(&mut self, view: &View<'_>) -> Step;

    /// Learns that the API refused one of its actions, and in which words; says when to look again
    /// because of it. Whoever would ask for the same at the next look keeps a back-off here.
    fn refused(&mut self, _action: &Action, _message: &str, _now: Timestamp) -> Option<Timestamp> {
        None
    }
}
