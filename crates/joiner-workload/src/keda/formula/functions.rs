//! Functions of formulas.

use super::FormulaError;
use super::tree::{Node, Scope};
use super::value::Value;

/// A function by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Function {
    /// Of values.
    Plain(Plain),
    /// Of the elements of a list, with a condition on each or a value of each.
    Each(Each),
}

/// A function of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Plain {
    Float,
    Int,
    Abs,
    Ceil,
    Floor,
    Round,
    Len,
    Max,
    Min,
    Mean,
    Median,
    First,
    Last,
}

/// A function of the elements of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Each {
    Sum,
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
    ("float", Function::Plain(Plain::Float), 1, 1),
    ("int", Function::Plain(Plain::Int), 1, 1),
    ("abs", Function::Plain(Plain::Abs), 1, 1),
    ("ceil", Function::Plain(Plain::Ceil), 1, 1),
    ("floor", Function::Plain(Plain::Floor), 1, 1),
    ("round", Function::Plain(Plain::Round), 1, 1),
    ("len", Function::Plain(Plain::Len), 1, 1),
    ("max", Function::Plain(Plain::Max), 1, usize::MAX),
    ("min", Function::Plain(Plain::Min), 1, usize::MAX),
    ("mean", Function::Plain(Plain::Mean), 1, usize::MAX),
    ("median", Function::Plain(Plain::Median), 1, usize::MAX),
    ("first", Function::Plain(Plain::First), 1, 1),
    ("last", Function::Plain(Plain::Last), 1, 1),
    ("sum", Function::Each(Each::Sum), 1, 2),
    ("count", Function::Each(Each::Count), 1, 2),
    ("any", Function::Each(Each::Any), 2, 2),
    ("all", Function::Each(Each::All), 2, 2),
    ("none", Function::Each(Each::None), 2, 2),
    ("one", Function::Each(Each::One), 2, 2),
    ("filter", Function::Each(Each::Filter), 2, 2),
    ("map", Function::Each(Each::Map), 2, 2),
    ("find", Function::Each(Each::Find), 2, 2),
];

impl Function {
    pub(super) fn of(name: &str) -> Option<Self> {
        let row = FUNCTIONS.iter().find(|row| row.0 == name);
        row.map(|row| row.1)
    }

    /// Whether its second value is a condition on, or a value of, each element of the first.
    pub(super) const fn takes_condition(self) -> bool {
        matches!(self, Self::Each(_))
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
    match function {
        Function::Each(each) => each.of_list(first.list()?, rest.first(), scope),
        Function::Plain(plain) => {
            let mut all = vec![first];
            for argument in rest {
                all.push(argument.value(scope)?);
            }
            plain.of_values(&all)
        }
    }
}

impl Plain {
    fn of_values(self, all: &[Value]) -> Result<Value, FormulaError> {
        let one = &all[0];
        match self {
            Self::Float => Ok(Value::Float(float(one)?)),
            Self::Int => int(one),
            Self::Abs => rounded(one, f64::abs, i64::wrapping_abs),
            Self::Ceil => rounded(one, f64::ceil, |n| n),
            Self::Floor => rounded(one, f64::floor, |n| n),
            Self::Round => rounded(one, f64::round, |n| n),
            Self::Len => match one {
                Value::Text(text) => length(text.chars().count()),
                Value::Nothing
                | Value::Bool(_)
                | Value::Int(_)
                | Value::Float(_)
                | Value::List(_) => length(one.list()?.len()),
            },
            Self::Max => extreme(all, |new, old| new > old),
            Self::Min => extreme(all, |new, old| new < old),
            Self::Mean => mean(all),
            Self::Median => median(all),
            Self::First => Ok(one.list()?.first().cloned().unwrap_or(Value::Nothing)),
            Self::Last => Ok(one.list()?.last().cloned().unwrap_or(Value::Nothing)),
        }
    }
}

impl Each {
    fn of_list(
        self,
        list: &[Value],
        condition: Option<&Node>,
        scope: &mut Scope,
    ) -> Result<Value, FormulaError> {
        let values: Vec<Value> = match condition {
            Some(node) => {
                let each = list.iter().map(|element| scope.with_element(element, node));
                each.collect::<Result<_, _>>()?
            }
            None => list.to_vec(),
        };
        let chosen = || -> Result<Vec<Value>, FormulaError> {
            let mut chosen = Vec::new();
            for (element, value) in list.iter().zip(&values) {
                if value.truth()? {
                    chosen.push(element.clone());
                }
            }
            Ok(chosen)
        };
        Ok(match self {
            Self::Sum => sum(&values)?,
            Self::Map => Value::List(values),
            Self::Count => length(chosen()?.len())?,
            Self::Any => Value::Bool(!chosen()?.is_empty()),
            Self::All => Value::Bool(chosen()?.len() == list.len()),
            Self::None => Value::Bool(chosen()?.is_empty()),
            Self::One => Value::Bool(chosen()?.len() == 1),
            Self::Filter => Value::List(chosen()?),
            Self::Find => chosen()?.into_iter().next().unwrap_or(Value::Nothing),
        })
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
