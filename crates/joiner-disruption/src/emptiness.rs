//! Nodes on which nothing runs: all that budgets allow go in one command.

use std::collections::BTreeSet;

use crate::budget::Allowances;
use crate::candidates::{Class, blocked, not_for_emptiness};
use crate::command::{Command, Method, Reason};
use crate::fleet::{Fleet, Member};
use crate::moves::Moves;
use crate::whatif::{Seats, seat_waiting};
use joiner_model::{NanoDollars, Plan};

/// True when emptiness is what a member goes by, unless somebody is expected there.
pub(crate) fn is_candidate(fleet: &Fleet<'_>, member: &Member) -> bool {
    member.is_empty()
        && blocked(member, Class::Graceful).is_none()
        && not_for_emptiness(fleet, member).is_none()
}

/// Takes those of `members` away that pods which wait have their seat on: an empty node may be there for
/// the pods of another one that takes its time to drain. Returns them, and the seats, if it came to that.
pub(crate) fn spare_seats(
    fleet: &Fleet<'_>,
    members: &mut Vec<usize>,
) -> (Vec<usize>, Option<Seats>) {
    if members.is_empty() {
        return (Vec::new(), None);
    }
    let seats = seat_waiting(fleet.problem);
    let taken: BTreeSet<u32> = seats.values().copied().collect();
    let is_taken = |m: &mut usize| taken.contains(&fleet.members[*m].node.0);
    let spared = members.extract_if(.., is_taken).collect();
    (spared, Some(seats))
}

/// Those of these empty nodes that budgets let go, dearest first.
pub(crate) fn decide(
    fleet: &Fleet<'_>,
    allowances: &Allowances,
    mut empty: Vec<usize>,
) -> Option<Command> {
    empty.sort_by(|a, b| {
        let (a, b) = (&fleet.members[*a], &fleet.members[*b]);
        b.price.cmp(&a.price).then_with(|| a.name.cmp(&b.name))
    });
    of(fleet, allowances, &empty)
}

/// A command about those of `members` that budgets let go.
pub(crate) fn of(fleet: &Fleet<'_>, allowances: &Allowances, members: &[usize]) -> Option<Command> {
    let mut left = allowances.clone();
    let mut moves = Moves::new(fleet);
    let may_go = |m: &usize| {
        let pool = fleet.members[*m].pool;
        // Some pods cost nothing to move, and yet they move.
        left.left(pool, Reason::Empty) > 0
            && moves.take(fleet, *m).is_ok()
            && left.take(pool, Reason::Empty)
    };
    let members: Vec<usize> = members.iter().copied().filter(may_go).collect();
    if members.is_empty() {
        return None;
    }
    let price = fleet.price(&members);
    let (claims, group_nodes) = fleet.leavers(&members);
    let nodes = if members.len() == 1 { "node" } else { "nodes" };
    Some(Command {
        reason: Reason::Empty,
        method: Method::Empty,
        claims,
        group_nodes,
        why: format!("{} empty {nodes} for ${price} an hour", members.len()),
        members,
        plan: Plan::default(),
        is_tight: false,
        from_template: 0,
        price_before: price,
        price_after: NanoDollars::ZERO,
        move_cost: NanoDollars::ZERO,
    })
}
