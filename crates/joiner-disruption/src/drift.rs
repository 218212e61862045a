//! Nodes that differ from what their pool asks for.
//!
//! They are replaced whatever that costs. In pools of constant size each gets a successor from the
//! template; elsewhere their pods are placed anew, and as many nodes come as these need. Nodes of node
//! groups never differ: what a group makes is its own business.

use joiner_model::{NanoDollars, Plan};

use crate::budget::Allowances;
use crate::candidates::{Class, blocked};
use crate::command::{Command, Method, Reason, pods_move};
use crate::cost;
use crate::fleet::{Fleet, Member};
use crate::memory::Memory;
use crate::whatif::{Answer, Effort, Purpose, WhatIf};
use crate::why::Why;

/// Members that drift may touch, oldest first.
fn drifted(fleet: &Fleet<'_>, of: impl Fn(&Member) -> bool) -> Vec<usize> {
    let may_go = |m: &usize| {
        let member = &fleet.members[*m];
        member.drifted().is_some() && of(member) && blocked(member, Class::Eventual).is_none()
    };
    let mut all: Vec<usize> = (0..fleet.members.len()).filter(may_go).collect();
    all.sort_by_key(|m| {
        let member = &fleet.members[*m];
        (
            !member.pods.is_empty(),
            member.drifted(),
            member.name.clone(),
        )
    });
    all
}

/// One command for each drifted node of a pool of constant size that budget and limit let go.
pub(crate) fn decide_static(fleet: &Fleet<'_>, allowances: &Allowances) -> Vec<Command> {
    let mut commands = Vec::new();
    for (pool, terms) in fleet.pools.iter().enumerate() {
        let Some(replicas) = terms.static_replicas else {
            continue;
        };
        // With too many of them, scaling down comes first.
        if terms.n_staying > replicas {
            continue;
        }
        let there = terms.n_staying.saturating_add(terms.n_leaving);
        let room = terms
            .limit_nodes
            .map_or(u32::MAX, |limit| limit.saturating_sub(there));
        let n = room.min(allowances.left(pool, Reason::Drifted)) as usize;
        let own = drifted(fleet, |member| member.pool == pool);
        commands.extend(own.into_iter().take(n).map(|m| like_for_like(fleet, m)));
    }
    commands
}

fn like_for_like(fleet: &Fleet<'_>, m: usize) -> Command {
    let member = &fleet.members[m];
    let price = member.price.unwrap_or_default();
    let pool = fleet.terms(member).title();
    let (claims, group_nodes) = fleet.leavers(&[m]);
    Command {
        reason: Reason::Drifted,
        method: Method::StaticDrift,
        members: vec![m],
        claims,
        group_nodes,
        plan: Plan::default(),
        is_tight: false,
        from_template: 1,
        price_before: price,
        price_after: price,
        move_cost: cost::of_move(fleet, &[m], 1),
        why: format!("{} is drifted; {pool} makes another", member.name),
    }
}

/// A command about the first drifted node whose pods have a place elsewhere.
pub(crate) fn decide(
    fleet: &Fleet<'_>,
    allowances: &Allowances,
    memory: &mut Memory,
    what_if: &mut WhatIf<'_>,
) -> Option<Command> {
    let dynamic = |member: &Member| fleet.terms(member).static_replicas.is_none();
    let mut all = drifted(fleet, dynamic);
    all.retain(|m| allowances.left(fleet.members[*m].pool, Reason::Drifted) > 0);
    // Where nothing has drifted, turns are those of consolidation.
    if !all.is_empty() && all.iter().all(|m| memory.seen(&fleet.members[*m].leaver())) {
        memory.start_round();
    }
    // A stable sort: whoever had no turn yet keeps the order of age.
    all.sort_by_key(|m| memory.seen(&fleet.members[*m].leaver()));
    for m in all.into_iter().take(fleet.settings.what_ifs_max as usize) {
        // Whether there is a place at all is found out cheaply.
        let found = with(fleet, m, what_if, Effort::Explore);
        match found.and_then(|_| of(fleet, m, what_if)) {
            Ok(command) => return Some(command),
            Err(why) => memory.note_kept(&fleet.members[m].leaver(), why),
        }
    }
    None
}

/// The command about one drifted node.
pub(crate) fn of(fleet: &Fleet<'_>, m: usize, what_if: &mut WhatIf<'_>) -> Result<Command, Why> {
    with(fleet, m, what_if, Effort::Full)
}

fn with(
    fleet: &Fleet<'_>,
    m: usize,
    what_if: &mut WhatIf<'_>,
    effort: Effort,
) -> Result<Command, Why> {
    let Answer { plan, stranded } = what_if.ask(&[m], Purpose::MustGo, effort);
    if let Some(pin) = crate::consolidation::pin(fleet, &stranded, None) {
        return Err(Why::Pinned(pin));
    }
    let member = &fleet.members[m];
    let price_after: NanoDollars = plan.launches.iter().map(|launch| launch.price).sum();
    let price_before = member.price.unwrap_or_default();
    let n_launches = plan.launches.len();
    let (claims, group_nodes) = fleet.leavers(&[m]);
    Ok(Command {
        reason: Reason::Drifted,
        method: Method::Drift,
        members: vec![m],
        claims,
        group_nodes,
        move_cost: cost::of_move(fleet, &[m], n_launches),
        why: format!(
            "{} is drifted; {}, {n_launches} new for ${price_after} instead of \
             ${price_before} an hour",
            member.name,
            pods_move(member.pods.len()),
        ),
        plan,
        is_tight: false,
        from_template: 0,
        price_before,
        price_after,
    })
}
