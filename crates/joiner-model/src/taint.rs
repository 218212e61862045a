//! Taints and what tolerates them.

use std::fmt;

use crate::Name;

/// What a taint does to a pod that does not tolerate it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Effect {
    /// Not scheduled.
    NoSchedule,
    /// Avoided: a hard rule for us until it is the last thing in the way.
    PreferNoSchedule,
    /// Not scheduled, and evicted.
    NoExecute,
}

impl Effect {
    /// How users write it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NoSchedule => "NoSchedule",
            Self::PreferNoSchedule => "PreferNoSchedule",
            Self::NoExecute => "NoExecute",
        }
    }
}

/// A mark on a node that keeps pods away.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Taint {
    /// Key of the taint.
    pub key: Name,
    /// Value, empty when there is none.
    pub value: Name,
    /// What it does.
    pub effect: Effect,
}

impl fmt::Display for Taint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.value.is_empty() {
            write!(f, "{}:{}", self.key, self.effect.as_str())
        } else {
            write!(f, "{}={}:{}", self.key, self.value, self.effect.as_str())
        }
    }
}

/// How a toleration compares values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TolerationOp {
    /// Key and value must be equal.
    Equal,
    /// The key is enough; an empty key tolerates everything.
    Exists,
    /// The taint's value is an integer below the toleration's.
    Lt,
    /// The taint's value is an integer above the toleration's.
    Gt,
}

/// A pod's permission to run despite a taint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Toleration {
    /// Key, empty for all keys (with [`TolerationOp::Exists`]).
    pub key: Name,
    /// Comparison.
    pub op: TolerationOp,
    /// Value to compare with.
    pub value: Name,
    /// Effect, or `None` for all effects.
    pub effect: Option<Effect>,
}

impl Toleration {
    /// True when this toleration covers `taint`.
    #[must_use]
    pub fn tolerates(&self, taint: &Taint) -> bool {
        if self.effect.is_some_and(|e| e != taint.effect) {
            return false;
        }
        if !self.key.is_empty() && self.key != taint.key {
            return false;
        }
        let numbers = || {
            Some((
                taint.value.parse::<i64>().ok()?,
                self.value.parse::<i64>().ok()?,
            ))
        };
        match self.op {
            TolerationOp::Exists => true,
            TolerationOp::Equal => !self.key.is_empty() && self.value == taint.value,
            TolerationOp::Lt => !self.key.is_empty() && numbers().is_some_and(|(t, v)| t < v),
            TolerationOp::Gt => !self.key.is_empty() && numbers().is_some_and(|(t, v)| t > v),
        }
    }
}

/// The first of `taints` that none of `tolerations` covers. `PreferNoSchedule` counts unless
/// `prefer_tolerated`.
///
/// # Errors
/// The taint in the way.
pub fn tolerates_all<'t>(
    tolerations: &[Toleration],
    taints: &'t [Taint],
    prefer_tolerated: bool,
) -> Result<(), &'t Taint> {
    let in_the_way = taints.iter().find(|taint| {
        let soft = prefer_tolerated && taint.effect == Effect::PreferNoSchedule;
        !soft && !tolerations.iter().any(|t| t.tolerates(taint))
    });
    in_the_way.map_or(Ok(()), Err)
}
