//! The whole autoscaler on an embedded control plane: the simulated cloud and every controller.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use joiner_cloud_sim::{Delay, Delays, Settings as CloudSettings, SimulatedCloud};
use joiner_controllers::Settings;
use joiner_controllers::settings::FeatureGates;
use joiner_runtime::{Clock, Decisions, HttpError, HttpSettings, Receipts, Servers};
use joiner_sim::{Process, ProcessSettings};
use kube::Client;

/// A running autoscaler; it ends when this is dropped.
pub(crate) struct Embedded(Process);

impl Embedded {
    /// Starts everything; machines take about as long as those of a real cloud, and are bought in this
    /// region.
    pub(crate) fn start(client: Client, clock: Clock, region: &str) -> Self {
        Self::start_with(client, clock, region, playground())
    }

    /// For a story that is a day in minutes: what a workload puts up with in a day does not count, and
    /// pods that come together are planned together, though the cluster makes them at the speed of
    /// this machine.
    pub(crate) fn start_patient(client: Client, clock: Clock, region: &str) -> Self {
        let mut controllers = playground();
        controllers.disruption.moves_per_replica = 0;
        controllers.batching.idle = Some(Duration::from_secs(3));
        Self::start_with(client, clock, region, controllers)
    }

    fn start_with(client: Client, clock: Clock, region: &str, controllers: Settings) -> Self {
        let between = |min, max| Delay::Uniform {
            min: Duration::from_secs(min),
            max: Duration::from_secs(max),
        };
        let cloud = CloudSettings {
            region: region.to_owned(),
            delays: Delays {
                launch: between(1, 3),
                boot: between(20, 30),
                shutdown: between(10, 20),
            },
            ..CloudSettings::default()
        };
        let settings = ProcessSettings {
            controllers,
            cloud,
            build: crate::build(),
            ..ProcessSettings::default()
        };
        Self(Process::start(&client, &clock, &settings))
    }

    /// Who sells the machines.
    pub(crate) fn cloud(&self) -> Arc<SimulatedCloud> {
        Arc::clone(self.0.cloud())
    }

    /// What was decided, and why.
    pub(crate) fn decisions(&self) -> Decisions {
        self.0.autoscaler().shared().decisions.clone()
    }

    /// Answers `joiner why`, and shows metrics, to this machine: on the port that is named, else on
    /// the usual one or, if somebody has that, on any.
    pub(crate) async fn listen(&self, port: Option<u16>) -> Result<Servers, HttpError> {
        let usual = HttpSettings::default().metrics_port;
        match self.listen_on(port.unwrap_or(usual)).await {
            Err(HttpError::Taken { .. }) if port.is_none() => self.listen_on(0).await,
            other => other,
        }
    }

    async fn listen_on(&self, metrics_port: u16) -> Result<Servers, HttpError> {
        let settings = HttpSettings {
            address: Some(IpAddr::V4(Ipv4Addr::LOCALHOST)),
            metrics_port,
            health_port: 0,
            ..HttpSettings::default()
        };
        let shared = self.0.autoscaler().shared();
        let receipts = Receipts {
            decisions: shared.decisions.clone(),
            world: shared.world.clone(),
            clock: shared.clock.clone(),
        };
        let ready = Arc::new(|| Ok(()));
        Servers::start(&settings, Arc::clone(&shared.metrics), receipts, ready).await
    }
}

/// Everything there is to try is on.
fn playground() -> Settings {
    Settings {
        gates: FeatureGates {
            node_repair: true,
            node_overlay: true,
            static_capacity: true,
            capacity_buffer: true,
            ..FeatureGates::default()
        },
        ..Settings::default()
    }
}
