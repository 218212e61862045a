//! What the cloud does by itself: follows machines and Nodes, and makes happen what is due.
//!
//! *Flow*: news from watches feed the ledger; [`life::next`] says what is due; each event is carried
//! out against the API server, and its outcome goes into the ledger.
//!
//! *Guarantees*: everything can be repeated. A crash between the creation of a Node and the note
//! that it has joined leaves a Node of the same name, which is taken for what it is.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::{FutureExt, StreamExt, stream};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::core::v1::ConfigMap;
use serde_json::Value;

use crate::cloud::SimulatedCloud;
use crate::kubelets::SimulatedKubelets;
use crate::ledger::Stored;
use crate::life::{self, Chance, Event, Next, NodeSeen};
use crate::notices::Notices;
use crate::objects::{self, Created};
use crate::record::{Record, State};
use crate::settings::{FAULTS_CONFIG_MAP, INSTANCE_LABEL, MACHINES_NAMESPACE, SIMULATED_LABEL};
use crate::watch::{News, Watched, follow_all};
use crate::{ids, node};

/// News within this time are looked at together.
const PAUSE: Duration = Duration::from_millis(5);
/// Calls to the API server at a time.
const PARALLEL: usize = 16;
/// Rounds in a row after which news are looked at again.
const ROUNDS_MAX: usize = 50;
/// First and longest wait after a failure.
const BACK_OFF_SECS: (i64, i64) = (1, 10);
/// How long a machine waits that a policy of the cluster does not let in: longer than its claim
/// waits for it, so that it never joins late.
const UNWELCOME_SECS: i64 = 1200;
/// How the key of a machine that is to join ends.
const JOINS: &str = "/joins";

/// Watches, in the order of [`Engine::take`].
const MACHINES: usize = 0;
const NODES: usize = 1;
const FAULTS: usize = 2;

impl SimulatedCloud {
    /// Plays the cloud, and the kubelets of its machines if the settings say so; ends only when it
    /// is dropped. One process at a time is enough, two of them do no harm.
    pub async fn run(self: Arc<Self>) {
        if !self.settings.simulated_kubelets {
            return self.play().await;
        }
        let (client, clock) = (self.client.clone(), self.clock.clone());
        let kubelets = SimulatedKubelets::new(client, clock, self.settings.seed);
        tokio::join!(self.play(), kubelets.run());
    }

    async fn play(self: Arc<Self>) {
        self.settle().await;
        let mut news = follow_all(&self.client, &watched(&self.settings.namespace));
        let mut engine = Engine::new(Arc::clone(&self));
        loop {
            let wake = engine.turn().await;
            tokio::select! {
                biased;
                item = news.next() => {
                    let Some(item) = item else { return };
                    engine.take(item);
                    self.clock.sleep(PAUSE).await;
                    while let Some(Some(item)) = news.next().now_or_never() {
                        engine.take(item);
                    }
                }
                () = self.changed.notified() => {}
                () = sleep_until(&self.clock, wake) => {}
            }
        }
    }
}

impl SimulatedCloud {
    /// Waits until all machines are where they belong.
    async fn settle(&self) {
        let (first, longest) = BACK_OFF_SECS;
        let mut wait = first;
        let mut told = String::new();
        while let Err(error) = self.objects.settle().await {
            let text = error.to_string();
            if text != told {
                tracing::error!(%error, "the simulated cloud cannot begin; trying on");
                told = text;
            }
            let pause = Duration::from_secs(wait.unsigned_abs());
            self.clock.sleep(pause).await;
            wait = (wait * 2).min(longest);
        }
    }
}

/// Waits until then, or forever.
pub(crate) async fn sleep_until(clock: &joiner_runtime::Clock, at: Option<Timestamp>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => std::future::pending().await,
    }
}

fn watched(namespace: &str) -> [Watched; 3] {
    let maps = Watched {
        kind: "ConfigMap",
        plural: "configmaps",
        namespace: Some(namespace.to_owned()),
        ..Watched::default()
    };
    [
        Watched {
            namespace: Some(MACHINES_NAMESPACE.to_owned()),
            labels: format!("{INSTANCE_LABEL}=true"),
            ..maps.clone()
        },
        Watched {
            kind: "Node",
            plural: "nodes",
            labels: format!("{SIMULATED_LABEL}=true"),
            ..Watched::default()
        },
        Watched {
            fields: format!("metadata.name={FAULTS_CONFIG_MAP}"),
            ..maps
        },
    ]
}

/// One thing to carry out.
enum Task {
    Machine(Box<Stored>, Event),
    DropNode(String, NodeSeen),
}

impl Task {
    /// What failures of it are counted under.
    fn key(&self) -> String {
        match self {
            // One that is not let in can still be shut down.
            Self::Machine(stored, Event::Joins) => format!("{}{JOINS}", stored.name),
            Self::Machine(stored, _) => stored.name.clone(),
            Self::DropNode(node, _) => format!("node/{node}"),
        }
    }
}

/// What came of a task, as far as Nodes are concerned.
enum Outcome {
    Nothing,
    Node(String, NodeSeen),
}

struct Engine {
    cloud: Arc<SimulatedCloud>,
    nodes: BTreeMap<String, NodeSeen>,
    synced: [bool; 3],
    /// Failures in a row, and when to try again.
    held: BTreeMap<String, (u32, Timestamp)>,
}

impl Engine {
    fn new(cloud: Arc<SimulatedCloud>) -> Self {
        Self {
            cloud,
            nodes: BTreeMap::new(),
            synced: [false; 3],
            held: BTreeMap::new(),
        }
    }

    fn take(&mut self, (watch, news): (usize, News)) {
        self.synced[watch] |= matches!(news, News::All(_));
        match watch {
            MACHINES => self.take_machines(news),
            NODES => self.take_nodes(news),
            FAULTS => self.take_faults(&news),
            _ => {}
        }
    }

    fn take_machines(&self, news: News) {
        let read = |value: Value| {
            let map: ConfigMap = serde_json::from_value(value).ok()?;
            objects::read(&map)
        };
        self.cloud.with_ledger(|ledger| match news {
            News::All(all) => ledger.load(all.into_iter().filter_map(read).collect()),
            News::Put(value) => {
                if let Some(stored) = read(value) {
                    ledger.note(stored);
                }
            }
            News::Gone(value) => ledger.is_gone(joiner_machinery::meta::name(&value)),
        });
    }

    fn take_nodes(&mut self, news: News) {
        let seen = |node: &Value| NodeSeen {
            uid: joiner_machinery::meta::uid(node).to_owned(),
            provider_id: node["spec"]["providerID"].as_str().unwrap_or("").to_owned(),
            deleting: joiner_machinery::meta::is_deleting(node),
        };
        let name = |node: &Value| joiner_machinery::meta::name(node).to_owned();
        match news {
            News::All(all) => {
                self.nodes = all.iter().map(|node| (name(node), seen(node))).collect();
            }
            News::Put(node) => {
                self.nodes.insert(name(&node), seen(&node));
            }
            News::Gone(node) => {
                self.nodes.remove(&name(&node));
            }
        }
    }

    fn take_faults(&self, news: &News) {
        let map = match news {
            News::All(all) => all.first(),
            News::Put(map) => Some(map),
            News::Gone(_) => None,
        };
        let text = map.and_then(|map| map["data"][objects::FAULTS_KEY].as_str());
        self.cloud.take_faults(text);
    }

    /// Makes everything happen that is due; returns when to look again.
    async fn turn(&mut self) -> Option<Timestamp> {
        if self.synced.contains(&false) {
            return None;
        }
        for _ in 0..ROUNDS_MAX {
            let (tasks, wake) = self.due();
            self.publish();
            if tasks.is_empty() {
                return wake;
            }
            let cloud = Arc::clone(&self.cloud);
            let done = stream::iter(tasks).map(|task| {
                let cloud = Arc::clone(&cloud);
                async move { (task.key(), perform(&cloud, task).await) }
            });
            let mut done = done.buffer_unordered(PARALLEL);
            while let Some((key, outcome)) = done.next().await {
                match outcome {
                    Ok(Outcome::Nothing) => drop(self.held.remove(&key)),
                    Ok(Outcome::Node(name, seen)) => {
                        self.held.remove(&key);
                        self.nodes.insert(name, seen);
                    }
                    Err(error) => self.hold(key, &error),
                }
            }
        }
        Some(self.cloud.clock.now())
    }

    fn hold(&mut self, key: String, error: &kube::Error) {
        let n_failed = self.held.get(&key).map_or(0, |(n_failed, _)| *n_failed);
        let (first, longest) = BACK_OFF_SECS;
        let wait = match is_unwelcome(error) {
            true => UNWELCOME_SECS,
            false => first.saturating_mul(1 << n_failed.min(10)).min(longest),
        };
        let until = self
            .cloud
            .clock
            .now()
            .checked_add(SignedDuration::from_secs(wait));
        tracing::warn!(%error, key, wait, "the simulated cloud cannot go on, and waits");
        let until = until.unwrap_or(Timestamp::MAX);
        self.held.insert(key, (n_failed + 1, until));
    }

    /// What is due, and when the next thing will be.
    fn due(&mut self) -> (Vec<Task>, Option<Timestamp>) {
        let now = self.cloud.clock.now();
        let faults = self.cloud.faults();
        let chance = Chance {
            faults: &faults,
            since: self.cloud.faults_since(),
            seed: self.cloud.settings.seed,
        };
        let mut tasks = Vec::new();
        let mut wake: Option<Timestamp> = None;
        let mut look_at = |at: Timestamp| wake = Some(wake.map_or(at, |wake| wake.min(at)));
        self.cloud.with_ledger(|ledger| {
            let known = ledger.known();
            self.held.retain(|key, _| {
                let machine = key.strip_suffix(JOINS).unwrap_or(key);
                key.starts_with("node/") || known.contains_key(machine)
            });
            for stored in known.values() {
                let record = &stored.record;
                let node = self.nodes.get(&record.node_name);
                let node = node.filter(|node| node.provider_id == record.provider_id);
                match life::next(record, node, chance, now) {
                    Next::Due(event) => {
                        tasks.push(Task::Machine(Box::new(stored.clone()), event));
                    }
                    Next::Look(at) => at.into_iter().for_each(&mut look_at),
                }
            }
            for (name, node) in &self.nodes {
                let machine = || known.get(&ids::record_name_of(&node.provider_id)?);
                if life::is_left_over(node) && machine().is_none() {
                    tasks.push(Task::DropNode(name.clone(), node.clone()));
                }
            }
        });
        let nodes = &self.nodes;
        let there = |key: &str| {
            key.strip_prefix("node/")
                .is_none_or(|n| nodes.contains_key(n))
        };
        self.held.retain(|key, _| there(key));
        tasks.retain(|task| match self.held.get(&task.key()) {
            Some((_, until)) if *until > now => {
                look_at(*until);
                false
            }
            Some(_) | None => true,
        });
        (tasks, wake)
    }

    /// Tells of machines that will go.
    fn publish(&self) {
        let notices: Notices = self.cloud.with_ledger(|ledger| {
            let records = ledger.known().values().map(|stored| &stored.record);
            let noticed = records.filter_map(|record| {
                let upcoming = record.interruption?;
                let id = joiner_cloud::ProviderId(record.provider_id.as_str().into());
                Some((id, upcoming.notice.kind()))
            });
            noticed.collect()
        });
        self.cloud.notices.send_if_modified(|known| {
            let changed = **known != notices;
            *known = Arc::new(notices);
            changed
        });
    }
}

/// True when a policy of the cluster does not let a machine in.
fn is_unwelcome(error: &kube::Error) -> bool {
    let kube::Error::Api(status) = error else {
        return false;
    };
    status.code == 403 && status.message.contains("ValidatingAdmissionPolicy")
}

async fn perform(cloud: &SimulatedCloud, task: Task) -> Result<Outcome, kube::Error> {
    match task {
        Task::Machine(stored, event) => match event {
            Event::Joins => join(cloud, &stored).await,
            Event::IsNoticed(notice) => {
                cloud.give_notice(&stored, notice).await?;
                Ok(Outcome::Nothing)
            }
            Event::IsTaken => {
                cloud.objects.silence(&stored.record.node_name).await?;
                cloud.end(&stored).await?;
                Ok(Outcome::Nothing)
            }
            Event::IsGone => {
                cloud.end(&stored).await?;
                Ok(Outcome::Nothing)
            }
            Event::LostItsNode => lost(cloud, &stored).await,
        },
        Task::DropNode(name, node) => drop_node(cloud, name, node).await,
    }
}

/// A machine joins: the Node first, then the note that it has.
async fn join(cloud: &SimulatedCloud, stored: &Stored) -> Result<Outcome, kube::Error> {
    let record = &stored.record;
    let version = cloud.server.version(&cloud.client).await;
    let seen = match cloud.objects.join(node::render(record, &version)).await? {
        Created::New(seen) => seen,
        Created::Taken => match cloud.objects.node(&record.node_name).await? {
            Some(seen) if seen.provider_id == record.provider_id => seen,
            Some(_) => return rename(cloud, stored).await,
            // It was there a moment ago; the next round tries again.
            None => return Ok(Outcome::Nothing),
        },
    };
    let edit = |record: &mut Record| {
        if record.state == State::Pending {
            record.state = State::Running;
        }
    };
    let changed = cloud.objects.change(stored, edit).await?;
    if changed.is_none() {
        // The machine was ended while it joined.
        cloud
            .objects
            .drop_node(&record.node_name, &seen.uid)
            .await?;
    }
    cloud.note(stored, changed);
    Ok(Outcome::Node(record.node_name.clone(), seen))
}

/// Another machine has the name: a new one is given, where names are ours to give.
async fn rename(cloud: &SimulatedCloud, stored: &Stored) -> Result<Outcome, kube::Error> {
    let region = cloud.settings.region.as_str();
    let later = cloud.clock.now().checked_add(SignedDuration::from_secs(10));
    let later = later.unwrap_or(Timestamp::MAX);
    let edit = |record: &mut Record| {
        if record.is_its_node() {
            // The name holds the claim's and its uid's: somebody made this Node on purpose.
            record.joins_at = Some(later);
            return;
        }
        record.attempt += 1;
        let (address, name) = ids::ec2_address(&record.claim_uid, record.attempt, region);
        record.address = Some(address);
        record.node_name = name;
    };
    let changed = cloud.objects.change(stored, edit).await?;
    cloud.note(stored, changed);
    Ok(Outcome::Nothing)
}

/// A machine that is its Node is gone with it, if the Node is really gone.
async fn lost(cloud: &SimulatedCloud, stored: &Stored) -> Result<Outcome, kube::Error> {
    let record = &stored.record;
    let node = cloud.objects.node(&record.node_name).await?;
    match node.filter(|node| node.provider_id == record.provider_id) {
        Some(node) => Ok(Outcome::Node(record.node_name.clone(), node)),
        None => {
            cloud.objects.forget(&stored.name).await?;
            cloud.note(stored, None);
            Ok(Outcome::Nothing)
        }
    }
}

/// A Node without a machine goes, if there really is none.
async fn drop_node(
    cloud: &SimulatedCloud,
    name: String,
    node: NodeSeen,
) -> Result<Outcome, kube::Error> {
    if let Some(record) = ids::record_name_of(&node.provider_id)
        && let Some(stored) = cloud.objects.machine(&record).await?
    {
        cloud.with_ledger(|ledger| ledger.note(stored));
        return Ok(Outcome::Nothing);
    }
    cloud.objects.drop_node(&name, &node.uid).await?;
    let gone = NodeSeen {
        deleting: true,
        ..node
    };
    Ok(Outcome::Node(name, gone))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_policy_makes_a_machine_unwelcome() {
        for (code, message, expected) in [
            (403, "denied by ValidatingAdmissionPolicy 'p'", true),
            (403, "User \"u\" cannot create resource \"nodes\"", false),
            (500, "ValidatingAdmissionPolicy 'p' took too long", false),
        ] {
            let status = kube::core::Status::failure(message, "").with_code(code);
            let error = kube::Error::Api(status.boxed());
            assert_eq!(is_unwelcome(&error), expected, "{code} {message}");
        }
    }
}
