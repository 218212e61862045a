//! What is wrong with a plan, in words.

use std::fmt;

/// The most violations that one check reports; one is already enough to drop a plan.
pub const VIOLATIONS_MAX: usize = 50;

/// The rule that a plan breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Every pod to place is placed once or left over once, and no other pod is touched.
    Census,
    /// The plan names something that the problem does not have.
    Reference,
    /// A new node comes from a pool that is in use.
    ClosedPool,
    /// New nodes have distinct names and at least one pod.
    Launch,
    /// The listed types are 1 to 600 distinct types of the pool, each with an offering left.
    Types,
    /// The listed types are ordered by their cheapest offering left.
    Order,
    /// The recorded offering is the cheapest left, and prices add up.
    Price,
    /// The lower bound is not above the price.
    Bound,
    /// Node selector and required node affinity of every pod hold.
    Selection,
    /// The volumes of every pod can be reached.
    Volumes,
    /// A node holds no more volumes of a driver than it may.
    VolumeLimit,
    /// Taints are tolerated.
    Taint,
    /// Pods and daemons fit.
    Fit,
    /// The recorded requests are those of the pods.
    Requests,
    /// No host port is taken twice on a node.
    Port,
    /// The listed types offer as many distinct values as `minValues` asks.
    MinValues,
    /// Pool limits hold whichever types are launched.
    Limit,
    /// No more nodes may use a reservation than it has left.
    Reservation,
    /// Heavier pools come first.
    Weight,
    /// No pod is left over that a new node could hold.
    LeftOver,
    /// Nothing is placed on a node that takes no pods.
    ClosedNode,
    /// Hard topology spread constraints.
    Spread,
    /// Required pod affinity.
    Affinity,
    /// Required pod anti-affinity, in both directions.
    AntiAffinity,
}

/// One broken rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Violation {
    /// The rule.
    pub rule: Rule,
    message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

/// The violations found so far, bounded.
#[derive(Default)]
pub(crate) struct Report {
    found: Vec<Violation>,
}

impl Report {
    /// Notes one violation, unless there are enough of them.
    pub(crate) fn say(&mut self, rule: Rule, message: fmt::Arguments<'_>) {
        if !self.is_full() {
            self.found.push(Violation {
                rule,
                message: message.to_string(),
            });
        }
    }

    /// True when one of the violations so far is of this rule.
    pub(crate) fn has(&self, rule: Rule) -> bool {
        self.found.iter().any(|violation| violation.rule == rule)
    }

    /// True when further violations would be dropped.
    pub(crate) fn is_full(&self) -> bool {
        self.found.len() >= VIOLATIONS_MAX
    }

    /// What was found, in the order of the checks.
    pub(crate) fn into_violations(self) -> Vec<Violation> {
        self.found
    }
}
