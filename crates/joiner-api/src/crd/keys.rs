//! Rules about label keys: domains that are reserved, and the keys in them that are not.

use crate::labels::{self, aws, kwok};

/// Whose keys are judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    Pool,
    Claim,
    Overlay,
}

/// Rules for one key, bound to `self`.
pub(super) fn key_rules(owner: Owner) -> Vec<(String, String)> {
    conditions(owner, "self")
}

/// Rules for every key of a map, bound to `self`.
pub(super) fn map_key_rules(owner: Owner) -> Vec<(String, String)> {
    let for_all = |(rule, message)| (format!("self.all(x, {rule})"), message);
    conditions(owner, "x").into_iter().map(for_all).collect()
}

fn conditions(owner: Owner, key: &str) -> Vec<(String, String)> {
    let core = [labels::CAPACITY_TYPE, labels::NODE_POOL];
    let mut aws_keys: Vec<&str> = aws::HARDWARE_LABELS.to_vec();
    if owner != Owner::Overlay {
        aws_keys.extend(aws::PLACEMENT_LABELS);
    }
    let mut rules = vec![domain(key, labels::GROUP, &core)];
    if owner == Owner::Pool {
        rules.push((
            format!("{key} != '{}'", labels::NODE_POOL),
            format!("{} is set by the NodePool itself", labels::NODE_POOL),
        ));
    }
    rules.push((
        format!("{key} != '{}'", labels::HOSTNAME),
        format!(
            "{} differs on every node and cannot be chosen",
            labels::HOSTNAME
        ),
    ));
    rules.push(domain(key, aws::GROUP, &aws_keys));
    rules.push(domain(key, kwok::GROUP, kwok::LABELS));
    rules
}

/// The key is outside of the domain, or one of those that are known inside.
fn domain(key: &str, domain: &str, known: &[&str]) -> (String, String) {
    let known = known
        .iter()
        .map(|known| format!("'{known}'"))
        .collect::<Vec<_>>()
        .join(", ");
    let rule = format!("!{key}.find('^([^/]+)').endsWith('{domain}') || {key} in [{known}]");
    (
        rule,
        format!("the label domain {domain} is reserved: only its well-known labels can be set"),
    )
}
