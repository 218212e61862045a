//! Whether a command still holds, on fresh facts.
//!
//! The same functions run again for the same nodes. There is no second body of rules that could
//! disagree with the first.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use joiner_model::Name;

use crate::budget::Allowances;
use crate::candidates::{self, Class, blocked};
use crate::command::{Command, Method};
use crate::consolidation::bounds::Rooms;
use crate::consolidation::propose_well;
use crate::fleet::{Fleet, Leaver};
use crate::moves::Moves;
use crate::whatif::WhatIf;
use crate::why::Why;
use crate::{drift, emptiness};

/// So much of what a command promised must be left of its savings. Less is not what was decided;
/// waiting for exactly as much would end most commands of a busy cluster.
const KEPT_PERCENT: u128 = 50;

/// Why a command is dropped.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rejection {
    /// Budgets do not allow it any more.
    Budget(Why),
    /// Its pods have no place any more, or a dearer one.
    Scheduling(Why),
    /// A node must stay now.
    Churn(Why),
    /// A node is gone.
    Gone(Leaver),
}

impl Rejection {
    /// Upstream's word for it.
    #[must_use]
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Budget(_) => "budget",
            Self::Scheduling(_) => "scheduling",
            Self::Churn(_) => "churn",
            Self::Gone(_) => "unknown",
        }
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Budget(why) | Self::Scheduling(why) | Self::Churn(why) => why.fmt(f),
            Self::Gone(leaver) => write!(f, "{leaver} is gone"),
        }
    }
}

/// The command as it looks now, with indexes into this fleet.
///
/// # Errors
/// Why it must not be carried out.
pub fn confirm(fleet: &Fleet<'_>, command: &Command) -> Result<Command, Rejection> {
    let allowances = Allowances::new(fleet);
    if command.method == Method::Empty {
        return still_empty(fleet, &allowances, command);
    }
    let members = find(fleet, command)?;
    let mut left = allowances.clone();
    let mut moves = Moves::new(fleet);
    for m in &members {
        let member = &fleet.members[*m];
        if let Some(why) = must_stay(fleet, command.method, *m) {
            return Err(Rejection::Churn(why));
        }
        if !left.take(member.pool, command.reason) {
            let why = left.why(fleet, member, command.reason);
            return Err(Rejection::Budget(why));
        }
        if command.reason.is_for_money() {
            let enough = |owner| Rejection::Budget(Why::MovedEnough(owner));
            moves.take(fleet, *m).map_err(enough)?;
        }
    }
    match command.method {
        Method::Empty | Method::StaticDrift => {
            let members = members.clone();
            Ok(Command {
                members,
                ..command.clone()
            })
        }
        Method::Drift => {
            drift::of(fleet, members[0], &mut WhatIf::new(fleet)).map_err(Rejection::Scheduling)
        }
        Method::Multi | Method::Single => still_cheaper(fleet, command, &members),
    }
}

fn still_empty(
    fleet: &Fleet<'_>,
    allowances: &Allowances,
    command: &Command,
) -> Result<Command, Rejection> {
    let leavers: BTreeSet<Leaver> = command.leavers().collect();
    let is_there = |m: &usize| leavers.contains(&fleet.members[*m].leaver());
    let all = 0..fleet.members.len();
    let members: Vec<usize> = all.filter(is_there).collect();
    let (mut empty, mut others): (Vec<usize>, Vec<usize>) =
        (members.into_iter()).partition(|m| emptiness::is_candidate(fleet, &fleet.members[*m]));
    others.extend(emptiness::spare_seats(fleet, &mut empty).0);
    if let Some(command) = emptiness::of(fleet, allowances, &empty) {
        return Ok(command);
    }
    if let Some(m) = empty.first() {
        let why = allowances.why(fleet, &fleet.members[*m], command.reason);
        return Err(Rejection::Budget(why));
    }
    let stays = candidates::stays(fleet);
    match others.first() {
        // Something runs there now.
        Some(m) => Err(Rejection::Churn(
            stays[*m].clone().unwrap_or(Why::Nominated),
        )),
        None => {
            let first = command.leavers().next();
            let nothing = || Leaver::Claim(Name::default());
            Err(Rejection::Gone(first.unwrap_or_else(nothing)))
        }
    }
}

fn still_cheaper(
    fleet: &Fleet<'_>,
    command: &Command,
    members: &[usize],
) -> Result<Command, Rejection> {
    let offer = propose_well(fleet, members);
    let now = match offer {
        Ok(offer) => offer.command(fleet, &Rooms::new(fleet)),
        Err(refused) => return Err(Rejection::Scheduling(refused.why)),
    };
    let (promised, left) = (command.savings().get(), now.savings().get());
    let (kept, n_new) = match fleet.settings.upstream {
        true => (100, command.plan.launches.len()),
        false => (KEPT_PERCENT, usize::MAX),
    };
    let is_less = u128::from(left) * 100 < u128::from(promised) * kept;
    if is_less || now.plan.launches.len() > n_new {
        return Err(Rejection::Scheduling(Why::NotCheaper {
            before: command.price_after,
            after: now.price_after,
        }));
    }
    Ok(now)
}

/// The members that a command is about, sorted.
fn find(fleet: &Fleet<'_>, command: &Command) -> Result<Vec<usize>, Rejection> {
    let all = fleet.members.iter().enumerate();
    let by_leaver: BTreeMap<Leaver, usize> = all.map(|(m, member)| (member.leaver(), m)).collect();
    let mut members = Vec::new();
    for leaver in command.leavers() {
        let found = by_leaver.get(&leaver).copied();
        members.push(found.ok_or(Rejection::Gone(leaver))?);
    }
    members.sort_unstable();
    Ok(members)
}

fn must_stay(fleet: &Fleet<'_>, method: Method, m: usize) -> Option<Why> {
    let member = &fleet.members[m];
    match method {
        Method::StaticDrift | Method::Drift => {
            let drifted = member.drifted().is_some();
            blocked(member, Class::Eventual).or_else(|| (!drifted).then_some(Why::NotLookedAt))
        }
        Method::Empty | Method::Multi | Method::Single => blocked(member, Class::Graceful)
            .or_else(|| candidates::not_for_consolidation(fleet, member)),
    }
}
