//! Puts the parts together: what to follow, and which controllers to run.

use std::sync::Arc;

use joiner_cloud::Cloud;
use joiner_engine::{Controller, Shared, run};
use joiner_model::Policy;
use joiner_runtime::{Api, Clock, Decisions, Events, Followed, Metrics, Pace, World, follow};
use joiner_state::live::{ClusterState, Kind};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::capacity_buffer::Headroom;
use crate::catalogs::Catalogs;
use crate::disruption::Disruptor;
use crate::metered_cloud::MeteredCloud;
use crate::nodepool::registrations::RegistrationHealth;
use crate::provisioning::{Nominations, Planner};
use crate::seating::Seating;
use crate::settings::Settings;
use crate::state_metrics::PodDecisions;
use crate::static_capacity::Reservations;

/// Makes the controllers that a provider brings, each time that this process begins to lead.
pub type Provided = Arc<dyn Fn(&Shared) -> Vec<Controller> + Send + Sync>;

/// What is needed to start.
pub struct Parts {
    /// The API server.
    pub client: kube::Client,
    /// Who sells machines.
    pub cloud: Arc<dyn Cloud>,
    /// Controllers that the provider brings, if any.
    pub provided: Option<Provided>,
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
    shared: Shared,
    cloud: Arc<dyn Cloud>,
    provided: Option<Provided>,
    settings: Settings,
    memories: Memories,
    /// Ends with this.
    _watches: JoinSet<()>,
}

/// What outlives a time of leading. Each is handed to the controllers that use it, and to no other.
#[derive(Default)]
struct Memories {
    catalogs: Catalogs,
    nominations: Nominations,
    headroom: Headroom,
    static_room: Reservations,
    registrations: RegistrationHealth,
    pod_decisions: PodDecisions,
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
        let events = match parts.settings.quiet_state {
            true => parts.events.without_conditions(),
            false => parts.events,
        };
        let shared = Shared {
            api: Api::new(parts.client, world.clone(), parts.dry_run)
                .paced(Pace::new(parts.clock.clone(), parts.pace.0, parts.pace.1))
                .metered(Arc::clone(&parts.metrics), parts.clock.clone()),
            world,
            clock: parts.clock,
            events,
            metrics: parts.metrics,
            decisions: parts.decisions,
        };
        Self {
            shared,
            cloud: Arc::new(cloud),
            provided: parts.provided,
            settings: parts.settings,
            memories: Memories::default(),
            _watches: watches,
        }
    }

    /// What its controllers share.
    #[must_use]
    pub fn shared(&self) -> &Shared {
        &self.shared
    }

    /// What is on sale, as the cloud last gave it.
    #[must_use]
    pub fn catalogs(&self) -> &Catalogs {
        &self.memories.catalogs
    }

    /// Nodes that pods were told to expect a place on.
    #[must_use]
    pub fn nominations(&self) -> &Nominations {
        &self.memories.nominations
    }

    /// Decides and acts until the future is dropped. Only one at a time may: the leader.
    pub async fn lead(&self) {
        // Another process may have led since it was last our turn. What we were in the midst of is over.
        self.memories.nominations.forget_all();
        let mut tasks = JoinSet::new();
        for controller in self.controllers() {
            tasks.spawn(run(controller, self.shared.clone()));
        }
        // They run for ever; one that ends has panicked, and the process is better off new.
        if let Some(Err(error)) = tasks.join_next().await {
            tracing::error!("a controller has ended: {error}");
        }
    }

    /// All controllers, in the order in which they are started.
    fn controllers(&self) -> Vec<Controller> {
        let (shared, cloud, memories) = (&self.shared, &self.cloud, &self.memories);
        let (settings, gates) = (&self.settings, self.settings.gates);
        let seating = Seating::new(settings.follow_plan);
        let registrations = &memories.registrations;
        let mut all = Vec::new();
        all.extend(crate::nodeclaim::lifecycle::controllers(
            shared,
            cloud,
            registrations,
            &seating,
        ));
        all.extend(crate::node::termination::controllers(
            shared, cloud, &seating,
        ));
        all.extend(crate::annotations::controllers(shared));
        all.extend(crate::nodeclass::controllers(
            shared,
            cloud,
            gates.reserved_capacity,
        ));
        all.extend(crate::nodepool::controllers(shared, cloud, registrations));
        all.extend(crate::nodeclaim::controllers(shared, cloud));
        all.extend(crate::node::controllers(shared, cloud, gates));
        if gates.static_capacity {
            let rooms = &memories.static_room;
            all.extend(crate::static_capacity::controllers(shared, rooms, cloud));
        }
        if gates.node_overlay {
            all.extend(crate::node_overlay::controllers(
                shared,
                cloud,
                &memories.catalogs,
            ));
        }
        if gates.capacity_buffer {
            all.extend(crate::capacity_buffer::controllers(shared));
        }
        all.extend(crate::provisioning::controllers(self.planner(&seating)));
        all.extend(crate::seating::controllers(shared, &seating));
        all.extend(crate::disruption::controllers(self.disruptor(&seating)));
        all.extend(crate::interruption::controllers(shared, cloud));
        all.extend(crate::state_metrics::controllers(
            shared,
            cloud,
            &memories.catalogs,
            Some(memories.pod_decisions.clone()),
            settings.quiet_state,
        ));
        all.extend(self.provided.iter().flat_map(|provided| provided(shared)));
        all
    }

    fn policy(&self) -> Policy {
        Policy {
            preferences: self.settings.preferences,
            min_values: self.settings.min_values,
            ..Policy::default()
        }
    }

    fn planner(&self, seating: &Seating) -> Planner {
        let memories = &self.memories;
        Planner {
            shared: self.shared.clone(),
            cloud: Arc::clone(&self.cloud),
            catalogs: memories.catalogs.clone(),
            nominations: memories.nominations.clone(),
            headroom: memories.headroom.clone(),
            seating: seating.clone(),
            pod_decisions: memories.pod_decisions.clone(),
            batching: self.settings.batching,
            policy: self.policy(),
            has_buffers: self.settings.gates.capacity_buffer,
            background: self.settings.background,
        }
    }

    fn disruptor(&self, seating: &Seating) -> Disruptor {
        let memories = &self.memories;
        Disruptor {
            shared: self.shared.clone(),
            cloud: Arc::clone(&self.cloud),
            catalogs: memories.catalogs.clone(),
            nominations: memories.nominations.clone(),
            headroom: memories.headroom.clone(),
            seating: seating.clone(),
            static_room: memories.static_room.clone(),
            settings: self.settings.disruption,
            policy: self.policy(),
            background: self.settings.background,
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
            .filter(|kind| !Kind::WORKLOADS.contains(kind));
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
