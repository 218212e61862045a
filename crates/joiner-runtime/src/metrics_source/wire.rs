//! Replies of the metrics APIs, as they are written.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::Timestamp;
use joiner_api::types::parse_go_duration;
use joiner_model::{Name, ResourceName};
use joiner_state::quantity::Quantity;
use serde::Deserialize;

use super::{Amounts, ContainerUsage, ExternalMetric, NodeUsage, ObjectMetric, PodUsage, Taken};

/// A list of anything.
#[derive(Deserialize)]
pub(super) struct List<T> {
    /// A list without items may say null.
    pub(super) items: Option<Vec<T>>,
}

/// An API group in discovery.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ApiGroup {
    /// Versions that are served.
    #[serde(default)]
    pub(super) versions: Vec<GroupVersion>,
    /// The one that the server prefers.
    pub(super) preferred_version: Option<GroupVersion>,
}

/// A version of an API group.
#[derive(Deserialize)]
pub(super) struct GroupVersion {
    /// For example `v1beta2`.
    #[serde(default)]
    pub(super) version: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Meta {
    namespace: Name,
    name: Name,
}

/// `PodMetrics`.
#[derive(Deserialize)]
pub(super) struct PodItem {
    metadata: Meta,
    timestamp: Option<Timestamp>,
    window: Option<String>,
    containers: Option<Vec<ContainerItem>>,
}

#[derive(Deserialize)]
struct ContainerItem {
    name: Name,
    usage: Option<BTreeMap<String, Amount>>,
}

/// `NodeMetrics`.
#[derive(Deserialize)]
pub(super) struct NodeItem {
    metadata: Meta,
    timestamp: Option<Timestamp>,
    window: Option<String>,
    usage: Option<BTreeMap<String, Amount>>,
}

/// `MetricValue` of either version: the older one calls the window `window`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ObjectItem {
    described_object: Described,
    timestamp: Option<Timestamp>,
    #[serde(alias = "window")]
    window_seconds: Option<i64>,
    value: Amount,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Described {
    name: Name,
}

/// `ExternalMetricValue`.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct ExternalItem {
    metric_labels: Option<BTreeMap<Name, Name>>,
    timestamp: Option<Timestamp>,
    window: Option<i64>,
    value: Amount,
}

/// A quantity, which may be written as a number.
#[derive(Deserialize)]
#[serde(untagged)]
enum Amount {
    Text(String),
    Number(serde_json::Number),
}

impl Amount {
    fn read(&self) -> Result<Quantity, String> {
        let read = match self {
            Self::Text(text) => Quantity::parse(text),
            Self::Number(number) => Quantity::parse(&number.to_string()),
        };
        read.map_err(|error| error.to_string())
    }
}

impl PodItem {
    pub(super) fn read(self) -> Result<PodUsage, String> {
        let Meta { namespace, name } = self.metadata;
        let wrong = |error: String| format!("pod {namespace}/{name}: {error}");
        let containers = self.containers.into_iter().flatten().map(|container| {
            let amounts = amounts(container.usage)?;
            Ok(ContainerUsage {
                name: container.name,
                amounts,
            })
        });
        let containers = containers.collect::<Result<_, _>>().map_err(wrong)?;
        let taken = resource_taken(self.timestamp, self.window).map_err(wrong)?;
        Ok(PodUsage {
            namespace,
            name,
            taken,
            containers,
        })
    }
}

impl NodeItem {
    pub(super) fn read(self) -> Result<NodeUsage, String> {
        let name = self.metadata.name;
        let wrong = |error: String| format!("node {name}: {error}");
        Ok(NodeUsage {
            taken: resource_taken(self.timestamp, self.window).map_err(wrong)?,
            amounts: amounts(self.usage).map_err(wrong)?,
            name,
        })
    }
}

impl ObjectItem {
    pub(super) fn read(self) -> Result<ObjectMetric, String> {
        let object = self.described_object.name;
        let wrong = |error: String| format!("{object}: {error}");
        Ok(ObjectMetric {
            value: self.value.read().map_err(wrong)?,
            taken: taken(self.timestamp, self.window_seconds),
            object,
        })
    }
}

impl ExternalItem {
    pub(super) fn read(self) -> Result<ExternalMetric, String> {
        Ok(ExternalMetric {
            labels: self.metric_labels.unwrap_or_default(),
            value: self.value.read()?,
            taken: taken(self.timestamp, self.window),
        })
    }
}

fn amounts(usage: Option<BTreeMap<String, Amount>>) -> Result<Amounts, String> {
    let read = |(name, amount): (String, Amount)| {
        let amount = amount.read();
        let amount = amount.map_err(|error| format!("{name}: {error}"))?;
        Ok((ResourceName::parse(&name), amount))
    };
    usage.into_iter().flatten().map(read).collect()
}

/// The resource API writes its window as Go does: `15.2s`.
fn resource_taken(at: Option<Timestamp>, window: Option<String>) -> Result<Taken, String> {
    let window = window.map(|text| parse_go_duration(&text));
    let window = window.transpose();
    Ok(Taken {
        at: at.unwrap_or(Timestamp::UNIX_EPOCH),
        window: window.map_err(|error| format!("window: {error}"))?,
    })
}

/// The others count seconds.
fn taken(at: Option<Timestamp>, window_secs: Option<i64>) -> Taken {
    let secs = window_secs.and_then(|secs| u64::try_from(secs).ok());
    Taken {
        at: at.unwrap_or(Timestamp::UNIX_EPOCH),
        window: secs.map(Duration::from_secs),
    }
}
