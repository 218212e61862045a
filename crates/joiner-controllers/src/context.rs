//! What every controller works with.

use std::sync::Arc;
use std::time::Duration;

use joiner_cloud::{Cloud, CloudError};
use joiner_runtime::{Api, ApiFailure, Clock, Decisions, Events, Metrics, World};

use crate::catalogs::Catalogs;
use crate::claim::Launches;
use crate::health::RegistrationHealth;
use crate::metrics_state::PodDecisions;
use crate::nominations::Nominations;
use crate::settings::Settings;
use crate::static_pools::Reservations;
use crate::turns::Turns;

/// What every controller works with.
#[derive(Clone)]
pub struct Ctx {
    /// Writes to Kubernetes.
    pub api: Api,
    /// What is known of the cluster.
    pub world: World,
    /// The time.
    pub clock: Clock,
    /// Who sells machines.
    pub cloud: Arc<dyn Cloud>,
    /// Settings.
    pub settings: Arc<Settings>,
    /// What is on sale.
    pub catalogs: Catalogs,
    /// Nodes that are spoken for.
    pub nominations: Nominations,
    /// Pods that wait for their turn to leave.
    pub turns: Turns,
    /// Machines whose launch was answered, until that has been written down.
    pub launches: Launches,
    /// Room under the limits of static pools that is spoken for.
    pub static_room: Reservations,
    /// How registrations went.
    pub health: RegistrationHealth,
    /// When pods were first decided about.
    pub pod_decisions: PodDecisions,
    /// Kubernetes events.
    pub events: Events,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// What was decided, and why.
    pub decisions: Decisions,
}

/// When to look again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// When something changes.
    Done,
    /// After this long, or when something changes.
    Again(Duration),
}

/// Why a look came to nothing. It is repeated, with growing pauses.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// The API server said no.
    #[error(transparent)]
    Api(#[from] ApiFailure),
    /// The cloud said no.
    #[error(transparent)]
    Cloud(#[from] CloudError),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// True for what happens in a healthy cluster: somebody else was faster.
    #[must_use]
    pub fn is_ordinary(&self) -> bool {
        matches!(
            self,
            Self::Api(ApiFailure::NotFound | ApiFailure::Conflict(_))
        )
    }
}
