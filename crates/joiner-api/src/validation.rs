//! Judgment of a NodePool beyond its schema: what the controller writes into the condition
//! `ValidationSucceeded`.
//!
//! Everything the schema says about keys, values and operators is said again, since objects may
//! have been stored under another schema; lengths, duplicates and known values come on top.

use crate::labels::{
    self, CAPACITY_TYPE, CAPACITY_TYPES, NODE_POOL, aws, canonical_key, is_restricted,
};
use crate::names::{key_error, label_value_error};
use crate::types::{NodePool, NodePoolSpec, Operator, Requirement, TaintEffect};
use std::collections::BTreeSet;

/// Every reason not to make nodes for this pool; empty when it is fine.
#[must_use]
pub fn validate_node_pool(pool: &NodePool) -> Vec<String> {
    let mut problems = Vec::new();
    check_labels(&pool.spec, &mut problems);
    check_taints(&pool.spec, &mut problems);
    for requirement in &pool.spec.template.spec.requirements {
        check_requirement(requirement, &mut problems);
    }
    problems
}

fn check_labels(spec: &NodePoolSpec, problems: &mut Vec<String>) {
    for (key, value) in spec.template_labels() {
        if key == NODE_POOL {
            problems.push(format!("template label {key} is set by the pool itself"));
            continue;
        }
        if let Some(why) = key_error(key) {
            problems.push(format!("template label key {key:?} {why}"));
        }
        if let Some(why) = label_value_error(value) {
            problems.push(format!("value {value:?} of template label {key} {why}"));
        }
        if is_restricted(key) {
            problems.push(restricted("template label", key));
        }
    }
}

fn restricted(what: &str, key: &str) -> String {
    let domains = labels::RESTRICTED_DOMAINS.join(", ");
    format!(
        "{what} {key} cannot be set: it belongs to the provisioning logic; use a well-known label \
         or one outside of the domains {domains}"
    )
}

fn check_taints(spec: &NodePoolSpec, problems: &mut Vec<String>) {
    let mut seen: BTreeSet<(&str, TaintEffect)> = BTreeSet::new();
    for taint in spec.all_taints() {
        let key = taint.key.as_str();
        if let Some(why) = key_error(key) {
            problems.push(format!("taint key {key:?} {why}"));
        }
        if let Some(value) = &taint.value
            && let Some(why) = label_value_error(value)
        {
            problems.push(format!("value {value:?} of taint {key} {why}"));
        }
        if !seen.insert((key, taint.effect)) {
            problems.push(format!("taint {key}:{} is there twice", taint.effect));
        }
    }
}

fn check_requirement(requirement: &Requirement, problems: &mut Vec<String>) {
    let key = canonical_key(&requirement.key);
    let values = &requirement.values;
    if key == NODE_POOL {
        problems.push(format!("requirement {key} is set by the pool itself"));
    } else if is_restricted(key) {
        problems.push(restricted("requirement", key));
    }
    if let Some(why) = key_error(key) {
        problems.push(format!("requirement key {key:?} {why}"));
    }
    for value in values {
        if let Some(why) = label_value_error(value) {
            problems.push(format!("value {value:?} of requirement {key} {why}"));
        }
    }
    if requirement.operator == Operator::In {
        if values.is_empty() {
            problems.push(format!(
                "requirement {key} has the operator In and no values"
            ));
        }
        let wanted = requirement.min_values.unwrap_or(0) as usize;
        if values.len() < wanted {
            problems.push(format!(
                "requirement {key} has {} values, fewer than its minValues of {wanted}",
                values.len()
            ));
        }
        check_known_values(key, requirement, problems);
    }
    if requirement.operator.is_comparison() {
        let is_number = |value: &String| value.parse::<i64>().is_ok_and(|number| number >= 0);
        if values.len() != 1 || !values.iter().all(is_number) {
            problems.push(format!(
                "requirement {key} with {} needs exactly one whole number that is not negative",
                requirement.operator
            ));
        }
    }
}

/// Labels whose values are known beforehand: some must be right, strangers beside them are fine.
fn check_known_values(key: &str, requirement: &Requirement, problems: &mut Vec<String>) {
    let known = match key {
        CAPACITY_TYPE => CAPACITY_TYPES,
        aws::INSTANCE_TENANCY => aws::TENANCIES,
        _ => return,
    };
    if requirement.values.is_empty() {
        return;
    }
    let valid: BTreeSet<&str> = requirement
        .values
        .iter()
        .map(String::as_str)
        .filter(|v| known.contains(v))
        .collect();
    if valid.is_empty() {
        problems.push(format!(
            "none of the values {:?} of requirement {key} exists; there are {}",
            requirement.values,
            known.join(", ")
        ));
    } else if valid.len() < requirement.min_values.unwrap_or(0) as usize {
        problems.push(format!(
            "requirement {key} has {} values that exist, fewer than its minValues",
            valid.len()
        ));
    }
}
