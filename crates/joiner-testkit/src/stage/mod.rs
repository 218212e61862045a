//! A cluster with an autoscaler on it, for stories: on the embedded control plane in virtual time, and
//! on a real one.
//!
//! - [`Cluster`] is the API server as tests see it: builders put objects there, outcomes are waited
//!   for.
//! - [`Stage`] adds a process of the autoscaler ([`joiner_sim::Process`]) that can be killed, started
//!   anew, and cut off ([`joiner_sim::Network`]).
//! - [`story!`] makes tests of a story; [`transcript`](Stage::transcript) is what was decided.

#![expect(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "what only tests use may fail as tests do"
)]

mod cluster;
mod drifts;
mod kinds;
mod objects;
mod plane;

use std::ops::Deref;
use std::time::Duration;

use jiff::Timestamp;
use joiner_cloud_sim::{Settings as CloudSettings, SimulatedCloud, SimulatedKubelets};
use joiner_controllers::Settings;
use joiner_controllers::assembly::Autoscaler;
use joiner_controllers::background::Background;
use joiner_controllers::settings::FeatureGates;
use joiner_receipts::Decision;
use joiner_runtime::{Clock, ElectionSettings};
use joiner_sandbox::Sandbox;
pub use joiner_sim::{Crash, Trouble};
use joiner_sim::{Network, Process, ProcessSettings};
use tokio::task::JoinSet;

pub use cluster::{Cluster, Patience, patiently};
pub use drifts::Drifts;
pub use kinds::*;
pub use objects::{condition, merge, n_running, record, since};
pub use plane::{Turn, client_of, install_kinds, real_plane};

/// Pods that are made together come within this long of each other on a real control plane, even on
/// a busy machine.
const TOGETHER: Duration = Duration::from_millis(1_500);

/// How a story wants its cluster.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Settings of the controllers.
    pub settings: Settings,
    /// Settings of the simulated cloud.
    pub cloud: CloudSettings,
    /// How fast time goes on a real control plane. Its own programs know nothing of it, so that
    /// what we write is dated later than what they write.
    pub speed: u32,
    /// Nothing is changed.
    pub dry_run: bool,
    /// Pods are planned for as soon as by default. Other stories count nodes, and pods that a real
    /// control plane makes one after the other should end up in one plan.
    pub adaptive: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self {
            settings: Settings::default(),
            cloud: CloudSettings::default(),
            speed: 1,
            dry_run: false,
            adaptive: false,
        }
    }
}

impl Setup {
    /// With feature gates.
    #[must_use]
    pub fn gates(gates: FeatureGates) -> Self {
        let settings = Settings {
            gates,
            ..Settings::default()
        };
        Self {
            settings,
            ..Self::default()
        }
    }

    /// With pods planned for as soon as by default.
    #[must_use]
    pub fn adaptive() -> Self {
        Self {
            adaptive: true,
            ..Self::default()
        }
    }

    /// The same for a real control plane, where time goes on while others work.
    fn unhurried(mut self) -> Self {
        let batching = &mut self.settings.batching;
        if !self.adaptive {
            batching.idle = Some(TOGETHER * self.speed);
            batching.max *= self.speed;
        }
        self
    }

    /// With this speed on a real control plane.
    #[must_use]
    pub fn speed(self, speed: u32) -> Self {
        Self { speed, ..self }
    }
}

/// A cluster with a process of the autoscaler on it.
#[derive(Debug)]
pub struct Stage {
    cluster: Cluster,
    setup: Setup,
    /// None after it was ended, until another is started.
    process: Option<Process>,
    /// What is between it and the API server, where something is.
    network: Option<Network>,
    /// What outlives it.
    others: JoinSet<()>,
    sandbox: Option<Sandbox>,
    turn: Option<Turn>,
}

impl Deref for Stage {
    type Target = Cluster;

    fn deref(&self) -> &Cluster {
        &self.cluster
    }
}

impl Stage {
    /// On the embedded control plane. Needs a paused runtime.
    pub async fn embedded(setup: Setup) -> Self {
        let mut stage = Self::empty(setup);
        stage.restart().await;
        stage
    }

    /// The same before any process of the autoscaler was started.
    #[must_use]
    pub fn empty(setup: Setup) -> Self {
        let (sandbox, clock) = joiner_sim::virtual_sandbox(0).unwrap();
        let cluster = Cluster {
            client: sandbox.client(),
            clock,
            patience: Patience::VIRTUAL,
        };
        Self {
            cluster,
            setup,
            process: None,
            network: None,
            others: JoinSet::new(),
            sandbox: Some(sandbox),
            turn: None,
        }
    }

    /// On a real control plane, if there is one.
    pub async fn real(setup: Setup) -> Option<Self> {
        let (client, turn) = plane::real_plane().await?;
        let setup = setup.unhurried();
        let clock = Clock::system(setup.speed);
        let cluster = Cluster {
            client: client.clone(),
            clock: clock.clone(),
            patience: Patience::REAL,
        };
        let mut stage = Self {
            cluster,
            setup,
            process: None,
            network: None,
            others: JoinSet::new(),
            sandbox: None,
            turn: Some(turn),
        };
        stage.restart().await;
        let kubelets = SimulatedKubelets::new(client.clone(), clock, 0);
        stage.others.spawn(kubelets.run());
        stage.others.spawn(plane::provision(client));
        Some(stage)
    }

    /// The process dies, whatever it was doing, and another one starts.
    pub async fn restart(&mut self) {
        self.kill().await;
        self.process = Some(self.another(None));
    }

    /// The same with a line to the API server that gives trouble; chance comes from the seed.
    pub async fn restart_in_trouble(&mut self, seed: u64, trouble: Trouble) {
        self.begin_in_trouble(None, seed, trouble).await;
    }

    /// The same with a process that acts only while it holds the Lease.
    pub async fn elect_in_trouble(&mut self, identity: &str, seed: u64, trouble: Trouble) {
        self.begin_in_trouble(Some(identity), seed, trouble).await;
    }

    async fn begin_in_trouble(&mut self, identity: Option<&str>, seed: u64, trouble: Trouble) {
        self.kill().await;
        let (client, network) = Network::to(self.cluster.client.clone(), seed);
        network.set(trouble);
        let settings = self.started_with(identity);
        self.process = Some(Process::start(&client, &self.cluster.clock, &settings));
        self.network = Some(network);
    }

    /// The process dies, whatever it was doing.
    pub async fn kill(&mut self) {
        self.network = None;
        if let Some(process) = self.process.take() {
            process.kill().await;
        }
    }

    /// Starts a further process; with a name it acts only while it holds the Lease.
    #[must_use]
    pub fn another(&self, identity: Option<&str>) -> Process {
        let settings = self.started_with(identity);
        Process::start(&self.cluster.client, &self.cluster.clock, &settings)
    }

    fn started_with(&self, identity: Option<&str>) -> ProcessSettings {
        let elect = |name: &str| ElectionSettings::new("kube-system", name.to_owned());
        let mut controllers = self.setup.settings.clone();
        if self.sandbox.is_some() {
            // Its clock jumps to the next timer.
            controllers.background = Background::InPlace;
        }
        ProcessSettings {
            controllers,
            cloud: self.setup.cloud.clone(),
            dry_run: self.setup.dry_run,
            election: identity.map(elect),
            ..ProcessSettings::default()
        }
    }

    /// True while the process acts.
    #[must_use]
    pub fn leads(&self) -> bool {
        self.process().leads()
    }

    /// The line between the process and the API server, after [`Stage::restart_in_trouble`].
    #[must_use]
    pub fn network(&self) -> &Network {
        self.network.as_ref().expect("there is a line with trouble")
    }

    /// Who sells the machines.
    #[must_use]
    pub fn cloud(&self) -> &SimulatedCloud {
        self.process().cloud()
    }

    /// The controllers.
    #[must_use]
    pub fn autoscaler(&self) -> &Autoscaler {
        self.process().autoscaler()
    }

    fn process(&self) -> &Process {
        self.process.as_ref().expect("a process runs")
    }

    /// True on a real control plane.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.turn.is_some()
    }

    /// Waits until something holds; shows the world when it does not.
    pub async fn until(&self, what: &str, secs: u64, mut holds: impl AsyncFnMut(&Self) -> bool) {
        let holds = async |_: &Cluster| holds(self).await;
        self.cluster.until(what, secs, holds).await;
    }

    /// Makes sure that something holds for a while of the autoscaler's time.
    pub async fn stays(&self, what: &str, secs: u64, mut holds: impl AsyncFnMut(&Self) -> bool) {
        let holds = async |_: &Cluster| holds(self).await;
        self.cluster.stays(what, secs, holds).await;
    }

    /// Makes sure that something holds until some time of the autoscaler's.
    pub async fn stays_until(
        &self,
        what: &str,
        until: Timestamp,
        mut holds: impl AsyncFnMut(&Self) -> bool,
    ) {
        let holds = async |_: &Cluster| holds(self).await;
        self.cluster.stays_until(what, until, holds).await;
    }

    /// Nodes that were planned, by the decision log.
    #[must_use]
    pub fn n_planned(&self) -> usize {
        let all = self.decisions();
        let nodes = all
            .iter()
            .map(|decision| decision.details["nodes"].as_array());
        nodes.map(|nodes| nodes.map_or(0, Vec::len)).sum()
    }

    /// What this process has decided so far.
    #[must_use]
    pub fn decisions(&self) -> Vec<Decision> {
        let all = self
            .autoscaler()
            .shared()
            .decisions
            .recent(&Default::default());
        all.into_iter()
            .map(|decision| (*decision).clone())
            .collect()
    }

    /// The decision log of this process, a JSON object a line.
    #[must_use]
    pub fn transcript(&self) -> String {
        let lines = self.decisions().into_iter();
        lines
            .map(|decision| serde_json::to_string(&decision).unwrap() + "\n")
            .collect()
    }
}

/// Plays a story on the embedded control plane, in virtual time, from beginning to end; returns what was
/// decided.
pub fn played(setup: Setup, story: impl AsyncFnOnce(&mut Stage)) -> String {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_all().start_paused(true).build().unwrap();
    runtime.block_on(async {
        let mut stage = Stage::embedded(setup).await;
        story(&mut stage).await;
        stage.transcript()
    })
}

/// Makes two tests of a story `async fn name(stage: &mut Stage)`: one on the embedded control plane, in
/// virtual time, which always runs, and one on a real control plane, which `cargo xtask soak` runs. With
/// `always` in front, both always run. With `twice` there is a third one: the story played twice has the
/// same decision log, byte for byte.
#[macro_export]
macro_rules! on_both {
    ($name:ident) => {
        $crate::on_both!($name, $crate::stage::Setup::default());
    };
    ($how:ident $name:ident) => {
        $crate::on_both!($how $name, $crate::stage::Setup::default());
    };
    ($name:ident, $setup:expr) => {
        $crate::on_both!(@ $name, $setup, ignore, );
    };
    (always $name:ident, $setup:expr) => {
        $crate::on_both!(@ $name, $setup, , );
    };
    (twice $name:ident, $setup:expr) => {
        $crate::on_both!(@ $name, $setup, ignore, twice);
    };
    (@ $name:ident, $setup:expr, $($ignored:ident)?, $($twice:ident)?) => {
        mod $name {
            use super::*;

            #[tokio::test(start_paused = true)]
            async fn embedded() {
                let mut stage = $crate::stage::Stage::embedded($setup).await;
                super::$name(&mut stage).await;
            }

            $(#[$ignored = "soak: one of many on the real control plane"])?
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn real() {
                if let Some(mut stage) = $crate::stage::Stage::real($setup).await {
                    super::$name(&mut stage).await;
                }
            }

            $(
                #[test]
                fn $twice() {
                    let story = async |stage: &mut $crate::stage::Stage| super::$name(stage).await;
                    let log = $crate::stage::played($setup, story);
                    assert!(!log.is_empty(), "nothing was decided");
                    assert_eq!(log, $crate::stage::played($setup, story));
                }
            )?
        }
    };
}
