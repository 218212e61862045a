//! Formulas over the values of triggers, such as `max(a, b) * 2` or `count([a, b], {# > 1}) >= 1 ? 5 : 0`.
//!
//! The language is the part of expr that numbers need: arithmetic, comparisons, logic, `? :`, `??`, `let`,
//! lists, and functions with conditions. Names are checked when a formula is read, kinds of values when it
//! is computed.

mod functions;
mod operators;
mod parser;
mod tokens;
mod tree;
mod value;

#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use parser::Parser;
use tree::{Node, Scope};
pub use value::Value;

/// Longest text of a formula.
const LENGTH_MAX: usize = 10_000;

/// Why a formula gives no value.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct FormulaError(pub(crate) String);

/// A formula, read.
#[derive(Clone, Debug, PartialEq)]
pub struct Formula {
    root: Node,
    /// Whether nothing is a value that it may have.
    may_be_nothing: bool,
}

impl Formula {
    /// Reads a formula in which these names are values.
    ///
    /// # Errors
    /// When it does not read like one, or has other names.
    pub fn parse(text: &str, names: &[&str]) -> Result<Self, FormulaError> {
        if text.trim().is_empty() {
            return Err(FormulaError("the formula is empty".to_owned()));
        }
        if text.len() > LENGTH_MAX {
            let problem = format!("the formula is longer than {LENGTH_MAX} characters");
            return Err(FormulaError(problem));
        }
        let root = Parser::new(text, names)?.whole()?;
        Ok(Self {
            root,
            may_be_nothing: text.contains("??"),
        })
    }

    /// Its value as a number; `None` when it is nothing, which only a formula with `??` may be.
    ///
    /// # Errors
    /// When values do not fit what is done with them.
    pub fn number(
        &self,
        values: &BTreeMap<String, Option<f64>>,
    ) -> Result<Option<f64>, FormulaError> {
        let of = |value: &Option<f64>| value.map_or(Value::Nothing, Value::Float);
        let values = values.iter().map(|(name, value)| (name.clone(), of(value)));
        let value = self.root.value(&mut Scope::new(values.collect()))?;
        if self.may_be_nothing && value == Value::Nothing {
            return Ok(None);
        }
        functions::float(&value).map(Some)
    }
}
