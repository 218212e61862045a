//! The cloud that `joiner run` buys from.

use std::sync::Arc;

use joiner_cloud::Provider;
use joiner_cloud_sim::{Settings, SimulatedCloud, SimulatedKubelets};
use joiner_controllers::assembly::while_leading;
use joiner_runtime::Clock;
use kube::Client;
use tokio::sync::watch;

use super::cluster::{AboutServer, own_namespace};
use super::flags::{CloudName, RunFlags};
use crate::sources::Reader;

/// A cloud, and what it does by itself.
pub(super) struct Opened {
    /// The cloud and its tasks.
    pub(super) provider: Provider,
    /// Somebody else's machines are not ours to play with.
    is_dry_run: bool,
    /// Whether we play the kubelets of its machines, if anybody said.
    kubelets: Option<bool>,
    client: Client,
    clock: Clock,
}

/// Opens the cloud that the flags name.
pub(super) fn open(
    name: CloudName,
    flags: &RunFlags,
    (client, clock): (&Client, &Clock),
    reader: &mut Reader,
) -> anyhow::Result<Opened> {
    match name {
        CloudName::Simulated => {}
    }
    crate::region::known(&flags.region)?;
    let instance_types = match &flags.instance_types {
        Some(path) => {
            let source = reader.read_file(path)?;
            let types = joiner_state::parse_instance_types(&source.name, &source.text)?;
            Some(types)
        }
        None => None,
    };
    let settings = Settings {
        namespace: own_namespace(),
        region: flags.region.clone(),
        instance_types,
        ..Settings::default()
    };
    let cloud = SimulatedCloud::new(client.clone(), clock.clone(), settings);
    Ok(Opened {
        provider: Arc::new(cloud).provider(),
        is_dry_run: flags.dry_run,
        kubelets: flags.simulated_kubelets,
        client: client.clone(),
        clock: clock.clone(),
    })
}

impl Opened {
    /// Plays what the cloud does by itself, for ever. What changes something is not played in a dry
    /// run, and with an election only while we lead, since two players would disturb each other.
    pub(super) async fn plays(&self, about: &AboutServer, leading: Option<watch::Receiver<bool>>) {
        let acts = async {
            if self.is_dry_run {
                return std::future::pending().await;
            }
            while_leading(leading, || self.acts(about)).await;
        };
        tokio::select! {
            biased;
            task = self.provider.reads() => tell_end(task),
            () = acts => {}
        }
    }

    async fn acts(&self, about: &AboutServer) {
        let cloud = async { tell_end(self.provider.acts().await) };
        // A sandbox plays the kubelets of all nodes itself.
        if !self.kubelets.unwrap_or(!about.is_sandbox) {
            return cloud.await;
        }
        let kubelets = SimulatedKubelets::new(self.client.clone(), self.clock.clone(), 0).run();
        futures::future::join(cloud, kubelets).await;
    }
}

fn tell_end(task: &str) {
    tracing::error!(task, "a task of the cloud has ended");
}
