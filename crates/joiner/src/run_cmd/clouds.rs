//! The cloud that `joiner run` buys from.

use std::sync::Arc;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use joiner_cloud::Cloud;
use joiner_cloud_sim::{Settings, SimulatedCloud, SimulatedKubelets};
use joiner_controllers::assembly::{Provided, while_leading};
use joiner_runtime::Clock;
use kube::Client;
use tokio::sync::watch;

use super::cluster::{AboutServer, own_namespace};
use super::flags::{CloudName, RunFlags};
use crate::sources::Reader;

/// Who sells machines, and what it brings.
pub(super) struct Provider {
    /// The cloud.
    pub(super) cloud: Arc<dyn Cloud>,
    /// Controllers of its own, of its node classes for example.
    pub(super) controllers: Option<Provided>,
    /// What else runs while we lead.
    tasks: Tasks,
    /// In a dry run its tasks do not run: the machines are another one's.
    is_dry_run: bool,
}

/// Makes what runs while we lead.
type Tasks = Box<dyn Fn(&AboutServer) -> BoxFuture<'static, ()> + Send + Sync>;

/// Opens the cloud that the flags name.
pub(super) fn open(
    name: CloudName,
    flags: &RunFlags,
    (client, clock): (&Client, &Clock),
    reader: &mut Reader,
) -> anyhow::Result<Provider> {
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
    let cloud = Arc::new(cloud);
    let (played, client, clock) = (Arc::clone(&cloud), client.clone(), clock.clone());
    let kubelets = flags.simulated_kubelets;
    let tasks = move |about: &AboutServer| {
        let cloud = Arc::clone(&played).run();
        // A sandbox plays the kubelets of all nodes itself.
        if !kubelets.unwrap_or(!about.is_sandbox) {
            return cloud.boxed();
        }
        let kubelets = SimulatedKubelets::new(client.clone(), clock.clone(), 0).run();
        futures::future::join(cloud, kubelets).map(|_| ()).boxed()
    };
    Ok(Provider {
        cloud,
        controllers: None,
        tasks: Box::new(tasks),
        is_dry_run: flags.dry_run,
    })
}

impl Provider {
    /// Runs what it does by itself, for ever: not at all in a dry run, and with an election only while we
    /// lead, since two players would disturb each other.
    pub(super) async fn plays(&self, about: &AboutServer, leading: Option<watch::Receiver<bool>>) {
        if self.is_dry_run {
            return std::future::pending().await;
        }
        while_leading(leading, || (self.tasks)(about)).await;
    }
}
