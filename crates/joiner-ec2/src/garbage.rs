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
    let is_old = |machine: &Machine| {
        machine
            .launched
            .is_some_and(|at| now.duration_since(at) > AGE_MIN)
    };
    let is_there = |machine: &Machine| match machine.life {
        Life::Runs | Life::Stopped => true,
        Life::Ending | Life::Gone => false,
    };
    let is_ours = |machine: &Machine| machine.pool.is_some() && machine.class.is_some();
    let unnamed = machines
        .iter()
        .filter(|machine| !named_by_claims.contains(&machine.id.to_string()));
    unnamed
        .filter(|machine| is_ours(machine) && is_old(machine) && is_there(machine))
        .collect()
}
