//! Machines that belong to us and to no claim.

use std::collections::BTreeSet;

use jiff::{SignedDuration, Timestamp};

use crate::machine::{Life, Machine};

/// How old a machine must be: the claim of a younger one may not have its name yet.
const AGE_MIN: SignedDuration = SignedDuration::from_secs(30);

/// Machines to end, with their nodes: they carry our tags, are old enough, and no claim names them.
#[must_use]
pub fn leaked<'m>(
    machines: &'m [Machine],
    named_by_claims: &BTreeSet<String>,
    now: Timestamp,
) -> Vec<&'m Machine> {
    let is_old = |own: &Machine| {
        own.launched
            .is_some_and(|at| now.duration_since(at) > AGE_MIN)
    };
    let is_there = |own: &Machine| match own.life {
        Life::Runs | Life::Stopped => true,
        Life::Ending | Life::Gone => false,
    };
    let is_ours = |own: &Machine| own.pool.is_some() && own.class.is_some();
    let unnamed = machines
        .iter()
        .filter(|own| !named_by_claims.contains(&own.id.to_string()));
    unnamed
        .filter(|own| is_ours(own) && is_old(own) && is_there(own))
        .collect()
}
