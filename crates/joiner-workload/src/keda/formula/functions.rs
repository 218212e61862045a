//! Functions of formulas.

use super::FormulaError;
use super::tree::{Node, Scope};
use super::value::Value;

/// A function by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    Float,
    Int,
    Abs,
    Ceil,
    Floor,
    Round,
    Len,
    Max,
    Min,
    Sum,
    Mean,
    Median,
    First,
    Last,
    Count,
    Any,
    All,
    None,
    One,
    Filter,
    Map,
    Find,
}

/// Name, function, fewest and most values that it takes.
const FUNCTIONS: [(&str, Function, usize, usize); 22] = [
    ("float", Function::Float, 1, 1),
    ("int", Function::Int, 1, 1),
    ("abs", Function::Abs, 1, 1),
    ("ceil", Function::Ceil, 1, 1),
    ("floor", Function::Floor, 1, 1),
    ("round", Function::Round, 1, 1),
    ("len", Function::Len, 1, 1),
    ("max", Function::Max, 1, usize::MAX),
    ("min", Function::Min, 1, usize::MAX),
    ("sum", Function::Sum, 1, 2),
    ("mean", Function::Mean, 1, usize::MAX),
    ("median", Function::Median, 1, usize::MAX),
    ("first", Function::First, 1, 1),
    ("last", Function::Last, 1, 1),
    ("count", Function::Count, 1, 2),
    ("any", Function::Any, 2, 2),
    ("all", Function::All, 2, 2),
    ("none", Function::None, 2, 2),
    ("one", Function::One, 2, 2),
    ("filter", Function::Filter, 2, 2),
    ("map", Function::Map, 2, 2),
    ("find", Function::Find, 2, 2),
];

impl Function {
    pub(super) fn of(name: &str) -> Option<Self> {
        let row = FUNCTIONS.iter().find(|row| row.0 == name);
        row.map(|row| row.1)
    }

    /// Whether its second value is a condition on, or a value of, each element of the first.
    pub(super) const fn takes_condition(self) -> bool {
        match self {
            Self::Count
            | Self::Any
            | Self::All
            | Self::None
            | Self::One
            | Self::Filter
            | Self::Map
            | Self::Find
            | Self::Sum => true,
            Self::Float
            | Self::Int
            | Self::Abs
            | Self::Ceil
            | Self::Floor
            | Self::Round
            | Self::Len
            | Self::Max
            | Self::Min
            | Self::Mean
            | Self::Median
            | Self::First
            | Self::Last => false,
        }
    }

    /// Whether it takes so many values.
    pub(super) fn check(self, n_values: usize) -> Result<(), FormulaError> {
        let row = FUNCTIONS.iter().find(|row| row.1 == self);
        let Some((name, _, least, most)) = row else {
            return Ok(());
        };
        if (*least..=*most).contains(&n_values) {
            return Ok(());
        }
        let expected = if least == most {
            format!("{least}")
        } else {
            format!("at least {least}")
        };
        Err(FormulaError(format!(
            "{name} takes {expected} values, not {n_values}"
        )))
    }
}

/// The value of a call.
pub(super) fn call(
    function: Function,
    arguments: &[Node],
    scope: &mut Scope,
) -> Result<Value, FormulaError> {
    let (first, rest) = match arguments {
        [first, rest @ ..] => (first.value(scope)?, rest),
        [] => (Value::Nothing, arguments),
    };
    if function.takes_condition() {
        return over_list(function, &first, rest.first(), scope);
    }
    let mut all = vec![first];
    for argument in rest {
        all.push(argument.value(scope)?);
    }
    let one = &all[0];
    match function {
        Function::Float => Ok(Value::Float(float(one)?)),
        Function::Int => int(one),
        Function::Abs => rounded(one, f64::abs, i64::wrapping_abs),
        Function::Ceil => rounded(one, f64::ceil, |n| n),
        Function::Floor => rounded(one, f64::floor, |n| n),
        Function::Round => rounded(one, f64::round, |n| n),
        Function::Len => match one {
            Value::Text(text) => length(text.chars().count()),
            Value::Nothing | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::List(_) => {
                length(one.list()?.len())
            }
        },
        Function::Max => extreme(&all, |new, old| new > old),
        Function::Min => extreme(&all, |new, old| new < old),
        Function::Mean => mean(&all),
        Function::Median => median(&all),
        Function::First => Ok(one.list()?.first().cloned().unwrap_or(Value::Nothing)),
        Function::Last => Ok(one.list()?.last().cloned().unwrap_or(Value::Nothing)),
        Function::Sum
        | Function::Count
        | Function::Any
        | Function::All
        | Function::None
        | Function::One
        | Function::Filter
        | Function::Map
        | Function::Find => Ok(Value::Nothing),
    }
}

fn over_list(
    function: Function,
    list: &Value,
    condition: Option<&Node>,
    scope: &mut Scope,
) -> Result<Value, FormulaError> {
    let list = list.list()?;
    let values: Vec<Value> = match condition {
        Some(node) => {
            let each = list.iter().map(|element| scope.with_element(element, node));
            each.collect::<Result<_, _>>()?
        }
        None => list.to_vec(),
    };
    match function {
        Function::Map => return Ok(Value::List(values)),
        Function::Sum => return sum(&values),
        _ => {}
    }
    let holds = values.iter().map(Value::truth);
    let holds: Vec<bool> = holds.collect::<Result<_, _>>()?;
    let n_holding = holds.iter().filter(|holds| **holds).count();
    let chosen = list.iter().zip(&holds).filter(|(_, holds)| **holds);
    let mut chosen = chosen.map(|(element, _)| element.clone());
    match function {
        Function::Any => Ok(Value::Bool(n_holding > 0)),
        Function::All => Ok(Value::Bool(n_holding == holds.len())),
        Function::None => Ok(Value::Bool(n_holding == 0)),
        Function::One => Ok(Value::Bool(n_holding == 1)),
        Function::Filter => Ok(Value::List(chosen.collect())),
        Function::Find => Ok(chosen.next().unwrap_or(Value::Nothing)),
        _ => length(n_holding),
    }
}

fn length(n: usize) -> Result<Value, FormulaError> {
    Ok(Value::Int(i64::try_from(n).unwrap_or(i64::MAX)))
}

/// A value as a number; texts are read.
pub(super) fn float(value: &Value) -> Result<f64, FormulaError> {
    let parsed = match value {
        Value::Text(text) => text.trim().parse().ok(),
        Value::Nothing | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::List(_) => {
            value.number()
        }
    };
    parsed.ok_or_else(|| value.not("a number"))
}

fn int(value: &Value) -> Result<Value, FormulaError> {
    match value {
        Value::Int(_) => Ok(value.clone()),
        Value::Float(number) => Ok(Value::Int(crate::floats::to_i64(*number))),
        Value::Text(text) => {
            let parsed = text.trim().parse().map(Value::Int);
            parsed.map_err(|_| value.not("a whole number"))
        }
        Value::Nothing | Value::Bool(_) | Value::List(_) => Err(value.not("a number")),
    }
}

fn rounded(
    value: &Value,
    float: impl Fn(f64) -> f64,
    whole: impl Fn(i64) -> i64,
) -> Result<Value, FormulaError> {
    match value {
        Value::Int(number) => Ok(Value::Int(whole(*number))),
        Value::Float(number) => Ok(Value::Float(float(*number))),
        Value::Nothing | Value::Bool(_) | Value::Text(_) | Value::List(_) => {
            Err(value.not("a number"))
        }
    }
}

/// All numbers among values and lists of them.
fn flat(values: &[Value]) -> Result<Vec<Value>, FormulaError> {
    let mut all = Vec::new();
    for value in values {
        match value {
            Value::List(inner) => all.extend(flat(inner)?),
            Value::Int(_) | Value::Float(_) => all.push(value.clone()),
            Value::Nothing | Value::Bool(_) | Value::Text(_) => return Err(value.not("a number")),
        }
    }
    Ok(all)
}

/// Of equal ones the first; nothing of an empty list.
fn extreme(values: &[Value], beats: impl Fn(f64, f64) -> bool) -> Result<Value, FormulaError> {
    let better = |best: Value, value: Value| match (value.number(), best.number()) {
        (Some(new), Some(old)) if beats(new, old) => value,
        _ => best,
    };
    Ok(flat(values)?
        .into_iter()
        .reduce(better)
        .unwrap_or(Value::Nothing))
}

fn sum(values: &[Value]) -> Result<Value, FormulaError> {
    let plus = |sum: Value, value: &Value| {
        super::operators::binary(super::operators::Binary::Plus, &sum, value)
    };
    flat(values)?.iter().try_fold(Value::Int(0), plus)
}

fn sorted(values: &[Value]) -> Result<Vec<f64>, FormulaError> {
    let mut numbers: Vec<f64> = flat(values)?.iter().filter_map(Value::number).collect();
    numbers.sort_by(f64::total_cmp);
    Ok(numbers)
}

fn mean(values: &[Value]) -> Result<Value, FormulaError> {
    let numbers = sorted(values)?;
    if numbers.is_empty() {
        return Ok(Value::Int(0));
    }
    Ok(Value::Float(
        numbers.iter().sum::<f64>() / numbers.len() as f64,
    ))
}

fn median(values: &[Value]) -> Result<Value, FormulaError> {
    let numbers = sorted(values)?;
    let middle = numbers.len() / 2;
    Ok(match numbers.len() {
        0 => Value::Int(0),
        n if n % 2 == 1 => Value::Float(numbers[middle]),
        _ => Value::Float((numbers[middle - 1] + numbers[middle]) / 2.0),
    })
}
