//! Node selection: selectors, required terms, wishes, tolerations, taints.

use joiner_api::names::{key_error, label_value_error};
use joiner_model::{
    Effect, Name, Operator, Preference, Requirement, Taint, Terms, Toleration, TolerationOp, keys,
};

use crate::error::ReadError;
use crate::names::Names;
use crate::wire::{self, Expression, text};

const AFFINITY: &str = "spec.affinity.nodeAffinity";
/// The field of affinity that holds rules.
pub(crate) const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
/// The field of affinity that holds wishes.
pub(crate) const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// Node selection of a pod, and why the pod must not be placed if that is so.
#[derive(Default)]
pub(crate) struct Selection {
    pub(crate) selector: Terms,
    pub(crate) required: Vec<Terms>,
    pub(crate) preferred: Vec<Preference<Terms>>,
    pub(crate) ignored: Option<String>,
}

/// Reads the node selection of a pod. Errors name the field from `spec` on.
///
/// # Errors
/// What every API server refuses. Pods that cannot be placed for other reasons are told apart by
/// [`Selection::ignored`].
pub(crate) fn selection(
    spec: &wire::pod::PodSpec<'_>,
    names: &mut Names,
) -> Result<Selection, ReadError> {
    let mut out = Selection::default();
    for (key, value) in spec.node_selector.iter().flatten() {
        if key_error(key).is_some() || label_value_error(value).is_some() {
            let why = format!(
                "its node selector {:?}={:?} is not a label",
                &**key, &**value
            );
            out.ignored.get_or_insert(why);
        }
        out.selector.push(Requirement::is(key, names.get(value)));
    }
    let affinity = spec
        .affinity
        .as_ref()
        .and_then(|a| a.node_affinity.as_ref());
    if let Some(required) = affinity.and_then(|a| a.required.as_ref()) {
        out.require(required, names)
            .map_err(|e| e.below(&format!("{AFFINITY}.{REQUIRED}")))?;
    }
    let preferred = affinity.and_then(|a| a.preferred.as_deref());
    for (ix, wish) in preferred.unwrap_or_default().iter().enumerate() {
        out.prefer(wish, names)
            .map_err(|e| e.below(&format!("{AFFINITY}.{PREFERRED}[{ix}]")))?;
    }
    out.refuse_unpooled();
    Ok(out)
}

impl Selection {
    fn require(
        &mut self,
        selector: &wire::pod::NodeSelector<'_>,
        names: &mut Names,
    ) -> Result<(), ReadError> {
        for term in node_terms(selector)? {
            if term.by_field {
                let why = "its node affinity selects by field (matchFields), which new nodes \
                           cannot meet";
                self.ignored.get_or_insert_with(|| why.to_owned());
                continue;
            }
            let mut requirements = Terms::new();
            for expression in term.expressions {
                match requirement(expression, names) {
                    Ok(requirement) => requirements.push(requirement),
                    Err(why) => {
                        self.ignored.get_or_insert_with(|| {
                            format!("its node affinity is not valid: {why}")
                        });
                    }
                }
            }
            // A term without expressions matches no node, and the others may still match one.
            if !requirements.is_empty() {
                self.required.push(requirements);
            }
        }
        if self.required.is_empty() {
            let why = "its required node affinity has only empty terms, which match no node";
            self.ignored.get_or_insert_with(|| why.to_owned());
        }
        Ok(())
    }

    fn prefer(
        &mut self,
        wish: &wire::pod::PreferredNodeTerm<'_>,
        names: &mut Names,
    ) -> Result<(), ReadError> {
        let weight = weight(wish.weight)?;
        let Some(preference) = &wish.preference else {
            return Ok(());
        };
        let term = node_term(preference).map_err(|e| e.below("preference"))?;
        // What no node can have is not worth wishing for.
        let wanted: Option<Terms> = term
            .expressions
            .iter()
            .map(|e| requirement(e, names).ok())
            .collect();
        if let Some(term) = wanted.filter(|term| !term.is_empty()) {
            self.preferred.push(Preference { weight, term });
        }
        Ok(())
    }

    /// Pods that want no pool at all are none of our business.
    fn refuse_unpooled(&mut self) {
        let wishes = self.preferred.iter().max_by_key(|wish| wish.weight);
        let unpooled = self
            .required
            .first()
            .into_iter()
            .chain(wishes.map(|wish| &wish.term))
            .flatten()
            .any(|r| &**r.key() == keys::NODE_POOL && r.operator() == Operator::DoesNotExist);
        if unpooled {
            self.ignored
                .get_or_insert_with(|| "it asks for a node that belongs to no NodePool".to_owned());
        }
    }
}

/// A term of a node selector with expressions that are well-formed.
pub(crate) struct NodeTerm<'t> {
    pub(crate) expressions: &'t [Expression<'t>],
    /// It also selects by field.
    pub(crate) by_field: bool,
}

/// The terms of a node selector.
///
/// # Errors
/// What every API server refuses.
pub(crate) fn node_terms<'t>(
    selector: &'t wire::pod::NodeSelector<'t>,
) -> Result<Vec<NodeTerm<'t>>, ReadError> {
    let terms = selector.node_selector_terms.as_deref().unwrap_or_default();
    if terms.is_empty() {
        let problem = "there must be at least one term; remove the list if every node will do";
        return Err(ReadError::new(problem).field("nodeSelectorTerms"));
    }
    let read = |(ix, term): (usize, &'t wire::pod::NodeTerm<'t>)| {
        node_term(term).map_err(|e| e.below(&format!("nodeSelectorTerms[{ix}]")))
    };
    terms.iter().enumerate().map(read).collect()
}

fn node_term<'t>(term: &'t wire::pod::NodeTerm<'t>) -> Result<NodeTerm<'t>, ReadError> {
    let expressions = term.match_expressions.as_deref().unwrap_or_default();
    for (ix, expression) in expressions.iter().enumerate() {
        node_expression(expression).map_err(|e| e.below(&format!("matchExpressions[{ix}]")))?;
    }
    let fields = term.match_fields.as_deref().unwrap_or_default();
    for (ix, field) in fields.iter().enumerate() {
        match text(&field.operator) {
            "In" | "NotIn" => check_count(field),
            other => Err(no_operator(other, "In, NotIn")),
        }
        .map_err(|e| e.below(&format!("matchFields[{ix}]")))?;
    }
    Ok(NodeTerm {
        expressions,
        by_field: !fields.is_empty(),
    })
}

/// Operators that pods and volumes can use; pools have more.
fn node_expression(expression: &Expression<'_>) -> Result<(), ReadError> {
    let key = text(&expression.key);
    if let Some(why) = key_error(key) {
        return Err(ReadError::new(format!("{key:?} {why}")).field("key"));
    }
    match text(&expression.operator) {
        "In" | "NotIn" | "Exists" | "DoesNotExist" => check_count(expression),
        word @ ("Gt" | "Lt") => {
            let wrong = |problem: String| Err(ReadError::new(problem).field("values"));
            match expression.values.as_deref().unwrap_or_default() {
                [value] if value.parse::<i64>().is_ok() => Ok(()),
                [value] => wrong(format!("{word} needs a whole number, not {:?}", &**value)),
                values => wrong(format!(
                    "{word} needs exactly one value, not {}",
                    values.len()
                )),
            }
        }
        other => Err(no_operator(
            other,
            "In, NotIn, Exists, DoesNotExist, Gt, Lt",
        )),
    }
}

/// What to say about a word that is not one of the `known` operators.
pub(crate) fn no_operator(word: &str, known: &str) -> ReadError {
    let problem = match word {
        "" => format!("there is no operator; write one of {known}"),
        word => format!("{word:?} is not one of {known}"),
    };
    ReadError::new(problem).field("operator")
}

/// Checks that an operator about sets has values if it needs them, and only then.
pub(crate) fn check_count(expression: &Expression<'_>) -> Result<(), ReadError> {
    let word = text(&expression.operator);
    let needs_values = matches!(word, "In" | "NotIn");
    let has_values = expression.values.as_ref().is_some_and(|v| !v.is_empty());
    let problem = match (needs_values, has_values) {
        (true, false) => format!("{word} needs at least one value"),
        (false, true) => format!("{word} takes no values; remove them"),
        (true, true) | (false, false) => return Ok(()),
    };
    Err(ReadError::new(problem).field("values"))
}

/// The weight of a preference.
pub(crate) fn weight(given: Option<i32>) -> Result<i32, ReadError> {
    match given.unwrap_or(1) {
        weight @ 1..=100 => Ok(weight),
        other => {
            let problem = format!("must be from 1 to 100, not {other}");
            Err(ReadError::new(problem).field("weight"))
        }
    }
}

/// One expression of node selection, checked.
pub(crate) fn requirement(
    expression: &Expression<'_>,
    names: &mut Names,
) -> Result<Requirement, String> {
    let key = text(&expression.key);
    if key_error(key).is_some() {
        return Err(format!("{key:?} is not a label key"));
    }
    let word = text(&expression.operator);
    let Some(operator) = Operator::parse(word) else {
        return Err(format!("operator {word:?} of {key:?} is not known"));
    };
    let values: Vec<Name> = expression
        .values
        .iter()
        .flatten()
        .map(|v| names.get(v))
        .collect();
    check_values(key, operator, &values)?;
    let requirement =
        Requirement::new(key, operator, values).map_err(|why| format!("{key:?}: {why}"))?;
    let min_values = expression.min_values.map(u32::try_from).transpose();
    let min_values = min_values.map_err(|_| format!("minValues of {key:?} is out of range"))?;
    Ok(requirement.with_min_values(min_values))
}

fn check_values(key: &str, operator: Operator, values: &[Name]) -> Result<(), String> {
    if let Some(value) = values.iter().find(|v| label_value_error(v).is_some()) {
        return Err(format!("{value:?} of {key:?} is not a label value"));
    }
    let word = operator.as_str();
    match operator {
        Operator::In if values.is_empty() => Err(format!("{key:?} {word} needs a value")),
        Operator::In if keys::canonical(key) == keys::CAPACITY_TYPE => {
            let known = ["on-demand", "spot", "reserved"];
            if values.iter().any(|v| known.contains(&&**v)) {
                return Ok(());
            }
            Err(format!(
                "{key:?} must be one of {}, not {}",
                known.join(", "),
                values.join(", ")
            ))
        }
        Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte
            if values.len() != 1 || values[0].parse::<u64>().is_err() =>
        {
            Err(format!("{key:?} {word} needs exactly one whole number"))
        }
        Operator::In
        | Operator::NotIn
        | Operator::Exists
        | Operator::DoesNotExist
        | Operator::Gt
        | Operator::Lt
        | Operator::Gte
        | Operator::Lte => Ok(()),
    }
}

/// The tolerations of a pod or runtime class. Errors name the field below `path`.
pub(crate) fn tolerations(
    list: &[wire::pod::Toleration<'_>],
    path: &str,
    names: &mut Names,
) -> Result<Vec<Toleration>, ReadError> {
    let read = |(ix, toleration): (usize, &wire::pod::Toleration<'_>)| {
        let field = |name: &str| format!("{path}[{ix}].{name}");
        let op = match text(&toleration.operator) {
            "" | "Equal" => TolerationOp::Equal,
            "Exists" => TolerationOp::Exists,
            "Lt" => TolerationOp::Lt,
            "Gt" => TolerationOp::Gt,
            other => {
                let problem = format!("{other:?} is not one of Equal, Exists, Lt, Gt");
                return Err(ReadError::new(problem).field(field("operator")));
            }
        };
        let effect = match text(&toleration.effect) {
            "" => None,
            word => Some(effect(word).map_err(|why| ReadError::new(why).field(field("effect")))?),
        };
        Ok(Toleration {
            key: names.get(text(&toleration.key)),
            op,
            value: names.get(text(&toleration.value)),
            effect,
        })
    };
    list.iter().enumerate().map(read).collect()
}

/// The taints of a node or pool.
pub(crate) fn taints(
    list: Option<&Vec<wire::Taint<'_>>>,
    path: &str,
    names: &mut Names,
) -> Result<Vec<Taint>, ReadError> {
    let read = |(ix, taint): (usize, &wire::Taint<'_>)| {
        let effect = effect(text(&taint.effect))
            .map_err(|why| ReadError::new(why).field(format!("{path}[{ix}].effect")))?;
        Ok(Taint {
            key: names.get(text(&taint.key)),
            value: names.get(text(&taint.value)),
            effect,
        })
    };
    list.into_iter().flatten().enumerate().map(read).collect()
}

fn effect(word: &str) -> Result<Effect, String> {
    match word {
        "NoSchedule" => Ok(Effect::NoSchedule),
        "PreferNoSchedule" => Ok(Effect::PreferNoSchedule),
        "NoExecute" => Ok(Effect::NoExecute),
        other => Err(format!(
            "{other:?} is not one of NoSchedule, PreferNoSchedule, NoExecute"
        )),
    }
}
