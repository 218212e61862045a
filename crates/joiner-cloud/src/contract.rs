//! The contract.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use joiner_api::types::NodeClaim;
use joiner_model::{InstanceType, Labels, Name};
use serde_json::Value;

use crate::{CatalogError, CloudError, Instance, LaunchError, NodeClass, Order, ProviderId};

/// A kind of node class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClassKind {
    /// API group.
    pub group: &'static str,
    /// Version that is followed.
    pub version: &'static str,
    /// Kind.
    pub kind: &'static str,
    /// Plural, for the API.
    pub plural: &'static str,
    /// Holds a class that claims name. Only kinds whose status the cloud gives have one; a class of
    /// another kind is ready unless it says otherwise.
    pub finalizer: Option<&'static str>,
}

/// What a cloud found when it looked up what a node class selects.
#[derive(Clone, Debug, PartialEq)]
pub struct ClassStatus {
    /// The conditions that feed `Ready`, and what became of each.
    pub verdicts: Vec<ClassVerdict>,
    /// Every other field of the status; null for one that is not to be there.
    pub fields: Value,
    /// When to ask again although nothing changed.
    pub again: Option<Duration>,
}

/// One condition of a node class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassVerdict {
    /// Type of the condition.
    pub condition: &'static str,
    /// Reason and message where it is False.
    pub failed: Option<(&'static str, String)>,
}

impl ClassVerdict {
    /// A condition that is True.
    #[must_use]
    pub const fn good(condition: &'static str) -> Self {
        Self {
            condition,
            failed: None,
        }
    }
}

/// How the end of a machine stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Termination {
    /// It is on its way out; ask again.
    Going,
    /// There is no such machine any more.
    Gone,
}

/// A state of a node that is repaired by replacing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairPolicy {
    /// Condition type of the Node.
    pub condition: &'static str,
    /// The status that is unhealthy: `True`, `False` or `Unknown`.
    pub status: &'static str,
    /// How long it may last.
    pub toleration: Duration,
}

/// Why a machine will go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InterruptionKind {
    /// Spot capacity is taken back.
    SpotInterruption,
    /// Spot capacity may be taken back.
    RebalanceRecommendation,
    /// The machine under it is serviced.
    ScheduledChange,
    /// Somebody stopped or ended it.
    StateChange,
}

/// Word that a machine will go without our asking.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interruption {
    /// The machine.
    pub id: ProviderId,
    /// Why.
    pub kind: InterruptionKind,
}

/// How far a cloud's registration hooks are with a claim: what else must be done before its Node is
/// open for pods. By default nothing is left to do, and there is nothing to add.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Registration {
    /// Labels for the NodeClaim and its Node, once no hook is pending. What the claim says already
    /// stays.
    pub labels: Labels,
    /// Hooks that are not ready, or that failed.
    pub pending: Vec<Pending>,
}

/// A registration hook that keeps a Node from being open for pods.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// Its name, for the condition of the claim.
    pub hook: Name,
    /// When to ask again; soon if it does not say.
    pub again: Option<Duration>,
    /// What went wrong, if it failed rather than being at work.
    pub error: Option<String>,
}

/// A cloud that sells machines.
///
/// *Assumptions*: every call may fail, be slow, and be made again after a crash in the middle of
/// the last one.
#[async_trait]
pub trait Cloud: Send + Sync + 'static {
    /// For metrics and logs: `aws`, `simulated`.
    fn name(&self) -> &'static str;

    /// Kinds of node classes it knows; the first is the default.
    fn classes(&self) -> &'static [ClassKind];

    /// Every type that a pool of this class could ever buy, also those that are sold out now: a
    /// type that is missing here makes its nodes drift.
    ///
    /// *Guarantees*: it is cheap, for it is asked in every pass. The answer comes from memory, without
    /// a call to the cloud; what it rests on is fetched in the background, and while there is nothing
    /// yet the answer is an error. Equal classes get the same list, not a copy of it, until
    /// something changes: a caller that kept the last one compares pointers.
    async fn instance_types(
        &self,
        class: &NodeClass,
    ) -> Result<Arc<Vec<InstanceType>>, CatalogError>;

    /// How a class stands whose kind has a finalizer: what its selectors come to, and what is wrong with
    /// it. `None` where the cloud has nothing to say, and the class is left alone.
    ///
    /// *Guarantees*: the same class gets the same answer while nothing changes in the account.
    async fn class_status(
        &self,
        _class: &NodeClass,
        _reserving: bool,
    ) -> Result<Option<ClassStatus>, CloudError> {
        Ok(None)
    }

    /// Launches one machine that satisfies the order, the cheapest there is.
    ///
    /// *Guarantees*: the same order (by uid) never gets a second machine, whatever crashed in
    /// between. Offerings that turn out to be sold out are unavailable in [`Self::instance_types`]
    /// for a while afterwards.
    async fn launch(&self, order: &Order) -> Result<Instance, LaunchError>;

    /// Ends a machine. Called again and again until it says [`Termination::Gone`]. A machine that
    /// never was is gone.
    async fn terminate(&self, id: &ProviderId) -> Result<Termination, CloudError>;

    /// One machine, if it is there.
    async fn instance(&self, id: &ProviderId) -> Result<Option<Instance>, CloudError>;

    /// All machines of this cluster.
    async fn instances(&self) -> Result<Vec<Instance>, CloudError>;

    /// Why a machine is no longer what its class asks for, in one word, if so.
    async fn drift(&self, claim: &NodeClaim, class: &NodeClass)
    -> Result<Option<Name>, CloudError>;

    /// True when Nodes must not be opened for pods before [`Self::registration`] says so. It may
    /// change while the cloud runs.
    fn has_registration_hooks(&self) -> bool {
        false
    }

    /// Runs the registration hooks, all at the same time, for a claim whose Node has joined, and says
    /// how far they are. Asked again and again until none is pending, and maybe once more after a
    /// crash.
    ///
    /// *Guarantees*: a hook that is pending has a name. What a hook waits for is known from what
    /// outlives the process.
    async fn registration(&self, _claim: &NodeClaim) -> Registration {
        Registration::default()
    }

    /// States of nodes that are repaired by replacing them.
    fn repair_policies(&self) -> Vec<RepairPolicy> {
        Vec::new()
    }

    /// How long a launch may take before the claim is given up.
    fn launch_timeout(&self) -> Duration {
        Duration::from_secs(300)
    }

    /// Notices of machines that will go. Ends only with the process.
    fn interruptions(&self) -> BoxStream<'static, Interruption> {
        Box::pin(futures::stream::pending())
    }
}
