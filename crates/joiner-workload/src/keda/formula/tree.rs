//! A formula as a tree, and how its value is computed.

use std::collections::BTreeMap;

use super::FormulaError;
use super::functions::{self, Function};
use super::operators::{Binary, Unary, binary, unary};
use super::value::Value;

/// Parts of a formula that are computed for one value.
const STEPS_MAX: u32 = 1_000_000;

/// A part of a formula.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Node {
    Constant(Value),
    Name(String),
    /// The element that a condition is about.
    Element,
    List(Vec<Node>),
    Unary(Unary, Box<Node>),
    Binary(Binary, Box<Node>, Box<Node>),
    /// Condition, value if it holds, value if not.
    Choice(Box<[Node; 3]>),
    /// Name, value, and where the name is known.
    Let(String, Box<Node>, Box<Node>),
    Call(Function, Vec<Node>),
    /// An element of a list.
    Index(Box<Node>, Box<Node>),
}

/// What names stand for, and which element a condition is about.
pub(super) struct Scope {
    names: BTreeMap<String, Value>,
    element: Value,
    steps_left: u32,
}

impl Scope {
    pub(super) const fn new(names: BTreeMap<String, Value>) -> Self {
        Self {
            names,
            element: Value::Nothing,
            steps_left: STEPS_MAX,
        }
    }

    /// The value of a node for one element of a list.
    pub(super) fn with_element(
        &mut self,
        element: &Value,
        node: &Node,
    ) -> Result<Value, FormulaError> {
        let outer = std::mem::replace(&mut self.element, element.clone());
        let value = node.value(self);
        self.element = outer;
        value
    }
}

impl Node {
    pub(super) fn value(&self, scope: &mut Scope) -> Result<Value, FormulaError> {
        let left = scope.steps_left.checked_sub(1);
        scope.steps_left =
            left.ok_or_else(|| FormulaError("the formula takes too long".to_owned()))?;
        match self {
            Self::Constant(value) => Ok(value.clone()),
            Self::Name(name) => {
                let value = scope.names.get(name).cloned();
                value.ok_or_else(|| FormulaError(format!("{name:?} has no value")))
            }
            Self::Element => Ok(scope.element.clone()),
            Self::List(nodes) => {
                let values = nodes.iter().map(|node| node.value(scope));
                Ok(Value::List(values.collect::<Result<_, _>>()?))
            }
            Self::Unary(operator, node) => unary(*operator, &node.value(scope)?),
            Self::Binary(operator, a, b) => {
                let a = a.value(scope)?;
                match (operator, &a) {
                    (Binary::And, Value::Bool(false)) | (Binary::Or, Value::Bool(true)) => Ok(a),
                    (Binary::Else, Value::Nothing) => b.value(scope),
                    (Binary::Else, _) => Ok(a),
                    (operator, _) => binary(*operator, &a, &b.value(scope)?),
                }
            }
            Self::Choice(parts) => {
                let [condition, then, otherwise] = parts.as_ref();
                if condition.value(scope)?.truth()? {
                    then.value(scope)
                } else {
                    otherwise.value(scope)
                }
            }
            Self::Let(name, value, body) => {
                let value = value.value(scope)?;
                scope.names.insert(name.clone(), value);
                body.value(scope)
            }
            Self::Call(function, arguments) => functions::call(*function, arguments, scope),
            Self::Index(list, index) => {
                let (list, index) = (list.value(scope)?, index.value(scope)?);
                element(list.list()?, &index)
            }
        }
    }
}

/// An element of a list; negative numbers count from its end.
fn element(list: &[Value], index: &Value) -> Result<Value, FormulaError> {
    let Value::Int(index) = index else {
        return Err(index.not("a whole number"));
    };
    let length = i64::try_from(list.len()).unwrap_or(i64::MAX);
    let at = if *index < 0 { index + length } else { *index };
    let found = usize::try_from(at).ok().and_then(|at| list.get(at));
    let missing = || FormulaError(format!("a list of {length} has no element {index}"));
    found.cloned().ok_or_else(missing)
}
