//! Puts the parts together: what to follow, and which controllers to run.

use std::sync::Arc;

use futures::future::BoxFuture;
use joiner_cloud::Cloud;
use joiner_runtime::{Api, Clock, Decisions, Events, Followed, Metrics, Pace, World, follow};
use joiner_state::live::{ClusterState, Kind};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::catalogs::Catalogs;
use crate::claim::Launches;
use crate::context::Ctx;
use crate::engine::{Controller, run};
use crate::health::RegistrationHealth;
use crate::metered_cloud::MeteredCloud;
use crate::metrics_state::PodDecisions;
use crate::nominations::Nominations;
use crate::settings::Settings;
use crate::static_pools::Reservations;
use crate::turns::Turns;

/// What is needed to start.
pub struct Parts {
    /// The API server.
    pub client: kube::Client,
    /// Who sells machines.
    pub cloud: Arc<dyn Cloud>,
    /// The time.
    pub clock: Clock,
    /// Settings.
    pub settings: Settings,
    /// Writes a second to the API server, and at once; 0 a second is no limit.
    pub pace: (u32, u32),
    /// Change nothing.
    pub dry_run: bool,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// Kubernetes events.
    pub events: Events,
    /// The decision log.
    pub decisions: Decisions,
}

/// An autoscaler that follows its cluster.
pub struct Autoscaler {
    ctx: Ctx,
    /// Ends with this.
    _watches: JoinSet<()>,
}

impl Autoscaler {
    /// Starts to follow the cluster; nothing is decided yet. Needs a tokio runtime.
    #[must_use]
    pub fn start(parts: Parts) -> Self {
        let mut state = ClusterState::default();
        if parts.settings.gates.capacity_buffer {
            state = state.with_templates();
        }
        if let Some(defaults) = &parts.settings.spread_defaults {
            state = state.with_spread_defaults(Arc::clone(defaults));
        }
        let world = World::start_with(state);
        let mut watches = JoinSet::new();
        for followed in kinds(&parts) {
            world.expect(followed.kind, &followed.class);
            watches.spawn(follow(parts.client.clone(), followed, world.clone()));
        }
        let cloud = MeteredCloud::new(parts.cloud, Arc::clone(&parts.metrics), parts.clock.clone());
        let cloud = cloud.reserving(parts.settings.gates.reserved_capacity);
        let ctx = Ctx {
            api: Api::new(parts.client, world.clone(), parts.dry_run)
                .paced(Pace::new(parts.clock.clone(), parts.pace.0, parts.pace.1))
                .metered(Arc::clone(&parts.metrics), parts.clock.clone()),
            world,
            clock: parts.clock.clone(),
            cloud: Arc::new(cloud),
            settings: Arc::new(parts.settings),
            catalogs: Catalogs::default(),
            nominations: Nominations::default(),
            turns: Turns::default(),
            launches: Launches::default(),
            static_room: Reservations::default(),
            pod_decisions: PodDecisions::default(),
            health: RegistrationHealth::default(),
            events: parts.events,
            metrics: parts.metrics,
            decisions: parts.decisions,
        };
        Self {
            ctx,
            _watches: watches,
        }
    }

    /// What its controllers work with.
    #[must_use]
    pub fn ctx(&self) -> &Ctx {
        &self.ctx
    }

    /// Decides and acts until the future is dropped. Only one at a time may: the leader.
    pub async fn lead(&self) {
        // Somebody else may have led since it was last our turn. What we were in the midst of is over.
        self.ctx.turns.forget_all();
        self.ctx.nominations.forget_all();
        let mut tasks = JoinSet::new();
        for controller in controllers(&self.ctx) {
            tasks.spawn(run(controller, self.ctx.clone()));
        }
        for task in streams(&self.ctx) {
            tasks.spawn(task);
        }
        // They run for ever; one that ends has panicked, and the process is better off new.
        if let Some(Err(error)) = tasks.join_next().await {
            tracing::error!("a controller has ended: {error}");
        }
    }
}

impl std::fmt::Debug for Autoscaler {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Autoscaler").finish_non_exhaustive()
    }
}

/// Acts whenever this process leads: always where there is no election. Returns when `act` ends by
/// itself.
pub async fn while_leading<F: Future<Output = ()>>(
    leading: Option<watch::Receiver<bool>>,
    act: impl Fn() -> F,
) {
    let Some(mut leading) = leading else {
        return act().await;
    };
    loop {
        if leading.wait_for(|leads| *leads).await.is_err() {
            return;
        }
        tokio::select! {
            biased;
            _ = leading.wait_for(|leads| !*leads) => {}
            () = act() => return,
        }
    }
}

/// What to follow.
fn kinds(parts: &Parts) -> Vec<Followed> {
    let gates = parts.settings.gates;
    let always = Kind::ALWAYS.iter().chain(Kind::WORKLOADS);
    let mut kinds: Vec<Followed> = always.copied().map(Followed::kind).collect();
    if gates.node_overlay {
        kinds.push(Followed::kind(Kind::NodeOverlay));
    }
    if parts.settings.spread_defaults.is_some() {
        kinds.extend(Kind::SPREADING.iter().copied().map(Followed::kind));
    }
    if gates.capacity_buffer {
        let more = Kind::BUFFERS
            .iter()
            .filter(|own| !Kind::WORKLOADS.contains(own));
        kinds.extend(more.copied().map(Followed::kind));
    }
    for class in parts.cloud.classes() {
        kinds.push(Followed::class(
            class.group,
            class.version,
            class.plural,
            class.kind,
        ));
    }
    kinds
}

/// Controllers that look at one object at a time.
fn controllers(ctx: &Ctx) -> Vec<Arc<dyn Controller>> {
    let mut all = Vec::new();
    all.extend(crate::claim::controllers());
    all.extend(crate::termination::controllers(ctx));
    all.push(Arc::new(crate::annotations::Annotations::default()));
    all.extend(crate::class::controllers());
    all.extend(crate::pool::controllers());
    all.extend(crate::upkeep::controllers(ctx.settings.gates));
    all.extend(crate::disruption::controllers());
    all.extend(crate::observe::controllers(ctx));
    if ctx.settings.gates.static_capacity {
        all.extend(crate::static_pools::controllers(ctx));
    }
    if ctx.settings.gates.node_overlay {
        all.extend(crate::overlay::controllers());
    }
    if ctx.settings.gates.capacity_buffer {
        all.extend(crate::buffer::controllers());
    }
    all
}

/// Everything else that runs.
fn streams(ctx: &Ctx) -> Vec<BoxFuture<'static, ()>> {
    let mut all: Vec<BoxFuture<'static, ()>> = vec![
        Box::pin(crate::provisioning::run(ctx.clone())),
        Box::pin(crate::provisioning::propose::run(ctx.clone())),
        Box::pin(crate::disruption::run(ctx.clone())),
        Box::pin(crate::turns::run(ctx.clone())),
    ];
    all.extend(crate::upkeep::streams(ctx));
    all.extend(crate::metrics_state::streams(ctx));
    all
}
