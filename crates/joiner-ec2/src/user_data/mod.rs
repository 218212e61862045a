//! User data: what a machine is told at boot, with the user's part merged in.
//!
//! Every family has a format of its own and a rule for merging; the texts are upstream's byte for byte, since
//! they end up in launch templates that a change of controller must not change.

mod al2;
mod bottlerocket;
mod flags;
mod go;
mod mime;
mod nodeadm;
mod toml_text;
mod windows;

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use joiner_api::labels::{CAPACITY_TYPE, DO_NOT_SYNC_TAINTS, UNREGISTERED_TAINT};
use joiner_api::types::{AmiFamily, Kubelet, Taint};

use crate::cluster::Cluster;

pub use bottlerocket::binds_by_default;

/// The most that EC2 takes, before encoding.
pub const BYTES_MAX: usize = 16_384;
/// From here on a user should know that there is little room left.
pub const BYTES_MANY: usize = 14_745;

/// Domains whose labels a kubelet may not set on its own node.
const KUBERNETES_DOMAINS: [&str; 3] = ["kubernetes.io", "k8s.io", "node-restriction.kubernetes.io"];

/// Why there is no user data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum UserDataError {
    /// The user's part cannot be merged.
    #[error("EC2NodeClass {class}: spec.userData {problem}")]
    Custom {
        /// Name of the class.
        class: String,
        /// What is wrong with it, and what to do.
        problem: String,
    },
    /// A node of AL2023 needs the range of service addresses.
    #[error(
        "EC2NodeClass {class}: the cluster's range of service addresses is not known yet, which nodes of \
         AL2023 need; allow eks:DescribeCluster"
    )]
    NoCidr {
        /// Name of the class.
        class: String,
    },
}

/// All that goes into user data.
#[derive(Clone, Debug)]
pub struct Bootstrap<'a> {
    /// Name of the class, for messages.
    pub class: &'a str,
    /// The cluster to join.
    pub cluster: &'a Cluster,
    /// How nodes are started.
    pub family: AmiFamily,
    /// Kubelet settings of the class.
    pub kubelet: Option<&'a Kubelet>,
    /// How many pods the node takes; it overrides what the settings say.
    pub max_pods: u32,
    /// Labels of the node, see [`node_labels`].
    pub labels: &'a BTreeMap<String, String>,
    /// Taints of the node, see [`node_taints`].
    pub taints: &'a [Taint],
    /// The user's part.
    pub custom: Option<&'a str>,
    /// Local disks become one volume for pods.
    pub raid0: bool,
    /// Bottlerocket of this version binds all directories without being told which, see
    /// [`binds_by_default`].
    pub binds_by_default: bool,
}

/// User data as a machine gets it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserData {
    /// The text.
    pub text: String,
    /// Settings of the user's part that have no effect, by their path.
    pub ignored: Vec<String>,
}

impl UserData {
    /// As launch templates carry it.
    #[must_use]
    pub fn encoded(&self) -> String {
        STANDARD.encode(&self.text)
    }

    /// Whether EC2 will take it.
    #[must_use]
    pub fn fits(&self) -> bool {
        self.text.len() <= BYTES_MAX
    }
}

impl From<String> for UserData {
    fn from(text: String) -> Self {
        Self {
            text,
            ignored: Vec::new(),
        }
    }
}

/// The user data of a node.
///
/// # Errors
/// The user's part cannot be merged, or something that the family needs is not known.
pub fn user_data(bootstrap: &Bootstrap<'_>) -> Result<UserData, UserDataError> {
    match bootstrap.family {
        AmiFamily::Al2 => al2::user_data(bootstrap).map(UserData::from),
        AmiFamily::Al2023 => nodeadm::user_data(bootstrap).map(UserData::from),
        AmiFamily::Bottlerocket => bottlerocket::user_data(bootstrap),
        AmiFamily::Windows2019 | AmiFamily::Windows2022 | AmiFamily::Windows2025 => {
            Ok(windows::user_data(bootstrap).into())
        }
        AmiFamily::Custom => Ok(bootstrap.custom.unwrap_or_default().to_owned().into()),
    }
}

impl Bootstrap<'_> {
    /// Addresses of the DNS that pods use: those of the class, else the cluster's.
    fn cluster_dns(&self) -> Vec<&str> {
        let given = self
            .kubelet
            .and_then(|kubelet| kubelet.cluster_dns.as_deref());
        match given.filter(|addresses| !addresses.is_empty()) {
            Some(addresses) => addresses.iter().map(String::as_str).collect(),
            None => self.cluster.dns_ip.as_deref().into_iter().collect(),
        }
    }

    /// The user's part, if it says anything.
    fn custom(&self) -> Option<&str> {
        self.custom.filter(|text| !text.is_empty())
    }

    fn wrong(&self, problem: impl Into<String>) -> UserDataError {
        UserDataError::Custom {
            class: self.class.to_owned(),
            problem: problem.into(),
        }
    }
}

/// The labels that a node gives itself: those of its claim, but for those that it may not set.
#[must_use]
pub fn node_labels<'l>(
    claim: impl Iterator<Item = (&'l str, &'l str)>,
    capacity_type: &str,
    family: AmiFamily,
) -> BTreeMap<String, String> {
    let owned = |(key, value): (&str, &str)| (key.to_owned(), value.to_owned());
    let mut labels: BTreeMap<String, String> = claim.map(owned).collect();
    labels.insert(CAPACITY_TYPE.to_owned(), capacity_type.to_owned());
    if family != AmiFamily::Custom {
        labels.insert(DO_NOT_SYNC_TAINTS.to_owned(), "true".to_owned());
    }
    labels.retain(|key, _| !is_kubernetes(key));
    labels
}

fn is_kubernetes(key: &str) -> bool {
    let domain = key.split_once('/').map_or("", |(domain, _)| domain);
    KUBERNETES_DOMAINS.iter().any(|suffix| {
        domain
            .strip_suffix(suffix)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    })
}

/// The taints that a node registers with: those of its claim, and the one that registration lifts.
#[must_use]
pub fn node_taints(taints: &[Taint], startup_taints: &[Taint]) -> Vec<Taint> {
    let mut all: Vec<Taint> = taints.iter().chain(startup_taints).cloned().collect();
    let unregistered = UNREGISTERED_TAINT.to_taint();
    let same = |taint: &Taint| taint.key == unregistered.key && taint.effect == unregistered.effect;
    if !all.iter().any(same) {
        all.push(unregistered);
    }
    all
}
