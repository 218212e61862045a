//! Volumes against the limits of CSI drivers on existing nodes.
//!
//! A claim that several pods share counts once per node. Where every node has room for all shared
//! claims, that room is set aside and only claims of a single pod are counted; where not, every pod
//! counts all its claims, which is never too few.

use std::collections::{BTreeMap, BTreeSet};

use joiner_model::{Name, PodIx};

use crate::ground::Ground;

/// New nodes have no volume limit that we could know.
pub(crate) const VOLUMES_UNLIMITED: u64 = 1 << 40;

/// Claims by driver.
pub(crate) struct Volumes {
    by_driver: BTreeMap<Name, Claims>,
}

#[derive(Default)]
struct Claims {
    /// Claims on each existing node.
    on_host: BTreeMap<usize, BTreeSet<Name>>,
    /// Claims of pods to place that more than one pod mounts.
    shared: BTreeSet<Name>,
    /// Room for the shared claims is set aside on every node.
    set_aside: bool,
}

impl Volumes {
    /// Counts the claims of a problem.
    pub(crate) fn new(ground: &Ground<'_>) -> Self {
        let problem = ground.problem;
        let drivers = problem
            .nodes
            .iter()
            .flat_map(|n| n.volume_limits.keys().cloned());
        let mut by_driver: BTreeMap<Name, Claims> =
            drivers.map(|driver| (driver, Claims::default())).collect();
        if by_driver.is_empty() {
            return Self { by_driver };
        }
        let mut seen: BTreeSet<&Name> = BTreeSet::new();
        for pod in &problem.pods {
            for claim in &pod.claims {
                let Some(claims) = by_driver.get_mut(&claim.driver) else {
                    continue;
                };
                if let Some(node) = pod.node {
                    claims
                        .on_host
                        .entry(node.0 as usize)
                        .or_default()
                        .insert(claim.claim.clone());
                }
                if !seen.insert(&claim.claim) {
                    claims.shared.insert(claim.claim.clone());
                }
            }
        }
        for (driver, claims) in &mut by_driver {
            let room = problem.nodes.iter().enumerate().all(|(n, node)| {
                let none = BTreeSet::new();
                let here = claims.on_host.get(&n).unwrap_or(&none);
                let most = node
                    .volume_limits
                    .get(driver)
                    .map_or(usize::MAX, |m| *m as usize);
                here.union(&claims.shared).count() <= most
            });
            claims.set_aside = room;
        }
        Self { by_driver }
    }

    /// The drivers that have a limit somewhere.
    pub(crate) fn drivers(&self) -> Vec<Name> {
        self.by_driver.keys().cloned().collect()
    }

    /// How many volumes a pod adds to a node; `relaxed` for no more than it must.
    pub(crate) fn of_pod(
        &self,
        ground: &Ground<'_>,
        pod: PodIx,
        driver: &Name,
        relaxed: bool,
    ) -> u64 {
        let Some(claims) = self.by_driver.get(driver) else {
            return 0;
        };
        let mounts = ground.problem[pod].claims.iter();
        let counted = mounts.filter(|claim| {
            claim.driver == *driver
                && !((relaxed || claims.set_aside) && claims.shared.contains(&claim.claim))
        });
        counted.count() as u64
    }

    /// How many more volumes an existing node can take.
    pub(crate) fn left(
        &self,
        ground: &Ground<'_>,
        host: usize,
        driver: &Name,
        relaxed: bool,
    ) -> u64 {
        let limit = ground.problem.nodes[host].volume_limits.get(driver);
        let (Some(most), Some(claims)) = (limit, self.by_driver.get(driver)) else {
            return VOLUMES_UNLIMITED;
        };
        let none = BTreeSet::new();
        let here = claims.on_host.get(&host).unwrap_or(&none);
        let used = if claims.set_aside && !relaxed {
            here.union(&claims.shared).count()
        } else {
            here.len()
        };
        u64::from(*most).saturating_sub(used as u64)
    }
}
