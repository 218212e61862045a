//! Label selectors over pods and namespaces.

use std::collections::BTreeSet;

use crate::{Labels, Name};

/// What one expression of a selector asks of a label.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SelectorOp {
    /// The label has one of the values.
    In,
    /// The label is absent or has none of the values.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

/// One expression of a selector.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SelectorExpr {
    /// Label key.
    pub key: Name,
    /// What is asked.
    pub op: SelectorOp,
    /// Values for `In` and `NotIn`.
    pub values: BTreeSet<Name>,
}

impl SelectorExpr {
    /// True when `labels` satisfy this expression.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        let value = labels.get(&self.key);
        match self.op {
            SelectorOp::In => value.is_some_and(|v| self.values.contains(v)),
            SelectorOp::NotIn => value.is_none_or(|v| !self.values.contains(v)),
            SelectorOp::Exists => value.is_some(),
            SelectorOp::DoesNotExist => value.is_none(),
        }
    }
}

/// All expressions must hold; no expressions match everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Selector {
    /// The expressions, sorted, without repetition.
    exprs: Vec<SelectorExpr>,
}

impl Selector {
    /// A selector of these expressions, in canonical order.
    #[must_use]
    pub fn new(mut exprs: Vec<SelectorExpr>) -> Self {
        exprs.sort();
        exprs.dedup();
        Self { exprs }
    }

    /// The expressions.
    #[must_use]
    pub fn exprs(&self) -> &[SelectorExpr] {
        &self.exprs
    }

    /// True when every expression holds for `labels`.
    #[must_use]
    pub fn matches(&self, labels: &Labels) -> bool {
        self.exprs.iter().all(|e| e.matches(labels))
    }
}
