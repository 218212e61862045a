//! The cloud that `joiner run` buys from.

use std::sync::Arc;

use joiner_cloud_sim::{Settings, SimulatedCloud, SimulatedKubelets};
use joiner_runtime::Clock;
use kube::Client;
use tokio::sync::watch;

use super::cluster::{AboutServer, own_namespace};
use super::flags::{CloudName, RunFlags};
use crate::sources;

/// A cloud, and what it does by itself.
pub(super) struct Opened {
    /// The cloud.
    pub(super) cloud: Arc<SimulatedCloud>,
    /// Somebody else's machines are not ours to play with.
    is_dry_run: bool,
    /// Its machines need somebody to play their kubelets.
    kubelets: Option<(Client, Clock)>,
}

/// Opens the cloud that the flags name.
pub(super) fn open(
    name: CloudName,
    flags: &RunFlags,
    client: &Client,
    clock: &Clock,
    about: &AboutServer,
) -> anyhow::Result<Opened> {
    match name {
        CloudName::Simulated => {}
    }
    let instance_types = match &flags.instance_types {
        Some(path) => {
            let source = sources::read_file(path)?;
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
    let plays = flags.simulated_kubelets.unwrap_or(!about.is_sandbox);
    Ok(Opened {
        cloud: Arc::new(cloud),
        is_dry_run: flags.dry_run,
        kubelets: plays.then(|| (client.clone(), clock.clone())),
    })
}

impl Opened {
    /// Plays what the cloud does by itself, for ever: not at all in a dry run, and with an election
    /// only while we lead, since two players would disturb each other.
    pub(super) async fn plays(&self, leading: Option<watch::Receiver<bool>>) {
        if self.is_dry_run {
            return std::future::pending().await;
        }
        let Some(mut leading) = leading else {
            return self.play().await;
        };
        loop {
            if leading.wait_for(|leads| *leads).await.is_err() {
                return;
            }
            tokio::select! {
                () = self.play() => {}
                _ = leading.wait_for(|leads| !*leads) => {}
            }
        }
    }

    async fn play(&self) {
        let cloud = Arc::clone(&self.cloud).run();
        match &self.kubelets {
            None => cloud.await,
            Some((client, clock)) => {
                let kubelets = SimulatedKubelets::new(client.clone(), clock.clone(), 0).run();
                futures::future::join(cloud, kubelets).await;
            }
        }
    }
}
