//! A scale-out from nothing on a real control plane, and back to a third of it.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::Context;
use joiner_testkit::control_plane::{ControlPlane, Program as Part, Programs};
use serde_json::{Value, json};

use super::program::{Joiner, Program, Usage};
use super::seen::Watch;
use super::{Catalog, story, until};
use crate::control_plane::tell;

/// No story takes longer.
const STORY_MAX: Duration = Duration::from_secs(20 * 60);
/// A cluster that did not change for so long has settled.
const QUIET: Duration = Duration::from_secs(60);
/// What is left of every Deployment after the scale-in, in percent.
const KEPT_PERCENT: usize = 30;
/// Who `joiner run` is, so that its requests can be counted.
const ACCOUNT: &str = "joiner-bench";

/// What came of one part of it.
#[derive(Clone, Debug, Default)]
pub(super) struct Phase {
    /// Pods that were asked for.
    pub(super) pods: usize,
    /// When the last claim for new pods was there, and the last of those pods ran; nothing when none
    /// were asked for.
    pub(super) running: Option<(f64, f64)>,
    /// When it was over, in seconds.
    pub(super) settled: f64,
    /// Pods that were moved.
    pub(super) moved: usize,
    /// Nodes at the end.
    pub(super) nodes: usize,
    /// What they cost an hour.
    pub(super) price: f64,
    /// What no plan undercuts.
    pub(super) floor: f64,
    /// What `joiner run` used, from its start.
    pub(super) usage: Usage,
    /// Requests that it sent, from its start.
    pub(super) requests: usize,
}

/// Plays the story once: out, and back in.
pub(super) fn run(
    joiner: &Joiner,
    programs: &Programs,
    logs: &Path,
    (catalog, pods): (Catalog, usize),
) -> anyhow::Result<[Phase; 2]> {
    let mut plane = ControlPlane::start_with(programs)?;
    anyhow::ensure!(
        plane.has(Part::ControllerManager) && plane.has(Part::Scheduler),
        "the story needs a controller manager and a scheduler; build them with `cargo xtask \
         control-plane build`"
    );
    let types = match catalog {
        Catalog::Generic => None,
        Catalog::Ec2 => Some(write_types(joiner, plane.folder())?),
    };
    let kept = pods * KEPT_PERCENT / 100;
    let floor = |pods| floor(joiner, plane.folder(), types.as_deref(), pods);
    let floors = [floor(pods)?, floor(kept)?];
    prepare(&plane)?;
    let kubeconfig = account(&plane)?;
    let mut command = joiner.call();
    command.args(["run", "--cloud", "simulated", "--metrics-port=0"]);
    command
        .args(["--health-probe-port=0", "--kubeconfig"])
        .arg(&kubeconfig);
    if let Some(types) = &types {
        command.arg("--instance-types").arg(types);
    }
    let log = logs.join(format!("{catalog:?}-{pods}.log"));
    let mut program = Program::start(&mut command, &log)?;
    apply(&plane, &story::list(&story::pool()))?;
    plane.kubectl(&[
        "wait",
        "--for=condition=Ready",
        "nodepool/default",
        "--timeout=60s",
    ])?;
    let path = programs
        .path(Part::Kubectl)
        .context("there is no kubectl")?;
    let config = plane.kubeconfig();
    let kubectl = || {
        let mut command = Command::new(&path);
        command.arg("--kubeconfig").arg(&config);
        command
    };
    let watch = Watch::begin(&kubectl);
    apply(&plane, &story::list(&story::deployments(pods)))?;
    until("all pods to run", STORY_MAX, || {
        plane.check()?;
        program.usage()?;
        Ok(watch.seen().pods_up() >= pods)
    })?;
    let times = watch.seen().times();
    tell(&times.to_string());
    let mut out = settle(&mut plane, &mut program, &watch, pods)?;
    out.running = Some((times.claims_there, times.pods_up));
    out.moved = watch.seen().n_pods_ever().saturating_sub(pods);
    out.floor = floors[0];
    let before = (
        watch.began.elapsed().as_secs_f64(),
        watch.seen().n_pods_ever(),
    );
    apply(&plane, &story::list(&story::deployments(kept)))?;
    let mut back = settle(&mut plane, &mut program, &watch, kept)?;
    back.settled = (back.settled - before.0).max(0.0);
    back.moved = watch.seen().n_pods_ever() - before.1;
    back.floor = floors[1];
    Ok([out, back])
}

/// Waits until nothing changes any more, and says what is there then.
fn settle(
    plane: &mut ControlPlane,
    program: &mut Program,
    watch: &Watch,
    pods: usize,
) -> anyhow::Result<Phase> {
    let look = || {
        let seen = watch.seen();
        let price = format!("{:.6}", seen.price());
        (
            seen.n_nodes(),
            price,
            seen.n_pods(),
            seen.pods_up(),
            seen.n_pods_ever(),
        )
    };
    let mut last = (look(), watch.began.elapsed());
    until("the cluster to settle", STORY_MAX, || {
        plane.check()?;
        program.usage()?;
        let now = look();
        if now != last.0 {
            last = (now, watch.began.elapsed());
        }
        let done = last.0.2 == pods && last.0.3 == pods;
        Ok(done && watch.began.elapsed() - last.1 > QUIET)
    })?;
    let seen = watch.seen();
    Ok(Phase {
        pods,
        settled: last.1.as_secs_f64(),
        nodes: seen.n_nodes(),
        price: seen.price(),
        usage: program.usage()?,
        requests: requests(&plane.kubectl(&["get", "--raw", "/metrics"])?),
        ..Phase::default()
    })
}

fn apply(plane: &ControlPlane, objects: &str) -> anyhow::Result<()> {
    plane.kubectl_with_input(&["apply", "--server-side", "-f", "-"], objects)?;
    Ok(())
}

/// Our kinds, and an account for `joiner run` whose requests are counted.
fn prepare(plane: &ControlPlane) -> anyhow::Result<()> {
    let mut crds = joiner_api::crds().into_iter().map(|crd| crd.to_string());
    crds.try_for_each(|crd| apply(plane, &crd))?;
    let established = [
        "wait",
        "--for=condition=Established",
        "crd",
        "--all",
        "--timeout=60s",
    ];
    plane.kubectl(&established)?;
    let account = json!({"kind": "ServiceAccount", "name": ACCOUNT, "namespace": "kube-system"});
    let mut subject = account.clone();
    subject["apiGroup"] = json!("");
    let objects = [
        json!({"apiVersion": "v1", "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT, "namespace": "kube-system"}}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "ClusterRoleBinding",
            "metadata": {"name": ACCOUNT}, "subjects": [subject],
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole",
                "name": "cluster-admin"}}),
        json!({"apiVersion": "flowcontrol.apiserver.k8s.io/v1", "kind": "FlowSchema",
            "metadata": {"name": ACCOUNT},
            "spec": {"matchingPrecedence": 10,
                "priorityLevelConfiguration": {"name": "exempt"},
                "rules": [{"subjects": [{"kind": "ServiceAccount", "serviceAccount":
                    {"name": ACCOUNT, "namespace": "kube-system"}}],
                    "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"],
                        "clusterScope": true, "namespaces": ["*"]}],
                    "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}]}]}}),
    ];
    apply(plane, &story::list(&objects))
}

/// The kubeconfig of the account.
fn account(plane: &ControlPlane) -> anyhow::Result<PathBuf> {
    let create = [
        "create",
        "token",
        ACCOUNT,
        "--namespace=kube-system",
        "--duration=6h",
    ];
    let token = plane.kubectl(&create)?;
    let text = std::fs::read_to_string(plane.kubeconfig()).context("there is no kubeconfig")?;
    let path = plane.folder().join("kubeconfig-bench");
    let text = text.replace(plane.token(), token.trim());
    std::fs::write(&path, text).context("cannot write a kubeconfig")?;
    Ok(path)
}

/// Writes the catalog of EC2.
fn write_types(joiner: &Joiner, folder: &Path) -> anyhow::Result<PathBuf> {
    let mut command = joiner.call();
    command.args(["catalog", "--category=c,m,r", "--capacity-type=on-demand"]);
    command.args(["--zone=us-east-1a,us-east-1b,us-east-1c", "-o", "json"]);
    let path = folder.join("instance-types.json");
    std::fs::write(&path, output(&mut command)?).context("cannot write the catalog")?;
    Ok(path)
}

/// What no plan for these pods undercuts.
fn floor(joiner: &Joiner, folder: &Path, types: Option<&Path>, pods: usize) -> anyhow::Result<f64> {
    let mut objects = story::pool();
    objects.extend(story::deployments(pods));
    let path = folder.join("story.json");
    std::fs::write(&path, story::list(&objects)).context("cannot write the story")?;
    let mut command = joiner.call();
    command
        .arg("plan")
        .arg("-f")
        .arg(&path)
        .args(["-o", "json"]);
    if let Some(types) = types {
        command.arg("--instance-types").arg(types);
    }
    let plan: Value = serde_json::from_slice(&output(&mut command)?)?;
    let floor = plan["cost"]["lowerBoundPerHour"].as_f64();
    floor.context("the plan has no lower bound")
}

fn output(command: &mut Command) -> anyhow::Result<Vec<u8>> {
    let output = command.output().context("cannot run joiner")?;
    let errors = String::from_utf8_lossy(&output.stderr);
    anyhow::ensure!(output.status.success(), "joiner: {}", errors.trim());
    Ok(output.stdout)
}

/// How many requests the account has sent, as the API server counts them.
fn requests(metrics: &str) -> usize {
    let counted = metrics.lines().filter(|line| {
        line.starts_with("apiserver_flowcontrol_dispatched_requests_total{")
            && line.contains(&format!("flow_schema=\"{ACCOUNT}\""))
    });
    let counts = counted.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok());
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a count of requests"
    )]
    let sum = counts.sum::<f64>() as usize;
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_our_requests_count() {
        let name = "apiserver_flowcontrol_dispatched_requests_total";
        let metrics = format!(
            "{name}{{flow_schema=\"joiner-bench\",priority_level=\"exempt\"}} 1.2e+03\n\
             {name}{{flow_schema=\"probes\",priority_level=\"exempt\"}} 7\n"
        );
        assert_eq!(requests(&metrics), 1200);
    }
}
