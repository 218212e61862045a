//! What is remembered of a machine: one ConfigMap.

use std::collections::BTreeMap;

use jiff::Timestamp;
use joiner_cloud::{Instance, ProviderId};
use joiner_model::{Labels, Name, ResourceName, Resources, keys, render_amount};
use joiner_state::quantity::parse_request;
use serde::{Deserialize, Serialize};

use crate::faults::Notice;

/// Kind of the class whose machines are their Nodes.
pub(crate) const KWOK_CLASS: &str = "KWOKNodeClass";

/// A machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// NodeClaim that it was launched for.
    pub claim: String,
    /// Uid of that claim.
    pub claim_uid: String,
    /// NodePool of the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// Kind of its node class.
    pub class_kind: String,
    /// Name of its node class.
    pub class_name: String,
    /// Its name in the cloud.
    #[serde(rename = "providerID")]
    pub provider_id: String,
    /// Name that its Node has, or will have.
    pub node_name: String,
    /// Its address, if the cloud gave it one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<String>,
    /// How many names were found taken before this one.
    #[serde(default)]
    pub attempt: u32,
    /// Virtual processors.
    pub vcpus: u64,
    /// Reservation that it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reservation: Option<String>,
    /// Labels that came true with it.
    pub labels: BTreeMap<String, String>,
    /// Labels that its Node gets from the claim.
    pub claim_labels: BTreeMap<String, String>,
    /// What it boots, if its class says it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// All that it has.
    pub capacity: BTreeMap<String, String>,
    /// What pods can use.
    pub allocatable: BTreeMap<String, String>,
    /// Where it is in its life.
    pub state: State,
    /// When it was launched.
    pub launched: Timestamp,
    /// When its Node joins; never if it does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub joins_at: Option<Timestamp>,
    /// When it is gone, once it is on its way out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gone_at: Option<Timestamp>,
    /// A notice that it got.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interruption: Option<Upcoming>,
}

/// What a machine boots.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Id of the image, if its class has looked one up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<String>,
    /// Its family, as the class names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub family: Option<String>,
    /// Its release, if its name says one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release: Option<String>,
}

/// Where a machine is in its life.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Launched; its Node has not joined.
    Pending,
    /// Its Node has joined.
    Running,
    /// On its way out.
    Terminating,
}

/// A notice and what follows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Upcoming {
    /// What the notice says.
    pub notice: Notice,
    /// When it came.
    pub noticed: Timestamp,
    /// When the machine is taken back, if it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ends: Option<Timestamp>,
}

impl Record {
    /// True when the Node is the machine, as KWOKNodeClasses have it.
    #[must_use]
    pub fn is_its_node(&self) -> bool {
        self.class_kind == KWOK_CLASS
    }

    /// True for a machine on spot capacity.
    #[must_use]
    pub fn is_spot(&self) -> bool {
        self.labels.get(keys::CAPACITY_TYPE).map(String::as_str) == Some("spot")
    }

    /// The machine in the words of the contract.
    #[must_use]
    pub fn instance(&self) -> Instance {
        Instance {
            id: ProviderId(self.provider_id.as_str().into()),
            claim: Some(self.claim.as_str().into()),
            claim_uid: Some(self.claim_uid.as_str().into()),
            labels: named(&self.labels),
            annotations: Labels::new(),
            image_id: self
                .image
                .as_ref()
                .and_then(|own| Some(own.id.as_deref()?.into())),
            capacity: amounts(&self.capacity),
            allocatable: amounts(&self.allocatable),
            launched: self.launched,
            terminating: self.state == State::Terminating,
        }
    }
}

/// Labels as the wire has them.
pub(crate) fn plain(labels: &Labels) -> BTreeMap<String, String> {
    let pairs = labels.iter();
    pairs
        .map(|(key, value)| (key.to_string(), value.to_string()))
        .collect()
}

/// Labels in the words of the contract.
pub(crate) fn named(labels: &BTreeMap<String, String>) -> Labels {
    let pairs = labels.iter();
    pairs
        .map(|(key, value)| (Name::from(key.as_str()), Name::from(value.as_str())))
        .collect()
}

/// Amounts as the wire has them.
pub(crate) fn rendered(amounts: &Resources) -> BTreeMap<String, String> {
    let pairs = amounts.iter();
    pairs
        .map(|(name, amount)| (name.as_str().to_owned(), render_amount(name, amount)))
        .collect()
}

/// Amounts that somebody broke by hand count as zero.
fn amounts(texts: &BTreeMap<String, String>) -> Resources {
    let read = |(name, text): (&String, &String)| {
        let name = ResourceName::parse(name);
        let amount = parse_request(&name, text).unwrap_or(0);
        (name, amount)
    };
    texts.iter().map(read).collect()
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// A machine of a KWOKNodeClass that was launched in second 100 and joins in second 130.
    pub(crate) fn record() -> Record {
        let at = |second| Timestamp::from_second(second).unwrap();
        let texts = |pairs: &[(&str, &str)]| {
            let pairs = pairs.iter();
            pairs
                .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
                .collect()
        };
        Record {
            claim: "default-abc".to_owned(),
            claim_uid: "uid".to_owned(),
            pool: Some("default".to_owned()),
            class_kind: KWOK_CLASS.to_owned(),
            class_name: "default".to_owned(),
            provider_id: "kwok://kwok-default-abc-x".to_owned(),
            node_name: "kwok-default-abc-x".to_owned(),
            address: None,
            attempt: 0,
            vcpus: 4,
            reservation: None,
            labels: texts(&[
                (keys::CAPACITY_TYPE, "spot"),
                (keys::ZONE, "test-zone-a"),
                (keys::ARCH, "amd64"),
            ]),
            image: None,
            claim_labels: texts(&[(keys::NODE_POOL, "default"), ("team", "a")]),
            capacity: texts(&[("cpu", "4"), ("memory", "8Gi"), ("nvidia.com/gpu", "1")]),
            allocatable: texts(&[("cpu", "3900m"), ("memory", "8182Mi")]),
            state: State::Pending,
            launched: at(100),
            joins_at: Some(at(130)),
            gone_at: None,
            interruption: None,
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let written = serde_json::to_string(&record()).unwrap();
        assert_eq!(serde_json::from_str::<Record>(&written).unwrap(), record());
        let instance = record().instance();
        assert_eq!(instance.allocatable.to_string(), "cpu 3900m, memory 8182Mi");
        assert_eq!(rendered(&instance.capacity), record().capacity);
        assert!(!instance.terminating);
    }
}
