//! Figures from the APIs that other servers add to the API server.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use form_urlencoded::Serializer;
use kube::Client;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::de::DeserializeOwned;

use super::wire::{ApiGroup, ExternalItem, List, NodeItem, ObjectItem, PodItem};
use super::{
    DescribedObject, ExternalMetric, MetricId, MetricsApi, MetricsError, MetricsSource, NodeUsage,
    ObjectMetric, PodUsage,
};
use crate::watch::chain;

/// The longest that an answer may take, of the network's time.
const ANSWER_MAX: Duration = Duration::from_secs(30);
/// Versions of the custom metrics API that can be read.
const CUSTOM_VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];
/// What may stand in a path as it is.
const PLAIN: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~');

/// Asks `metrics.k8s.io`, `custom.metrics.k8s.io` and `external.metrics.k8s.io`.
pub struct AggregatedMetrics {
    client: Client,
    /// The version of the custom metrics API that served last.
    custom: Mutex<Option<&'static str>>,
}

impl std::fmt::Debug for AggregatedMetrics {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AggregatedMetrics").finish_non_exhaustive()
    }
}

/// What came of a question.
enum Reply<T> {
    Found(T),
    /// Not found, with what the server says to it.
    Missing(String),
}

/// A path below an API, and what it is asked.
struct Question {
    api: MetricsApi,
    path: String,
    query: Vec<(&'static str, String)>,
}

impl Question {
    /// About the API itself.
    fn of(api: MetricsApi) -> Self {
        Self {
            api,
            path: format!("/apis/{}", api.group()),
            query: Vec::new(),
        }
    }

    /// In this version of the API.
    fn new(api: MetricsApi, version: &str) -> Self {
        Self::of(api).below(version)
    }

    /// Below something that is spelled out.
    fn below(mut self, part: &str) -> Self {
        self.path = format!("{}/{part}", self.path);
        self
    }

    /// Below something that has a name.
    fn named(self, name: &str) -> Result<Self, MetricsError> {
        if matches!(name, "" | "." | "..") || name.contains(['/', '%']) {
            return Err(MetricsError::Name {
                api: self.api,
                name: name.to_owned(),
            });
        }
        let encoded = utf8_percent_encode(name, PLAIN).to_string();
        Ok(self.below(&encoded))
    }

    fn selecting(mut self, key: &'static str, selector: &str) -> Self {
        if !selector.is_empty() {
            self.query.push((key, selector.to_owned()));
        }
        self
    }

    fn uri(&self) -> String {
        if self.query.is_empty() {
            return self.path.clone();
        }
        let mut query = Serializer::new(String::new());
        query.extend_pairs(&self.query);
        format!("{}?{}", self.path, query.finish())
    }
}

impl AggregatedMetrics {
    /// Asks through this client.
    #[must_use]
    pub fn new(client: Client) -> Self {
        Self {
            client,
            custom: Mutex::new(None),
        }
    }

    async fn get<T: DeserializeOwned>(&self, asked: &Question) -> Result<Reply<T>, MetricsError> {
        let api = asked.api;
        let failed = |message| MetricsError::Failed { api, message };
        let request = http::Request::get(asked.uri()).body(Vec::new());
        let request = request.map_err(|error| failed(error.to_string()))?;
        let answer = self.client.request_text(request);
        let answer = tokio::time::timeout(ANSWER_MAX, answer).await;
        match answer.map_err(|_| failed("it takes too long".to_owned()))? {
            Ok(text) => {
                let read = serde_json::from_str(&text);
                read.map(Reply::Found)
                    .map_err(|error| MetricsError::Unusable {
                        api,
                        message: error.to_string(),
                    })
            }
            Err(kube::Error::Api(status)) if is_not_found(&status) => {
                Ok(Reply::Missing(status.message.clone()))
            }
            Err(kube::Error::Api(status)) => {
                Err(failed(format!("{} {}", status.code, status.message)))
            }
            Err(error) => Err(failed(chain(&error))),
        }
    }

    /// All items of a list of the resource API, which has one whenever it is there.
    async fn usage<T: DeserializeOwned, U>(
        &self,
        asked: Question,
        read: fn(T) -> Result<U, String>,
    ) -> Result<Vec<U>, MetricsError> {
        match self.get::<List<T>>(&asked).await? {
            Reply::Found(list) => items(asked.api, list, read),
            Reply::Missing(_) => Err(MetricsError::NoApi(asked.api)),
        }
    }

    /// The version of the custom metrics API to use: the one that its server prefers.
    async fn custom_version(&self) -> Result<&'static str, MetricsError> {
        let api = MetricsApi::Custom;
        let Reply::Found(group) = self.get::<ApiGroup>(&Question::of(api)).await? else {
            return Err(MetricsError::NoApi(api));
        };
        let preferred = group.preferred_version.map(|version| version.version);
        let served: Vec<String> = (group.versions.into_iter())
            .map(|version| version.version)
            .collect();
        let known = |served: &String| CUSTOM_VERSIONS.into_iter().find(|known| known == served);
        let version = preferred.iter().chain(&served).find_map(known);
        version.ok_or_else(|| MetricsError::Unusable {
            api,
            message: format!(
                "it is served as {}, and known are {}",
                served.join(", "),
                CUSTOM_VERSIONS.join(", ")
            ),
        })
    }

    /// The values at a place below the custom metrics API. The version that served last is asked first,
    /// and looked up anew when it does not have the place: it may be gone.
    async fn custom(
        &self,
        place: impl Fn(Question) -> Result<Question, MetricsError>,
    ) -> Result<Vec<ObjectMetric>, MetricsError> {
        let api = MetricsApi::Custom;
        let last = *self.custom.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(version) = last {
            let asked = place(Question::new(api, version))?;
            if let Reply::Found(list) = self.get(&asked).await? {
                return items(api, list, ObjectItem::read);
            }
        }
        let version = self.custom_version().await?;
        *self.custom.lock().unwrap_or_else(PoisonError::into_inner) = Some(version);
        let asked = place(Question::new(api, version))?;
        match self.get(&asked).await? {
            Reply::Found(list) => items(api, list, ObjectItem::read),
            Reply::Missing(message) => Err(MetricsError::NotFound { api, message }),
        }
    }
}

#[async_trait]
impl MetricsSource for AggregatedMetrics {
    async fn pods(
        &self,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<PodUsage>, MetricsError> {
        let mut asked = Question::new(MetricsApi::Resource, "v1beta1");
        if let Some(namespace) = namespace {
            asked = asked.below("namespaces").named(namespace)?;
        }
        let asked = asked.below("pods").selecting("labelSelector", selector);
        self.usage(asked, PodItem::read).await
    }

    async fn nodes(&self, selector: &str) -> Result<Vec<NodeUsage>, MetricsError> {
        let asked = Question::new(MetricsApi::Resource, "v1beta1");
        let asked = asked.below("nodes").selecting("labelSelector", selector);
        self.usage(asked, NodeItem::read).await
    }

    async fn pods_metric(
        &self,
        namespace: &str,
        selector: &str,
        metric: MetricId<'_>,
    ) -> Result<Vec<ObjectMetric>, MetricsError> {
        let place = |asked: Question| {
            let asked = asked.below("namespaces").named(namespace)?;
            let asked = asked.below("pods/*").named(metric.name)?;
            Ok(asked
                .selecting("labelSelector", selector)
                .selecting("metricLabelSelector", metric.selector))
        };
        self.custom(place).await
    }

    async fn object_metric(
        &self,
        object: DescribedObject<'_>,
        metric: MetricId<'_>,
    ) -> Result<ObjectMetric, MetricsError> {
        let resource = match object.group {
            "" => object.resource.to_owned(),
            group => format!("{}.{group}", object.resource),
        };
        let place = |asked: Question| {
            let asked = asked.below("namespaces").named(object.namespace)?;
            let asked = match resource.as_str() {
                "namespaces" => asked.below("metrics"),
                resource => asked.named(resource)?.named(object.name)?,
            };
            let asked = asked.named(metric.name)?;
            Ok(asked.selecting("metricLabelSelector", metric.selector))
        };
        let found = self.custom(place).await?;
        let n_found = found.len();
        let mut found = found.into_iter();
        let (Some(only), 1) = (found.next(), n_found) else {
            return Err(MetricsError::Unusable {
                api: MetricsApi::Custom,
                message: format!("{n_found} values of {} instead of one", metric.name),
            });
        };
        Ok(only)
    }

    async fn external_metric(
        &self,
        namespace: &str,
        metric: MetricId<'_>,
    ) -> Result<Vec<ExternalMetric>, MetricsError> {
        let api = MetricsApi::External;
        let root = || Question::new(api, "v1beta1");
        let asked = root().below("namespaces").named(namespace)?;
        let asked = asked.named(metric.name)?;
        let asked = asked.selecting("labelSelector", metric.selector);
        match self.get::<List<ExternalItem>>(&asked).await? {
            Reply::Found(list) => items(api, list, ExternalItem::read),
            // A metric that is not there and an API that is not there look alike.
            Reply::Missing(message) => match self.get::<serde_json::Value>(&root()).await? {
                Reply::Found(_) => Err(MetricsError::NotFound { api, message }),
                Reply::Missing(_) => Err(MetricsError::NoApi(api)),
            },
        }
    }
}

fn items<T, U>(
    api: MetricsApi,
    list: List<T>,
    read: fn(T) -> Result<U, String>,
) -> Result<Vec<U>, MetricsError> {
    let items = list.items.into_iter().flatten().map(read);
    let unusable = |message| MetricsError::Unusable { api, message };
    items.collect::<Result<_, _>>().map_err(unusable)
}

/// Some servers say it in the reason only.
fn is_not_found(status: &kube::core::Status) -> bool {
    status.code == 404 || (status.code == 0 && status.reason == "NotFound")
}
