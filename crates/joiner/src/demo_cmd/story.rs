//! The story: an `inflate` Deployment of 1 GiB pods, up and down, on a pool of four instance types.

use std::io::Write;
use std::time::Duration;

use anyhow::{Context, bail};
use jiff::Timestamp;
use joiner_runtime::{Clock, resource};
use kube::api::{DynamicObject, Patch, PatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};

use super::scene::{Picture, Scene};
use super::view::Screen;

/// Replicas, one chapter each.
const REPLICAS: [usize; 6] = [0, 5, 12, 5, 1, 0];
/// The pool buys these.
const TYPES: [&str; 4] = ["c5.large", "m5.large", "r5.large", "m5.xlarge"];
/// A chapter that takes longer than this (of the cluster's time) has gone wrong.
const CHAPTER_MAX: Duration = Duration::from_secs(300);
/// A chapter ends when its pods run and no node has come or gone for this long.
const QUIET: Duration = Duration::from_secs(60);

/// Acts on the world.
pub(super) struct Story {
    client: Client,
    clock: Clock,
}

/// How a chapter went.
pub(super) struct Told {
    pub(super) replicas: usize,
    pub(super) picture: Picture,
    pub(super) took: Duration,
}

impl Story {
    pub(super) fn new(client: Client, clock: Clock) -> Self {
        Self { client, clock }
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

    async fn set_up(&self) -> anyhow::Result<()> {
        let class = json!({"apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
            "metadata": {"name": "default"}, "spec": {
                "role": "demo", "amiSelectorTerms": [{"alias": "al2023@latest"}],
                "subnetSelectorTerms": [{"tags": {"demo": "yes"}}],
                "securityGroupSelectorTerms": [{"tags": {"demo": "yes"}}]}});
        self.apply("ec2nodeclasses", None, class).await?;
        let pool = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodePool",
            "metadata": {"name": "default"}, "spec": {
                "disruption": {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "15s"},
                "template": {"spec": {
                    "nodeClassRef": {"group": "karpenter.k8s.aws", "kind": "EC2NodeClass", "name": "default"},
                    "requirements": [
                        {"key": "karpenter.sh/capacity-type", "operator": "In", "values": ["on-demand"]},
                        {"key": "node.kubernetes.io/instance-type", "operator": "In", "values": TYPES}]}}}});
        self.apply("nodepools", None, pool).await
    }

    async fn scale(&self, replicas: usize) -> anyhow::Result<()> {
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
}

/// Plays all chapters.
pub(super) async fn play(
    story: &Story,
    scene: &Scene,
    screen: &mut Screen,
    out: &mut dyn Write,
    frame: Duration,
) -> anyhow::Result<Vec<Told>> {
    story.set_up().await?;
    let now = story.clock.now();
    let types = TYPES.join(", ");
    screen.chapter(
        out,
        now,
        &format!("NodePool default buys on demand: {types}"),
    )?;
    let mut told = Vec::new();
    for replicas in REPLICAS {
        let begun = story.clock.now();
        story.scale(replicas).await?;
        let text = format!("Deployment inflate (1 GiB pods) scaled to {replicas}");
        screen.chapter(out, begun, &text)?;
        let (ran, picture) = wait(story, scene, screen, out, (replicas, frame)).await?;
        let took = Duration::try_from(ran.duration_since(begun)).unwrap_or_default();
        let line = chapter_line(replicas, &picture, took);
        screen.chapter(out, picture.at, &line)?;
        told.push(Told {
            replicas,
            picture,
            took,
        });
    }
    Ok(told)
}

/// Shows how things go until the chapter's pods run and nodes neither come nor go. Returns when the
/// pods ran, and what is to be seen in the end.
async fn wait(
    story: &Story,
    scene: &Scene,
    screen: &mut Screen,
    out: &mut dyn Write,
    (replicas, frame): (usize, Duration),
) -> anyhow::Result<(Timestamp, Picture)> {
    let latest = story.clock.now() + CHAPTER_MAX;
    let mut ran: Option<Timestamp> = None;
    let mut last: Option<(Timestamp, String)> = None;
    loop {
        let picture = scene.picture().await?;
        screen.show(out, &picture)?;
        let now = picture.at;
        let runs = picture.n_running == replicas && picture.n_waiting == 0;
        if runs {
            ran.get_or_insert(now);
        }
        let nodes = picture.fingerprint();
        if last.as_ref().is_none_or(|(_, before)| *before != nodes) {
            last = Some((now, nodes));
        }
        let quiet = last
            .as_ref()
            .is_some_and(|(since, _)| now >= *since + QUIET);
        if let (Some(ran), true) = (ran, runs && (quiet || picture.nodes.is_empty())) {
            return Ok((ran, picture));
        }
        if now > latest {
            bail!(
                "the pods of {replicas} replicas do not all run after {} s: {} run, {} wait",
                CHAPTER_MAX.as_secs(),
                picture.n_running,
                picture.n_waiting
            );
        }
        // The viewer's time, not the cluster's.
        tokio::time::sleep(frame).await;
    }
}

fn chapter_line(replicas: usize, picture: &Picture, took: Duration) -> String {
    let pods = match replicas {
        1 => "1 pod runs".to_owned(),
        n => format!("{n} pods run"),
    };
    format!(
        "  {pods} after {} s on {} node(s) ({}), ${:.3} an hour",
        took.as_secs(),
        picture.nodes.len(),
        picture.types(),
        picture.price(),
    )
}

/// The figures, from what the objects said.
pub(super) async fn summary(
    told: &[Told],
    scene: &Scene,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    writeln!(out)?;
    writeln!(
        out,
        "replicas  nodes  price an hour  pods run after  instance types"
    )?;
    for own in told {
        writeln!(
            out,
            "{:>8}  {:>5}  {:>13}  {:>14}  {}",
            own.replicas,
            own.picture.nodes.len(),
            format!("${:.4}", own.picture.price()),
            format!("{} s", own.took.as_secs()),
            own.picture.types(),
        )?;
    }
    let last = scene.picture().await?;
    let most = told
        .iter()
        .map(|own| own.picture.nodes.len())
        .max()
        .unwrap_or(0);
    let waits: Vec<f64> = told
        .iter()
        .flat_map(|own| own.picture.waits.values().copied())
        .collect();
    let longest = waits.iter().copied().fold(0.0, f64::max);
    writeln!(out)?;
    writeln!(
        out,
        "At most {most} nodes at once; the longest that a pod waited for its node was {longest:.0} s \
         of the cluster's time. Now there are {} nodes for ${:.3} an hour.",
        last.nodes.len(),
        last.price(),
    )?;
    out.flush()?;
    Ok(())
}
