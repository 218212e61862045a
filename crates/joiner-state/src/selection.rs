//! Node selection: selectors, required terms, wishes, tolerations, taints.

use joiner_model::{
    Effect, Name, Operator, Preference, Requirement, Taint, Terms, Toleration, TolerationOp, keys,
};

use crate::error::ReadError;
use crate::label_syntax;
use crate::names::Names;
use crate::wire::{self, Expression, text};

/// Node selection of a pod, and why the pod must not be placed if that is so.
#[derive(Default)]
pub(crate) struct Selection {
    pub(crate) selector: Terms,
    pub(crate) required: Vec<Terms>,
    pub(crate) preferred: Vec<Preference<Terms>>,
    pub(crate) ignored: Option<String>,
}

/// Reads the node selection of a pod.
pub(crate) fn selection(spec: &wire::pod::PodSpec<'_>, names: &mut Names) -> Selection {
    let mut out = Selection::default();
    for (key, value) in spec.node_selector.iter().flatten() {
        if !label_syntax::is_key(key) || !label_syntax::is_value(value) {
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
    let required = affinity.and_then(|a| a.required.as_ref());
    if let Some(terms) = required.and_then(|r| r.node_selector_terms.as_ref()) {
        for term in terms {
            out.require(term, names);
        }
        if out.required.is_empty() && !terms.is_empty() {
            let why = "its required node affinity has only empty terms, which match no node";
            out.ignored.get_or_insert_with(|| why.to_owned());
        }
    }
    for wish in affinity
        .and_then(|a| a.preferred.as_ref())
        .into_iter()
        .flatten()
    {
        let expressions = wish
            .preference
            .as_ref()
            .and_then(|p| p.match_expressions.as_ref());
        let term: Option<Terms> = expressions
            .into_iter()
            .flatten()
            .map(|e| requirement(e, names).ok())
            .collect();
        if let Some(term) = term.filter(|term| !term.is_empty()) {
            out.preferred.push(Preference {
                weight: wish.weight.unwrap_or(1),
                term,
            });
        }
    }
    out.refuse_unpooled();
    out
}

impl Selection {
    fn require(&mut self, term: &wire::pod::NodeTerm<'_>, names: &mut Names) {
        if term
            .match_fields
            .as_ref()
            .is_some_and(|fields| !fields.is_empty())
        {
            self.ignored.get_or_insert_with(|| {
                "its node affinity selects by field (matchFields), which new nodes cannot meet"
                    .to_owned()
            });
            return;
        }
        let mut requirements = Terms::new();
        for expression in term.match_expressions.iter().flatten() {
            match requirement(expression, names) {
                Ok(requirement) => requirements.push(requirement),
                Err(why) => {
                    self.ignored
                        .get_or_insert_with(|| format!("its node affinity is not valid: {why}"));
                }
            }
        }
        if !requirements.is_empty() {
            self.required.push(requirements);
        }
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

/// One expression of node selection, checked.
pub(crate) fn requirement(
    expression: &Expression<'_>,
    names: &mut Names,
) -> Result<Requirement, String> {
    let key = text(&expression.key);
    if !label_syntax::is_key(key) {
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
    if let Some(value) = values.iter().find(|v| !label_syntax::is_value(v)) {
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

/// The tolerations of a pod.
pub(crate) fn tolerations(
    list: &[wire::pod::Toleration<'_>],
    names: &mut Names,
) -> Result<Vec<Toleration>, ReadError> {
    let read = |(ix, toleration): (usize, &wire::pod::Toleration<'_>)| {
        let field = |name: &str| format!("spec.tolerations[{ix}].{name}");
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
