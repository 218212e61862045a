//! A whole cluster: the server, its first objects, and the loop that keeps it alive.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use jiff::Timestamp;
use joiner_api::labels::ours::DISK;
use joiner_cluster::{
    AccountTokens, Controller, CronJobs, DaemonSets, Deployments, DisruptionBudgets, EventExpiry,
    GarbageCollector, Jobs, Kubelets, Namespaces, NodeLifecycle, ReplicaSets, RoleAggregation,
    Scheduler, StatefulSets, VolumeAttacher, VolumeBinder,
};
use joiner_machinery::rbac::{self, bootstrap};
use joiner_machinery::{ApiError, meta};
use joiner_runtime::Clock;
use serde_json::{Value, json};

use crate::server::Server;
use crate::verbs::create::{By, insert};
use crate::verbs::tokens;
use crate::world::World;

/// How a sandbox starts.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Nodes that are there from the beginning.
    pub n_nodes: usize,
    /// The same seed gives the same names, uids and ties.
    pub seed: u64,
    /// CPU of each of these nodes.
    pub node_cpu: String,
    /// Memory of each of these nodes.
    pub node_memory: String,
    /// The certificate that clients in the cluster are to trust, PEM.
    pub ca_pem: String,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            n_nodes: 2,
            seed: 0,
            node_cpu: "4".to_owned(),
            node_memory: "16Gi".to_owned(),
            ca_pem: String::new(),
        }
    }
}

/// A running cluster; it ends when this is dropped.
#[derive(Debug)]
pub struct Sandbox {
    server: Arc<Server>,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Sandbox {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Sandbox {
    /// Starts a cluster with namespaces, CRDs and nodes. Needs a tokio runtime.
    pub fn start(clock: Clock, settings: &Settings) -> Result<Self, ApiError> {
        let server = Arc::new(Server::new(clock, settings.seed));
        first_objects(&server, settings)?;
        let world = World::new(
            Arc::clone(&server),
            settings.seed,
            controllers(&server, &settings.ca_pem),
        );
        let task = tokio::spawn(world.run());
        Ok(Self { server, task })
    }

    /// The API server.
    #[must_use]
    pub fn server(&self) -> &Arc<Server> {
        &self.server
    }

    /// A client that needs no socket.
    #[must_use]
    pub fn client(&self) -> kube::Client {
        crate::serve::client(&self.server)
    }
}

/// Everything that keeps a cluster going, in the order in which it looks.
#[must_use]
pub fn controllers(server: &Arc<Server>, ca_pem: &str) -> Vec<Box<dyn Controller>> {
    vec![
        Box::new(Namespaces::new(ca_pem)),
        Box::new(account_tokens(server, ca_pem)),
        Box::<RoleAggregation>::default(),
        Box::new(GarbageCollector::default()),
        Box::new(Deployments::default()),
        Box::new(StatefulSets::default()),
        Box::new(CronJobs::default()),
        Box::new(Jobs::default()),
        Box::new(ReplicaSets::default()),
        Box::new(DaemonSets::default()),
        Box::new(VolumeBinder::default()),
        Box::new(Scheduler::default()),
        Box::new(VolumeAttacher::default()),
        Box::new(Kubelets::default()),
        Box::new(NodeLifecycle::default()),
        Box::new(DisruptionBudgets::default()),
        Box::<joiner_cluster::Annotations>::default(),
        Box::new(EventExpiry::default()),
    ]
}

fn account_tokens(server: &Arc<Server>, ca_pem: &str) -> AccountTokens {
    let server = Arc::clone(server);
    let make = move |account: &Value, secret: &Value| tokens::kept(&server, account, secret);
    AccountTokens::new(ca_pem, Box::new(make), |text| BASE64_STANDARD.encode(text))
}

/// Makes the roles and bindings that every API server starts with.
pub fn first_roles(server: &Server) -> Result<(), ApiError> {
    for (plural, object) in bootstrap::objects() {
        put_as(
            server,
            "kube-apiserver",
            (rbac::GROUP, "v1", plural),
            object,
        )?;
    }
    Ok(())
}

fn first_objects(server: &Server, settings: &Settings) -> Result<(), ApiError> {
    for name in ["default", "kube-system", "kube-public", "kube-node-lease"] {
        put(
            server,
            "",
            "v1",
            "namespaces",
            json!({"metadata": {"name": name}}),
        )?;
    }
    first_roles(server)?;
    for (name, value) in [
        ("system-cluster-critical", 2_000_000_000),
        ("system-node-critical", 2_000_001_000),
    ] {
        let class = json!({"metadata": {"name": name}, "value": value,
            "description": "For pods that the cluster cannot do without."});
        put(server, "scheduling.k8s.io", "v1", "priorityclasses", class)?;
    }
    let storage = json!({"metadata": {"name": "standard", "annotations":
            {"storageclass.kubernetes.io/is-default-class": "true"}},
        "provisioner": DISK, "volumeBindingMode": "WaitForFirstConsumer"});
    put(server, "storage.k8s.io", "v1", "storageclasses", storage)?;
    let service = json!({"metadata": {"name": "kubernetes", "namespace": "default", "labels":
            {"component": "apiserver", "provider": "kubernetes"}},
        "spec": {"clusterIP": "10.96.0.1", "ports": [{"name": "https", "port": 443}]}});
    put(server, "", "v1", "services", service)?;
    for crd in joiner_api::crds() {
        put(
            server,
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
            crd,
        )?;
    }
    for n in 1..=settings.n_nodes {
        put(
            server,
            "",
            "v1",
            "nodes",
            node(settings, n, server.clock().now()),
        )?;
    }
    Ok(())
}

fn node(settings: &Settings, n: usize, now: Timestamp) -> Value {
    let name = format!("sandbox-{n}");
    let zone = ["sandbox-a", "sandbox-b", "sandbox-c"][(n - 1) % 3];
    let room = json!({"cpu": settings.node_cpu, "memory": settings.node_memory, "pods": "110",
        "ephemeral-storage": "100Gi"});
    json!({
        "metadata": {"name": name, "labels": {
            "kubernetes.io/hostname": name, "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64", "topology.kubernetes.io/zone": zone,
            "topology.kubernetes.io/region": "sandbox",
            "node.kubernetes.io/instance-type": "sandbox"}},
        "spec": {"providerID": format!("sandbox:///{zone}/{name}")},
        "status": {"capacity": room, "allocatable": room, "conditions": [
            {"type": "Ready", "status": "True", "reason": "KubeletReady",
             "message": "kubelet is posting ready status",
             "lastHeartbeatTime": meta::time(now), "lastTransitionTime": meta::time(now)}]}
    })
}

fn put(
    server: &Server,
    group: &str,
    version: &str,
    plural: &str,
    object: Value,
) -> Result<(), ApiError> {
    put_as(server, "joiner-sandbox", (group, version, plural), object)
}

fn put_as(
    server: &Server,
    manager: &str,
    (group, version, plural): (&str, &str, &str),
    mut object: Value,
) -> Result<(), ApiError> {
    let served = server.registry().find(group, version, plural)?;
    object["apiVersion"] = json!(served.kind.api_version());
    object["kind"] = json!(served.kind.kind);
    let namespace = meta::namespace(&object).to_owned();
    let namespace = (!namespace.is_empty()).then_some(namespace);
    let by = By {
        manager,
        user: None,
        dry_run: false,
        applied: false,
    };
    insert(server, &served, namespace.as_deref(), object, by)?;
    Ok(())
}
