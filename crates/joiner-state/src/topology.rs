//! Rules between pods: affinity, anti-affinity, spread.

use std::collections::BTreeSet;

use joiner_model::{Labels, Name, PodTerm, Selector, SelectorExpr, SelectorOp, Spread, keys};

use crate::draft::{Draft, NamespaceRule, TermList};
use crate::error::ReadError;
use crate::label_syntax;
use crate::names::Names;
use crate::wire::pod::{PodAffinity, PodSpec, SpreadConstraint};
use crate::wire::{self, LabelSelector, Text, text};

/// Fills in the rules of a draft whose namespace and labels are known.
pub(crate) fn rules(
    spec: &PodSpec<'_>,
    draft: &mut Draft,
    names: &mut Names,
) -> Result<(), ReadError> {
    if let Some(affinity) = &spec.affinity {
        let (required, preferred) = (TermList::Affinity, TermList::PreferredAffinity);
        pod_affinity(
            affinity.pod_affinity.as_ref(),
            (required, preferred),
            draft,
            names,
        )
        .map_err(|e| prefixed(e, "spec.affinity.podAffinity"))?;
        let (required, preferred) = (TermList::AntiAffinity, TermList::PreferredAntiAffinity);
        let anti = affinity.pod_anti_affinity.as_ref();
        pod_affinity(anti, (required, preferred), draft, names)
            .map_err(|e| prefixed(e, "spec.affinity.podAntiAffinity"))?;
    }
    let constraints = spec.topology_spread_constraints.as_deref();
    for (ix, constraint) in constraints.unwrap_or_default().iter().enumerate() {
        let spread = spread(constraint, &draft.shape.labels, names)
            .map_err(|e| prefixed(e, &format!("spec.topologySpreadConstraints[{ix}]")))?;
        draft.shape.spreads.push(spread);
    }
    Ok(())
}

fn pod_affinity(
    affinity: Option<&PodAffinity<'_>>,
    (required, preferred): (TermList, TermList),
    draft: &mut Draft,
    names: &mut Names,
) -> Result<(), ReadError> {
    let Some(affinity) = affinity else {
        return Ok(());
    };
    for (ix, term) in affinity.required.iter().flatten().enumerate() {
        let term = pod_term(term, required, draft, names).map_err(|e| {
            prefixed(
                e,
                &format!("requiredDuringSchedulingIgnoredDuringExecution[{ix}]"),
            )
        })?;
        draft.push_term(required, 0, term);
    }
    for (ix, wish) in affinity.preferred.iter().flatten().enumerate() {
        let Some(term) = &wish.pod_affinity_term else {
            continue;
        };
        let term = pod_term(term, preferred, draft, names).map_err(|e| {
            let list = "preferredDuringSchedulingIgnoredDuringExecution";
            prefixed(e, &format!("{list}[{ix}].podAffinityTerm"))
        })?;
        draft.push_term(preferred, wish.weight.unwrap_or(1), term);
    }
    Ok(())
}

fn pod_term(
    term: &wire::pod::PodTerm<'_>,
    list: TermList,
    draft: &mut Draft,
    names: &mut Names,
) -> Result<PodTerm, ReadError> {
    let key = topology_key(text(&term.topology_key), names)?;
    let mut namespaces: Vec<Name> = term
        .namespaces
        .iter()
        .flatten()
        .map(|n| names.get(n))
        .collect();
    if let Some(selected) = &term.namespace_selector {
        draft.namespaces.push(NamespaceRule {
            list,
            term_ix: draft.len_of(list),
            selector: selector(selected, names),
        });
    } else if namespaces.is_empty() {
        namespaces.push(draft.shape.namespace.clone());
    }
    namespaces.sort();
    namespaces.dedup();
    let labels = &draft.shape.labels;
    let mut extra = folded(
        term.match_label_keys.as_ref(),
        SelectorOp::In,
        labels,
        names,
    );
    extra.extend(folded(
        term.mismatch_label_keys.as_ref(),
        SelectorOp::NotIn,
        labels,
        names,
    ));
    Ok(PodTerm {
        key,
        namespaces,
        selector: with_extra(term.label_selector.as_ref(), extra, names),
    })
}

fn spread(
    constraint: &SpreadConstraint<'_>,
    labels: &Labels,
    names: &mut Names,
) -> Result<Spread, ReadError> {
    let policy = |word: &str, default: bool, field: &str| match word {
        "" => Ok(default),
        "Honor" => Ok(true),
        "Ignore" => Ok(false),
        other => {
            let problem = format!("{other:?} is not one of Honor, Ignore");
            Err(ReadError::new(problem).field(field))
        }
    };
    let positive = |figure: i32, field: &str| match u32::try_from(figure) {
        Ok(figure) if figure > 0 => Ok(figure),
        _ => Err(ReadError::new(format!("{figure} is not above zero")).field(field)),
    };
    let hard = match text(&constraint.when_unsatisfiable) {
        "" | "DoNotSchedule" => true,
        "ScheduleAnyway" => false,
        other => {
            let problem = format!("{other:?} is not one of DoNotSchedule, ScheduleAnyway");
            return Err(ReadError::new(problem).field("whenUnsatisfiable"));
        }
    };
    let extra = folded(
        constraint.match_label_keys.as_ref(),
        SelectorOp::In,
        labels,
        names,
    );
    Ok(Spread {
        key: topology_key(text(&constraint.topology_key), names)?,
        max_skew: positive(constraint.max_skew.unwrap_or(1), "maxSkew")?,
        hard,
        selector: with_extra(constraint.label_selector.as_ref(), extra, names),
        min_domains: constraint
            .min_domains
            .map(|n| positive(n, "minDomains"))
            .transpose()?,
        honor_affinity: policy(
            text(&constraint.node_affinity_policy),
            true,
            "nodeAffinityPolicy",
        )?,
        honor_taints: policy(
            text(&constraint.node_taints_policy),
            false,
            "nodeTaintsPolicy",
        )?,
    })
}

fn topology_key(key: &str, names: &mut Names) -> Result<Name, ReadError> {
    if key.is_empty() {
        return Err(ReadError::new("there is no topologyKey").field("topologyKey"));
    }
    Ok(names.get(keys::canonical(key)))
}

/// Expressions for label keys whose values are to be those of the pod itself.
fn folded(
    label_keys: Option<&Vec<Text<'_>>>,
    op: SelectorOp,
    labels: &Labels,
    names: &mut Names,
) -> Vec<SelectorExpr> {
    let with_value = |key: &Text<'_>| {
        Some(SelectorExpr {
            key: names.get(key),
            op,
            values: BTreeSet::from([labels.get(&**key)?.clone()]),
        })
    };
    label_keys
        .into_iter()
        .flatten()
        .filter_map(with_value)
        .collect()
}

/// The selector with `extra` in it. No selector stays none unless there is something extra.
fn with_extra(
    given: Option<&LabelSelector<'_>>,
    extra: Vec<SelectorExpr>,
    names: &mut Names,
) -> Option<Selector> {
    let base = match given {
        Some(given) => selector(given, names)?,
        None if extra.is_empty() => return None,
        None => Selector::default(),
    };
    if extra.is_empty() {
        return Some(base);
    }
    let exprs = base.exprs().iter().cloned().chain(extra).collect();
    Some(Selector::new(exprs))
}

/// A label selector, or `None` when it is not valid.
pub(crate) fn selector(given: &LabelSelector<'_>, names: &mut Names) -> Option<Selector> {
    let mut exprs = Vec::new();
    for (key, value) in given.match_labels.iter().flatten() {
        exprs.push(SelectorExpr {
            key: valid_key(key, names)?,
            op: SelectorOp::In,
            values: BTreeSet::from([valid_value(value, names)?]),
        });
    }
    for expression in given.match_expressions.iter().flatten() {
        let values: Option<BTreeSet<Name>> = expression
            .values
            .iter()
            .flatten()
            .map(|v| valid_value(v, names))
            .collect();
        let values = values?;
        let (op, needs_values) = match text(&expression.operator) {
            "In" => (SelectorOp::In, true),
            "NotIn" => (SelectorOp::NotIn, true),
            "Exists" => (SelectorOp::Exists, false),
            "DoesNotExist" => (SelectorOp::DoesNotExist, false),
            _ => return None,
        };
        if values.is_empty() == needs_values {
            return None;
        }
        exprs.push(SelectorExpr {
            key: valid_key(text(&expression.key), names)?,
            op,
            values,
        });
    }
    Some(Selector::new(exprs))
}

fn valid_key(key: &str, names: &mut Names) -> Option<Name> {
    label_syntax::is_key(key).then(|| names.get(key))
}

fn valid_value(value: &str, names: &mut Names) -> Option<Name> {
    label_syntax::is_value(value).then(|| names.get(value))
}

fn prefixed(mut error: ReadError, path: &str) -> ReadError {
    error.field = Some(match error.field {
        Some(field) => format!("{path}.{field}"),
        None => path.to_owned(),
    });
    error
}
