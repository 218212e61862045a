//! Why a node stays, in words for events, metrics and people.

use std::fmt;

use joiner_model::{Name, NanoDollars};

use crate::command::Reason;

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
    Static(Name),
    /// Nobody knows what it costs.
    UnknownType(Name),
    /// A label is missing.
    MissingLabel(&'static str),
    /// Its pool never consolidates.
    ConsolidationOff(Name),
    /// Its pool gives back empty nodes only.
    OnlyWhenEmpty(Name),
    /// Something happened there not long ago.
    NotQuiet,
    /// Headroom counts on it.
    Buffer,
    /// Its pool's budget is used up.
    Budget(Name, Reason),
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
        pool: Name,
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

impl Why {
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
            Self::Static(pool) => write!(f, "NodePool {pool:?} keeps a constant size"),
            Self::UnknownType(name) => write!(f, "Instance Type {name:?} not found"),
            Self::MissingLabel(key) => write!(f, "Node does not have label {key:?}"),
            Self::ConsolidationOff(pool) => {
                write!(f, "NodePool {pool:?} has consolidation disabled")
            }
            Self::OnlyWhenEmpty(pool) => write!(
                f,
                "NodePool {pool:?} has consolidation policy WhenEmpty, but node is not empty"
            ),
            Self::NotQuiet => f.write_str("its NodePool's consolidateAfter has not passed"),
            Self::Buffer => f.write_str("a capacity buffer counts on it"),
            Self::Budget(pool, reason) => write!(
                f,
                "the budget of NodePool {pool:?} allows no further disruption for reason {reason}"
            ),
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
                "NodePool {pool:?} is Balanced, and a score of {}.{:03} is below 0.5",
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
