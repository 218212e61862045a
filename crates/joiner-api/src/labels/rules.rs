//! Aliases, well-known keys, and keys that users may not set.

use super::{
    ARCH, CAPACITY_TYPE, GROUP, HOSTNAME, INSTANCE_TYPE, NODE_POOL, OS, REGION, WINDOWS_BUILD,
    ZONE, aws, kwok,
};

/// Old spellings of a key and what they mean today.
pub const ALIASES: &[(&str, &str)] = &[
    ("failure-domain.beta.kubernetes.io/zone", ZONE),
    ("failure-domain.beta.kubernetes.io/region", REGION),
    ("beta.kubernetes.io/arch", ARCH),
    ("beta.kubernetes.io/os", OS),
    ("beta.kubernetes.io/instance-type", INSTANCE_TYPE),
    (aws::EBS_CSI_ZONE, ZONE),
];

/// Domains in which users may not invent keys; subdomains are included.
pub const RESTRICTED_DOMAINS: &[&str] = &[GROUP, aws::GROUP, kwok::GROUP];

/// Single keys that users may not set.
pub const RESTRICTED_LABELS: &[&str] = &[HOSTNAME];

const CORE_WELL_KNOWN: &[&str] = &[
    NODE_POOL,
    CAPACITY_TYPE,
    ZONE,
    REGION,
    INSTANCE_TYPE,
    ARCH,
    OS,
    WINDOWS_BUILD,
    aws::ZONE_ID,
];

/// Every key whose absence on a NodePool means "any value", in a fixed order.
pub fn well_known() -> impl Iterator<Item = &'static str> {
    [
        CORE_WELL_KNOWN,
        aws::HARDWARE_LABELS,
        aws::PLACEMENT_LABELS,
        kwok::LABELS,
    ]
    .into_iter()
    .flatten()
    .copied()
}

/// Whether the key is well-known; aliases are not, so call [`canonical_key`] first.
#[must_use]
pub fn is_well_known(key: &str) -> bool {
    well_known().any(|known| known == key)
}

/// The key as it is spelled today.
#[must_use]
pub fn canonical_key(key: &str) -> &str {
    ALIASES
        .iter()
        .find(|(alias, _)| *alias == key)
        .map_or(key, |(_, canonical)| canonical)
}

/// The part of a key before the slash; empty when there is none.
#[must_use]
pub fn domain_of(key: &str) -> &str {
    key.split_once('/').map_or("", |(domain, _)| domain)
}

/// Whether users may not set or constrain this key.
///
/// Well-known keys never are restricted. Of the rest, those in a restricted domain or one of its
/// subdomains are, and a few single keys.
#[must_use]
pub fn is_restricted(key: &str) -> bool {
    if is_well_known(key) {
        return false;
    }
    let domain = domain_of(key);
    let is_within = |restricted: &str| {
        domain
            .strip_suffix(restricted)
            .is_some_and(|rest| rest.is_empty() || rest.ends_with('.'))
    };
    RESTRICTED_LABELS.contains(&key) || RESTRICTED_DOMAINS.iter().any(|d| is_within(d))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restricted_keys() {
        for key in [
            "karpenter.sh/unknown",
            "sub.karpenter.sh/x",
            "karpenter.k8s.aws/made-up",
            "karpenter.kwok.sh/made-up",
            HOSTNAME,
        ] {
            assert!(is_restricted(key), "{key}");
        }
        for key in [
            CAPACITY_TYPE,
            NODE_POOL,
            aws::INSTANCE_FAMILY,
            kwok::INSTANCE_CPU,
            "kubernetes.io/custom",
            "node.kubernetes.io/x",
            "kops.k8s.io/instancegroup",
            "mykarpenter.sh/x",
            "team",
        ] {
            assert!(!is_restricted(key), "{key}");
        }
    }

    #[test]
    fn aliases_resolve_once() {
        assert_eq!(canonical_key("topology.ebs.csi.aws.com/zone"), ZONE);
        assert_eq!(canonical_key("beta.kubernetes.io/arch"), ARCH);
        assert_eq!(canonical_key("team"), "team");
        for (_, canonical) in ALIASES {
            assert!(is_well_known(canonical));
            assert_eq!(canonical_key(canonical), *canonical);
        }
    }
}
