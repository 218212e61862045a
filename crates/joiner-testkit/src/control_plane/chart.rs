//! Our charts on a control plane, and a kubeconfig with exactly the permissions that they give.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::{ControlPlane, Error, Helm, Program, Programs, kubectl_with};

/// The release, its namespace, and the service account.
const NAME: &str = "joiner";
/// The kubeconfig of the service account, beside that of the admin.
const KUBECONFIG: &str = "kubeconfig-joiner";
/// Longer than any test.
const TOKEN_LIFE: &str = "24h";
/// How long a kind may take to be served after its definition is there.
const SERVED_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(200);
const KINDS: &str = "nodepools.karpenter.sh,nodeclaims.karpenter.sh,nodeoverlays.karpenter.sh,\
    capacitybuffers.autoscaling.x-k8s.io,kwoknodeclasses.karpenter.kwok.sh,\
    ec2nodeclasses.karpenter.k8s.aws";

/// A chart that was applied.
#[derive(Clone, Debug)]
pub struct Chart {
    /// A kubeconfig of its service account. Gone with the control plane.
    pub kubeconfig: PathBuf,
    /// The namespace that it is in; the kubeconfig's, too.
    pub namespace: &'static str,
    /// Everything that was applied, as YAML.
    pub manifests: String,
}

/// Applies the charts `joiner-crd` and `joiner` with the simulated cloud and these further settings
/// (`key=value`), and takes a token for the service account: whoever uses the kubeconfig may do
/// what the chart allows and nothing else. Returns when all kinds are served. `None` when there is
/// no helm and this is not CI.
///
/// The chart's own pods are not started (`replicas=0`): the program under test runs outside, and
/// pods of its own would be pending ones to it.
///
/// # Errors
/// When helm or the API server refuses something.
pub fn apply_chart(plane: &ControlPlane, settings: &[&str]) -> Result<Option<Chart>, Error> {
    let kubectl = |arguments: &[&str], input: &str| plane.kubectl_with_input(arguments, input);
    let Some((manifests, token)) = install(&kubectl, settings)? else {
        return Ok(None);
    };
    plane.write(KUBECONFIG, &plane.kubeconfig_for(NAME, &token, NAME))?;
    Ok(Some(Chart {
        kubeconfig: plane.folder().join(KUBECONFIG),
        namespace: NAME,
        manifests,
    }))
}

/// The same on any cluster, for an administrator's kubeconfig with a token; that of the service account
/// is written beside it. `None` also when there is no kubectl.
///
/// # Errors
/// When helm or the API server refuses something.
pub fn apply_chart_on(admin: &Path, settings: &[&str]) -> Result<Option<Chart>, Error> {
    let Some(programs) = Programs::find()? else {
        return Ok(None);
    };
    let Some(program) = programs.path(Program::Kubectl) else {
        return Ok(None);
    };
    let kubectl = |arguments: &[&str], input: &str| kubectl_with(&program, admin, arguments, input);
    let Some((manifests, token)) = install(&kubectl, settings)? else {
        return Ok(None);
    };
    let kubeconfig = admin.with_extension(NAME);
    let read = std::fs::read_to_string(admin);
    let text = read.map_err(Error::io(format!("read {}", admin.display())))?;
    let own = text.lines().map(|line| match line.split_once("token: ") {
        Some((before, _)) => format!("{before}token: {token}\n"),
        None => format!("{line}\n"),
    });
    let written = std::fs::write(&kubeconfig, own.collect::<String>());
    written.map_err(Error::io(format!("write {}", kubeconfig.display())))?;
    Ok(Some(Chart {
        kubeconfig,
        namespace: NAME,
        manifests,
    }))
}

/// Runs kubectl with arguments and an input.
type Kubectl<'k> = dyn Fn(&[&str], &str) -> Result<String, Error> + 'k;

/// Applies the charts; what was applied, and a token of the service account.
fn install(kubectl: &Kubectl<'_>, settings: &[&str]) -> Result<Option<(String, String)>, Error> {
    let Some(helm) = Helm::find()? else {
        return Ok(None);
    };
    let charts = charts();
    let definitions = helm.template(&charts.join("joiner-crd"), NAME, NAME, &[])?;
    apply(kubectl, &definitions)?;
    await_kinds(kubectl)?;
    if kubectl(&["get", "namespace", NAME], "").is_err() {
        kubectl(&["create", "namespace", NAME], "")?;
    }
    let all = [&["cloud=simulated", "replicas=0"], settings].concat();
    let manifests = helm.template(&charts.join("joiner"), NAME, NAME, &all)?;
    apply(kubectl, &manifests)?;
    let lifetime = format!("--duration={TOKEN_LIFE}");
    let token = kubectl(
        &["create", "token", NAME, "--namespace", NAME, &lifetime],
        "",
    )?;
    Ok(Some((manifests, token.trim().to_owned())))
}

/// The folder of our charts.
fn charts() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/charts")
}

fn apply(kubectl: &Kubectl<'_>, manifests: &str) -> Result<(), Error> {
    // The definitions may be the cluster's own already.
    let arguments = [
        "apply",
        "--server-side",
        "--force-conflicts",
        "--filename=-",
    ];
    kubectl(&arguments, manifests).map(drop)
}

/// Waits until all our kinds can be listed: a definition that is there is not yet served.
fn await_kinds(kubectl: &Kubectl<'_>) -> Result<(), Error> {
    let started = Instant::now();
    loop {
        match kubectl(&["get", "--all-namespaces", KINDS], "") {
            Ok(_) => return Ok(()),
            Err(error) if started.elapsed() > SERVED_MAX => return Err(error),
            Err(_) => std::thread::park_timeout(POLL),
        }
    }
}
