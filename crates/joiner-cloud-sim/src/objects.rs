//! Calls to the API server, each of them safe to make again.

use std::collections::BTreeSet;

use joiner_api::labels::ours::KUBELET;
use k8s_openapi::api::core::v1::{ConfigMap, Node};
use kube::api::{DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client, Error};
use serde_json::{Value, json};

use crate::home::Home;
use crate::ledger::Stored;
use crate::life::NodeSeen;
use crate::record::Record;
use crate::settings::{FAULTS_CONFIG_MAP, INSTANCE_LABEL, MACHINES_NAMESPACE, SIMULATED_LABEL};

/// Key of the machine in its ConfigMap.
const KEY: &str = "instance";
/// Key of what goes wrong in the ConfigMap about it.
pub(crate) const FAULTS_KEY: &str = "faults";
/// Writes of one machine that may lose against others in a row.
const CONFLICTS_MAX: usize = 8;
/// Who writes.
const MANAGER: &str = "joiner-simulated-cloud";

/// ConfigMaps and Nodes.
#[derive(Clone)]
pub(crate) struct Objects {
    home: Home,
    /// Those of the machines.
    maps: Api<ConfigMap>,
    /// Those of the controller's namespace.
    told: Api<ConfigMap>,
    nodes: Api<Node>,
}

/// What came of a creation.
pub(crate) enum Created<T> {
    /// It is there.
    New(T),
    /// Something of this name was there before.
    Taken,
}

/// True for the answer that there is no such object.
pub(crate) fn is_missing(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 404)
}

/// True for the answer that we may not.
pub(crate) fn is_forbidden(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 403)
}

pub(crate) fn is_conflict(error: &Error) -> bool {
    matches!(error, Error::Api(status) if status.code == 409)
}

pub(crate) fn found<T>(answer: Result<T, Error>) -> Result<Option<T>, Error> {
    match answer {
        Ok(object) => Ok(Some(object)),
        Err(error) if is_missing(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

pub(crate) fn writing() -> PostParams {
    PostParams {
        field_manager: Some(MANAGER.to_owned()),
        ..PostParams::default()
    }
}

/// Selects machines.
pub(crate) fn machines() -> ListParams {
    ListParams::default().labels(&format!("{INSTANCE_LABEL}=true"))
}

/// Reads the ConfigMap of a machine; none if it is not one, or was broken by hand.
pub(crate) fn read(map: &ConfigMap) -> Option<Stored> {
    let text = map.data.as_ref()?.get(KEY)?;
    let name = map.metadata.name.clone()?;
    match serde_json::from_str::<Record>(text) {
        Ok(record) => Some(Stored {
            version: map.metadata.resource_version.clone().unwrap_or_default(),
            name,
            record,
        }),
        Err(error) => {
            tracing::warn!(config_map = name, %error, "cannot read a simulated instance");
            None
        }
    }
}

/// What matters of a Node.
pub(crate) fn seen(node: &Node) -> NodeSeen {
    let provider_id = node.spec.as_ref().and_then(|spec| spec.provider_id.clone());
    NodeSeen {
        uid: node.metadata.uid.clone().unwrap_or_default(),
        provider_id: provider_id.unwrap_or_default(),
        deleting: node.metadata.deletion_timestamp.is_some(),
    }
}

impl Objects {
    /// The objects of a cloud whose controller lives in `namespace`.
    pub(crate) fn new(client: &Client, namespace: &str) -> Self {
        Self {
            home: Home::new(client, namespace),
            maps: Api::namespaced(client.clone(), MACHINES_NAMESPACE),
            told: Api::namespaced(client.clone(), namespace),
            nodes: Api::all(client.clone()),
        }
    }

    /// Makes sure that there is a place for machines, with those of older versions in it. Whatever
    /// writes machines calls it first.
    pub(crate) async fn settle(&self) -> Result<(), Error> {
        self.home.settle().await
    }

    fn map(name: &str, version: Option<&str>, record: &Record) -> Result<ConfigMap, Error> {
        let text = serde_json::to_string(record).map_err(Error::SerdeError)?;
        let map = json!({
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                "name": name,
                "namespace": MACHINES_NAMESPACE,
                "resourceVersion": version,
                "labels": {INSTANCE_LABEL: "true"},
            },
            "data": {KEY: text},
        });
        serde_json::from_value(map).map_err(Error::SerdeError)
    }

    /// One machine.
    pub(crate) async fn machine(&self, name: &str) -> Result<Option<Stored>, Error> {
        // What is on its way from there to here is in one of both if that one is asked first.
        let old = self.home.old_machine(name).await?;
        let map = found(self.maps.get(name).await)?.or(old);
        Ok(map.as_ref().and_then(read))
    }

    /// What the ConfigMap about faults says; none if there is no such map.
    pub(crate) async fn faults(&self) -> Result<Option<String>, Error> {
        let map = found(self.told.get(FAULTS_CONFIG_MAP).await)?;
        Ok(map.and_then(|map| map.data?.remove(FAULTS_KEY)))
    }

    /// All machines.
    pub(crate) async fn machines(&self) -> Result<Vec<Stored>, Error> {
        let old = self.home.old_machines().await?;
        let mut all = self.maps.list(&machines()).await?.items;
        let here: BTreeSet<Option<String>> =
            all.iter().map(|map| map.metadata.name.clone()).collect();
        all.extend(
            old.into_iter()
                .filter(|map| !here.contains(&map.metadata.name)),
        );
        Ok(all.iter().filter_map(read).collect())
    }

    /// Records a machine: that is its launch.
    pub(crate) async fn launch(
        &self,
        name: &str,
        record: &Record,
    ) -> Result<Created<Stored>, Error> {
        self.settle().await?;
        let map = Self::map(name, None, record)?;
        match self.maps.create(&writing(), &map).await {
            Ok(map) => Ok(Created::New(Stored {
                name: name.to_owned(),
                version: map.metadata.resource_version.unwrap_or_default(),
                record: record.clone(),
            })),
            Err(error) if is_conflict(&error) => Ok(Created::Taken),
            Err(error) => {
                if is_missing(&error) {
                    // The namespace was deleted.
                    self.home.is_gone();
                }
                Err(error)
            }
        }
    }

    /// Changes what is remembered of a machine, starting from what was known of it. None if the
    /// machine is gone.
    pub(crate) async fn change(
        &self,
        known: &Stored,
        edit: impl Fn(&mut Record) + Send + Sync,
    ) -> Result<Option<Stored>, Error> {
        self.settle().await?;
        let mut stored = known.clone();
        let mut n_lost = 0;
        loop {
            let mut record = stored.record.clone();
            edit(&mut record);
            if record == stored.record {
                return Ok(Some(stored));
            }
            let map = Self::map(&stored.name, Some(&stored.version), &record)?;
            match self.maps.replace(&stored.name, &writing(), &map).await {
                Ok(map) => return Ok(read(&map)),
                Err(error) if is_missing(&error) => return Ok(None),
                Err(error) if is_conflict(&error) && n_lost < CONFLICTS_MAX => n_lost += 1,
                Err(error) => return Err(error),
            }
            match self.machine(&known.name).await? {
                Some(newer) => stored = newer,
                None => return Ok(None),
            }
        }
    }

    /// Forgets a machine.
    pub(crate) async fn forget(&self, name: &str) -> Result<(), Error> {
        self.settle().await?;
        let deleted = self.maps.delete(name, &DeleteParams::default()).await;
        found(deleted).map(|_| ())
    }

    /// One Node.
    pub(crate) async fn node(&self, name: &str) -> Result<Option<NodeSeen>, Error> {
        let node = found(self.nodes.get(name).await)?;
        Ok(node.as_ref().map(seen))
    }

    /// All Nodes of simulated machines, by name.
    pub(crate) async fn nodes(&self) -> Result<Vec<(String, NodeSeen)>, Error> {
        let selector = format!("{SIMULATED_LABEL}=true");
        let list = self
            .nodes
            .list(&ListParams::default().labels(&selector))
            .await?;
        let named = |node: &Node| Some((node.metadata.name.clone()?, seen(node)));
        Ok(list.items.iter().filter_map(named).collect())
    }

    /// Creates a Node.
    pub(crate) async fn join(&self, node: Value) -> Result<Created<NodeSeen>, Error> {
        let node: Node = serde_json::from_value(node).map_err(Error::SerdeError)?;
        match self.nodes.create(&writing(), &node).await {
            Ok(node) => Ok(Created::New(seen(&node))),
            Err(error) if is_conflict(&error) => Ok(Created::Taken),
            Err(error) => Err(error),
        }
    }

    /// Deletes a Node, if it is still the same.
    pub(crate) async fn drop_node(&self, name: &str, uid: &str) -> Result<(), Error> {
        let same = Preconditions {
            uid: Some(uid.to_owned()),
            resource_version: None,
        };
        let how = DeleteParams::default().preconditions(same);
        match found(self.nodes.delete(name, &how).await) {
            Ok(_) => Ok(()),
            Err(error) if is_conflict(&error) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Silences the kubelet of a Node.
    pub(crate) async fn silence(&self, name: &str) -> Result<(), Error> {
        let patch = json!({"metadata": {"annotations": {KUBELET: "stopped"}}});
        let how = PatchParams {
            field_manager: Some(MANAGER.to_owned()),
            ..PatchParams::default()
        };
        let patched = self.nodes.patch(name, &how, &Patch::Merge(&patch)).await;
        found(patched).map(|_| ())
    }
}
