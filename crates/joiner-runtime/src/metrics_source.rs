//! What pods, nodes and systems outside use: the figures that workloads are scaled by.
//!
//! [`MetricsSource`] is the port; [`AggregatedMetrics`] implements it on the three APIs that Kubernetes
//! has for that. Nothing here computes how many pods there should be.

mod aggregated;
mod wire;

use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use joiner_model::{Name, ResourceName};
use joiner_state::quantity::Quantity;

pub use aggregated::AggregatedMetrics;

/// Tells what is used.
///
/// *Guarantees*: figures are exact, as they were given. What has no figure is left out; an answer
/// without any figure is no error.
#[async_trait]
pub trait MetricsSource: Send + Sync + 'static {
    /// What the containers of pods use: of pods in a namespace, or in all, that a label selector
    /// matches. An empty selector matches all.
    async fn pods(
        &self,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Vec<PodUsage>, MetricsError>;

    /// What nodes use that a label selector matches.
    async fn nodes(&self, selector: &str) -> Result<Vec<NodeUsage>, MetricsError>;

    /// A custom metric of every pod of a namespace that a label selector matches.
    async fn pods_metric(
        &self,
        namespace: &str,
        selector: &str,
        metric: MetricId<'_>,
    ) -> Result<Vec<ObjectMetric>, MetricsError>;

    /// A custom metric of one object.
    async fn object_metric(
        &self,
        object: DescribedObject<'_>,
        metric: MetricId<'_>,
    ) -> Result<ObjectMetric, MetricsError>;

    /// Every series of an external metric, as a namespace sees it.
    async fn external_metric(
        &self,
        namespace: &str,
        metric: MetricId<'_>,
    ) -> Result<Vec<ExternalMetric>, MetricsError>;
}

/// Names a custom or external metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MetricId<'a> {
    /// Name.
    pub name: &'a str,
    /// Label selector for its series; empty for all.
    pub selector: &'a str,
}

/// The object that a custom metric describes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DescribedObject<'a> {
    /// API group; empty for the core.
    pub group: &'a str,
    /// Plural.
    pub resource: &'a str,
    /// Namespace in which it is looked for. Metrics of a Namespace are those of this one, whatever
    /// the name is.
    pub namespace: &'a str,
    /// Name.
    pub name: &'a str,
}

/// When a figure was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Taken {
    /// The end of what it covers; the beginning of Unix time if it was not said.
    pub at: Timestamp,
    /// How long before that it covers, if it was said.
    pub window: Option<Duration>,
}

/// Amounts by resource: cores of CPU, bytes of memory.
pub type Amounts = BTreeMap<ResourceName, Quantity>;

/// What a pod uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodUsage {
    /// Namespace.
    pub namespace: Name,
    /// Name.
    pub name: Name,
    /// Since when.
    pub taken: Taken,
    /// Its containers.
    pub containers: Vec<ContainerUsage>,
}

/// What a container uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ContainerUsage {
    /// Name.
    pub name: Name,
    /// How much.
    pub amounts: Amounts,
}

/// What a node uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeUsage {
    /// Name.
    pub name: Name,
    /// Since when.
    pub taken: Taken,
    /// How much.
    pub amounts: Amounts,
}

/// A custom metric of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObjectMetric {
    /// Name of the object.
    pub object: Name,
    /// The figure.
    pub value: Quantity,
    /// Since when.
    pub taken: Taken,
}

/// A series of an external metric.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExternalMetric {
    /// What tells it from the others.
    pub labels: BTreeMap<Name, Name>,
    /// The figure.
    pub value: Quantity,
    /// Since when.
    pub taken: Taken,
}

impl PodUsage {
    /// What all containers use together; nothing unless there is a figure for each of them.
    #[must_use]
    pub fn total(&self, resource: &ResourceName) -> Option<Quantity> {
        let mut containers = self.containers.iter();
        let first = *containers.next()?.amounts.get(resource)?;
        containers.try_fold(first, |sum, container| {
            Some(sum.plus(*container.amounts.get(resource)?))
        })
    }

    /// What one container uses, if there is a figure.
    #[must_use]
    pub fn of_container(&self, name: &str, resource: &ResourceName) -> Option<Quantity> {
        let found = (self.containers.iter()).find(|container| &*container.name == name);
        found?.amounts.get(resource).copied()
    }
}

/// One of the APIs that give figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MetricsApi {
    /// CPU and memory of pods and nodes.
    Resource,
    /// Metrics of objects of the cluster.
    Custom,
    /// Metrics of what is outside of the cluster.
    External,
}

impl MetricsApi {
    /// Its group.
    #[must_use]
    pub const fn group(self) -> &'static str {
        match self {
            Self::Resource => "metrics.k8s.io",
            Self::Custom => "custom.metrics.k8s.io",
            Self::External => "external.metrics.k8s.io",
        }
    }

    /// What serves it in a cluster.
    const fn server(self) -> &'static str {
        match self {
            Self::Resource => "metrics-server",
            Self::Custom | Self::External => {
                "a metrics adapter, for example prometheus-adapter or KEDA"
            }
        }
    }
}

impl fmt::Display for MetricsApi {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.group())
    }
}

/// Why there are no figures.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MetricsError {
    /// Nothing in the cluster serves the API.
    #[error("the cluster has no API {0}: install {server}", server = .0.server())]
    NoApi(MetricsApi),
    /// The API is served, and does not know the metric or the object.
    #[error("{api} does not have it: {message}")]
    NotFound {
        /// Which API.
        api: MetricsApi,
        /// What it says.
        message: String,
    },
    /// The call failed; what is behind the API may be away.
    #[error("{api} gives no answer: {message}")]
    Failed {
        /// Which API.
        api: MetricsApi,
        /// Why.
        message: String,
    },
    /// The answer is not what the API promises.
    #[error("{api} gives an answer that cannot be used: {message}")]
    Unusable {
        /// Which API.
        api: MetricsApi,
        /// What is wrong with it.
        message: String,
    },
    /// The question cannot be put to the API.
    #[error(
        "{api} cannot be asked for {name:?}: a name in it must not be empty, \".\" or \"..\", nor have \
         \"/\" or \"%\""
    )]
    Name {
        /// Which API.
        api: MetricsApi,
        /// The name.
        name: String,
    },
}

#[cfg(test)]
#[path = "metrics_source/tests.rs"]
mod tests;
