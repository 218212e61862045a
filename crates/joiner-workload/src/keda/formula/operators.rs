//! What operators do with values.

use super::FormulaError;
use super::value::Value;

/// Most elements of a range.
const RANGE_MAX: i64 = 10_000;

/// An operator with one value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unary {
    Not,
    Minus,
    Plus,
}

/// An operator between two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Binary {
    Or,
    And,
    Equal,
    Different,
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
    In,
    NotIn,
    Range,
    Plus,
    Minus,
    Times,
    Over,
    Modulo,
    Power,
    /// The second value where the first is nothing.
    Else,
}

impl Binary {
    /// The operator of a sign or word, and how tightly it binds.
    pub(super) fn of(text: &str) -> Option<(Self, u32)> {
        Some(match text {
            "or" | "||" => (Self::Or, 10),
            "and" | "&&" => (Self::And, 15),
            "==" => (Self::Equal, 20),
            "!=" => (Self::Different, 20),
            "<" => (Self::Less, 20),
            "<=" => (Self::LessOrEqual, 20),
            ">" => (Self::Greater, 20),
            ">=" => (Self::GreaterOrEqual, 20),
            "in" => (Self::In, 20),
            ".." => (Self::Range, 25),
            "+" => (Self::Plus, 30),
            "-" => (Self::Minus, 30),
            "*" => (Self::Times, 60),
            "/" => (Self::Over, 60),
            "%" => (Self::Modulo, 60),
            "**" | "^" => (Self::Power, 100),
            "??" => (Self::Else, 500),
            _ => return None,
        })
    }
}

pub(super) fn unary(operator: Unary, value: &Value) -> Result<Value, FormulaError> {
    match (operator, value) {
        (Unary::Not, value) => Ok(Value::Bool(!value.truth()?)),
        (Unary::Minus, Value::Int(number)) => Ok(Value::Int(number.wrapping_neg())),
        (Unary::Minus, Value::Float(number)) => Ok(Value::Float(-number)),
        (Unary::Plus, Value::Int(_) | Value::Float(_)) => Ok(value.clone()),
        (
            Unary::Minus | Unary::Plus,
            Value::Nothing | Value::Bool(_) | Value::Text(_) | Value::List(_),
        ) => Err(value.not("a number")),
    }
}

pub(super) fn binary(operator: Binary, a: &Value, b: &Value) -> Result<Value, FormulaError> {
    match operator {
        Binary::Or => Ok(Value::Bool(a.truth()? | b.truth()?)),
        Binary::And => Ok(Value::Bool(a.truth()? & b.truth()?)),
        Binary::Equal => Ok(Value::Bool(a.equals(b))),
        Binary::Different => Ok(Value::Bool(!a.equals(b))),
        Binary::Less => compare(a, b, |a, b| a < b, |a, b| a < b),
        Binary::LessOrEqual => compare(a, b, |a, b| a <= b, |a, b| a <= b),
        Binary::Greater => compare(a, b, |a, b| a > b, |a, b| a > b),
        Binary::GreaterOrEqual => compare(a, b, |a, b| a >= b, |a, b| a >= b),
        Binary::In => Ok(Value::Bool(b.list()?.iter().any(|one| one.equals(a)))),
        Binary::NotIn => Ok(Value::Bool(!b.list()?.iter().any(|one| one.equals(a)))),
        Binary::Range => range(a, b),
        Binary::Plus => match (a, b) {
            (Value::Text(a), Value::Text(b)) => Ok(Value::Text(format!("{a}{b}"))),
            _ => arithmetic(a, b, i64::wrapping_add, |a, b| a + b),
        },
        Binary::Minus => arithmetic(a, b, i64::wrapping_sub, |a, b| a - b),
        Binary::Times => arithmetic(a, b, i64::wrapping_mul, |a, b| a * b),
        Binary::Over => numbers(a, b).map(|(a, b)| Value::Float(a / b)),
        Binary::Power => numbers(a, b).map(|(a, b)| Value::Float(a.powf(b))),
        Binary::Modulo => modulo(a, b),
        Binary::Else => Ok(match a {
            Value::Nothing => b.clone(),
            Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Text(_) | Value::List(_) => {
                a.clone()
            }
        }),
    }
}

fn numbers(a: &Value, b: &Value) -> Result<(f64, f64), FormulaError> {
    let number = |value: &Value| value.number().ok_or_else(|| value.not("a number"));
    Ok((number(a)?, number(b)?))
}

/// Whole numbers stay whole.
fn arithmetic(
    a: &Value,
    b: &Value,
    whole: impl Fn(i64, i64) -> i64,
    float: impl Fn(f64, f64) -> f64,
) -> Result<Value, FormulaError> {
    if let (Value::Int(a), Value::Int(b)) = (a, b) {
        return Ok(Value::Int(whole(*a, *b)));
    }
    let (a, b) = numbers(a, b)?;
    Ok(Value::Float(float(a, b)))
}

fn modulo(a: &Value, b: &Value) -> Result<Value, FormulaError> {
    let (Value::Int(a), Value::Int(b)) = (a, b) else {
        let problem = "% takes whole numbers; write int(…) around values";
        return Err(FormulaError(problem.to_owned()));
    };
    let rest = a.checked_rem(*b);
    let rest = rest.ok_or_else(|| FormulaError("% by zero has no value".to_owned()))?;
    Ok(Value::Int(rest))
}

fn compare(
    a: &Value,
    b: &Value,
    numbers_hold: impl Fn(f64, f64) -> bool,
    texts_hold: impl Fn(&str, &str) -> bool,
) -> Result<Value, FormulaError> {
    if let (Value::Text(a), Value::Text(b)) = (a, b) {
        return Ok(Value::Bool(texts_hold(a, b)));
    }
    let (a, b) = numbers(a, b)?;
    Ok(Value::Bool(numbers_hold(a, b)))
}

fn range(a: &Value, b: &Value) -> Result<Value, FormulaError> {
    let (Value::Int(first), Value::Int(last)) = (a, b) else {
        return Err(FormulaError(
            "a range goes from a whole number to another".to_owned(),
        ));
    };
    if last.saturating_sub(*first) >= RANGE_MAX {
        return Err(FormulaError(format!(
            "a range may have {RANGE_MAX} elements"
        )));
    }
    Ok(Value::List((*first..=*last).map(Value::Int).collect()))
}
