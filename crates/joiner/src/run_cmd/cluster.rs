//! The cluster that `joiner run` works on: client, version, endpoints.

use std::sync::Arc;

use anyhow::{Context, bail};
use joiner_controllers::assembly::Autoscaler;
use joiner_runtime::{Decisions, HttpSettings, Metrics, Ready, Servers};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};

use super::flags::RunFlags;

/// Where a pod finds its own namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// Where we live when nobody says.
const NAMESPACE: &str = "kube-system";

/// What the server says of itself.
pub(super) struct AboutServer {
    /// Its version.
    pub(super) version: String,
    /// It is a sandbox of ours, which plays the kubelets of all nodes.
    pub(super) is_sandbox: bool,
}

/// A client for the cluster that the flags name.
pub(super) async fn client(flags: &RunFlags) -> anyhow::Result<Client> {
    let config = match &flags.kubeconfig {
        Some(path) => {
            let file = Kubeconfig::read_from(path)
                .with_context(|| format!("cannot read the kubeconfig {}", path.display()))?;
            Config::from_custom_kubeconfig(file, &KubeConfigOptions::default())
                .await
                .with_context(|| format!("cannot use the kubeconfig {}", path.display()))?
        }
        None => Config::infer().await.context(
            "there is no cluster to run on: no kubeconfig (KUBECONFIG, ~/.kube/config) and no \
             service account of a pod; name a kubeconfig with --kubeconfig",
        )?,
    };
    let server = config.cluster_url.to_string();
    Client::try_from(config).with_context(|| format!("cannot make a client for {server}"))
}

/// Asks the server what it is: a wrong address or bad credentials are told at once.
pub(super) async fn about(client: &Client) -> anyhow::Result<AboutServer> {
    let version = match client.apiserver_version().await {
        Ok(version) => version,
        Err(kube::Error::Api(status)) if status.code == 401 => bail!(
            "the API server does not accept our credentials: {}; renew the token or certificate \
             of the kubeconfig",
            status.message
        ),
        Err(error) => {
            return Err(error).context(
                "cannot reach the API server: check the address in the kubeconfig, and that the \
                 server runs and its certificate has not expired",
            );
        }
    };
    Ok(AboutServer {
        is_sandbox: version.git_commit == "joiner",
        version: version.git_version,
    })
}

/// Opens the endpoints for metrics and health.
pub(super) async fn listen(
    flags: &RunFlags,
    autoscaler: &Arc<Autoscaler>,
    metrics: &Arc<Metrics>,
    decisions: &Decisions,
) -> anyhow::Result<Servers> {
    let world = autoscaler.ctx().world.clone();
    let ready = move || match world.missing().as_slice() {
        [] => Ok(()),
        missing => Err(missing.join("\n")),
    };
    let settings = HttpSettings {
        address: None,
        metrics_port: flags.metrics_port,
        health_port: flags.health_probe_port,
    };
    let ready: Ready = Arc::new(ready);
    let servers = Servers::start(&settings, Arc::clone(metrics), decisions.clone(), ready).await?;
    tracing::info!(
        metrics = %servers.metrics_address,
        health = %servers.health_address,
        "listening"
    );
    Ok(servers)
}

/// The namespace we live in.
pub(super) fn own_namespace() -> String {
    let given = variable("SYSTEM_NAMESPACE");
    let given = given.or_else(|| std::fs::read_to_string(NAMESPACE_FILE).ok());
    let given = given.map(|text| text.trim().to_owned());
    given
        .filter(|text| !text.is_empty())
        .unwrap_or_else(|| NAMESPACE.to_owned())
}

/// The name of our pod, or of our machine.
pub(super) fn own_name() -> String {
    let machine = || std::fs::read_to_string("/etc/hostname").ok();
    let name = variable("POD_NAME")
        .or_else(|| variable("HOSTNAME"))
        .or_else(machine);
    let name = name.map(|text| text.trim().to_owned());
    name.filter(|text| !text.is_empty())
        .unwrap_or_else(|| "joiner".to_owned())
}

#[expect(
    clippy::disallowed_methods,
    reason = "this is the binary, where settings are read"
)]
fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
