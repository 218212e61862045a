//! How many pods of a controller may be disturbed at once.

use std::collections::BTreeMap;

use super::settings::UpdaterSettings;
use crate::vpa::pod::Pod;
use crate::vpa::spec::{UpdateMode, Vpa};

/// A controller of pods, by kind and name.
pub type Controller = (String, String);

/// Pods of one controller.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Group {
    configured: i64,
    tolerance: i64,
    running: i64,
    evicted: i64,
    resized: i64,
    /// Whether there are fewer pods than it takes to evict one.
    pub(super) is_too_small: bool,
}

impl Group {
    /// Whether one more of its pods may be disturbed.
    pub(super) const fn is_disruptable(&self) -> bool {
        let disturbed = self.evicted + self.resized;
        let one_at_a_time =
            self.configured == self.running && self.tolerance == 0 && disturbed == 0;
        self.running - disturbed > self.configured - self.tolerance || one_at_a_time
    }

    pub(super) fn evict(&mut self, pod: &Pod) {
        self.evicted += i64::from(!is_pending(pod));
    }

    pub(super) fn resize(&mut self, pod: &Pod) {
        self.resized += i64::from(!is_pending(pod));
    }
}

pub(super) fn is_pending(pod: &Pod) -> bool {
    pod.phase == "Pending"
}

/// The groups of pods; pods of none may not be disturbed.
pub(super) fn groups<'p>(
    vpa: &Vpa,
    pods: impl IntoIterator<Item = &'p Pod>,
    configured: &BTreeMap<Controller, i64>,
    settings: &UpdaterSettings,
    is_boosted: impl Fn(&Pod) -> bool,
) -> BTreeMap<Controller, Group> {
    let mut by_owner: BTreeMap<Controller, Vec<&Pod>> = BTreeMap::new();
    for pod in pods {
        if let Some(owner) = &pod.owner {
            by_owner.entry(owner.clone()).or_default().push(pod);
        }
    }
    let required = i64::from(vpa.min_replicas.unwrap_or(settings.min_replicas));
    let in_place = matches!(
        vpa.mode,
        UpdateMode::InPlaceOrRecreate | UpdateMode::InPlace
    );
    let mut groups = BTreeMap::new();
    for (owner, pods) in by_owner {
        let n_live = count(pods.len());
        let is_too_small = n_live < required;
        let spared = in_place && settings.skip_budget;
        if is_too_small && !spared && !pods.iter().any(|pod| is_boosted(pod)) {
            continue;
        }
        let configured = match owner.0.as_str() {
            "Job" => n_live,
            _ => configured.get(&owner).copied().unwrap_or(0),
        };
        if configured == 0 {
            continue;
        }
        let n_pending = count(pods.iter().filter(|pod| is_pending(pod)).count());
        let group = Group {
            configured,
            tolerance: (configured as f64 * settings.eviction_tolerance) as i64,
            running: n_live - n_pending,
            evicted: 0,
            resized: 0,
            is_too_small,
        };
        groups.insert(owner, group);
    }
    groups
}

fn count(n: usize) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}
