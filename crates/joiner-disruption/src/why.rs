//! Why a node stays, in words for events, metrics and people.

use std::fmt;

use joiner_model::{Name, NanoDollars, PodIx, ResourceName, Resources};

use crate::command::{Reason, Verdict};
use crate::consolidation::bounds::Rooms;
use crate::fleet::{Fleet, Member, PoolName};

/// The reason that keeps a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Why {
    /// A command about it is under way.
    InCommand,
    /// It has not finished booting.
    NotInitialized,
    /// It goes anyway.
    Deleting,
    /// A pod that waits counts on it.
    Nominated,
    /// The node says so.
    DoNotDisrupt,
    /// A pod says so.
    ProtectedPod(Name),
    /// A PodDisruptionBudget allows no eviction.
    PodBudget(String),
    /// PodDisruptionBudgets are about the same pod, which the eviction API refuses.
    SeveralPodBudgets(String),
    /// Its pool keeps a constant size.
    Static(PoolName),
    /// Nobody knows what it costs.
    UnknownType(Name),
    /// A label is missing.
    MissingLabel(&'static str),
    /// Its pool never consolidates.
    ConsolidationOff(PoolName),
    /// Its pool gives back empty nodes only.
    OnlyWhenEmpty(PoolName),
    /// Something happened there not long ago.
    NotQuiet,
    /// Headroom counts on it.
    Buffer,
    /// Its pool's budget is used up.
    Budget(PoolName, Reason),
    /// Its node group has no more nodes than it keeps.
    GroupMinimum(Name),
    /// A workload was moved often enough.
    MovedEnough(Name),
    /// A pod finds no other place.
    Pinned(Pin),
    /// More new nodes would be needed than may be.
    TooManyNew(usize),
    /// A new node would not be cheaper.
    NotCheaper {
        /// What is there now, an hour.
        before: NanoDollars,
        /// What would take its place, an hour.
        after: NanoDollars,
    },
    /// Cheaper nodes would be of too few types for `minValues`.
    MinValues(Name),
    /// The feature gate is off.
    SpotToSpotOff,
    /// Too few cheaper types for a spot node to be followed by another.
    FewSpotTypes(usize),
    /// Moving costs more than it saves.
    NotWorthIt {
        /// Saved an hour.
        savings: NanoDollars,
        /// What moving costs.
        move_cost: NanoDollars,
    },
    /// Saves too little for the disruption, by its pool's policy.
    Unbalanced {
        /// The pool.
        pool: PoolName,
        /// Score in thousandths.
        score_milli: u64,
    },
    /// It was not its turn.
    NotLookedAt,
    /// Another command comes first.
    AnotherFirst,
}

/// The pod that keeps a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pin {
    /// The pod.
    pub pod: Name,
    /// What it asks for.
    pub needs: String,
    /// The constraint in the way.
    pub because: String,
    /// The largest hole elsewhere, for a pod that fits none.
    pub largest_hole: Option<String>,
    /// How many further pods have no place either.
    pub n_more: usize,
}

/// Who is told a reason.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Audience {
    /// Upstream's event `DisruptionBlocked`.
    Blocked,
    /// Upstream's event `Unconsolidatable`.
    Unconsolidatable,
    /// Nobody, unless somebody asks.
    Nobody,
}

impl Why {
    /// One word for programs.
    #[must_use]
    pub fn word(&self) -> &'static str {
        match self {
            Self::InCommand => "InCommand",
            Self::NotInitialized => "NotInitialized",
            Self::Deleting => "Deleting",
            Self::Nominated => "Nominated",
            Self::DoNotDisrupt => "DoNotDisrupt",
            Self::ProtectedPod(_) => "ProtectedPod",
            Self::PodBudget(_) => "PodDisruptionBudget",
            Self::SeveralPodBudgets(_) => "SeveralPodDisruptionBudgets",
            Self::Static(_) => "StaticNodePool",
            Self::UnknownType(_) => "UnknownInstanceType",
            Self::MissingLabel(_) => "MissingLabel",
            Self::ConsolidationOff(_) => "ConsolidationDisabled",
            Self::OnlyWhenEmpty(_) => "OnlyWhenEmpty",
            Self::NotQuiet => "ConsolidateAfter",
            Self::Buffer => "CapacityBuffer",
            Self::Budget(..) => "DisruptionBudget",
            Self::GroupMinimum(_) => "NodeGroupMinimum",
            Self::MovedEnough(_) => "MoveBudget",
            Self::Pinned(_) => "Pinned",
            Self::TooManyNew(_) => "TooManyNewNodes",
            Self::NotCheaper { .. } => "NotCheaper",
            Self::MinValues(_) => "MinValues",
            Self::SpotToSpotOff => "SpotToSpotDisabled",
            Self::FewSpotTypes(_) => "FewSpotTypes",
            Self::NotWorthIt { .. } => "NotWorthTheMove",
            Self::Unbalanced { .. } => "Unbalanced",
            Self::NotLookedAt => "NotLookedAtYet",
            Self::AnotherFirst => "AnotherFirst",
        }
    }

    /// Who is told. A node that must go, since it drifted, is blocked by what only makes others not
    /// worth moving.
    #[must_use]
    pub fn audience(&self, is_drifted: bool) -> Audience {
        match self {
            own if own.is_blocking() => Audience::Blocked,
            Self::Pinned(_) if is_drifted => Audience::Blocked,
            Self::UnknownType(_)
            | Self::MissingLabel(_)
            | Self::ConsolidationOff(_)
            | Self::OnlyWhenEmpty(_)
            | Self::Buffer
            | Self::MovedEnough(_)
            | Self::Pinned(_)
            | Self::TooManyNew(_)
            | Self::NotCheaper { .. }
            | Self::MinValues(_)
            | Self::SpotToSpotOff
            | Self::FewSpotTypes(_)
            | Self::NotWorthIt { .. } => Audience::Unconsolidatable,
            Self::InCommand
            | Self::NotInitialized
            | Self::Deleting
            | Self::Nominated
            | Self::DoNotDisrupt
            | Self::ProtectedPod(_)
            | Self::PodBudget(_)
            | Self::SeveralPodBudgets(_)
            | Self::Static(_)
            | Self::NotQuiet
            | Self::Budget(..)
            | Self::GroupMinimum(_)
            | Self::Unbalanced { .. }
            | Self::NotLookedAt
            | Self::AnotherFirst => Audience::Nobody,
        }
    }

    /// True for what passes by itself before long.
    #[must_use]
    pub fn is_passing(&self) -> bool {
        matches!(
            self,
            Self::InCommand
                | Self::NotInitialized
                | Self::Deleting
                | Self::Nominated
                | Self::NotQuiet
                | Self::NotLookedAt
                | Self::AnotherFirst
        )
    }

    /// True when the node goes as soon as its pods have room elsewhere, or cheaper room.
    fn is_about_room(&self) -> bool {
        matches!(
            self,
            Self::TooManyNew(_)
                | Self::NotCheaper { .. }
                | Self::MinValues(_)
                | Self::SpotToSpotOff
                | Self::FewSpotTypes(_)
                | Self::NotWorthIt { .. }
                | Self::Unbalanced { .. }
        )
    }

    /// True for reasons that upstream tells as `DisruptionBlocked`; the others are
    /// `Unconsolidatable`, or nobody's business.
    #[must_use]
    pub fn is_blocking(&self) -> bool {
        matches!(
            self,
            Self::NotInitialized
                | Self::Deleting
                | Self::Nominated
                | Self::DoNotDisrupt
                | Self::ProtectedPod(_)
                | Self::PodBudget(_)
                | Self::SeveralPodBudgets(_)
        )
    }
}

/// For each member the pod that keeps it: the one that finds no place at all, or else, where only
/// new nodes would do, the largest that fits no hole elsewhere.
#[must_use]
pub fn pins(fleet: &Fleet<'_>, verdicts: &[Verdict]) -> Vec<Option<Pin>> {
    let mut rooms = None;
    let of = |(member, verdict): (&Member, &Verdict)| {
        let why = verdict.stays.as_ref()?;
        if let Why::Pinned(pin) = why {
            return Some(pin.clone());
        }
        if !why.is_about_room() {
            return None;
        }
        let rooms = rooms.get_or_insert_with(|| Rooms::new(fleet));
        tightest(fleet, rooms, member)
    };
    fleet.members.iter().zip(verdicts).map(of).collect()
}

/// The largest pod of a member that fits no hole elsewhere.
fn tightest(fleet: &Fleet<'_>, rooms: &Rooms, member: &Member) -> Option<Pin> {
    let problem = fleet.problem;
    let name = |pod: PodIx| &problem[pod].name;
    let size = |pod: PodIx| {
        let amounts = problem.shape(pod).requests.iter().map(|(_, amount)| amount);
        (amounts.collect::<Vec<u64>>(), name(pod))
    };
    let mut pods: Vec<PodIx> = member.pods.iter().map(|own| own.pod).collect();
    pods.sort_by(|a, b| size(*b).cmp(&size(*a)));
    let hole = |pod: &PodIx| Some((*pod, rooms.largest_hole(fleet, *pod)?));
    let (pod, hole) = pods.iter().find_map(hole)?;
    Some(Pin {
        pod: name(pod).clone(),
        needs: without_pods(&problem.shape(pod).requests).to_string(),
        because: String::new(),
        largest_hole: Some(hole.to_string()),
        n_more: 0,
    })
}

fn without_pods(requests: &Resources) -> Resources {
    let named = requests.iter();
    let named = named.filter(|(name, _)| **name != ResourceName::Pods);
    named.map(|(name, amount)| (name.clone(), amount)).collect()
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::InCommand => f.write_str("a command about it is under way"),
            Self::NotInitialized => f.write_str("Node isn't initialized"),
            Self::Deleting => f.write_str("Node is deleting or marked for deletion"),
            Self::Nominated => f.write_str("Node is nominated for a pending pod"),
            Self::DoNotDisrupt => f.write_str(
                "Disruption is blocked through the \"karpenter.sh/do-not-disrupt\" annotation",
            ),
            Self::ProtectedPod(pod) => write!(
                f,
                "Pod has \"karpenter.sh/do-not-disrupt\" annotation (Pod={pod})"
            ),
            Self::PodBudget(budget) => write!(
                f,
                "Pdb prevents pod evictions (PodDisruptionBudget=[{budget}])"
            ),
            Self::SeveralPodBudgets(budgets) => write!(
                f,
                "Eviction does not support multiple PDBs (PodDisruptionBudget(s)=[{budgets}])"
            ),
            Self::Static(pool) => write!(f, "{pool} keeps a constant size"),
            Self::UnknownType(name) => write!(f, "Instance Type {name:?} not found"),
            Self::MissingLabel(key) => write!(f, "Node does not have label {key:?}"),
            Self::ConsolidationOff(pool) => {
                write!(f, "{pool} has consolidation disabled")
            }
            Self::OnlyWhenEmpty(pool) => write!(
                f,
                "{pool} has consolidation policy WhenEmpty, but node is not empty"
            ),
            Self::NotQuiet => f.write_str("its NodePool's consolidateAfter has not passed"),
            Self::Buffer => f.write_str("a capacity buffer counts on it"),
            Self::Budget(pool, reason) => write!(
                f,
                "the budget of {pool} allows no further disruption for reason {reason}"
            ),
            Self::GroupMinimum(group) => {
                write!(f, "node group {group:?} has no more nodes than it keeps")
            }
            Self::MovedEnough(owner) => {
                write!(f, "pods of {owner} were moved often enough for now")
            }
            Self::Pinned(pin) => pin.fmt(f),
            Self::TooManyNew(n) => write!(f, "Can't remove without creating {n} candidates"),
            Self::NotCheaper { before, after } => write!(
                f,
                "Can't replace with a cheaper node: ${before} an hour now, ${after} then"
            ),
            Self::MinValues(key) => write!(
                f,
                "Filtering by price: too few different values of {key} for minValues"
            ),
            Self::SpotToSpotOff => f.write_str(
                "SpotToSpotConsolidation is disabled, can't replace a spot node with a spot node",
            ),
            Self::FewSpotTypes(n) => write!(
                f,
                "SpotToSpotConsolidation requires 15 cheaper instance type options than the \
                 current candidate to consolidate, got {n}"
            ),
            Self::NotWorthIt { savings, move_cost } => write!(
                f,
                "moving its pods costs ${move_cost} and saves only ${savings} an hour"
            ),
            Self::Unbalanced { pool, score_milli } => write!(
                f,
                "{pool} is Balanced, and a score of {}.{:03} is below 0.5",
                score_milli / 1000,
                score_milli % 1000
            ),
            Self::NotLookedAt => f.write_str("its turn has not come yet"),
            Self::AnotherFirst => f.write_str("another command comes first"),
        }
    }
}

impl fmt::Display for Pin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            pod,
            needs,
            because,
            ..
        } = self;
        write!(
            f,
            "not all pods would schedule, {pod} ({needs}) => {because}"
        )?;
        if let Some(hole) = &self.largest_hole {
            write!(f, "; the largest hole elsewhere is {hole}")?;
        }
        match self.n_more {
            0 => Ok(()),
            n => write!(f, " and {n} other(s)"),
        }
    }
}
