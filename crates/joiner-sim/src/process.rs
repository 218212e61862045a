//! One process of the autoscaler: the simulated cloud and every controller on an API server.

use std::sync::Arc;

use joiner_cloud_sim::{Settings as CloudSettings, SimulatedCloud};
use joiner_controllers::Settings;
use joiner_controllers::assembly::{Autoscaler, Parts, while_leading};
use joiner_runtime::{
    Build, Clock, DecisionSettings, Decisions, Election, ElectionSettings, Events, Metrics,
};
use kube::Client;
use tokio::task::JoinSet;

/// How a process starts.
#[derive(Clone, Debug, Default)]
pub struct ProcessSettings {
    /// Settings of the controllers.
    pub controllers: Settings,
    /// Settings of the simulated cloud.
    pub cloud: CloudSettings,
    /// Decide and change nothing.
    pub dry_run: bool,
    /// Act only while this Lease is held; always without one.
    pub election: Option<ElectionSettings>,
    /// What the metrics say of the build.
    pub build: Build,
}

/// A running process; all of it ends when this is dropped.
#[derive(Debug)]
pub struct Process {
    cloud: Arc<SimulatedCloud>,
    autoscaler: Arc<Autoscaler>,
    election: Option<Arc<Election>>,
    tasks: JoinSet<()>,
}

impl Process {
    /// Starts one. Needs a tokio runtime.
    #[must_use]
    pub fn start(client: &Client, clock: &Clock, settings: &ProcessSettings) -> Self {
        let mut tasks = JoinSet::new();
        let cloud = SimulatedCloud::new(client.clone(), clock.clone(), settings.cloud.clone());
        let cloud = Arc::new(cloud);
        let metrics = Arc::new(Metrics::new(clock.clone(), &settings.build));
        let (events, writer) = Events::new(
            client.clone(),
            clock.clone(),
            Arc::clone(&metrics),
            settings.dry_run,
        );
        tasks.spawn(writer.run());
        let autoscaler = Arc::new(Autoscaler::start(Parts {
            client: client.clone(),
            cloud: Arc::clone(&cloud) as Arc<_>,
            provided: None,
            clock: clock.clone(),
            settings: settings.controllers.clone(),
            pace: (0, 0),
            dry_run: settings.dry_run,
            decisions: Decisions::new(&DecisionSettings::default(), Arc::clone(&metrics)),
            metrics,
            events,
        }));
        let elect = |own: ElectionSettings| Election::start(client.clone(), clock.clone(), own);
        let election = settings.election.clone().map(elect).map(Arc::new);
        let leading = election.as_ref().map(|election| election.leading());
        let (playing, leader) = (Arc::clone(&cloud), Arc::clone(&autoscaler));
        tasks.spawn(async move {
            // Two players of one cloud would disturb each other: it is played by the leader.
            let act = || async {
                futures::future::join(leader.lead(), Arc::clone(&playing).run()).await;
            };
            while_leading(leading, act).await;
        });
        Self {
            cloud,
            autoscaler,
            election,
            tasks,
        }
    }

    /// Who sells the machines.
    #[must_use]
    pub fn cloud(&self) -> &Arc<SimulatedCloud> {
        &self.cloud
    }

    /// The controllers.
    #[must_use]
    pub fn autoscaler(&self) -> &Arc<Autoscaler> {
        &self.autoscaler
    }

    /// True while this process acts.
    #[must_use]
    pub fn leads(&self) -> bool {
        let leading = self.election.as_ref().map(|election| election.leading());
        leading.is_none_or(|leading| *leading.borrow())
    }

    /// Ends it at once, whatever it is doing.
    pub async fn kill(mut self) {
        self.tasks.shutdown().await;
    }

    /// Ends it in an orderly way: the Lease is given back.
    pub async fn stop(mut self) {
        self.tasks.shutdown().await;
        if let Some(election) = self.election.take().and_then(Arc::into_inner) {
            election.release().await;
        }
    }
}
