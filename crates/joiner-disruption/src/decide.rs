//! One pass over a fleet: the methods in upstream's order, until one has something to do.

use std::cell::RefCell;

use joiner_model::NanoDollars;

use crate::budget::Allowances;
use crate::candidates::{self, Class};
use crate::command::{Command, Decision, Reason, Verdict};
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
    let allowances = Allowances::new(fleet);
    let mut memory = memory.for_fleet(fleet);
    let mut stays = candidates::stays(fleet);
    let rooms = Rooms::new(fleet);
    let bounds: Vec<NanoDollars> = (fleet.members.iter())
        .map(|member| rooms.bound(fleet, member))
        .collect();
    let eligible = eligible(fleet, &stays);
    let report = RefCell::new(Report::default());
    let mut what_if = None;
    let commands = first_of(
        fleet,
        &allowances,
        &mut memory,
        &mut what_if,
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
    let verdicts = verdicts(fleet, &memory, &commands, stays.into_iter().zip(bounds));
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
        n_what_ifs: what_if.map_or(0, |what_if| what_if.n_asked),
    }
}

/// How many members could go by each reason, if budgets and prices allowed.
fn eligible(fleet: &Fleet<'_>, stays: &[Option<Why>]) -> Vec<(Reason, u32)> {
    let count = |holds: &dyn Fn(usize) -> bool| {
        let n = (0..fleet.members.len()).filter(|m| holds(*m)).count();
        u32::try_from(n).unwrap_or(u32::MAX)
    };
    let of = |reason: Reason| match reason {
        Reason::Empty => count(&|m| emptiness::is_candidate(fleet, &fleet.members[m])),
        Reason::Drifted => count(&|m| {
            let member = &fleet.members[m];
            member.drifted.is_some() && candidates::blocked(member, Class::Eventual).is_none()
        }),
        Reason::Underutilized => count(&|m| stays[m].is_none() && !fleet.members[m].is_empty()),
    };
    Reason::ALL.map(|reason| (reason, of(reason))).to_vec()
}

/// The commands of the first method that has some.
fn first_of<'f>(
    fleet: &'f Fleet<'f>,
    allowances: &Allowances,
    memory: &mut Memory,
    what_if: &mut Option<WhatIf<'f>>,
    consolidate: impl FnOnce(&mut Memory, &mut WhatIf<'f>) -> Option<Command>,
) -> Vec<Command> {
    if let Some(command) = emptiness::decide(fleet, allowances) {
        return vec![command];
    }
    let replaced = drift::decide_static(fleet, allowances);
    if !replaced.is_empty() {
        return replaced;
    }
    let is_drifted = fleet.members.iter().any(|member| member.drifted.is_some());
    if !is_drifted && memory.is_idle(fleet) {
        return Vec::new();
    }
    let what_if = what_if.insert(WhatIf::new(fleet));
    let drifted = drift::decide(fleet, allowances, memory, what_if);
    let command = drifted.or_else(|| consolidate(memory, what_if));
    command.into_iter().collect()
}

/// What is said about every member.
fn verdicts(
    fleet: &Fleet<'_>,
    memory: &Memory,
    commands: &[Command],
    known: impl Iterator<Item = (Option<Why>, NanoDollars)>,
) -> Vec<Verdict> {
    let mut going = vec![false; fleet.members.len()];
    for m in commands.iter().flat_map(|command| &command.members) {
        going[*m] = true;
    }
    let moves = Moves::new(fleet);
    let said = |((m, going), (stays, bound)): ((usize, bool), _)| {
        let member = &fleet.members[m];
        let bound: NanoDollars = bound;
        let by_default = || {
            if let Some(owner) = moves.refused(fleet, m) {
                return Why::MovedEnough(owner);
            }
            if member.is_empty() && emptiness::is_candidate(fleet, member) {
                let pool = fleet.terms(member).name.clone();
                return Why::Budget(pool, Reason::Empty);
            }
            let earlier = memory.kept(&member.claim).cloned();
            earlier.unwrap_or(if commands.is_empty() {
                Why::NotLookedAt
            } else {
                Why::AnotherFirst
            })
        };
        // What keeps a node that must go matters more than what keeps it from being consolidated.
        let pinned = || {
            let kept = memory
                .kept(&member.claim)
                .filter(|_| member.drifted.is_some());
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
