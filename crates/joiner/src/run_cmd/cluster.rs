//! The cluster that `joiner run` works on: client, version, endpoints.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use anyhow::Context;
use joiner_controllers::assembly::Autoscaler;
use joiner_runtime::{Clock, HttpSettings, Metrics, Ready, Receipts, Servers};
use kube::config::KubeConfigOptions;
use kube::{Client, Config};

use super::flags::RunFlags;
use crate::kubeconfig;
use crate::sources::Reader;
use crate::terminal::said_once;

/// Where a pod finds its own namespace.
const NAMESPACE_FILE: &str = "/var/run/secrets/kubernetes.io/serviceaccount/namespace";
/// Where we live when nobody says.
const NAMESPACE: &str = "kube-system";
/// Pauses between two questions to a server that does not answer.
const PAUSE_MIN: Duration = Duration::from_secs(1);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// The longest that an answer may take.
const ANSWER_MAX: Duration = Duration::from_secs(10);

/// What the server says of itself.
pub(super) struct AboutServer {
    /// Its version.
    pub(super) version: String,
    /// It is a sandbox of ours, which plays the kubelets of all nodes.
    pub(super) is_sandbox: bool,
}

/// A client for the cluster that the flags name.
pub(super) async fn client(flags: &RunFlags, reader: &mut Reader) -> anyhow::Result<Client> {
    let options = KubeConfigOptions {
        context: flags.context.clone(),
        ..KubeConfigOptions::default()
    };
    let mut config = match &flags.kubeconfig {
        Some(path) => {
            let file = kubeconfig::read(path, reader)?;
            Config::from_custom_kubeconfig(file, &options)
                .await
                .with_context(|| format!("cannot use the kubeconfig {}", path.display()))?
        }
        // A context that is named is one of a kubeconfig, not of the pod we may run in.
        None if flags.context.is_some() => Config::from_kubeconfig(&options)
            .await
            .context("cannot use the kubeconfig; name another with --kubeconfig")?,
        None => Config::infer().await.context(
            "there is no cluster to run on: no kubeconfig (KUBECONFIG, ~/.kube/config) and no \
             service account of a pod; name a kubeconfig with --kubeconfig",
        )?,
    };
    // Whoever asks knows what a refusal means and when to ask again. A client that repeats an eviction by
    // itself while a budget says no does so for minutes, whatever has been decided meanwhile.
    config.default_retry = false;
    let server = config.cluster_url.to_string();
    Client::try_from(config).with_context(|| format!("cannot make a client for {server}"))
}

/// Asks the server what it is, until it answers. A server that is away may come back, and whoever
/// starts us would only start us again: what is wrong is told, and tried again with growing pauses.
pub(super) async fn about(client: &Client, clock: &Clock, away: &Away) -> AboutServer {
    let mut pause = PAUSE_MIN;
    loop {
        match ask(client, clock).await {
            Ok(about) => {
                if away.note(None).is_some() {
                    tracing::info!("the API server answers");
                }
                return about;
            }
            Err(trouble) => {
                if away.note(Some(trouble.clone())).as_ref() != Some(&trouble) {
                    tracing::warn!("{trouble}; trying again");
                }
            }
        }
        clock.sleep(pause).await;
        pause = (pause * 2).min(PAUSE_MAX);
    }
}

async fn ask(client: &Client, clock: &Clock) -> Result<AboutServer, String> {
    let remedy = "check the address in the kubeconfig, and that the server runs and its \
                  certificate has not expired";
    let answer = tokio::select! {
        answer = client.apiserver_version() => answer,
        () = clock.sleep(ANSWER_MAX) => {
            return Err(format!("the API server does not answer: {remedy}"));
        }
    };
    match answer {
        Ok(version) => Ok(AboutServer {
            is_sandbox: version.git_commit == "joiner",
            version: version.git_version,
        }),
        Err(kube::Error::Api(status)) if status.code == 401 => Err(format!(
            "the API server does not accept our credentials: renew the token or certificate of the \
             kubeconfig ({})",
            status.message
        )),
        Err(error) => {
            let cause = anyhow::Error::new(error);
            let cause = said_once(&cause);
            Err(format!("cannot reach the API server: {remedy} ({cause})"))
        }
    }
}

/// What keeps the server from answering us at the start.
#[derive(Clone, Debug, Default)]
pub(super) struct Away(Arc<Mutex<Option<String>>>);

impl Away {
    /// Remembers what is wrong, or that nothing is; returns what was wrong before.
    fn note(&self, trouble: Option<String>) -> Option<String> {
        let mut own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        std::mem::replace(&mut *own, trouble)
    }

    fn trouble(&self) -> Option<String> {
        let own = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        own.clone()
    }
}

/// Opens the endpoints for metrics and health.
pub(super) async fn listen(
    flags: &RunFlags,
    autoscaler: &Arc<Autoscaler>,
    metrics: &Arc<Metrics>,
    away: &Away,
) -> anyhow::Result<Servers> {
    let (world, away) = (autoscaler.shared().world.clone(), away.clone());
    let ready = move || match (away.trouble(), world.missing().as_slice()) {
        (Some(trouble), _) => Err(trouble),
        (None, []) => Ok(()),
        (None, missing) => Err(missing.join("\n")),
    };
    let settings = HttpSettings {
        metrics_port: flags.metrics_port,
        health_port: flags.health_probe_port,
        debug_hosts: flags.debug_hosts.clone(),
        ..HttpSettings::default()
    };
    let ready: Ready = Arc::new(ready);
    let shared = autoscaler.shared();
    let receipts = Receipts {
        decisions: shared.decisions.clone(),
        world: shared.world.clone(),
        clock: shared.clock.clone(),
    };
    let servers = Servers::start(&settings, Arc::clone(metrics), receipts, ready).await?;
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
