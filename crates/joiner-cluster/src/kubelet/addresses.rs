//! Which address does a pod or a node get?

use std::collections::BTreeSet;

use serde_json::Value;

use crate::names::Digest;
use crate::scheduler::labels::items;
use crate::scheduler::{NODES, PODS};
use crate::view::View;

/// Hosts in a network of sixteen bits, without its first and last.
const HOSTS: u64 = 65_534;

/// Addresses that are taken, gathered when the first one is asked for.
#[derive(Default)]
pub(crate) struct Pool {
    pods: Option<BTreeSet<u64>>,
    nodes: Option<BTreeSet<u64>>,
}

impl Pool {
    /// A free address for a pod: `10.244.x.y`.
    pub(crate) fn pod(&mut self, view: &View<'_>, uid: &str) -> String {
        let taken = self.pods.get_or_insert_with(|| {
            let ips = view
                .all(PODS)
                .filter_map(|pod| pod["status"]["podIP"].as_str());
            ips.filter_map(|ip| host(ip, "10.244.")).collect()
        });
        free(taken, view.seed, uid, "10.244")
    }

    /// A free address for a node: `10.0.x.y`.
    pub(crate) fn node(&mut self, view: &View<'_>, uid: &str) -> String {
        let taken = self.nodes.get_or_insert_with(|| {
            let nodes = view
                .all(NODES)
                .flat_map(|node| items(&node["status"]["addresses"]));
            let ips = nodes.filter_map(|address: &Value| address["address"].as_str());
            ips.filter_map(|ip| host(ip, "10.0.")).collect()
        });
        free(taken, view.seed, uid, "10.0")
    }
}

/// The last two bytes as a number.
fn host(ip: &str, network: &str) -> Option<u64> {
    let (high, low) = ip.strip_prefix(network)?.split_once('.')?;
    Some(high.parse::<u64>().ok()? * 256 + low.parse::<u64>().ok()?)
}

/// The first free one from a place that derives from the uid. A full network hands out the last
/// one again: a laptop has not so many pods.
fn free(taken: &mut BTreeSet<u64>, seed: u64, uid: &str, network: &str) -> String {
    let first = Digest::default().number(seed).text(uid).finish() % HOSTS;
    let candidates = (0..HOSTS).map(|step| 1 + (first + step) % HOSTS);
    let mut number = 1 + first;
    for candidate in candidates {
        number = candidate;
        if taken.insert(candidate) {
            break;
        }
    }
    format!("{network}.{}.{}", number / 256, number % 256)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_not_given_twice() {
        let mut taken = BTreeSet::new();
        let one = free(&mut taken, 1, "a", "10.244");
        let two = free(&mut taken, 1, "a", "10.244");
        assert_ne!(one, two);
        assert_eq!(
            taken,
            [one, two]
                .iter()
                .filter_map(|ip| host(ip, "10.244."))
                .collect()
        );
    }
}
