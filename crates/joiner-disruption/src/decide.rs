//! One pass over a fleet: the methods in upstream's order, until one has something to do. Empty nodes
//! go by themselves, so that consolidation goes on without them in the same pass.

use std::cell::RefCell;

use joiner_model::NanoDollars;

use crate::budget::Allowances;
use crate::candidates::{self, Class};
use crate::command::{Command, Decision, Method, Reason, Verdict};
use crate::consolidation::{self, Pass, Report, bounds::Rooms};
use crate::fleet::Fleet;
use crate::memory::Memory;
use crate::moves::Moves;
use crate::whatif::WhatIf;
use crate::why::Why;
use crate::{drift, emptiness};

/// Decides what to give back.
///
/// *Guarantees*: the same fleet and memory give the same decision; budgets are never exceeded;
/// commands that consolidate lower the price, so that on a cluster where nothing else changes one
/// after the other comes to an end.
#[must_use]
pub fn decide(fleet: &Fleet<'_>, memory: &Memory) -> Decision {
    let mut decision = first(fleet, memory);
    let [empty] = &decision.commands[..] else {
        return decision;
    };
    // Even pods that cost nothing to move need a place, and have to be counted.
    let is_bare = |m: &usize| fleet.members[*m].pods.is_empty();
    let alone = fleet.settings.upstream || empty.method != Method::Empty;
    if alone || !empty.members.iter().all(is_bare) {
        return decision;
    }
    let (mut problem, mut others) = (fleet.problem.clone(), fleet.clone());
    for m in &empty.members {
        let member = &mut others.members[*m];
        member.in_command = true;
        problem[member.node].closed = true;
        let terms = &mut others.pools[member.pool];
        terms.n_staying = terms.n_staying.saturating_sub(1);
        terms.n_leaving += 1;
    }
    let others = Fleet {
        problem: &problem,
        ..others
    };
    let then = first(&others, &decision.memory);
    // What need not wait is for the next pass: nothing is to be old when it begins.
    if !then.commands.iter().all(|own| own.method.waits()) {
        return decision;
    }
    let verdicts = decision.verdicts.iter_mut().zip(then.verdicts);
    for (own, then) in verdicts.filter(|(own, _)| own.stays.is_some()) {
        *own = then;
    }
    decision.commands.extend(then.commands);
    decision.memory = then.memory;
    decision.n_what_ifs += then.n_what_ifs;
    decision.cut_short = then.cut_short;
    decision.turned_down = then.turned_down;
    decision
}

/// What the first method that has something to do comes to.
fn first(fleet: &Fleet<'_>, memory: &Memory) -> Decision {
    let allowances = Allowances::new(fleet);
    let mut memory = memory.for_fleet(fleet);
    let mut stays = candidates::stays(fleet);
    let is_empty = |m: &usize| stays[*m].is_none() && fleet.members[*m].is_empty();
    let mut empty: Vec<usize> = (0..fleet.members.len()).filter(is_empty).collect();
    let (spared, seats) = emptiness::spare_seats(fleet, &mut empty);
    for m in spared {
        stays[m] = Some(Why::Nominated);
    }
    let rooms = Rooms::new(fleet);
    let bounds: Vec<NanoDollars> = (fleet.members.iter())
        .map(|member| rooms.bound(fleet, member))
        .collect();
    let eligible = eligible(fleet, &stays);
    let report = RefCell::new(Report::default());
    let mut n_what_ifs = 0;
    let what_if = || match &seats {
        Some(seats) => WhatIf::with_seats(fleet, seats),
        None => WhatIf::new(fleet),
    };
    let commands = first_of(
        fleet,
        &allowances,
        empty,
        &mut memory,
        (what_if, &mut n_what_ifs),
        |memory, ask| {
            let pass = Pass {
                fleet,
                allowances: &allowances,
                rooms: &rooms,
                bounds: &bounds,
                stays: &mut stays,
                report: &report,
            };
            consolidation::decide(pass, memory, ask)
        },
    );
    let report = report.into_inner();
    let known = stays.into_iter().zip(bounds);
    let verdicts = verdicts((fleet, &allowances), &memory, &commands, known);
    let pools = 0..fleet.pools.len();
    let allowed = pools.flat_map(|pool| Reason::ALL.map(|reason| (pool, reason)));
    Decision {
        commands,
        verdicts,
        allowed: allowed
            .map(|(pool, reason)| (pool, reason, allowances.raw(pool, reason)))
            .collect(),
        eligible,
        consuming: allowances.consuming().to_vec(),
        cut_short: report.cut_short,
        turned_down: report.turned_down,
        memory,
        n_what_ifs,
    }
}

/// How many members could go by each reason, if budgets and prices allowed.
fn eligible(fleet: &Fleet<'_>, stays: &[Option<Why>]) -> Vec<(Reason, u32)> {
    let count = |holds: &dyn Fn(usize) -> bool| {
        let n = (0..fleet.members.len()).filter(|m| holds(*m)).count();
        u32::try_from(n).unwrap_or(u32::MAX)
    };
    let of = |reason: Reason| match reason {
        Reason::Empty => count(&|m| stays[m].is_none() && fleet.members[m].is_empty()),
        Reason::Drifted => count(&|m| {
            let member = &fleet.members[m];
            member.drifted().is_some() && candidates::blocked(member, Class::Eventual).is_none()
        }),
        Reason::Underutilized => count(&|m| stays[m].is_none() && !fleet.members[m].is_empty()),
    };
    Reason::ALL.map(|reason| (reason, of(reason))).to_vec()
}

/// The commands of the first method that has some.
fn first_of<'f>(
    fleet: &'f Fleet<'f>,
    allowances: &Allowances,
    empty: Vec<usize>,
    memory: &mut Memory,
    (what_if, n_what_ifs): (impl FnOnce() -> WhatIf<'f>, &mut u32),
    consolidate: impl FnOnce(&mut Memory, &mut WhatIf<'f>) -> Option<Command>,
) -> Vec<Command> {
    if let Some(command) = emptiness::decide(fleet, allowances, empty) {
        return vec![command];
    }
    let replaced = drift::decide_static(fleet, allowances);
    if !replaced.is_empty() {
        return replaced;
    }
    let is_drifted = fleet
        .members
        .iter()
        .any(|member| member.drifted().is_some());
    if !is_drifted && memory.is_idle(fleet) {
        return Vec::new();
    }
    let mut what_if = what_if();
    let drifted = drift::decide(fleet, allowances, memory, &mut what_if);
    let command = drifted.or_else(|| consolidate(memory, &mut what_if));
    *n_what_ifs = what_if.n_asked;
    command.into_iter().collect()
}

/// What is said about every member.
fn verdicts(
    (fleet, allowances): (&Fleet<'_>, &Allowances),
    memory: &Memory,
    commands: &[Command],
    known: impl Iterator<Item = (Option<Why>, NanoDollars)>,
) -> Vec<Verdict> {
    let mut going = vec![false; fleet.members.len()];
    let mut left = allowances.clone();
    for command in commands {
        for m in &command.members {
            going[*m] = true;
            left.take(fleet.members[*m].pool, command.reason);
        }
    }
    let moves = Moves::new(fleet);
    let said = |((m, going), (stays, bound)): ((usize, bool), _)| {
        let member = &fleet.members[m];
        let bound: NanoDollars = bound;
        let by_default = || {
            if left.is_at_minimum(member.pool) {
                return Why::GroupMinimum(fleet.terms(member).name.clone());
            }
            if let Some(owner) = moves.refused(fleet, m) {
                return Why::MovedEnough(owner);
            }
            if member.is_empty() && emptiness::is_candidate(fleet, member) {
                return left.why(fleet, member, Reason::Empty);
            }
            let earlier = memory.kept(&member.leaver()).cloned();
            earlier.unwrap_or(if commands.is_empty() {
                Why::NotLookedAt
            } else {
                Why::AnotherFirst
            })
        };
        // What keeps a node that must go matters more than what keeps it from being consolidated.
        let pinned = || {
            let kept = memory.kept(&member.leaver());
            let kept = kept.filter(|_| member.drifted().is_some());
            kept.filter(|why| matches!(why, Why::Pinned(_))).cloned()
        };
        let stays: Option<Why> = stays;
        Verdict {
            stays: (!going).then(|| pinned().or(stays).unwrap_or_else(by_default)),
            bound,
        }
    };
    let members = (0..fleet.members.len()).zip(going);
    members.zip(known).map(said).collect()
}
