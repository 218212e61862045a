//! Checks of machines: those that EC2 makes, and the states of nodes that are repaired.

use std::collections::BTreeMap;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use crate::answer::{InstanceStatus, StatusSummary};
use crate::request::{Filter, Query};

/// For how long checks must have failed before they count.
const FAILED_FOR: SignedDuration = SignedDuration::from_secs(120);
/// Codes of events that end a machine or interrupt it.
const EVENTS: [&str; 5] = [
    "instance-reboot",
    "system-reboot",
    "system-maintenance",
    "instance-retirement",
    "instance-stop",
];

/// What is wrong with a machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Illness {
    /// Checks from inside fail.
    InstanceStatus,
    /// Checks of what is below it fail.
    SystemStatus,
    /// Something will happen to it.
    EventStatus,
}

impl Illness {
    /// As the metric says it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::InstanceStatus => "InstanceStatus",
            Self::SystemStatus => "SystemStatus",
            Self::EventStatus => "EventStatus",
        }
    }

    /// As the reason of a disruption says it.
    #[must_use]
    pub const fn reason(self) -> &'static str {
        match self {
            Self::InstanceStatus => "instance_status",
            Self::SystemStatus => "system_status",
            Self::EventStatus => "event_status",
        }
    }

    /// Whether the machine cannot be drained: its claim is given a time of termination, which is now, before it
    /// is deleted.
    #[must_use]
    pub const fn is_forceful(self) -> bool {
        match self {
            Self::InstanceStatus | Self::SystemStatus => true,
            Self::EventStatus => false,
        }
    }
}

/// The questions to ask; a machine may be in the answers to several.
#[must_use]
pub fn queries() -> [Query; 3] {
    let query = |filter: Filter| Query {
        filters: vec![filter],
        ..Query::default()
    };
    [
        query(Filter::new("instance-status.status", ["impaired"])),
        query(Filter::new("system-status.status", ["impaired"])),
        query(Filter::new("event.code", EVENTS)),
    ]
}

/// Which machines are ill, and of what: the worst first.
#[must_use]
pub fn ill(statuses: &[InstanceStatus], now: Timestamp) -> BTreeMap<String, Vec<Illness>> {
    let mut all: BTreeMap<String, Vec<Illness>> = BTreeMap::new();
    for status in statuses {
        let found = [
            (
                Illness::InstanceStatus,
                has_failed(&status.instance_status, now),
            ),
            (
                Illness::SystemStatus,
                has_failed(&status.system_status, now),
            ),
            (
                Illness::EventStatus,
                status
                    .events
                    .iter()
                    .any(|event| EVENTS.contains(&event.code.as_str())),
            ),
        ];
        let found = found
            .into_iter()
            .filter(|(_, is_so)| *is_so)
            .map(|(illness, _)| illness);
        let slot = all.entry(status.instance_id.clone()).or_default();
        slot.extend(found);
    }
    for slot in all.values_mut() {
        slot.sort();
        slot.dedup();
    }
    all.retain(|_, slot| !slot.is_empty());
    all
}

fn has_failed(summary: &StatusSummary, now: Timestamp) -> bool {
    summary.status == "impaired"
        && summary.details.iter().any(|detail| {
            let since = detail
                .impaired_since
                .as_deref()
                .and_then(|since| since.parse::<Timestamp>().ok());
            since.is_some_and(|since| now.duration_since(since) >= FAILED_FOR)
        })
}

/// Which illnesses are new since the last look: each is counted once until the machine recovers.
#[must_use]
pub fn new_since(
    last: &BTreeMap<String, Vec<Illness>>,
    now: &BTreeMap<String, Vec<Illness>>,
) -> Vec<(String, Illness)> {
    let known = |id: &String, illness: &Illness| {
        let before = last.get(id);
        before.is_some_and(|illnesses| illnesses.contains(illness))
    };
    let all = now
        .iter()
        .flat_map(|(id, illnesses)| illnesses.iter().map(move |illness| (id, illness)));
    let new = all.filter(|(id, illness)| !known(id, illness));
    new.map(|(id, illness)| (id.clone(), *illness)).collect()
}

/// A state of a node that is repaired by replacing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Condition of the Node.
    pub condition: &'static str,
    /// The status that is unhealthy.
    pub status: &'static str,
    /// How long it may last.
    pub toleration: Duration,
}

/// All of them.
pub const REPAIRS: [Repair; 7] = [
    repair("Ready", "False", 30),
    repair("Ready", "Unknown", 30),
    repair("AcceleratedHardwareReady", "False", 10),
    repair("StorageReady", "False", 30),
    repair("NetworkingReady", "False", 30),
    repair("KernelReady", "False", 30),
    repair("ContainerRuntimeReady", "False", 30),
];

const fn repair(condition: &'static str, status: &'static str, minutes: u64) -> Repair {
    Repair {
        condition,
        status,
        toleration: Duration::from_secs(minutes * 60),
    }
}
