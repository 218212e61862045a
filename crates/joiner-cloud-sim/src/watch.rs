//! Watches that never end, as plain JSON objects.

use futures::stream::BoxStream;
use futures::{StreamExt, stream};
use joiner_runtime::{PlainObject, WatchPauses};
use kube::api::ApiResource;
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Client};
use serde_json::Value;

/// What a watch tells.
#[derive(Clone, Debug)]
pub(crate) enum News {
    /// These are all objects there are.
    All(Vec<Value>),
    /// An object is new, or has changed.
    Put(Value),
    /// An object is gone.
    Gone(Value),
}

/// What to watch.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watched {
    /// API group.
    pub(crate) group: &'static str,
    /// Kind.
    pub(crate) kind: &'static str,
    /// Plural.
    pub(crate) plural: &'static str,
    /// Namespace; all of them if it does not say.
    pub(crate) namespace: Option<String>,
    /// Label selector.
    pub(crate) labels: String,
    /// Field selector.
    pub(crate) fields: String,
}

impl Watched {
    /// The kind for the API.
    pub(crate) fn resource(&self) -> ApiResource {
        ApiResource {
            group: self.group.to_owned(),
            version: "v1".to_owned(),
            api_version: match self.group {
                "" => "v1".to_owned(),
                group => format!("{group}/v1"),
            },
            kind: self.kind.to_owned(),
            plural: self.plural.to_owned(),
        }
    }

    /// Follows the objects. A watch that breaks starts anew, ever later.
    pub(crate) fn follow(&self, client: &Client) -> BoxStream<'static, News> {
        let resource = self.resource();
        let api: Api<PlainObject> = match &self.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        };
        let mut config = watcher::Config::default();
        if !self.labels.is_empty() {
            config = config.labels(&self.labels);
        }
        if !self.fields.is_empty() {
            config = config.fields(&self.fields);
        }
        let plural = self.plural;
        let mut listed: Vec<Value> = Vec::new();
        let events = watcher(api, config).backoff(WatchPauses::default());
        let news = events.map(move |event| match event {
            Ok(watcher::Event::Init) => {
                listed.clear();
                None
            }
            Ok(watcher::Event::InitApply(object)) => {
                listed.push(object.into_value(&resource));
                None
            }
            Ok(watcher::Event::InitDone) => Some(News::All(std::mem::take(&mut listed))),
            Ok(watcher::Event::Apply(object)) => Some(News::Put(object.into_value(&resource))),
            Ok(watcher::Event::Delete(object)) => Some(News::Gone(object.into_value(&resource))),
            Err(error) => {
                tracing::debug!(%error, plural, "a watch of the simulated cloud broke");
                None
            }
        });
        news.filter_map(futures::future::ready).boxed()
    }
}

/// Follows several kinds at once; each piece of news says which one it is of.
pub(crate) fn follow_all(client: &Client, all: &[Watched]) -> BoxStream<'static, (usize, News)> {
    let streams = all.iter().enumerate();
    let streams = streams.map(|(ix, watched)| watched.follow(client).map(move |news| (ix, news)));
    stream::select_all(streams.map(StreamExt::boxed)).boxed()
}
