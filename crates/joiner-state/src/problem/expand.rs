//! Pods that workloads have yet to make.

use std::collections::{HashMap, HashSet};
use std::fmt::Write as _;

use joiner_model::{Name, Pod};

use super::pods::Builder;
use crate::volumes::Mounts;
use crate::workloads::Missing;

impl Builder<'_> {
    /// Adds the missing pods, named `namespace/workload-0` and so on past names that are taken.
    pub(super) fn expand(&mut self, missing: &[Missing]) {
        if missing.is_empty() {
            return;
        }
        let objects = self.objects;
        let taken: HashSet<&str> = objects.pods.iter().map(|pod| &*pod.name).collect();
        let mut next: HashMap<Name, u32> = HashMap::new();
        let mut name = String::new();
        for missing in missing {
            let workload = &objects.workloads[missing.workload];
            let (shape, ignored) = self.settle_of(workload.draft, Some(&workload.identity));
            let base = &workload.identity.name;
            let namespace = &objects.drafts.get(workload.draft).shape.namespace;
            let number = next.entry(base.clone()).or_insert(0);
            *number = (*number).max(workload.first_ordinal);
            let volumes = !workload.volumes.is_empty() || !workload.own_claims.is_empty();
            let mut left = missing.count;
            let mut made = Vec::new();
            while left > 0 {
                name.clear();
                // Writing to a string cannot fail.
                let _ = write!(name, "{base}-{number}");
                *number = number.saturating_add(1);
                if taken.contains(name.as_str()) && *number < u32::MAX {
                    continue;
                }
                left -= 1;
                made.push(Pod {
                    name: name.as_str().into(),
                    shape,
                    claims: Box::default(),
                    node: None,
                    daemon: None,
                    terminating: false,
                    ignored: ignored.clone(),
                });
                if !volumes {
                    self.pods.append(&mut made);
                }
            }
            for pod in made {
                let own_name = pod.name.clone();
                let mounts = Mounts {
                    namespace,
                    pod: own_name.split_once('/').map_or("", |(_, name)| name),
                    uses: &workload.volumes,
                    own_claims: &workload.own_claims,
                    expanded: true,
                };
                let pod = self.with_volumes(pod, &mounts);
                self.pods.push(pod);
            }
        }
    }
}
