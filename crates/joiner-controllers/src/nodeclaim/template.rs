//! From a NodePool to a NodeClaim: everything that does not depend on the pods it is for.

use std::collections::BTreeMap;

use joiner_api::labels::{
    HOSTNAME, NODE_POOL, NODE_POOL_HASH, NODE_POOL_HASH_VERSION, NODE_POOL_HASH_VERSION_VALUE,
    TERMINATION_FINALIZER, canonical_key, is_restricted, is_well_known, node_class_label,
};
use joiner_api::node_pool_hash;
use joiner_api::types::{
    NodeClaim, NodeClaimSpec, NodePool, OwnerReference, Requirement, Resource as _,
};
use joiner_model::Name;

/// What is left of a pool's name in that of a claim: the Node may be called like it, and names of
/// hosts end at 63 characters.
const POOL_NAME_MAX: usize = 52;

/// A NodeClaim of a pool, with the pool's requirements as they are.
///
/// It goes away with the pool, is held by our finalizer from the start, and carries the hash of the
/// very template that it was made from.
#[must_use]
pub fn claim_from(pool: &NodePool, name: &str) -> NodeClaim {
    let template = &pool.spec.template;
    let spec = &template.spec;
    let mut claim = NodeClaim::new(
        name,
        NodeClaimSpec {
            taints: spec.taints.clone(),
            startup_taints: spec.startup_taints.clone(),
            requirements: spec.requirements.clone(),
            resources: None,
            node_class_ref: spec.node_class_ref.clone(),
            termination_grace_period: spec.termination_grace_period.clone(),
            expire_after: spec.expire_after.clone(),
        },
    );
    let class = &spec.node_class_ref;
    let meta = &mut claim.metadata;
    let given = template.metadata.clone().unwrap_or_default();
    meta.labels = given.labels.unwrap_or_default();
    meta.labels
        .insert(NODE_POOL.to_owned(), pool.name().to_owned());
    meta.labels.insert(
        node_class_label(&class.group, &class.kind),
        class.name.clone(),
    );
    meta.annotations = given.annotations.unwrap_or_default();
    for (key, value) in [
        (NODE_POOL_HASH, node_pool_hash(pool)),
        (
            NODE_POOL_HASH_VERSION,
            NODE_POOL_HASH_VERSION_VALUE.to_owned(),
        ),
    ] {
        meta.annotations.insert(key.to_owned(), value);
    }
    meta.finalizers = vec![TERMINATION_FINALIZER.to_owned()];
    meta.owner_references = vec![OwnerReference {
        api_version: NodePool::api_version(),
        kind: NodePool::KIND.to_owned(),
        name: pool.name().to_owned(),
        uid: pool.metadata.uid.clone().unwrap_or_default(),
        block_owner_deletion: Some(true),
        controller: None,
    }];
    claim
}

/// A NodeClaim of a pool of constant size, which is for no pods: all that the pool requires, and
/// labels that follow from it.
#[must_use]
pub fn claim_without_pods(pool: &NodePool, name: &str) -> NodeClaim {
    let mut claim = claim_from(pool, name);
    for (key, value) in requirement_labels(&pool.spec.template.spec.requirements) {
        claim.metadata.labels.entry(key).or_insert(value);
    }
    claim
}

/// A name for a claim of a pool. The same parts give the same name, in every version of this
/// program: a try after a crash finds what the first one made.
#[must_use]
pub fn claim_name(pool: &str, parts: &[&str]) -> String {
    /// No vowels, so that no words come of it.
    const LETTERS: &[u8] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for part in [pool].iter().chain(parts) {
        // The zero keeps "a", "bc" and "ab", "c" apart.
        for byte in part.bytes().chain([0]) {
            hash ^= u64::from(byte);
            hash = hash.wrapping_mul(0x0100_0000_01b3);
        }
    }
    let prefix: String = pool.chars().take(POOL_NAME_MAX).collect();
    let mut name = prefix.trim_end_matches(['-', '.']).to_owned();
    name.push('-');
    for _ in 0..10 {
        let n_letters = LETTERS.len() as u64;
        let at = usize::try_from(hash % n_letters).unwrap_or(0);
        name.push(char::from(LETTERS[at]));
        hash /= n_letters;
    }
    name
}

/// Labels that a node gets because its pool requires them: a value for each custom key that must
/// have one. Well-known labels are left to the cloud.
fn requirement_labels(requirements: &[Requirement]) -> BTreeMap<String, String> {
    // Requirements that make no sense keep the pool from being Ready, and give no labels.
    let all = crate::requirements::read(requirements).unwrap_or_default();
    let custom = all.iter().filter(|requirement| {
        let key = canonical_key(requirement.key());
        key != HOSTNAME && !is_well_known(key) && !is_restricted(key)
    });
    custom
        .filter_map(|custom| Some((custom.key().to_string(), some_value(custom)?)))
        .collect()
}

/// The first value that will do: a listed one, or the smallest number that is not ruled out.
pub(crate) fn some_value(requirement: &joiner_model::Requirement) -> Option<String> {
    if let Some(members) = requirement.members() {
        let first = members.iter().find(|value| requirement.has(value));
        return first.map(ToString::to_string);
    }
    // The smallest is zero, a bound, or right above an exclusion.
    let number = |value: &Name| value.parse::<u32>().ok();
    let bounds = requirement.entries().into_iter();
    let bounds = bounds.filter_map(|(_, values)| number(values.first()?));
    let excluded = requirement.named_values().iter().filter_map(number);
    let above = excluded.map(|value| value.saturating_add(1));
    let mut candidates: Vec<u32> = bounds.chain(above).chain([0]).collect();
    candidates.sort_unstable();
    let mut texts = candidates.into_iter().map(|number| number.to_string());
    texts.find(|text| requirement.has(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn pool(name: &str) -> NodePool {
        let template = json!({
            "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
            "spec": {
                "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}],
                "taints": [{"key": "t", "effect": "NoSchedule"}],
                "startupTaints": [{"key": "s", "effect": "NoExecute"}],
                "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "c"},
                "expireAfter": "720h",
                "terminationGracePeriod": "1h",
            },
        });
        serde_json::from_value(json!({
            "metadata": {"name": name, "uid": "u-1"},
            "spec": {"template": template, "limits": {"nodes": "3"}},
        }))
        .unwrap()
    }

    #[test]
    fn a_claim_carries_all_that_its_pool_says() {
        let claim = serde_json::to_value(claim_from(&pool("p"), "p-x")).unwrap();
        let hash = node_pool_hash(&pool("p"));
        assert_eq!(
            claim["metadata"],
            json!({
                "name": "p-x",
                "labels": {"team": "a", "karpenter.sh/nodepool": "p",
                    "karpenter.kwok.sh/kwoknodeclass": "c"},
                "annotations": {"note": "b", "karpenter.sh/nodepool-hash": hash,
                    "karpenter.sh/nodepool-hash-version": "v3"},
                "finalizers": ["karpenter.sh/termination"],
                "ownerReferences": [{"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
                    "name": "p", "uid": "u-1", "blockOwnerDeletion": true}],
            })
        );
        let template = serde_json::to_value(&pool("p").spec.template.spec).unwrap();
        assert_eq!(claim["spec"], template);
    }

    #[test]
    fn a_claim_without_pods_has_the_labels_that_its_pool_requires() {
        let mut pool = pool("p");
        let more = json!([{"key": "tier", "operator": "In", "values": ["gold"]},
            {"key": "team", "operator": "In", "values": ["a", "b"]}]);
        let more: Vec<Requirement> = serde_json::from_value(more).unwrap();
        pool.spec.template.spec.requirements.extend(more);
        let claim = claim_without_pods(&pool, "p-x");
        assert_eq!(claim.metadata.labels["tier"], "gold");
        assert_eq!(claim.metadata.labels["team"], "a", "as the template says");
        assert_eq!(claim.metadata.labels.get("kubernetes.io/arch"), None);
        assert_eq!(
            claim.spec.requirements,
            pool.spec.template.spec.requirements
        );
    }

    #[test]
    fn names_are_stable_distinct_and_short_enough_for_a_host() {
        assert_eq!(claim_name("p", &["u", "0"]), claim_name("p", &["u", "0"]));
        assert_ne!(claim_name("p", &["u", "0"]), claim_name("p", &["u", "1"]));
        assert_ne!(claim_name("p", &["ab", "c"]), claim_name("p", &["a", "bc"]));
        let long = claim_name(&format!("{}-{}", "a".repeat(51), "b".repeat(90)), &[]);
        assert_eq!(long.len(), 51 + 1 + 10, "{long}");
        assert!(!long.contains("--"), "{long}");
    }

    #[test]
    fn custom_keys_get_a_value_and_known_ones_do_not() {
        let labels = |requirements: Value| {
            let all: Vec<Requirement> = serde_json::from_value(requirements).unwrap();
            requirement_labels(&all)
                .into_iter()
                .map(|(key, value)| format!("{key}={value}"))
                .collect::<Vec<_>>()
        };
        for (requirements, expected) in [
            (
                json!([{"key": "team", "operator": "In", "values": ["b", "a"]}]),
                vec!["team=a"],
            ),
            (json!([{"key": "team", "operator": "DoesNotExist"}]), vec![]),
            (
                json!([{"key": "team", "operator": "Exists"}]),
                vec!["team=0"],
            ),
            (
                json!([{"key": "n", "operator": "Gt", "values": ["7"]}]),
                vec!["n=8"],
            ),
            (
                json!([{"key": "n", "operator": "Lt", "values": ["1"]}]),
                vec!["n=0"],
            ),
            (
                json!([{"key": "n", "operator": "Gte", "values": ["5"]},
                       {"key": "n", "operator": "NotIn", "values": ["5", "6"]}]),
                vec!["n=7"],
            ),
            (
                json!([{"key": "team", "operator": "In", "values": ["a", "b"]},
                       {"key": "team", "operator": "NotIn", "values": ["a"]}]),
                vec!["team=b"],
            ),
            (
                json!([{"key": "kubernetes.io/arch", "operator": "In", "values": ["arm64"]}]),
                vec![],
            ),
            (
                json!([{"key": "beta.kubernetes.io/os", "operator": "In", "values": ["linux"]}]),
                vec![],
            ),
            (
                json!([{"key": "kubernetes.io/hostname", "operator": "In", "values": ["h"]}]),
                vec![],
            ),
        ] {
            assert_eq!(labels(requirements.clone()), expected, "{requirements}");
        }
    }
}
