//! Tags of what we make, by which we find it again.

use std::collections::BTreeMap;

use joiner_api::labels::NODE_POOL;
use joiner_api::labels::aws::EC2_NODE_CLASS;
use serde::{Deserialize, Serialize};

/// Carries the name of the cluster.
pub const CLUSTER_NAME: &str = "eks:eks-cluster-name";
/// Carries the name of the claim, once its node has registered.
pub const NODE_CLAIM: &str = "karpenter.sh/nodeclaim";
/// What consoles show.
pub const NAME: &str = "Name";
/// Value of the tag that [`owned`] names.
pub const OWNED: &str = "owned";

/// Starts of keys that users may not set, and whole keys.
const RESERVED: [&str; 4] = [CLUSTER_NAME, NODE_POOL, NODE_CLAIM, EC2_NODE_CLASS];
const RESERVED_PREFIX: &str = "kubernetes.io/cluster";

/// A tag.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct Tag {
    /// Its key.
    pub key: String,
    /// Its value.
    pub value: String,
}

impl Tag {
    /// A tag.
    #[must_use]
    pub fn new(key: &str, value: &str) -> Self {
        Self {
            key: key.to_owned(),
            value: value.to_owned(),
        }
    }
}

/// Tags for a kind of thing that a request makes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct TagSpecification {
    /// Kind of thing: `instance`, `volume`, ..
    pub resource_type: String,
    /// Its tags, by key.
    pub tags: Vec<Tag>,
}

impl TagSpecification {
    /// The same tags for several kinds of things.
    #[must_use]
    pub fn for_each(resource_types: &[&str], tags: &[Tag]) -> Vec<Self> {
        let specification = |resource_type: &&str| Self {
            resource_type: (*resource_type).to_owned(),
            tags: tags.to_vec(),
        };
        resource_types.iter().map(specification).collect()
    }
}

/// The key that says whose a thing is.
#[must_use]
pub fn owned(cluster: &str) -> String {
    format!("kubernetes.io/cluster/{cluster}")
}

/// The tags of machines and of all that is made with them: the user's, then ours. `pool` is empty for what
/// belongs to no pool.
#[must_use]
pub fn of_launch(
    user: Option<&BTreeMap<String, String>>,
    cluster: &str,
    pool: &str,
    class: &str,
) -> Vec<Tag> {
    let ours = [
        (owned(cluster), OWNED),
        (NODE_POOL.to_owned(), pool),
        (CLUSTER_NAME.to_owned(), cluster),
        (EC2_NODE_CLASS.to_owned(), class),
    ];
    merged(user, ours)
}

/// The user's tags and ours, by key; ours win.
pub(crate) fn merged<const N: usize>(
    user: Option<&BTreeMap<String, String>>,
    ours: [(String, &str); N],
) -> Vec<Tag> {
    let mut all = user.cloned().unwrap_or_default();
    all.extend(ours.map(|(key, value)| (key, value.to_owned())));
    all.iter()
        .map(|(key, value)| Tag::new(key, value))
        .collect()
}

/// The first of the user's tags that is not theirs to set.
#[must_use]
pub fn restricted(user: &BTreeMap<String, String>) -> Option<&str> {
    let is_restricted = |key: &&str| RESERVED.contains(key) || key.starts_with(RESERVED_PREFIX);
    user.keys().map(String::as_str).find(is_restricted)
}

/// The tags that a registered machine still lacks. What it carries already is never overwritten.
#[must_use]
pub fn of_registered(present: &[Tag], node: &str, claim: &str, cluster: &str) -> Vec<Tag> {
    let wanted = [(NAME, node), (NODE_CLAIM, claim), (CLUSTER_NAME, cluster)];
    let missing = |(key, _): &(&str, &str)| present.iter().all(|tag| tag.key != *key);
    let missing = wanted.into_iter().filter(missing);
    missing.map(|(key, value)| Tag::new(key, value)).collect()
}
