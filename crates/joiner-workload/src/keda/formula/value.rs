//! Values that parts of a formula have.

use super::FormulaError;

/// A value.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// None.
    Nothing,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number.
    Float(f64),
    /// A text.
    Text(String),
    /// Values in order.
    List(Vec<Value>),
}

impl Value {
    /// What messages call it.
    pub(super) const fn kind(&self) -> &'static str {
        match self {
            Self::Nothing => "nothing",
            Self::Bool(_) => "true or false",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::List(_) => "a list",
        }
    }

    /// As a number, if it is one.
    pub(super) const fn number(&self) -> Option<f64> {
        match self {
            Self::Int(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            Self::Nothing | Self::Bool(_) | Self::Text(_) | Self::List(_) => None,
        }
    }

    pub(super) fn truth(&self) -> Result<bool, FormulaError> {
        match self {
            Self::Bool(truth) => Ok(*truth),
            Self::Nothing | Self::Int(_) | Self::Float(_) | Self::Text(_) | Self::List(_) => {
                Err(self.not("true or false"))
            }
        }
    }

    pub(super) fn list(&self) -> Result<&[Self], FormulaError> {
        match self {
            Self::List(values) => Ok(values),
            Self::Nothing | Self::Bool(_) | Self::Int(_) | Self::Float(_) | Self::Text(_) => {
                Err(self.not("a list"))
            }
        }
    }

    /// About a value of another kind.
    pub(super) fn not(&self, expected: &str) -> FormulaError {
        let found = self.kind();
        FormulaError(format!("there is {found} where {expected} should be"))
    }

    /// Whether both are the same; numbers are compared as numbers.
    pub(super) fn equals(&self, other: &Self) -> bool {
        if let (Some(a), Some(b)) = (self.number(), other.number()) {
            return a == b;
        }
        if let (Self::List(a), Self::List(b)) = (self, other) {
            return a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.equals(b));
        }
        self == other
    }
}
