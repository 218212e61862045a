//! Rules between pods: affinity, anti-affinity, spread.

use std::collections::BTreeSet;

use joiner_api::names::{key_error, label_value_error};
use joiner_model::{Name, PodTerm, Selector, SelectorExpr, SelectorOp, Spread, keys};

use crate::draft::{Draft, NamespaceRule, TermList};
use crate::error::ReadError;
use crate::names::Names;
use crate::selection::{self, PREFERRED, REQUIRED, weight};
use crate::wire::pod::{PodAffinity, PodSpec, SpreadConstraint};
use crate::wire::{self, Expression, LabelSelector, Text, text};
use crate::wording::shown;

/// Fills in the rules of a draft whose namespace and labels are known. Returns what is odd about
/// them, though not wrong.
pub(crate) fn rules(
    spec: &PodSpec<'_>,
    draft: &mut Draft,
    names: &mut Names,
) -> Result<Vec<String>, ReadError> {
    let mut rules = Rules {
        draft,
        names,
        notes: Vec::new(),
    };
    if let Some(affinity) = &spec.affinity {
        let lists = (TermList::Affinity, TermList::PreferredAffinity);
        rules
            .pod_affinity(affinity.pod_affinity.as_ref(), lists)
            .map_err(|e| e.below("spec.affinity.podAffinity"))?;
        let lists = (TermList::AntiAffinity, TermList::PreferredAntiAffinity);
        rules
            .pod_affinity(affinity.pod_anti_affinity.as_ref(), lists)
            .map_err(|e| e.below("spec.affinity.podAntiAffinity"))?;
    }
    let constraints = spec.topology_spread_constraints.as_deref();
    for (ix, constraint) in constraints.unwrap_or_default().iter().enumerate() {
        let spread = rules
            .spread(constraint)
            .map_err(|e| e.below(&format!("spec.topologySpreadConstraints[{ix}]")))?;
        rules.draft.shape.spreads.push(spread);
    }
    Ok(rules.notes)
}

/// The rules of one pod, while they are being read.
struct Rules<'r> {
    draft: &'r mut Draft,
    names: &'r mut Names,
    notes: Vec<String>,
}

impl Rules<'_> {
    fn pod_affinity(
        &mut self,
        affinity: Option<&PodAffinity<'_>>,
        (required, preferred): (TermList, TermList),
    ) -> Result<(), ReadError> {
        let Some(affinity) = affinity else {
            return Ok(());
        };
        for (ix, term) in affinity.required.iter().flatten().enumerate() {
            let path = format!("{REQUIRED}[{ix}]");
            let term = self.pod_term(term, required).map_err(|e| e.below(&path))?;
            self.draft.push_term(required, 0, term);
        }
        for (ix, wish) in affinity.preferred.iter().flatten().enumerate() {
            let path = format!("{PREFERRED}[{ix}]");
            let weight = weight(wish.weight).map_err(|e| e.below(&path))?;
            let Some(term) = &wish.pod_affinity_term else {
                continue;
            };
            let term = self
                .pod_term(term, preferred)
                .map_err(|e| e.below("podAffinityTerm").below(&path))?;
            self.draft.push_term(preferred, weight, term);
        }
        Ok(())
    }

    fn pod_term(
        &mut self,
        term: &wire::pod::PodTerm<'_>,
        list: TermList,
    ) -> Result<PodTerm, ReadError> {
        let key = topology_key(text(&term.topology_key), self.names)?;
        let mut namespaces: Vec<Name> = term
            .namespaces
            .iter()
            .flatten()
            .map(|n| self.names.get(n))
            .collect();
        if let Some(selected) = &term.namespace_selector {
            let selector = self
                .usable(selected)
                .map_err(|e| e.below("namespaceSelector"))?;
            let term_ix = self.draft.len_of(list);
            self.draft.namespaces.push(NamespaceRule {
                list,
                term_ix,
                selector,
            });
        } else if namespaces.is_empty() {
            namespaces.push(self.draft.shape.namespace.clone());
        }
        namespaces.sort();
        namespaces.dedup();
        let mut extra = self.folded(term.match_label_keys.as_ref(), SelectorOp::In);
        extra.extend(self.folded(term.mismatch_label_keys.as_ref(), SelectorOp::NotIn));
        Ok(PodTerm {
            key,
            namespaces,
            selector: self.with_extra(term.label_selector.as_ref(), extra)?,
        })
    }

    fn spread(&mut self, constraint: &SpreadConstraint<'_>) -> Result<Spread, ReadError> {
        let hard = match text(&constraint.when_unsatisfiable) {
            "" => true,
            word => is_hard(word)?,
        };
        let extra = self.folded(constraint.match_label_keys.as_ref(), SelectorOp::In);
        Ok(Spread {
            key: topology_key(text(&constraint.topology_key), self.names)?,
            max_skew: positive(constraint.max_skew.unwrap_or(1), "maxSkew")?,
            hard,
            selector: self.with_extra(constraint.label_selector.as_ref(), extra)?,
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

    /// Expressions for label keys whose values are to be those of the pod itself.
    fn folded(&mut self, label_keys: Option<&Vec<Text<'_>>>, op: SelectorOp) -> Vec<SelectorExpr> {
        let labels = &self.draft.shape.labels;
        let with_value = |key: &Text<'_>| {
            Some(SelectorExpr {
                key: self.names.get(key),
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
        &mut self,
        given: Option<&LabelSelector<'_>>,
        extra: Vec<SelectorExpr>,
    ) -> Result<Option<Selector>, ReadError> {
        let base = match given {
            Some(given) => self.usable(given).map_err(|e| e.below("labelSelector"))?,
            None if extra.is_empty() => None,
            None => Some(Selector::default()),
        };
        Ok(match base {
            Some(base) if !extra.is_empty() => {
                let exprs = base.exprs().iter().cloned().chain(extra).collect();
                Some(Selector::new(exprs))
            }
            base => base,
        })
    }

    /// The selector, or `None` when no pod can have what it asks for, which is noted.
    fn usable(&mut self, given: &LabelSelector<'_>) -> Result<Option<Selector>, ReadError> {
        match selector(given, self.names)? {
            Ok(selector) => Ok(Some(selector)),
            Err(why) => {
                self.notes
                    .push(format!("a label selector selects nothing: {why}"));
                Ok(None)
            }
        }
    }
}

/// Whether a policy of a spread constraint says to honor something.
pub(crate) fn policy(word: &str, default: bool, field: &str) -> Result<bool, ReadError> {
    match word {
        "" => Ok(default),
        "Honor" => Ok(true),
        "Ignore" => Ok(false),
        other => {
            let problem = format!("{:?} is not one of Honor, Ignore", shown(other));
            Err(ReadError::new(problem).field(field))
        }
    }
}

/// A number that must be above zero.
pub(crate) fn positive(figure: i32, field: &str) -> Result<u32, ReadError> {
    match u32::try_from(figure) {
        Ok(figure) if figure > 0 => Ok(figure),
        _ => Err(ReadError::new(format!("{figure} is not above zero")).field(field)),
    }
}

/// Whether a spread constraint is a rule.
pub(crate) fn is_hard(when_unsatisfiable: &str) -> Result<bool, ReadError> {
    match when_unsatisfiable {
        "DoNotSchedule" => Ok(true),
        "ScheduleAnyway" => Ok(false),
        other => {
            let problem = format!(
                "{:?} is not one of DoNotSchedule, ScheduleAnyway",
                shown(other)
            );
            Err(ReadError::new(problem).field("whenUnsatisfiable"))
        }
    }
}

fn topology_key(key: &str, names: &mut Names) -> Result<Name, ReadError> {
    if key.is_empty() {
        return Err(ReadError::new("there is no topologyKey").field("topologyKey"));
    }
    Ok(names.get(keys::canonical(key)))
}

/// A label selector. Text that no label can be is stored by clusters all the same and selects
/// nothing; then the inner error says what it is.
///
/// # Errors
/// What every API server refuses: operators and values that do not go together.
pub(crate) fn selector(
    given: &LabelSelector<'_>,
    names: &mut Names,
) -> Result<Result<Selector, String>, ReadError> {
    let mut exprs = Vec::new();
    let mut odd = None;
    for (key, value) in given.match_labels.iter().flatten() {
        odd = odd.or_else(|| odd_label(key, [&**value]));
        exprs.push(SelectorExpr {
            key: names.get(key),
            op: SelectorOp::In,
            values: BTreeSet::from([names.get(value)]),
        });
    }
    for (ix, expression) in given.match_expressions.iter().flatten().enumerate() {
        let op =
            selector_op(expression).map_err(|e| e.below(&format!("matchExpressions[{ix}]")))?;
        let values = expression.values.as_deref().unwrap_or_default();
        odd = odd.or_else(|| odd_label(text(&expression.key), values.iter().map(|v| &**v)));
        exprs.push(SelectorExpr {
            key: names.get(text(&expression.key)),
            op,
            values: values.iter().map(|value| names.get(value)).collect(),
        });
    }
    Ok(match odd {
        Some(why) => Err(why),
        None => Ok(Selector::new(exprs)),
    })
}

/// The operator of an expression, whose values must go with it.
fn selector_op(expression: &Expression<'_>) -> Result<SelectorOp, ReadError> {
    let op = match text(&expression.operator) {
        "In" => SelectorOp::In,
        "NotIn" => SelectorOp::NotIn,
        "Exists" => SelectorOp::Exists,
        "DoesNotExist" => SelectorOp::DoesNotExist,
        other => {
            let known = "In, NotIn, Exists, DoesNotExist";
            return Err(selection::no_operator(other, known));
        }
    };
    selection::check_count(expression)?;
    Ok(op)
}

/// Why no label can be like this.
fn odd_label<'v>(key: &str, values: impl IntoIterator<Item = &'v str>) -> Option<String> {
    if let Some(why) = key_error(key) {
        return Some(format!("the key {:?} {why}", shown(key)));
    }
    values.into_iter().find_map(|value| {
        let why = label_value_error(value)?;
        Some(format!("value {:?} of {key:?} {why}", shown(value)))
    })
}
