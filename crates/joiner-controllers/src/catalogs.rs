//! The instance types of every node class, as the cloud last gave them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use joiner_cloud::{Cloud, NodeClass};
use joiner_model::InstanceType;
use joiner_state::NodeClassRef;
use joiner_state::live::{LiveClass, Snapshot};

/// Lists by class.
pub type Lists = BTreeMap<NodeClassRef, Arc<Vec<InstanceType>>>;

/// The instance types of every node class.
#[derive(Clone, Debug, Default)]
pub struct Catalogs {
    lists: Arc<Mutex<Arc<Lists>>>,
}

impl Catalogs {
    /// Everything as it was last given.
    #[must_use]
    pub fn lists(&self) -> Arc<Lists> {
        let lists = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&lists)
    }

    /// The types of one class.
    #[must_use]
    pub fn of(&self, class: &NodeClassRef) -> Option<Arc<Vec<InstanceType>>> {
        self.lists().get(class).cloned()
    }

    /// Asks the cloud anew for all classes that pools name. A class that cannot be used is left
    /// out, and why is returned.
    pub async fn refresh(&self, cloud: &dyn Cloud, now: &Snapshot) -> Vec<(NodeClassRef, String)> {
        let mut lists = Lists::new();
        let mut troubles = Vec::new();
        for pool in now.pools() {
            if lists.contains_key(&pool.class) {
                continue;
            }
            let Some(class) = now.class(&pool.class) else {
                continue;
            };
            match cloud.instance_types(&for_cloud(class)).await {
                Ok(types) => {
                    lists.insert(pool.class.clone(), types);
                }
                Err(error) => troubles.push((pool.class.clone(), error.to_string())),
            }
        }
        let mut own = self.lists.lock().unwrap_or_else(PoisonError::into_inner);
        *own = Arc::new(lists);
        troubles
    }
}

/// A class as clouds take it.
#[must_use]
pub fn for_cloud(class: &LiveClass) -> NodeClass {
    NodeClass {
        group: class.reference.group.clone(),
        kind: class.reference.kind.clone(),
        name: class.reference.name.clone(),
        object: Arc::clone(&class.object),
    }
}
