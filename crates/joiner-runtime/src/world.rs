//! What is known of the cluster: one writer, many readers.
//!
//! One task owns the [`ClusterState`], takes news from watches and from our own writes in order,
//! and publishes snapshots. [`World`] is the handle that everybody else has.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

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
}

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
        tokio::spawn(own(state, inbox, Arc::clone(&snapshot), changes.clone()));
        Self {
            snapshot,
            news,
            changes,
            expected: Arc::default(),
            troubles: Arc::default(),
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
) {
    let mut batch = Vec::with_capacity(AT_ONCE_MAX);
    while inbox.recv_many(&mut batch, AT_ONCE_MAX).await > 0 {
        let (mut told, mut markers) = (Vec::new(), Vec::new());
        for news in batch.drain(..) {
            match news {
                News::Begin(kind, class) => state.begin(kind, &class),
                News::Is(kind, object) => told.extend(state.apply(kind, &object)),
                News::Complete(kind, class) => told.extend(state.finish(kind, &class)),
                News::Gone(kind, object) => told.extend(state.remove(kind, &object)),
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
