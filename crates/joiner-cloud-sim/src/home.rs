//! Where machines are kept: in a namespace of their own, so that whoever keeps them may write nothing else.
//!
//! Older versions kept them in the namespace of the controller. They are taken over once: each is copied,
//! then removed where it was.
//!
//! *Guarantees*: a crash at any moment loses no machine and makes none twice, since the copy has the
//! name of the original and comes first. What cannot be read is not taken for nothing: where Nodes of
//! simulated machines are there and no machine is, and the old place cannot be read, nothing begins.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use k8s_openapi::api::core::v1::{ConfigMap, Namespace, Node};
use kube::api::{DeleteParams, ListParams, ObjectMeta, Preconditions};
use kube::core::Status;
use kube::{Api, Client, Error};
use tokio::sync::Mutex;

use crate::objects::{found, is_conflict, is_forbidden, is_missing, machines, writing};
use crate::settings::{INSTANCE_LABEL, MACHINES_NAMESPACE, SIMULATED_LABEL};

/// ConfigMap that says what the namespace is for, and that all machines are in it.
const ABOUT: &str = "about-this-namespace";

fn about_text() -> String {
    format!(
        "Each ConfigMap here with the label {INSTANCE_LABEL} is a machine of Joiner's simulated \
         cloud. One that is deleted is a machine that is gone."
    )
}

/// The namespace of the machines.
#[derive(Clone)]
pub(crate) struct Home {
    namespaces: Api<Namespace>,
    maps: Api<ConfigMap>,
    nodes: Api<Node>,
    /// Where older versions kept them, and the name of that namespace.
    old: Option<(Api<ConfigMap>, String)>,
    settled: Arc<AtomicBool>,
    turn: Arc<Mutex<()>>,
}

impl Home {
    pub(crate) fn new(client: &Client, old: &str) -> Self {
        let is_other = old != MACHINES_NAMESPACE;
        let maps = |namespace: &str| Api::namespaced(client.clone(), namespace);
        Self {
            namespaces: Api::all(client.clone()),
            maps: maps(MACHINES_NAMESPACE),
            nodes: Api::all(client.clone()),
            old: is_other.then(|| (maps(old), old.to_owned())),
            settled: Arc::default(),
            turn: Arc::default(),
        }
    }

    /// Makes sure that the namespace is there and that all machines are in it.
    pub(crate) async fn settle(&self) -> Result<(), Error> {
        if self.is_settled() {
            return Ok(());
        }
        let _turn = self.turn.lock().await;
        if self.is_settled() {
            return Ok(());
        }
        let was_settled = found(self.maps.get(ABOUT).await)?.is_some();
        if !was_settled {
            self.found().await?;
        }
        self.take_over(was_settled).await?;
        if !was_settled {
            let about = ConfigMap {
                metadata: named(ABOUT),
                data: Some([("about".to_owned(), about_text())].into()),
                ..ConfigMap::default()
            };
            unless_there(self.maps.create(&writing(), &about).await)?;
        }
        self.settled.store(true, Ordering::Release);
        Ok(())
    }

    fn is_settled(&self) -> bool {
        self.settled.load(Ordering::Acquire)
    }

    /// The namespace is not there any more.
    pub(crate) fn is_gone(&self) {
        self.settled.store(false, Ordering::Release);
    }

    /// Makes the namespace, if it is not there.
    async fn found(&self) -> Result<(), Error> {
        match self.namespaces.get(MACHINES_NAMESPACE).await {
            Err(error) if is_missing(&error) => {}
            // Whoever may not look may still find it there.
            Err(error) if !is_forbidden(&error) => return Err(error),
            _ => return Ok(()),
        }
        let namespace = Namespace {
            metadata: named(MACHINES_NAMESPACE),
            ..Namespace::default()
        };
        match unless_there(self.namespaces.create(&writing(), &namespace).await) {
            Err(error) if is_forbidden(&error) => Err(refused(&format!(
                "the simulated cloud keeps its machines in the namespace {MACHINES_NAMESPACE}, which \
                 is not there and may not be created: kubectl create namespace {MACHINES_NAMESPACE}"
            ))),
            other => other,
        }
    }

    /// Moves the machines of older versions here.
    async fn take_over(&self, was_settled: bool) -> Result<(), Error> {
        let Some((maps, from)) = &self.old else {
            return Ok(());
        };
        let all = match maps.list(&machines()).await {
            Ok(list) => list.items,
            Err(error) if is_forbidden(&error) => {
                if was_settled || !self.lacks_machines().await? {
                    return Ok(());
                }
                return Err(refused(&format!(
                    "there are Nodes of simulated machines, but no machines in the namespace \
                     {MACHINES_NAMESPACE}. Those of older versions are ConfigMaps of {from}, which may not be \
                     listed: allow list and delete there until they are taken over (Helm: \
                     simulatedCloud.takeOver=true), or delete these Nodes ({error})"
                )));
            }
            Err(error) => return Err(error),
        };
        for old in &all {
            let name = old.metadata.name.clone().unwrap_or_default();
            let copy = ConfigMap {
                metadata: ObjectMeta {
                    labels: old.metadata.labels.clone(),
                    ..named(&name)
                },
                data: old.data.clone(),
                ..ConfigMap::default()
            };
            unless_there(self.maps.create(&writing(), &copy).await)?;
            let same = Preconditions {
                uid: old.metadata.uid.clone(),
                resource_version: None,
            };
            let how = DeleteParams::default().preconditions(same);
            match found(maps.delete(&name, &how).await) {
                Ok(_) => {}
                Err(error) if is_conflict(&error) => {}
                Err(error) => return Err(error),
            }
        }
        if !all.is_empty() {
            let n = all.len();
            tracing::info!(
                machines = n,
                from,
                to = MACHINES_NAMESPACE,
                "took over simulated machines"
            );
        }
        Ok(())
    }

    /// True when there are Nodes of simulated machines and no machine.
    async fn lacks_machines(&self) -> Result<bool, Error> {
        let one = machines().limit(1);
        if !self.maps.list(&one).await?.items.is_empty() {
            return Ok(false);
        }
        let one = ListParams::default().limit(1);
        let nodes = one.labels(&format!("{SIMULATED_LABEL}=true"));
        Ok(!self.nodes.list(&nodes).await?.items.is_empty())
    }

    /// A machine that has not been taken over yet.
    pub(crate) async fn old_machine(&self, name: &str) -> Result<Option<ConfigMap>, Error> {
        match &self.old {
            Some((maps, _)) if !self.is_settled() => {
                let is_machine = |map: &ConfigMap| {
                    let labels = map.metadata.labels.as_ref();
                    labels.is_some_and(|labels| labels.contains_key(INSTANCE_LABEL))
                };
                let map = unless_forbidden(found(maps.get(name).await))?;
                Ok(map.filter(is_machine))
            }
            _ => Ok(None),
        }
    }

    /// Machines that have not been taken over yet.
    pub(crate) async fn old_machines(&self) -> Result<Vec<ConfigMap>, Error> {
        match &self.old {
            Some((maps, _)) if !self.is_settled() => {
                let list = maps.list(&machines()).await;
                unless_forbidden(list.map(|list| list.items))
            }
            _ => Ok(Vec::new()),
        }
    }
}

fn named(name: &str) -> ObjectMeta {
    ObjectMeta {
        name: Some(name.to_owned()),
        ..ObjectMeta::default()
    }
}

/// Something that is there already is as good as made.
fn unless_there<T>(answer: Result<T, Error>) -> Result<(), Error> {
    match answer {
        Err(error) if !is_conflict(&error) => Err(error),
        _ => Ok(()),
    }
}

/// What we may not see is left to [`Home::settle`].
fn unless_forbidden<T: Default>(answer: Result<T, Error>) -> Result<T, Error> {
    match answer {
        Err(error) if is_forbidden(&error) => Ok(T::default()),
        other => other,
    }
}

fn refused(message: &str) -> Error {
    Error::Api(Status::failure(message, "Forbidden").with_code(403).boxed())
}
