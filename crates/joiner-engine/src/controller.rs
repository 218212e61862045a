//! The two kinds of controllers, and what they share.

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt as _;
use futures::future::BoxFuture;
use jiff::Timestamp;
use joiner_model::Name;
use joiner_runtime::{Api, ApiFailure, Clock, Decisions, Events, Metrics, World};
use joiner_state::live::{Change, Snapshot};

/// What all controllers share. Whatever else a controller needs is handed to its constructor.
#[derive(Clone)]
pub struct Shared {
    /// Writes to Kubernetes.
    pub api: Api,
    /// What is known of the cluster.
    pub world: World,
    /// The time.
    pub clock: Clock,
    /// Kubernetes events.
    pub events: Events,
    /// Metrics.
    pub metrics: Arc<Metrics>,
    /// What was decided, and why.
    pub decisions: Decisions,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

/// When to reconcile again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// When something changes.
    Done,
    /// After this long, or when something changes.
    Again(Duration),
}

/// Why a reconcile came to nothing. It is repeated, with growing pauses.
#[derive(Clone, Debug, thiserror::Error)]
pub enum Failure {
    /// The API server said no.
    #[error(transparent)]
    Api(#[from] ApiFailure),
    /// The far end asks for fewer calls: pauses are longer.
    #[error("asked for fewer calls: {0}")]
    Throttled(String),
    /// Anything else.
    #[error("{0}")]
    Other(String),
}

impl Failure {
    /// True for what happens in a healthy cluster: another writer was faster.
    #[must_use]
    pub fn is_ordinary(&self) -> bool {
        matches!(
            self,
            Self::Api(ApiFailure::NotFound | ApiFailure::Conflict(_))
        )
    }

    /// True when the object was changed since it was read.
    #[must_use]
    pub fn is_conflict(&self) -> bool {
        matches!(self, Self::Api(ApiFailure::Conflict(_)))
    }
}

/// The future of one reconcile, or of one pass.
pub type Reconcile<'a> = BoxFuture<'a, Result<Next, Failure>>;

/// Looks at one object at a time.
pub trait Keyed: Send + Sync + 'static {
    /// Upstream's name of the controller: in logs and metrics.
    fn name(&self) -> &'static str;

    /// The keys that a change concerns.
    fn keys(&self, change: &Change, now: &Snapshot) -> Vec<Name>;

    /// All keys: at the start, and after changes were missed.
    fn all(&self, now: &Snapshot) -> Vec<Name>;

    /// How many keys are reconciled at the same time.
    fn concurrency(&self) -> usize {
        10
    }

    /// Whether it runs in a dry run.
    fn runs_dry(&self) -> bool {
        true
    }

    /// Keys that something other than a change of the cluster calls for. It may be dropped before it
    /// has come to an end, and is asked again then.
    fn called(&self) -> BoxFuture<'_, Vec<Name>> {
        std::future::pending().boxed()
    }

    /// Decides about one key and does at most a few things about it.
    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a>;
}

/// Looks at everything at once, in passes.
pub trait Looping: Send + 'static {
    /// Upstream's name of the controller: in logs and metrics.
    fn name(&self) -> &'static str;

    /// Whether a change calls for a pass now. What the change means may be noted for the next pass.
    fn wakes(&mut self, change: &Change, now: &Snapshot) -> bool;

    /// Changes were missed: a pass is made in any case.
    fn missed(&mut self) {}

    /// How long after the start the first pass is made.
    fn starts_after(&self) -> Duration {
        Duration::ZERO
    }

    /// Whether it runs in a dry run.
    fn runs_dry(&self) -> bool {
        true
    }

    /// Comes to an end when something other than a change of the cluster calls for a pass. It may be
    /// dropped before that, and is asked again then.
    fn called(&mut self) -> BoxFuture<'_, ()> {
        std::future::pending().boxed()
    }

    /// Decides and acts.
    fn pass<'a>(&'a mut self, now: &'a Arc<Snapshot>, at: Timestamp) -> Reconcile<'a>;
}

/// A controller of either kind.
pub enum Controller {
    /// One object at a time.
    Keyed(Arc<dyn Keyed>),
    /// Everything at once.
    Looping(Box<dyn Looping>),
}

impl std::fmt::Debug for Controller {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Controller").field(&self.name()).finish()
    }
}

impl Controller {
    /// A controller that looks at one object at a time.
    #[must_use]
    pub fn keyed(controller: impl Keyed) -> Self {
        Self::Keyed(Arc::new(controller))
    }

    /// A controller that looks at everything at once.
    #[must_use]
    pub fn looping(controller: impl Looping) -> Self {
        Self::Looping(Box::new(controller))
    }

    /// Upstream's name of it.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Keyed(controller) => controller.name(),
            Self::Looping(controller) => controller.name(),
        }
    }

    pub(crate) fn runs_dry(&self) -> bool {
        match self {
            Self::Keyed(controller) => controller.runs_dry(),
            Self::Looping(controller) => controller.runs_dry(),
        }
    }
}
