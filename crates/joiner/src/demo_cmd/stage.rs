//! Acts on the world, as a person with kubectl would, and as EC2 does.

use std::sync::Arc;

use anyhow::{Context, bail};
use joiner_cloud_sim::{Notice, SimulatedCloud};
use joiner_runtime::resource;
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::scene::{Picture, VERSION};

/// The pool buys these.
pub(super) const TYPES: [&str; 4] = ["c5.large", "m5.large", "r5.large", "m5.xlarge"];

/// What the pool says now.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Wanted {
    /// It may buy spot capacity.
    pub(super) spot: bool,
    /// A label of its nodes.
    pub(super) version: u32,
}

/// Acts on the world.
pub(super) struct Stage {
    client: Client,
    cloud: Arc<SimulatedCloud>,
}

impl Stage {
    pub(super) fn new(client: Client, cloud: Arc<SimulatedCloud>) -> Self {
        Self { client, cloud }
    }

    async fn apply(
        &self,
        plural: &str,
        namespace: Option<&str>,
        object: Value,
    ) -> anyhow::Result<()> {
        let version = object["apiVersion"].as_str().unwrap_or_default();
        let (group, version) = version.split_once('/').unwrap_or(("", version));
        let kind = object["kind"].as_str().unwrap_or_default();
        let resource = resource(group, version, plural, kind);
        let api: Api<DynamicObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.client.clone(), namespace, &resource),
            None => Api::all_with(self.client.clone(), &resource),
        };
        let name = object["metadata"]["name"].as_str().unwrap_or_default();
        let params = PatchParams::apply("joiner-demo").force();
        let applied = api.patch(name, &params, &Patch::Apply(&object)).await;
        applied.with_context(|| format!("cannot apply {kind} {name}"))?;
        Ok(())
    }

    /// A node class and the pool.
    pub(super) async fn set_up(&self) -> anyhow::Result<()> {
        let class = json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
            "metadata": {"name": "default"}, "spec": {
                "role": "demo", "amiSelectorTerms": [{"alias": "al2023@latest"}],
                "subnetSelectorTerms": [{"tags": {"demo": "yes"}}],
                "securityGroupSelectorTerms": [{"tags": {"demo": "yes"}}]}});
        self.apply("ec2nodeclasses", None, class).await?;
        self.pool(Wanted::default()).await
    }

    /// The pool.
    pub(super) async fn pool(&self, wanted: Wanted) -> anyhow::Result<()> {
        let capacity_types: &[&str] = match wanted.spot {
            true => &["spot", "on-demand"],
            false => &["on-demand"],
        };
        let pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
            "metadata": {"name": "default"}, "spec": {
                "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized",
                    "consolidateAfter": "15s", "budgets": [{"nodes": "1"}]},
                "template": {
                    "metadata": {"labels": {VERSION: format!("v{}", wanted.version + 1)}},
                    "spec": {
                        "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                        "requirements": [
                            {"key": "karpenter.sh/capacity-type", "operator": "In", "values": capacity_types},
                            {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": TYPES}]}}}});
        self.apply("nodepools", None, pool).await
    }

    /// The Deployment, with so many replicas.
    pub(super) async fn scale(&self, replicas: usize) -> anyhow::Result<()> {
        let labels = json!({"app": "inflate"});
        let deployment = json!({"apiVersion": "apps/v1", "kind": "Deployment",
            "metadata": {"name": "inflate", "namespace": "default"}, "spec": {
                "replicas": replicas, "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {
                    "terminationGracePeriodSeconds": 0, "containers": [{"name": "inflate",
                        "image": "registry.k8s.io/pause:3.10",
                        "resources": {"requests": {"memory": "1Gi"}}}]}}}});
        self.apply("deployments", Some("default"), deployment).await
    }

    /// EC2 takes the fullest spot node back. Returns its name.
    pub(super) async fn interrupt(&self, picture: &Picture) -> anyhow::Result<String> {
        let spot = picture.nodes.iter().filter(|node| node.is_spot());
        let Some(node) = spot.max_by_key(|node| node.n_pods) else {
            bail!("there is no spot node to be taken back");
        };
        let notice = self
            .cloud
            .interrupt(&node.name, Notice::SpotInterruption)
            .await;
        if !notice.context("the simulated cloud does not answer")? {
            bail!("the simulated cloud does not know {}", node.name);
        }
        Ok(node.name.clone())
    }
}
