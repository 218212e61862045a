//! Clusters to run on: the embedded control plane as a process of its own, and a real one.

use std::io::{BufRead, BufReader};
use std::ops::Deref;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use joiner_runtime::Clock;
use joiner_testkit::control_plane::ControlPlane;
use joiner_testkit::stage::{Cluster, Patience, Turn, client_of, real_plane};
use serde_json::json;

use crate::run::process::{joiner, place};

/// Who serves.
enum Server {
    Sandbox(Child),
    Shared(Turn),
    Own(Box<ControlPlane>),
}

/// A cluster without an autoscaler, and a kubeconfig for it.
pub(crate) struct Served {
    pub(crate) kubeconfig: PathBuf,
    cluster: Cluster,
    server: Server,
}

impl Drop for Served {
    fn drop(&mut self) {
        if let Server::Sandbox(child) = &mut self.server {
            let _ = child.kill();
            let _ = child.wait();
            let _ = std::fs::remove_file(&self.kubeconfig);
        }
    }
}

impl Deref for Served {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl Served {
    /// `joiner sandbox` without nodes and without the autoscaler.
    pub(crate) async fn embedded() -> Self {
        let kubeconfig = place("kubeconfig");
        let mut command = joiner();
        command
            .args(["sandbox", "--autoscaler=false", "--nodes", "0"])
            .arg("--kubeconfig")
            .arg(&kubeconfig);
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("Ctrl-C")));
        Self::new(kubeconfig, Server::Sandbox(child)).await
    }

    /// The real control plane, with our kinds and nothing else on it, if there is one.
    pub(crate) async fn real() -> Option<Self> {
        let (_, turn) = real_plane().await?;
        Some(Self::new(turn.plane.kubeconfig(), Server::Shared(turn)).await)
    }

    /// A real control plane of its own, without our kinds, if there is one.
    pub(crate) async fn bare() -> Option<Self> {
        let Some(plane) = ControlPlane::start().unwrap() else {
            println!("skipped: there is no control plane; cargo xtask control-plane build");
            return None;
        };
        Some(Self::new(plane.kubeconfig(), Server::Own(Box::new(plane))).await)
    }

    async fn new(kubeconfig: PathBuf, server: Server) -> Self {
        let cluster = Cluster {
            client: client_of(&kubeconfig).await,
            clock: Clock::system(1),
            patience: Patience::REAL,
        };
        Self {
            kubeconfig,
            cluster,
            server,
        }
    }

    /// The real control plane.
    pub(crate) fn plane(&self) -> &ControlPlane {
        match &self.server {
            Server::Shared(turn) => turn.plane,
            Server::Own(plane) => plane,
            Server::Sandbox(_) => panic!("a sandbox has no kubectl"),
        }
    }

    /// A KWOKNodeClass and a pool that buys linux on demand, in machines of up to 16 processors.
    pub(crate) async fn pool(&self) {
        let requirements = json!([
            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
            {"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]},
            {"key": "karpenter.kwok.sh/instance-cpu", "operator": "Lt", "values": ["17"]}]);
        let template = json!({"spec": {"requirements": requirements}});
        let more = json!({"spec": {"template": template}});
        self.cluster.pool("general", more).await;
    }

    /// A Deployment of pods with one processor each.
    pub(crate) async fn deployment(&self, name: &str, replicas: usize) {
        self.cluster
            .deployment(name, replicas, "1", json!({}))
            .await;
    }
}
