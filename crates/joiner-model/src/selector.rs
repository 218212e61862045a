//! Label selectors over pods and namespaces.

use std::collections::BTreeSet;
use std::fmt;

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

impl fmt::Display for SelectorExpr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let key = &self.key;
        let values = || {
            let values: Vec<&str> = self.values.iter().map(AsRef::as_ref).collect();
            values.join(",")
        };
        match self.op {
            SelectorOp::In if self.values.len() == 1 => write!(f, "{key}={}", values()),
            SelectorOp::In => write!(f, "{key} in ({})", values()),
            SelectorOp::NotIn => write!(f, "{key} notin ({})", values()),
            SelectorOp::Exists => f.write_str(key),
            SelectorOp::DoesNotExist => write!(f, "!{key}"),
        }
    }
}

/// As queries and the status of workloads have it: `app=web,tier in (a,b),!old`.
impl fmt::Display for Selector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (ix, expr) in self.exprs.iter().enumerate() {
            let comma = if ix == 0 { "" } else { "," };
            write!(f, "{comma}{expr}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_selector_is_written_as_queries_are() {
        let expr = |key: &str, op: SelectorOp, values: &[&str]| SelectorExpr {
            key: key.into(),
            op,
            values: values.iter().map(|value| Name::from(*value)).collect(),
        };
        let selector = Selector::new(vec![
            expr("tier", SelectorOp::In, &["b", "a"]),
            expr("app", SelectorOp::In, &["web"]),
            expr("env", SelectorOp::NotIn, &["test"]),
            expr("new", SelectorOp::Exists, &[]),
            expr("old", SelectorOp::DoesNotExist, &[]),
        ]);
        assert_eq!(
            selector.to_string(),
            "app=web,env notin (test),new,!old,tier in (a,b)"
        );
        assert_eq!(Selector::default().to_string(), "");
    }
}
