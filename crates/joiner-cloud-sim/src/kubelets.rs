//! The kubelets of simulated machines, on a control plane that does not play them.
//!
//! The decisions are those of the embedded control plane's kubelets; here they look at watches
//! instead of a store, and act through a client. Kubelets of other nodes are none of its business.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt, stream};
use jiff::Timestamp;
use joiner_cluster::{
    Action, Annotations, Controller, KubeletSettings, Kubelets, ObjectKey, Objects, Resource, View,
    told_in,
};
use joiner_machinery::meta;
use joiner_runtime::Clock;
use k8s_openapi::api::core::v1::Event;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client};
use serde_json::{Value, json};

use crate::engine::sleep_until;
use crate::settings::SIMULATED_LABEL;
use crate::watch::{News, Watched, follow_all};

/// Changes within this time are looked at together.
const PAUSE: Duration = Duration::from_millis(10);
/// Calls to the API server at a time.
const PARALLEL: usize = 32;
/// Pods that end by themselves say so in an annotation; the others run for ten years.
const RUN_SECS: i64 = 315_360_000;
/// What the server refused is not tried again before this, or before the object has changed.
const REFUSED_FOR: Duration = Duration::from_millis(500);
/// Who writes.
const MANAGER: &str = "joiner-simulated-kubelet";

/// Plays the kubelets of simulated nodes.
pub struct SimulatedKubelets {
    client: Client,
    clock: Clock,
    seed: u64,
    kubelets: Kubelets,
    annotations: Annotations,
    watched: Vec<Watched>,
    kinds: BTreeMap<(String, String), Objects>,
    n_synced: usize,
    /// Objects whose change was refused: at which version, and until when that counts.
    refused: BTreeMap<(Resource, ObjectKey), (String, Timestamp)>,
}

impl SimulatedKubelets {
    /// Kubelets for the nodes of a simulated cloud on this cluster.
    #[must_use]
    pub fn new(client: Client, clock: Clock, seed: u64) -> Self {
        let settings = KubeletSettings {
            start_secs: 0,
            run_secs: RUN_SECS,
            ..KubeletSettings::default()
        };
        Self {
            client,
            clock,
            seed,
            kubelets: Kubelets::new(settings),
            annotations: Annotations::default(),
            watched: watched(),
            kinds: BTreeMap::new(),
            n_synced: 0,
            refused: BTreeMap::new(),
        }
    }

    /// Plays; ends only when it is dropped.
    pub async fn run(mut self) {
        let mut news = follow_all(&self.client, &self.watched);
        let clock = self.clock.clone();
        let mut wake = None;
        loop {
            tokio::select! {
                biased;
                item = news.next() => {
                    let Some(item) = item else { return };
                    self.take(item);
                    clock.sleep(PAUSE).await;
                    while let Some(Some(item)) = news.next().now_or_never() {
                        self.take(item);
                    }
                }
                () = sleep_until(&clock, wake) => {}
            }
            wake = self.turn().await;
        }
    }

    fn take(&mut self, (watch, news): (usize, News)) {
        let Some(watched) = self.watched.get(watch) else {
            return;
        };
        let kind = (watched.group.to_owned(), watched.plural.to_owned());
        let first = !self.kinds.contains_key(&kind);
        match news {
            News::All(all) => {
                let old = self.kinds.remove(&kind).unwrap_or_default();
                let kept = |object: Value| {
                    let key = key(&object);
                    let new = Arc::new(object);
                    (key.clone(), newer(old.get(&key), new))
                };
                self.kinds.insert(kind, all.into_iter().map(kept).collect());
                self.n_synced += usize::from(first);
            }
            News::Put(object) => self.note(kind, object),
            News::Gone(object) => {
                if let Some(objects) = self.kinds.get_mut(&kind) {
                    objects.remove(&key(&object));
                }
            }
        }
    }

    fn note(&mut self, kind: (String, String), object: Value) {
        let objects = self.kinds.entry(kind).or_default();
        let key = key(&object);
        let object = newer(objects.get(&key), Arc::new(object));
        objects.insert(key, object);
    }

    /// Looks once, acts, and says when to look again.
    async fn turn(&mut self) -> Option<Timestamp> {
        if self.n_synced < self.watched.len() {
            return None;
        }
        let view = View {
            kinds: &self.kinds,
            now: self.clock.now(),
            seed: self.seed,
        };
        let warnings = self.annotations.step(&view).actions;
        let step = self.kubelets.step(&view);
        let mut wake = step.wake;
        // Events of containers are left out: nobody reads those of containers that do not exist.
        let mut by_object: BTreeMap<(Resource, ObjectKey), Vec<Action>> = BTreeMap::new();
        self.refused.retain(|_, (_, until)| *until > view.now);
        for action in step.actions {
            if let Some(target) = target(&action).filter(|_| !action.is_event()) {
                if let Some(until) = self.refused_until(&target) {
                    // Whatever else is due has just been done.
                    wake = wake.map(|at| at.max(until));
                    continue;
                }
                by_object.entry(target).or_default().push(action);
            }
        }
        let work = stream::iter(by_object.into_values()).map(|actions| {
            let doer = Doer {
                client: &self.client,
                watched: &self.watched,
            };
            doer.all(actions)
        });
        let done: Vec<Vec<Done>> = work.buffer_unordered(PARALLEL).collect().await;
        for warning in &warnings {
            warn(&self.client, warning).await;
        }
        let now = self.clock.now();
        for done in done.into_iter().flatten() {
            match done {
                Done::Wrote((group, plural), object) => {
                    self.note((group.to_owned(), plural.to_owned()), object);
                }
                Done::Removed => {}
                Done::Refused(action, why) => {
                    self.note_refused(&action, now);
                    let again = self.kubelets.refused(&action, &why, now);
                    wake = [wake, again].into_iter().flatten().min();
                }
            }
        }
        wake
    }

    /// Until when an object is left alone because its last change was refused; a newer version of
    /// it is looked at at once.
    fn refused_until(&self, target: &(Resource, ObjectKey)) -> Option<Timestamp> {
        let (version, until) = self.refused.get(target)?;
        (self.version(target) == *version).then_some(*until)
    }

    fn note_refused(&mut self, action: &Action, now: Timestamp) {
        if let Some(target) = target(action) {
            let until = now.checked_add(REFUSED_FOR).unwrap_or(now);
            let version = self.version(&target);
            self.refused.insert(target, (version, until));
        }
    }

    /// The version that is known of an object; empty for one that is not.
    fn version(&self, ((group, plural), key): &(Resource, ObjectKey)) -> String {
        let objects = self.kinds.get(&((*group).to_owned(), (*plural).to_owned()));
        let object = objects.and_then(|objects| objects.get(key));
        object.map_or_else(String::new, |own| {
            meta::text(own, "resourceVersion").to_owned()
        })
    }
}

/// Tells of an annotation that cannot be read. Nobody waits for it.
async fn warn(client: &Client, warning: &Action) {
    let (Some((about, message)), Action::Create(_, event)) = (told_in(warning), warning) else {
        return;
    };
    let text = |field: &str| about[field].as_str().unwrap_or_default();
    let (kind, namespace, name) = (text("kind"), text("namespace"), text("name"));
    tracing::warn!(kind, namespace, name, "{message}");
    let Ok(event) = serde_json::from_value::<Event>(event.clone()) else {
        return;
    };
    let events: Api<Event> = Api::namespaced(client.clone(), meta::namespace(&json!(event)));
    if let Err(error) = events.create(&PostParams::default(), &event).await {
        tracing::debug!(%error, "an event was refused");
    }
}

fn watched() -> Vec<Watched> {
    vec![
        Watched {
            kind: "Node",
            plural: "nodes",
            labels: format!("{SIMULATED_LABEL}=true"),
            ..Watched::default()
        },
        Watched {
            kind: "Pod",
            plural: "pods",
            fields: "spec.nodeName!=".to_owned(),
            ..Watched::default()
        },
        Watched {
            group: "coordination.k8s.io",
            kind: "Lease",
            plural: "leases",
            namespace: Some("kube-node-lease".to_owned()),
            ..Watched::default()
        },
        Watched {
            group: "storage.k8s.io",
            kind: "CSINode",
            plural: "csinodes",
            ..Watched::default()
        },
    ]
}

fn key(object: &Value) -> ObjectKey {
    (
        meta::namespace(object).to_owned(),
        meta::name(object).to_owned(),
    )
}

/// The newer one of what is known and what was told: a watch may lag behind our own writes.
fn newer(old: Option<&Arc<Value>>, new: Arc<Value>) -> Arc<Value> {
    let version = |object: &Value| {
        let text = meta::text(object, "resourceVersion");
        text.parse::<u64>().unwrap_or(0)
    };
    match old {
        Some(old) if meta::uid(old) == meta::uid(&new) && version(old) >= version(&new) => {
            Arc::clone(old)
        }
        Some(_) | None => new,
    }
}

/// The object that an action is about.
fn target(action: &Action) -> Option<(Resource, ObjectKey)> {
    match action {
        Action::Create(resource, object) | Action::Update(resource, object) => {
            Some((*resource, key(object)))
        }
        Action::Patch { resource, key, .. } | Action::Delete { resource, key, .. } => {
            Some((*resource, key.clone()))
        }
        // No kubelet does these.
        Action::Bind { .. } | Action::Evict(_) => None,
    }
}

/// What came of an action.
enum Done {
    Wrote(Resource, Value),
    Removed,
    Refused(Action, String),
}

/// Takes actions through the client.
struct Doer<'a> {
    client: &'a Client,
    watched: &'a [Watched],
}

impl Doer<'_> {
    /// Takes the actions of one object, in order.
    async fn all(self, actions: Vec<Action>) -> Vec<Done> {
        let mut done = Vec::with_capacity(actions.len());
        for action in actions {
            done.push(match self.one(&action).await {
                Ok(Some((resource, object))) => Done::Wrote(resource, object),
                Ok(None) => Done::Removed,
                Err(error) => {
                    tracing::debug!(%error, "a simulated kubelet was refused");
                    Done::Refused(action, error.to_string())
                }
            });
        }
        done
    }

    fn api(&self, (group, plural): Resource, namespace: &str) -> Option<Api<DynamicObject>> {
        let mut kinds = self.watched.iter();
        let kind = kinds.find(|one| one.group == group && one.plural == plural)?;
        let (client, resource) = (self.client.clone(), kind.resource());
        Some(match namespace {
            "" => Api::all_with(client, &resource),
            namespace => Api::namespaced_with(client, namespace, &resource),
        })
    }

    async fn one(&self, action: &Action) -> Result<Option<(Resource, Value)>, kube::Error> {
        let Some((resource, (namespace, name))) = target(action) else {
            return Ok(None);
        };
        let Some(api) = self.api(resource, &namespace) else {
            return Ok(None);
        };
        let manager = Some(MANAGER.to_owned());
        let written = match action {
            Action::Create(_, object) | Action::Update(_, object) => {
                let object: DynamicObject =
                    serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
                let how = PostParams {
                    field_manager: manager,
                    ..PostParams::default()
                };
                if matches!(action, Action::Create(..)) {
                    api.create(&how, &object).await?
                } else {
                    api.replace(&name, &how, &object).await?
                }
            }
            Action::Patch {
                subresource, patch, ..
            } => {
                let how = PatchParams {
                    field_manager: manager,
                    ..PatchParams::default()
                };
                let patch = Patch::Merge(patch);
                match subresource {
                    Some(subresource) => {
                        api.patch_subresource(subresource, &name, &how, &patch)
                            .await?
                    }
                    None => api.patch(&name, &how, &patch).await?,
                }
            }
            Action::Delete {
                uid, grace_secs, ..
            } => {
                let how = DeleteParams {
                    grace_period_seconds: grace_secs.and_then(|secs| u32::try_from(secs).ok()),
                    preconditions: Some(Preconditions {
                        uid: Some(uid.clone()),
                        resource_version: None,
                    }),
                    ..DeleteParams::default()
                };
                api.delete(&name, &how).await?;
                return Ok(None);
            }
            Action::Bind { .. } | Action::Evict(_) => return Ok(None),
        };
        let object = serde_json::to_value(written).map_err(kube::Error::SerdeError)?;
        Ok(Some((resource, object)))
    }
}
