//! The whole autoscaler on an embedded control plane: the simulated cloud and every controller.

use std::sync::Arc;
use std::time::Duration;

use joiner_cloud_sim::{Delay, Delays, Settings as CloudSettings, SimulatedCloud};
use joiner_controllers::Settings;
use joiner_controllers::assembly::{Autoscaler, Parts};
use joiner_controllers::settings::FeatureGates;
use joiner_runtime::{Clock, DecisionSettings, Decisions, Events, Metrics};
use kube::Client;
use tokio::task::JoinSet;

/// A running autoscaler; it ends when this is dropped.
pub(crate) struct Embedded {
    autoscaler: Arc<Autoscaler>,
    _tasks: JoinSet<()>,
}

impl Embedded {
    /// Starts everything; machines take about as long as those of a real cloud.
    pub(crate) fn start(client: Client, clock: Clock) -> Self {
        let mut tasks = JoinSet::new();
        let between = |min, max| Delay::Uniform {
            min: Duration::from_secs(min),
            max: Duration::from_secs(max),
        };
        let settings = CloudSettings {
            delays: Delays {
                launch: between(1, 3),
                boot: between(20, 30),
                shutdown: between(10, 20),
            },
            ..CloudSettings::default()
        };
        let cloud = SimulatedCloud::new(client.clone(), clock.clone(), settings);
        let cloud = Arc::new(cloud);
        tasks.spawn(Arc::clone(&cloud).run());
        let metrics = Arc::new(Metrics::new(clock.clone(), &crate::build()));
        let (events, writer) =
            Events::new(client.clone(), clock.clone(), Arc::clone(&metrics), false);
        tasks.spawn(writer.run());
        let decisions = Decisions::new(&DecisionSettings::default(), Arc::clone(&metrics));
        let autoscaler = Arc::new(Autoscaler::start(Parts {
            client,
            cloud,
            clock,
            settings: Settings {
                // It is a playground: everything there is to try is on.
                gates: FeatureGates {
                    node_repair: true,
                    node_overlay: true,
                    static_capacity: true,
                    capacity_buffer: true,
                    ..FeatureGates::default()
                },
                ..Settings::default()
            },
            pace: (0, 0),
            dry_run: false,
            metrics,
            events,
            decisions,
        }));
        let leader = Arc::clone(&autoscaler);
        tasks.spawn(async move { leader.lead().await });
        Self {
            autoscaler,
            _tasks: tasks,
        }
    }

    /// What was decided, and why.
    pub(crate) fn decisions(&self) -> Decisions {
        self.autoscaler.ctx().decisions.clone()
    }
}
