//! The contract, kept by ConfigMaps.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::stream::BoxStream;
use jiff::Timestamp;
use joiner_api::labels::{aws, kwok};
use joiner_api::types::NodeClaim;
use joiner_cloud::{
    CatalogError, ClassKind, ClassStatus, Cloud, CloudError, Instance, Interruption, LaunchError,
    NodeClass, OfferingKey, Order, ProviderId, Registration, RepairPolicy, SoldOutScope,
    Termination,
};
use joiner_model::{InstanceType, Labels, Name, keys};
use joiner_runtime::Clock;
use kube::Client;
use tokio::sync::{Notify, watch};

use crate::catalog::{self, Catalogs, EC2_CLASS, Listed};
use crate::class_status::{Where, class_status};
use crate::faults::{Faults, Notice};
use crate::hooks;
use crate::ids;
use crate::ledger::{Ledger, Stored};
use crate::life::NodeSeen;
use crate::market::{CallFault, Market, Today};
use crate::notices::{self, Notices};
use crate::objects::{Created, Objects};
use crate::purchase;
use crate::record::{KWOK_CLASS, Record, State, Upcoming};
use crate::server::Server;
use crate::settings::{FAULTS_CONFIG_MAP, Settings};

/// Kinds of node classes that it sells through.
const CLASSES: &[ClassKind] = &[
    ClassKind {
        group: kwok::GROUP,
        version: "v1alpha1",
        kind: KWOK_CLASS,
        plural: "kwoknodeclasses",
        finalizer: None,
    },
    ClassKind {
        group: aws::GROUP,
        version: "v1",
        kind: EC2_CLASS,
        plural: "ec2nodeclasses",
        finalizer: Some(aws::TERMINATION_FINALIZER),
    },
];
/// How long a Node may be unhealthy.
const UNHEALTHY_MAX: Duration = Duration::from_secs(600);

/// A cloud that is not there.
///
/// *Guarantees*: machines outlive it; two of them on the same cluster, one after the other, agree
/// about all machines. What is sold out, and how many calls were made, is forgotten with it.
///
/// *Assumes* that [`Self::run`] runs somewhere, else no machine ever joins.
pub struct SimulatedCloud {
    pub(crate) client: Client,
    pub(crate) clock: Clock,
    pub(crate) settings: Settings,
    pub(crate) objects: Objects,
    pub(crate) changed: Notify,
    pub(crate) notices: watch::Sender<Arc<Notices>>,
    pub(crate) server: Server,
    catalogs: Catalogs,
    ledger: Mutex<Ledger>,
    market: Mutex<Market>,
    faults: Mutex<FaultSources>,
}

struct FaultSources {
    given: Faults,
    /// What the ConfigMap says, once it has been read.
    from_map: Option<Faults>,
    both: Arc<Faults>,
    since: Timestamp,
}

impl std::fmt::Debug for SimulatedCloud {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let settings = &self.settings;
        f.debug_struct("SimulatedCloud")
            .field("namespace", &settings.namespace)
            .field("seed", &settings.seed)
            .finish_non_exhaustive()
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl SimulatedCloud {
    /// A cloud on a cluster.
    #[must_use]
    pub fn new(client: Client, clock: Clock, settings: Settings) -> Self {
        let given = settings.faults.clone();
        Self {
            objects: Objects::new(&client, &settings.namespace),
            catalogs: Catalogs::new(&settings),
            server: Server::default(),
            changed: Notify::new(),
            notices: watch::Sender::new(Arc::new(Notices::new())),
            ledger: Mutex::default(),
            market: Mutex::default(),
            faults: Mutex::new(FaultSources {
                both: Arc::new(given.clone()),
                given,
                from_map: None,
                since: clock.now(),
            }),
            client,
            clock,
            settings,
        }
    }

    /// What goes wrong now.
    #[must_use]
    pub fn faults(&self) -> Arc<Faults> {
        Arc::clone(&locked(&self.faults).both)
    }

    /// Changes what goes wrong; what the ConfigMap says comes on top.
    pub fn set_faults(&self, faults: Faults) {
        self.change_faults(|sources| sources.given = faults);
    }

    /// Takes over what the ConfigMap says; none if there is no such map.
    pub(crate) fn take_faults(&self, text: Option<&str>) {
        let read = Faults::parse(text.unwrap_or_default());
        // A typing error on a running cloud must not end the experiment.
        if let Err(error) = &read {
            tracing::warn!(config_map = FAULTS_CONFIG_MAP, %error, "faults unchanged");
        }
        self.change_faults(|sources| match read {
            Ok(faults) => sources.from_map = Some(faults),
            Err(_) => drop(sources.from_map.get_or_insert_default()),
        });
    }

    fn change_faults(&self, change: impl FnOnce(&mut FaultSources)) {
        let mut sources = locked(&self.faults);
        change(&mut sources);
        let both = match &sources.from_map {
            Some(from_map) => sources.given.and(from_map),
            None => sources.given.clone(),
        };
        if both != *sources.both {
            sources.both = Arc::new(both);
            sources.since = self.clock.now();
        }
        drop(sources);
        self.changed.notify_one();
    }

    /// Since when it goes wrong like that.
    pub(crate) fn faults_since(&self) -> Timestamp {
        locked(&self.faults).since
    }

    /// Looks at all machines that are known, or changes what is known.
    pub(crate) fn with_ledger<T>(&self, look: impl FnOnce(&mut Ledger) -> T) -> T {
        look(&mut locked(&self.ledger))
    }

    /// Gives a machine a notice; false if there is no such Node's machine.
    ///
    /// # Errors
    /// The API server did not answer.
    pub async fn interrupt(&self, node: &str, notice: Notice) -> Result<bool, CloudError> {
        let all = self.objects.machines().await.map_err(cloud_error)?;
        match all.into_iter().find(|one| one.record.node_name == node) {
            Some(stored) => self.give_notice(&stored, notice).await.map_err(cloud_error),
            None => Ok(false),
        }
    }

    /// Writes a notice down. The stream of notices follows what is written.
    pub(crate) async fn give_notice(
        &self,
        stored: &Stored,
        notice: Notice,
    ) -> Result<bool, kube::Error> {
        let now = self.clock.now();
        let after = |wait: Duration| now.checked_add(wait).unwrap_or(Timestamp::MAX);
        let upcoming = Upcoming {
            notice,
            noticed: now,
            ends: notice.ends_after().map(after),
        };
        let edit = |record: &mut Record| record.interruption = Some(upcoming);
        let changed = self.objects.change(stored, edit).await?;
        let there = changed.is_some();
        self.note(stored, changed);
        if notice == Notice::SpotInterruption {
            // Who bought the same now would have it taken away again.
            let labels = stored.record.instance().labels;
            if let Some(name) = labels.get(keys::INSTANCE_TYPE) {
                self.mark_sold_out(name, &labels, now);
            }
        }
        tracing::info!(
            node = stored.record.node_name,
            ?notice,
            "simulated interruption"
        );
        Ok(there)
    }

    /// Takes over what came of a change.
    pub(crate) fn note(&self, known: &Stored, changed: Option<Stored>) {
        self.with_ledger(|ledger| match changed {
            Some(stored) => ledger.note(stored),
            None => ledger.remove(&known.name),
        });
        self.changed.notify_one();
    }

    /// Starts the end of a machine, or ends it at once if that takes no time.
    pub(crate) async fn end(&self, stored: &Stored) -> Result<Termination, kube::Error> {
        let record = &stored.record;
        let now = self.clock.now();
        let shutdown = &self.settings.delays.shutdown;
        let wait = shutdown.draw(self.settings.seed, &record.claim_uid, "shutdown");
        let gone_at = match record.state {
            State::Terminating => record.gone_at.unwrap_or(now),
            State::Pending | State::Running => now.checked_add(wait).unwrap_or(Timestamp::MAX),
        };
        if gone_at <= now {
            self.objects.forget(&stored.name).await?;
            self.note(stored, None);
            tracing::info!(node = record.node_name, "simulated instance is gone");
            return Ok(Termination::Gone);
        }
        let edit = |record: &mut Record| {
            if record.state != State::Terminating {
                record.state = State::Terminating;
                record.gone_at = Some(gone_at);
            }
        };
        let changed = self.objects.change(stored, edit).await?;
        let answer = match changed {
            Some(_) => Termination::Going,
            None => Termination::Gone,
        };
        self.note(stored, changed);
        Ok(answer)
    }

    async fn call(&self) -> Result<(), CallFault> {
        let faults = self.faults();
        if faults.latency_millis > 0 {
            let latency = Duration::from_millis(faults.latency_millis);
            self.clock.sleep(latency).await;
        }
        locked(&self.market).call(&faults, self.settings.seed, self.clock.now())
    }

    async fn ask(&self) -> Result<(), CloudError> {
        self.call().await.map_err(|fault| match fault {
            CallFault::Throttled => CloudError::Throttled(THROTTLED.to_owned()),
            CallFault::Failed => CloudError::Other(FAILED.to_owned()),
        })
    }

    /// True until the ConfigMap about faults has been read.
    fn is_unread(&self) -> bool {
        locked(&self.faults).from_map.is_none()
    }

    /// All faults are known from here on, also without the watch.
    async fn read_faults(&self) -> Result<(), kube::Error> {
        if self.is_unread() {
            let text = self.objects.faults().await?;
            // What the watch brought meanwhile is newer.
            if self.is_unread() {
                self.take_faults(text.as_deref());
            }
        }
        Ok(())
    }

    /// All machines and faults are known from here on, also without the watch.
    async fn load(&self) -> Result<(), kube::Error> {
        self.read_faults().await?;
        if self.with_ledger(|ledger| ledger.is_loaded()) {
            return Ok(());
        }
        let all = self.objects.machines().await?;
        self.with_ledger(|ledger| ledger.load(all));
        Ok(())
    }

    /// A machine by its own name.
    async fn machine(&self, id: &str) -> Result<Option<Stored>, CloudError> {
        let Some(name) = ids::record_name_of(id) else {
            return Ok(None);
        };
        let stored = self.objects.machine(&name).await.map_err(cloud_error)?;
        Ok(stored.filter(|stored| *stored.record.provider_id == *id))
    }

    /// Asks the registration hook about the machine of a claim, if there is one.
    async fn ask_hook(&self, claim: &NodeClaim) -> Result<Registration, CloudError> {
        self.read_faults().await.map_err(cloud_error)?;
        let faults = self.faults();
        let Some(held) = &faults.registration else {
            return Ok(Registration::default());
        };
        self.ask().await?;
        let status = claim.status.as_ref();
        let id = status.and_then(|status| status.provider_id.as_deref());
        let stored = self.machine(id.unwrap_or_default()).await?;
        let record = stored.as_ref().map(|stored| &stored.record);
        Ok(hooks::registration(held, record, self.clock.now()))
    }

    fn today(&self, listed: &Listed, now: Timestamp) -> Arc<Vec<InstanceType>> {
        let faults = self.faults();
        let holds = |of: &crate::faults::Match| {
            of.from.is_none_or(|from| from <= now) && of.until.is_none_or(|until| now < until)
        };
        let prices = faults.prices.iter().filter(|change| holds(&change.of));
        let reserved = self.with_ledger(|ledger| ledger.reserved());
        let mut market = locked(&self.market);
        let sold_out = &mut market.sold_out;
        let today = Today {
            sold_out: (!sold_out.is_empty(now)).then(|| sold_out.sequence(now)),
            prices: prices.cloned().collect(),
            reserved,
        };
        self.catalogs.today(listed, today, sold_out, now)
    }

    /// Remembers that an offering could not be had.
    fn mark_sold_out(&self, instance_type: &Name, labels: &Labels, now: Timestamp) {
        let key = OfferingKey::of(instance_type, labels);
        locked(&self.market)
            .sold_out
            .mark(SoldOutScope::Offering(key), now);
    }

    /// Chooses a machine and sets quota aside for it.
    fn buy(&self, name: &str, order: &Order, class: &NodeClass) -> Result<Record, LaunchError> {
        let now = self.clock.now();
        let listed = self.catalogs.listed(class).map_err(|error| match error {
            CatalogError::Class(why) => LaunchError::ClassNotReady(why),
            CatalogError::Other(why) => LaunchError::Other(why),
        })?;
        let types = self.today(&listed, now);
        let faults = self.faults();
        let found = purchase::offers_for(&types, &listed.keys, order, class)?;
        for offer in &found {
            let (ty, labels) = (&offer.ty.name, &offer.offering.labels);
            let had = if faults.is_short(ty, labels, now) {
                Err("it is sold out".to_owned())
            } else {
                let vcpus = purchase::vcpus(offer);
                self.with_ledger(|ledger| ledger.reserve(name, vcpus, faults.quotas))
            };
            match had {
                Ok(()) => {
                    let terms = purchase::Terms {
                        settings: &self.settings,
                        faults: &faults,
                        now,
                    };
                    return Ok(terms.record(order, class, offer));
                }
                Err(why) => {
                    tracing::debug!(instance_type = %ty, why, "an offering cannot be had");
                    self.mark_sold_out(ty, labels, now);
                }
            }
        }
        Err(LaunchError::InsufficientCapacity(match found.len() {
            0 => "no offering that is available satisfies the claim".to_owned(),
            n_offers => format!(
                "all {n_offers} offerings that satisfy the claim are sold out or beyond the quota"
            ),
        }))
    }
}

const THROTTLED: &str = "the simulated cloud was called too often";
const FAILED: &str = "the simulated cloud failed, as it was told to";

fn cloud_error(error: kube::Error) -> CloudError {
    CloudError::Other(format!("the record of the machine, {error}"))
}

fn launch_error(error: kube::Error) -> LaunchError {
    LaunchError::Other(format!("the record of the machine, {error}"))
}

/// The machine of an order that was placed before.
fn same(stored: &Stored, order: &Order) -> Result<Instance, LaunchError> {
    if *stored.record.claim_uid == *order.claim_uid {
        return Ok(stored.record.instance());
    }
    Err(LaunchError::Other(format!(
        "ConfigMap {} is the machine of another claim, {}",
        stored.name, stored.record.claim
    )))
}

/// Whether a machine counts as there. Where the Node is the machine, it is gone with the Node.
fn is_there(record: &Record, node: Option<&NodeSeen>) -> bool {
    if !record.is_its_node() {
        return true;
    }
    let node = node.filter(|node| node.provider_id == record.provider_id);
    match (record.state, node) {
        (_, Some(node)) => !node.deleting,
        (State::Pending, None) => true,
        (State::Running | State::Terminating, None) => false,
    }
}

#[async_trait]
impl Cloud for SimulatedCloud {
    fn name(&self) -> &'static str {
        "simulated"
    }

    fn classes(&self) -> &'static [ClassKind] {
        CLASSES
    }

    async fn instance_types(
        &self,
        class: &NodeClass,
    ) -> Result<Arc<Vec<InstanceType>>, CatalogError> {
        let listed = self.catalogs.listed(class)?;
        Ok(self.today(&listed, self.clock.now()))
    }

    async fn class_status(
        &self,
        class: &NodeClass,
        reserving: bool,
    ) -> Result<Option<ClassStatus>, CloudError> {
        if &*class.kind != EC2_CLASS {
            return Ok(None);
        }
        let version = self.server.version(&self.client).await;
        let at = Where {
            region: &self.settings.region,
            version: &joiner_cluster::minor(&version),
            reserving,
        };
        class_status(class, at).map(Some).map_err(CloudError::Other)
    }

    async fn launch(&self, order: &Order) -> Result<Instance, LaunchError> {
        self.call().await.map_err(|fault| match fault {
            CallFault::Throttled => LaunchError::Throttled(THROTTLED.to_owned()),
            CallFault::Failed => LaunchError::Other(FAILED.to_owned()),
        })?;
        let name = ids::record_name(&order.claim_uid);
        let placed = self.objects.machine(&name).await.map_err(launch_error)?;
        if let Some(stored) = placed {
            return same(&stored, order);
        }
        let class = order.class.as_ref().ok_or_else(|| {
            LaunchError::InsufficientCapacity("the node class of the claim is missing".to_owned())
        })?;
        catalog::readiness(class).map_err(LaunchError::ClassNotReady)?;
        self.load().await.map_err(launch_error)?;
        let record = self.buy(&name, order, class)?;
        let created = self.objects.launch(&name, &record).await;
        if !matches!(created, Ok(Created::New(_))) {
            self.with_ledger(|ledger| ledger.release(&name));
        }
        match created.map_err(launch_error)? {
            Created::New(stored) => {
                let instance = stored.record.instance();
                self.with_ledger(|ledger| ledger.note(stored));
                self.changed.notify_one();
                Ok(instance)
            }
            Created::Taken => {
                let placed = self.objects.machine(&name).await.map_err(launch_error)?;
                let gone = || LaunchError::Other(format!("ConfigMap {name} cannot be read"));
                same(&placed.ok_or_else(gone)?, order)
            }
        }
    }

    async fn terminate(&self, id: &ProviderId) -> Result<Termination, CloudError> {
        self.ask().await?;
        match self.machine(&id.0).await? {
            Some(stored) => self.end(&stored).await.map_err(cloud_error),
            None => Ok(Termination::Gone),
        }
    }

    async fn instance(&self, id: &ProviderId) -> Result<Option<Instance>, CloudError> {
        self.ask().await?;
        let Some(stored) = self.machine(&id.0).await? else {
            return Ok(None);
        };
        let record = &stored.record;
        let node = if record.is_its_node() {
            let node = self.objects.node(&record.node_name).await;
            node.map_err(cloud_error)?
        } else {
            None
        };
        Ok(is_there(record, node.as_ref()).then(|| record.instance()))
    }

    async fn instances(&self) -> Result<Vec<Instance>, CloudError> {
        self.ask().await?;
        // Machines first: one that runs has had its Node before.
        let machines = self.objects.machines().await.map_err(cloud_error)?;
        let nodes: BTreeMap<String, NodeSeen> = if machines.is_empty() {
            BTreeMap::new()
        } else {
            let nodes = self.objects.nodes().await.map_err(cloud_error)?;
            nodes.into_iter().collect()
        };
        let records = machines.iter().map(|stored| &stored.record);
        let there = records.filter(|record| is_there(record, nodes.get(&record.node_name)));
        Ok(there.map(Record::instance).collect())
    }

    async fn drift(
        &self,
        _claim: &NodeClaim,
        _class: &NodeClass,
    ) -> Result<Option<Name>, CloudError> {
        Ok(None)
    }

    /// Also true as long as the ConfigMap about faults has not been read: after a restart no Node is
    /// to slip through.
    fn has_registration_hooks(&self) -> bool {
        self.is_unread() || self.faults().registration.is_some()
    }

    async fn registration(&self, claim: &NodeClaim) -> Registration {
        let answer = self.ask_hook(claim).await;
        answer.unwrap_or_else(|error| hooks::failed(&error))
    }

    fn repair_policies(&self) -> Vec<RepairPolicy> {
        let policy = |status| RepairPolicy {
            condition: "Ready",
            status,
            toleration: UNHEALTHY_MAX,
        };
        vec![policy("False"), policy("Unknown")]
    }

    fn interruptions(&self) -> BoxStream<'static, Interruption> {
        notices::stream(self.notices.subscribe())
    }
}
