//! What comes out: commands, and a verdict on every node.

use std::fmt;

use joiner_model::{Name, NanoDollars, Plan};

use crate::consolidation::Judgement;
use crate::fleet::{GroupNode, Leaver};
use crate::memory::Memory;
use crate::why::Why;

/// Why nodes go, as budgets know it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Nothing runs there.
    Empty,
    /// They differ from what their pool asks for.
    Drifted,
    /// Their pods are cheaper elsewhere.
    Underutilized,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Empty, Self::Drifted, Self::Underutilized];

    /// How users write it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Empty => "Empty",
            Self::Drifted => "Drifted",
            Self::Underutilized => "Underutilized",
        }
    }

    /// The reason that users write as `text`.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == text)
    }

    /// True when nodes go to save money, and pods move for no other reason.
    #[must_use]
    pub const fn is_for_money(self) -> bool {
        match self {
            Self::Empty | Self::Underutilized => true,
            Self::Drifted => false,
        }
    }

    pub(crate) const fn index(self) -> usize {
        match self {
            Self::Empty => 0,
            Self::Drifted => 1,
            Self::Underutilized => 2,
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// How a command was found; methods are tried in this order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Method {
    /// Empty nodes.
    Empty,
    /// Drifted nodes of pools of constant size.
    StaticDrift,
    /// A drifted node.
    Drift,
    /// Consolidation of several nodes.
    Multi,
    /// Consolidation of one node.
    Single,
}

impl Method {
    /// The reason that budgets see.
    #[must_use]
    pub const fn reason(self) -> Reason {
        match self {
            Self::Empty => Reason::Empty,
            Self::StaticDrift | Self::Drift => Reason::Drifted,
            Self::Multi | Self::Single => Reason::Underutilized,
        }
    }

    /// The value of the metric label `consolidation_type`.
    #[must_use]
    pub const fn consolidation_type(self) -> &'static str {
        match self {
            Self::Empty => "empty",
            Self::StaticDrift | Self::Drift => "",
            Self::Multi => "multi",
            Self::Single => "single",
        }
    }

    /// True when the command is asked about once more, after a while, before it starts.
    #[must_use]
    pub const fn waits(self) -> bool {
        match self {
            Self::Empty | Self::Multi | Self::Single => true,
            Self::StaticDrift | Self::Drift => false,
        }
    }
}

/// Nodes to give back, and what takes their place.
#[derive(Clone, Debug)]
pub struct Command {
    /// Why.
    pub reason: Reason,
    /// How it was found.
    pub method: Method,
    /// The nodes, as indexes into the members of the fleet.
    pub members: Vec<usize>,
    /// Their claims: indexes are of one moment, names stay.
    pub claims: Vec<Name>,
    /// Those that have none, as nodes of their node groups.
    pub group_nodes: Vec<GroupNode>,
    /// New nodes and where pods go; an answer to [`question`](crate::question).
    pub plan: Plan,
    /// Nodes to make from the pool's template as it is, one for one: only for static drift, which
    /// has no plan.
    pub from_template: u32,
    /// The plan leaves little room: if the pods came in another order than planned, or went elsewhere,
    /// some would find none.
    pub is_tight: bool,
    /// What the nodes cost an hour.
    pub price_before: NanoDollars,
    /// What takes their place costs an hour.
    pub price_after: NanoDollars,
    /// What moving costs, once.
    pub move_cost: NanoDollars,
    /// In one line, for people.
    pub why: String,
}

impl Command {
    /// What it saves an hour; nothing when it costs more, as drift may.
    #[must_use]
    pub fn savings(&self) -> NanoDollars {
        let saved = self
            .price_before
            .get()
            .saturating_sub(self.price_after.get());
        NanoDollars::new(saved)
    }

    /// All that goes.
    pub fn leavers(&self) -> impl Iterator<Item = Leaver> {
        let claims = self.claims.iter().cloned().map(Leaver::Claim);
        claims.chain(self.group_nodes.iter().cloned().map(Leaver::Node))
    }

    /// True when nodes go without anything in their place.
    #[must_use]
    pub fn is_delete(&self) -> bool {
        self.plan.launches.is_empty() && self.from_template == 0
    }
}

/// What is said about one node.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Why it stays; `None` when a command of this decision is about it.
    pub stays: Option<Why>,
    /// No command about this node alone can save more an hour.
    pub bound: NanoDollars,
}

/// What one pass comes to.
#[derive(Clone, Debug)]
pub struct Decision {
    /// What to do: mostly nothing or one command; several for static drift, and a second one beside
    /// that for empty nodes.
    pub commands: Vec<Command>,
    /// One for each member of the fleet.
    pub verdicts: Vec<Verdict>,
    /// For each pool and reason what its budgets allow, before nodes being disrupted are
    /// subtracted.
    pub allowed: Vec<(usize, Reason, u32)>,
    /// For each reason how many nodes could go by it, if budgets and prices allowed.
    pub eligible: Vec<(Reason, u32)>,
    /// For each pool how many nodes count against its budgets.
    pub consuming: Vec<u32>,
    /// Searches that ran out of questions.
    pub cut_short: Vec<Method>,
    /// What cautious pools turned down.
    pub turned_down: Vec<Judgement>,
    /// What the next pass should know.
    pub memory: Memory,
    /// What-if questions asked.
    pub n_what_ifs: u32,
}

/// How many pods move, in words.
pub(crate) fn pods_move(n_pods: usize) -> String {
    match n_pods {
        1 => "1 pod moves".to_owned(),
        n => format!("{n} pods move"),
    }
}
