//! Tabular: every key of our own, what it is on, its values, who writes it, and what a wrong value does.
//!
//! `docs/reference/annotations.md` is made from [`KEYS`]. A key that is not in it may not be in any
//! source file: `cargo xtask tidy` looks.

/// What a key of our own is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// An annotation.
    Annotation,
    /// A label.
    Label,
    /// A taint.
    Taint,
    /// A condition.
    Condition,
    /// A name that stands elsewhere in an object.
    Name,
}

impl What {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Annotation => "annotation",
            Self::Label => "label",
            Self::Taint => "taint",
            Self::Condition => "condition",
            Self::Name => "name",
        }
    }
}

/// Who writes a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Writer {
    /// People, to ask for something.
    You,
    /// The controllers, to remember something.
    Controllers,
    /// The simulated cloud.
    SimulatedCloud,
    /// The sandbox.
    Sandbox,
}

impl Writer {
    /// For people.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::You => "you",
            Self::Controllers => "the controllers",
            Self::SimulatedCloud => "the simulated cloud",
            Self::Sandbox => "the sandbox",
        }
    }
}

/// A key of our own.
#[derive(Clone, Copy, Debug)]
pub struct OwnKey {
    /// The key.
    pub key: &'static str,
    /// What it is.
    pub what: What,
    /// Kinds of objects that have it.
    pub on: &'static str,
    /// What it is for.
    pub meaning: &'static str,
    /// Values, with an example.
    pub values: &'static str,
    /// Who writes it.
    pub writer: Writer,
    /// What a value does that cannot be read; empty where a value is not read.
    pub wrong: &'static str,
}

/// Reason of the warning about an annotation that cannot be read.
pub const UNREADABLE: &str = "UnreadableAnnotation";

/// Pods get a successor before they go.
pub const SURGE_ON_MOVE: &str = "joiner.dev/surge-on-move";
/// How often pods of a workload were moved.
pub const MOVES: &str = "joiner.dev/moves";
/// How far a surge has come.
pub const SURGE: &str = "joiner.dev/surge";
/// A claim that a command takes away.
pub const COMMAND: &str = "joiner.dev/command";
/// The machine that a claim is meant to become.
pub const PLANNED: &str = "joiner.dev/planned";
/// A claim or node that takes the place of others, and waits for its turn to be filled.
pub const IN_TURN: &str = "joiner.dev/in-turn";
/// The node that a plan has a pod on.
pub const PROPOSED: &str = "joiner.dev/Proposed";
/// Who plays the kubelet of a node.
pub const KUBELET: &str = "joiner.dev/kubelet";
/// How long a node takes to be ready.
pub const BOOT_SECONDS: &str = "joiner.dev/boot-seconds";
/// How long the containers of a pod take to start.
pub const START_SECONDS: &str = "joiner.dev/start-seconds";
/// How long the containers of a pod run.
pub const RUN_SECONDS: &str = "joiner.dev/run-seconds";
/// How long the containers of a pod take to stop.
pub const STOP_SECONDS: &str = "joiner.dev/stop-seconds";
/// With which code the containers of a pod end.
pub const EXIT_CODE: &str = "joiner.dev/exit-code";
/// How much CPU a pod uses.
pub const CPU_USAGE: &str = "joiner.dev/cpu-usage";
/// How much memory a pod uses.
pub const MEMORY_USAGE: &str = "joiner.dev/memory-usage";
/// An object that is a simulated machine.
pub const SIMULATED_INSTANCE: &str = "joiner.dev/simulated-instance";
/// The node of a simulated machine.
pub const SIMULATED: &str = "joiner.dev/simulated";
/// What a v1beta1 object has lost of its v1 fields.
pub const V1_FIELDS: &str = "joiner.dev/v1-fields";
/// What a v1 object has lost of its v1beta1 fields.
pub const V1BETA1_FIELDS: &str = "joiner.dev/v1beta1-fields";
/// Where the autoscaler of a sandbox answers.
pub const CONTROLLER: &str = "joiner.dev/controller";
/// Who makes volumes in a sandbox.
pub const DISK: &str = "sandbox.joiner.dev/disk";

const SECONDS: &str = "whole seconds, `30`";
const AMOUNT: &str = "an amount (`250m`, `1Gi`), a share of the request (`80%`), or a wave between \
    two of them (`20%..90%/24h`), low at the start of its period and high in the middle";
const NO_TIME: &str = "the default of the cluster holds";
const NO_AMOUNT: &str = "the pod uses the default share of its request";

/// Every key of our own: those that people write, then those that programs write, by key.
pub const KEYS: &[OwnKey] = &[
    OwnKey {
        key: SURGE_ON_MOVE,
        what: What::Annotation,
        on: "Deployments, NodePools (for all Deployments on their nodes)",
        meaning: "A Deployment of one replica gets a second pod before the first one has to go.",
        values: "`true`, `false`",
        writer: Writer::You,
        wrong: "it counts as `false`",
    },
    OwnKey {
        key: BOOT_SECONDS,
        what: What::Annotation,
        on: "Nodes of a sandbox",
        meaning: "How long after its creation the Node is ready.",
        values: SECONDS,
        writer: Writer::You,
        wrong: NO_TIME,
    },
    OwnKey {
        key: CPU_USAGE,
        what: What::Annotation,
        on: "Pods of a sandbox",
        meaning: "How much CPU the pod uses, as `kubectl top` and the metrics API tell it.",
        values: AMOUNT,
        writer: Writer::You,
        wrong: NO_AMOUNT,
    },
    OwnKey {
        key: EXIT_CODE,
        what: What::Annotation,
        on: "Pods on simulated nodes",
        meaning: "With which code the containers end.",
        values: "a whole number, `1`",
        writer: Writer::You,
        wrong: "it counts as `0`",
    },
    OwnKey {
        key: KUBELET,
        what: What::Annotation,
        on: "Nodes of a sandbox or simulated cloud",
        meaning: "Who plays the kubelet: others, or nobody. The simulated cloud writes `stopped` on \
            the Node of a machine that is taken back.",
        values: "`false`: others do; `stopped`: nobody does, it has fallen silent; `true`: we do, as \
            without it",
        writer: Writer::You,
        wrong: "it counts as not there",
    },
    OwnKey {
        key: MEMORY_USAGE,
        what: What::Annotation,
        on: "Pods of a sandbox",
        meaning: "How much memory the pod uses, as `kubectl top` and the metrics API tell it.",
        values: AMOUNT,
        writer: Writer::You,
        wrong: NO_AMOUNT,
    },
    OwnKey {
        key: RUN_SECONDS,
        what: What::Annotation,
        on: "Pods on simulated nodes",
        meaning: "How long the containers run before they end.",
        values: SECONDS,
        writer: Writer::You,
        wrong: NO_TIME,
    },
    OwnKey {
        key: START_SECONDS,
        what: What::Annotation,
        on: "Pods on simulated nodes",
        meaning: "How long it takes to make the containers.",
        values: SECONDS,
        writer: Writer::You,
        wrong: NO_TIME,
    },
    OwnKey {
        key: STOP_SECONDS,
        what: What::Annotation,
        on: "Pods on simulated nodes",
        meaning: "How long the containers take to stop; the grace period ends it at the latest.",
        values: SECONDS,
        writer: Writer::You,
        wrong: NO_TIME,
    },
    OwnKey {
        key: COMMAND,
        what: What::Annotation,
        on: "NodeClaims",
        meaning: "The disruption that takes the node away, so that a restart goes on from there.",
        values: "JSON",
        writer: Writer::Controllers,
        wrong: "the node counts as one that goes, and nothing takes it away: remove the annotation",
    },
    OwnKey {
        key: IN_TURN,
        what: What::Annotation,
        on: "NodeClaims",
        meaning: "The node gets the taint of the same key when it is registered.",
        values: "`true`",
        writer: Writer::Controllers,
        wrong: "the node gets no taint",
    },
    OwnKey {
        key: MOVES,
        what: What::Annotation,
        on: "Deployments, ReplicaSets, StatefulSets",
        meaning: "How many pods were moved for money, by hour of the last day; \
            `--moves-per-replica-per-day` bounds it. Remove it to let pods move again at once.",
        values: "`HOUR=MOVES/REPLICAS`, with commas between: `2026-11-16T04=3/10,2026-11-16T07=1/10`",
        writer: Writer::Controllers,
        wrong: "hours that cannot be read count no moves",
    },
    OwnKey {
        key: PLANNED,
        what: What::Annotation,
        on: "NodeClaims",
        meaning: "The machine that the claim was planned as: until it is launched, plans count on it.",
        values: "`TYPE/ZONE/CAPACITY-TYPE`, `m5.large/us-east-1a/spot`",
        writer: Writer::Controllers,
        wrong: "plans do not count on the claim before it is launched",
    },
    OwnKey {
        key: SURGE,
        what: What::Annotation,
        on: "Deployments",
        meaning: "How far the surge of a Deployment has come, so that a restart goes on from there.",
        values: "JSON",
        writer: Writer::Controllers,
        wrong: "the surge is over, and the annotation is removed",
    },
    OwnKey {
        key: V1_FIELDS,
        what: What::Annotation,
        on: "NodePools, NodeClaims and EC2NodeClasses read as v1beta1",
        meaning: "Fields of v1 that v1beta1 has no place for, so that writing the object as v1beta1 \
            keeps them.",
        values: "JSON",
        writer: Writer::Controllers,
        wrong: "a write as v1beta1 loses these fields",
    },
    OwnKey {
        key: V1BETA1_FIELDS,
        what: What::Annotation,
        on: "NodePools, NodeClaims and EC2NodeClasses written as v1beta1",
        meaning: "Fields of v1beta1 that v1 has no place for, so that reading the object as v1beta1 \
            shows them.",
        values: "JSON",
        writer: Writer::Controllers,
        wrong: "reading the object as v1beta1 shows it without these fields",
    },
    OwnKey {
        key: IN_TURN,
        what: What::Taint,
        on: "Nodes",
        meaning: "For seconds: the node takes the place of others, and it is not its turn yet to be \
            filled ([ADR 15](../adr/0015-pods-leave-in-turns.md)).",
        values: "effect `NoSchedule`, no value",
        writer: Writer::Controllers,
        wrong: "",
    },
    OwnKey {
        key: PROPOSED,
        what: What::Condition,
        on: "Pods",
        meaning: "The node that a plan has the pod on, in its message \
            ([ADR 14](../adr/0014-the-scheduler-follows-the-plan.md)).",
        values: "`True`",
        writer: Writer::Controllers,
        wrong: "",
    },
    OwnKey {
        key: SIMULATED,
        what: What::Label,
        on: "Nodes",
        meaning: "The Node of a simulated machine.",
        values: "`true`",
        writer: Writer::SimulatedCloud,
        wrong: "",
    },
    OwnKey {
        key: SIMULATED_INSTANCE,
        what: What::Label,
        on: "objects that are simulated machines",
        meaning: "A machine of the simulated cloud.",
        values: "`true`",
        writer: Writer::SimulatedCloud,
        wrong: "",
    },
    OwnKey {
        key: CONTROLLER,
        what: What::Name,
        on: "the kubeconfig of a sandbox (an extension of its cluster)",
        meaning: "Where the autoscaler in the sandbox answers `joiner why`.",
        values: "an address, `http://127.0.0.1:8080`",
        writer: Writer::Sandbox,
        wrong: "",
    },
    OwnKey {
        key: DISK,
        what: What::Name,
        on: "the StorageClass `standard` of a sandbox (`provisioner`)",
        meaning: "Volumes that the sandbox makes.",
        values: "",
        writer: Writer::Sandbox,
        wrong: "",
    },
];

/// An annotation of ours, by key.
#[must_use]
pub fn annotation(key: &str) -> Option<&'static OwnKey> {
    let mut keys = KEYS.iter();
    keys.find(|own| own.key == key && own.what == What::Annotation)
}

/// What is said of an annotation whose value cannot be read.
#[must_use]
pub fn unreadable(key: &str, value: &str) -> String {
    let value = match value.char_indices().nth(VALUE_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &value[..end]),
        None => value.to_owned(),
    };
    let said = format!("the annotation {key} cannot be read: {value:?}");
    match annotation(key) {
        Some(own) => {
            let (values, wrong) = (own.values.replace('`', ""), own.wrong.replace('`', ""));
            format!("{said}; values are {values}; as it is, {wrong}")
        }
        None => said,
    }
}

/// Longer values are cut short in messages.
const VALUE_CHARS_MAX: usize = 80;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_key_is_there_once_for_each_thing_it_is() {
        for (ix, own) in KEYS.iter().enumerate() {
            let again = KEYS[..ix]
                .iter()
                .any(|other| other.key == own.key && other.what == own.what);
            assert!(!again, "{}", own.key);
            assert!(own.key.contains(super::super::JOINER_PREFIX), "{}", own.key);
            assert_eq!(
                own.what == What::Annotation,
                !own.wrong.is_empty(),
                "{}",
                own.key
            );
        }
    }

    #[test]
    fn a_value_that_cannot_be_read_is_told_with_the_values_there_are() {
        let told = unreadable(SURGE_ON_MOVE, "yes");
        assert_eq!(
            told,
            "the annotation joiner.dev/surge-on-move cannot be read: \"yes\"; values are true, \
             false; as it is, it counts as false"
        );
        let long = "é".repeat(1000);
        assert!(unreadable(CPU_USAGE, &long).len() < 700);
    }
}
