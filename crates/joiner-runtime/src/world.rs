//! What is known of the cluster: one writer, many readers.
//!
//! One task owns the [`ClusterState`], takes news from watches and from our own writes in order,
//! and publishes snapshots. [`World`] is the handle that everybody else has.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use joiner_model::Name;
use joiner_state::live::{Change, ClusterState, Kind, Snapshot};
use serde_json::Value;
use tokio::sync::{broadcast, mpsc, oneshot};

/// News that wait to be taken in; watches slow down beyond.
const NEWS_MAX: usize = 4_096;
/// News that are taken in before a snapshot is published.
const AT_ONCE_MAX: usize = 512;
/// Batches of changes that a reader may lag behind before it has to look at everything.
const CHANGES_MAX: usize = 1_024;

/// Something that was heard about the cluster.
#[derive(Debug)]
pub enum News {
    /// A list of all objects of a kind begins.
    Begin(Kind, Name),
    /// An object is as given.
    Is(Kind, Box<Value>),
    /// The list is complete.
    Complete(Kind, Name),
    /// An object is as given, and what a dry run would have written to it has changed.
    Pretended(Kind, Box<Value>),
    /// An object is gone.
    Gone(Kind, Box<Value>),
    /// Everything before this has been published when this is answered.
    Marker(oneshot::Sender<()>),
}

/// What is known of the cluster.
#[derive(Clone, Debug)]
pub struct World {
    snapshot: Arc<ArcSwap<Snapshot>>,
    news: mpsc::Sender<News>,
    changes: broadcast::Sender<Arc<[Change]>>,
    expected: Arc<Mutex<Vec<(Kind, Name)>>>,
    troubles: Arc<Mutex<BTreeMap<Name, String>>>,
    pretended: Pretended,
}

/// What a dry run would have written to objects, by their uid.
type Pretended = Arc<Mutex<BTreeMap<Name, Value>>>;

impl World {
    /// Knows nothing yet; its owner runs as a task of the current runtime until all handles are
    /// gone.
    #[must_use]
    pub fn start() -> Self {
        Self::start_with(ClusterState::default())
    }

    /// The same, with a state that may keep more than it does by default.
    #[must_use]
    pub fn start_with(state: ClusterState) -> Self {
        let (news, inbox) = mpsc::channel(NEWS_MAX);
        let (changes, _) = broadcast::channel(CHANGES_MAX);
        let snapshot = Arc::new(ArcSwap::from_pointee(Snapshot::default()));
        let pretended = Pretended::default();
        let published = Arc::clone(&snapshot);
        let told = changes.clone();
        tokio::spawn(own(state, inbox, published, told, Arc::clone(&pretended)));
        Self {
            snapshot,
            news,
            changes,
            expected: Arc::default(),
            troubles: Arc::default(),
            pretended,
        }
    }

    /// The cluster as it is known now.
    #[must_use]
    pub fn snapshot(&self) -> Arc<Snapshot> {
        self.snapshot.load_full()
    }

    /// Changes from now on. A reader that lags too far gets an error, and should look at all.
    #[must_use]
    pub fn subscribe(&self) -> broadcast::Receiver<Arc<[Change]>> {
        self.changes.subscribe()
    }

    /// Where watches tell.
    #[must_use]
    pub fn inbox(&self) -> mpsc::Sender<News> {
        self.news.clone()
    }

    /// An object as the API server answered: in the next snapshot, even if the watch lags.
    pub async fn note(&self, kind: Kind, object: Value) {
        self.tell(News::Is(kind, Box::new(object))).await;
    }

    /// An object that the API server says is gone.
    pub async fn note_gone(&self, kind: Kind, object: Value) {
        self.tell(News::Gone(kind, Box::new(object))).await;
    }

    /// Shows an object as if this patch (RFC 7396) had been written to it, now and whenever a watch tells
    /// of it, until it is gone: a dry run decides on what a real run would have written.
    pub async fn pretend(&self, kind: Kind, object: Value, patch: &Value) {
        if let Some(uid) = uid(&object) {
            let mut pretended = lock(&self.pretended);
            compose(pretended.entry(uid).or_default(), patch);
        }
        self.tell(News::Pretended(kind, Box::new(object))).await;
    }

    /// Shows an object as it is, though something was pretended of it: others have written it meanwhile.
    pub async fn believe(&self, kind: Kind, object: Value) {
        let pretended = uid(&object).and_then(|uid| lock(&self.pretended).remove(&uid));
        if pretended.is_some() {
            self.tell(News::Pretended(kind, Box::new(object))).await;
        }
    }

    async fn tell(&self, news: News) {
        let (done, published) = oneshot::channel();
        // A closed inbox means that the process is ending; nobody will read.
        let _ = self.news.send(news).await;
        let _ = self.news.send(News::Marker(done)).await;
        let _ = published.await;
    }

    /// Says that this kind will be listed: nothing is decided before it has been.
    pub fn expect(&self, kind: Kind, class: &str) {
        let mut expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        expected.push((kind, class.into()));
    }

    /// True once everything expected has been listed.
    #[must_use]
    pub fn is_listed(&self) -> bool {
        self.missing().is_empty()
    }

    /// Kinds whose first list has not come, with what is in the way where that is known.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let now = self.snapshot();
        let expected = self.expected.lock().unwrap_or_else(PoisonError::into_inner);
        let troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        let missing = expected
            .iter()
            .filter(|(kind, class)| !now.is_listed(*kind, class));
        missing
            .map(|(kind, class)| {
                let name = label(*kind, class);
                match troubles.get(&name) {
                    Some(trouble) => format!("{name}: {trouble}"),
                    None => format!("{name}: not listed yet"),
                }
            })
            .collect()
    }

    /// Remembers what keeps a watch from working; none when it works. True when that is new.
    pub(crate) fn trouble(&self, kind: Kind, class: &str, trouble: Option<String>) -> bool {
        let mut troubles = self.troubles.lock().unwrap_or_else(PoisonError::into_inner);
        let name = label(kind, class);
        match trouble {
            Some(trouble) => troubles.insert(name, trouble.clone()) != Some(trouble),
            None => troubles.remove(&name).is_some(),
        }
    }
}

/// What people call a kind.
pub(crate) fn label(kind: Kind, class: &str) -> Name {
    match class {
        "" => kind.api().3.into(),
        class => class.rsplit('/').next().unwrap_or(class).into(),
    }
}

async fn own(
    mut state: ClusterState,
    mut inbox: mpsc::Receiver<News>,
    published: Arc<ArcSwap<Snapshot>>,
    changes: broadcast::Sender<Arc<[Change]>>,
    pretended: Pretended,
) {
    let mut batch = Vec::with_capacity(AT_ONCE_MAX);
    while inbox.recv_many(&mut batch, AT_ONCE_MAX).await > 0 {
        let (mut told, mut markers) = (Vec::new(), Vec::new());
        for news in batch.drain(..) {
            match news {
                News::Begin(kind, class) => state.begin(kind, &class),
                News::Is(kind, mut object) => {
                    merge_pretended(&pretended, &mut object);
                    told.extend(state.apply(kind, &object));
                }
                News::Pretended(kind, mut object) => {
                    merge_pretended(&pretended, &mut object);
                    told.extend(state.pretend(kind, &object));
                }
                News::Complete(kind, class) => told.extend(state.finish(kind, &class)),
                News::Gone(kind, object) => {
                    forget_pretended(&pretended, &object);
                    told.extend(state.remove(kind, &object));
                }
                News::Marker(marker) => markers.push(marker),
            }
        }
        published.store(Arc::new(state.snapshot()));
        if !told.is_empty() {
            // Nobody listening is fine.
            let _ = changes.send(told.into());
        }
        for marker in markers {
            let _ = marker.send(());
        }
    }
}

fn lock(pretended: &Pretended) -> MutexGuard<'_, BTreeMap<Name, Value>> {
    pretended.lock().unwrap_or_else(PoisonError::into_inner)
}

fn uid(object: &Value) -> Option<Name> {
    object["metadata"]["uid"].as_str().map(Name::from)
}

/// Makes one patch (RFC 7396) of two: what either removes, it removes.
fn compose(patch: &mut Value, next: &Value) {
    match (patch, next) {
        (Value::Object(patch), Value::Object(next)) => {
            for (key, value) in next {
                compose(patch.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
        (patch, next) => *patch = next.clone(),
    }
}

/// Merges what a dry run would have written to this object.
fn merge_pretended(pretended: &Pretended, object: &mut Value) {
    let pretended = lock(pretended);
    // Without a dry run there is nothing, for objects by the thousand.
    if pretended.is_empty() {
        return;
    }
    if let Some(patch) = uid(object).and_then(|uid| pretended.get(&uid)) {
        json_patch::merge(object, patch);
    }
}

fn forget_pretended(pretended: &Pretended, object: &Value) {
    let mut pretended = lock(pretended);
    if let Some(uid) = uid(object) {
        pretended.remove(&uid);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pool(version: &str, uid: &str) -> Value {
        json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
            "metadata": {"name": "general", "uid": uid, "resourceVersion": version},
            "spec": {"template": {"spec": {"requirements": [],
                "nodeClassRef": {"group": "g", "kind": "K", "name": "c"}}}}})
    }

    #[tokio::test]
    async fn what_is_pretended_stays_until_the_object_is_gone() {
        let world = World::start();
        let ready = json!({"status": {"conditions": [{"type": "Ready", "status": "True",
            "lastTransitionTime": "2026-01-01T00:00:00Z"}]}});
        world.note(Kind::NodePool, pool("1", "a")).await;
        let is_ready = || world.snapshot().why_no_pool().is_none();
        assert!(!is_ready());
        world.pretend(Kind::NodePool, pool("1", "a"), &ready).await;
        assert!(is_ready());
        let hash = json!({"metadata": {"annotations": {"karpenter.sh/nodepool-hash": "1"}}});
        world.pretend(Kind::NodePool, pool("1", "a"), &hash).await;
        assert!(is_ready(), "patches add up");
        world.note(Kind::NodePool, pool("2", "a")).await;
        assert!(is_ready(), "the watch told of a change by others");
        world.believe(Kind::NodePool, pool("2", "a")).await;
        assert!(!is_ready(), "others say how it stands");
        world.pretend(Kind::NodePool, pool("2", "a"), &ready).await;
        assert!(is_ready());
        world.note_gone(Kind::NodePool, pool("3", "a")).await;
        world.note(Kind::NodePool, pool("4", "b")).await;
        assert!(!is_ready(), "another of the same name");
    }

    #[test]
    fn patches_compose_as_if_applied_in_turn() {
        let mut patch = json!({"a": {"b": 1, "c": null}});
        compose(&mut patch, &json!({"a": {"b": null, "d": [1]}, "e": {}}));
        assert_eq!(
            patch,
            json!({"a": {"b": null, "c": null, "d": [1]}, "e": {}})
        );
    }
}
