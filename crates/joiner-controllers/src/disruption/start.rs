//! Begins commands.

use std::collections::BTreeMap;

use joiner_engine::Failure;
use joiner_model::Name;

use super::moves::{self, Book};
use super::orders::Order;
use super::{Disruptor, Intent, apply, intent, report};
use crate::seating::{self, Move};
use crate::static_capacity::{Reserved, room_for_one};

/// Begins a command. True when it is under way.
pub(super) async fn start(disruptor: &Disruptor, book: &mut Book, order: &Order) -> bool {
    let shared = &disruptor.shared;
    let intent = to_intent(disruptor, order);
    if shared.api.is_dry_run() {
        report::would_begin(order, &intent);
        return false;
    }
    let Some(_room) = static_room(disruptor, order) else {
        tracing::info!("no room under limits.nodes to replace a node by now");
        return false;
    };
    let counted = match counted(disruptor, book, order).await {
        Ok(counted) => counted,
        Err(error) => {
            tracing::warn!(%error, "cannot count the moves of a disruption");
            return false;
        }
    };
    let seating = &disruptor.seating;
    seating.plan_move(to_move(disruptor, order, &intent));
    let begun = apply::begin(shared, disruptor.terms(), &intent, &order.replacements).await;
    match begun {
        Ok(()) => {
            seating.begin_move(&intent.id);
            seating.expect(order.successors.clone(), intent.started);
            report::begun(disruptor, order, &intent);
            true
        }
        Err(error) => {
            tracing::warn!(%error, "cannot begin a disruption");
            seating.forget_move(&intent.id);
            moves::give_back(shared, &counted).await;
            false
        }
    }
}

/// What is written on the claims of a command.
fn to_intent(disruptor: &Disruptor, order: &Order) -> Intent {
    let command = &order.command;
    let started = disruptor.shared.clock.now();
    let names = order.replacements.iter();
    Intent {
        id: intent::id(&command.claims, started),
        reason: command.reason.as_str().to_owned(),
        method: command.method.consolidation_type().to_owned(),
        started,
        members: command.claims.iter().map(ToString::to_string).collect(),
        replacements: names.map(|claim| claim.metadata.name.clone()).collect(),
        saves: command.savings().get(),
        moves: order.moves.values().sum(),
    }
}

/// Room under the limits of static pools for what takes the place of others there; for other commands
/// none is needed. None when there is not enough.
fn static_room(disruptor: &Disruptor, order: &Order) -> Option<Vec<Reserved>> {
    if order.command.from_template == 0 {
        return Some(Vec::new());
    }
    let snapshot = disruptor.shared.world.snapshot();
    let claims = order.command.claims.iter();
    let rooms = claims.map(|name| {
        let pool = snapshot.claim(name)?.pool()?;
        room_for_one(
            &disruptor.shared.world,
            &disruptor.static_room,
            snapshot.pool(pool)?,
        )
    });
    rooms.collect()
}

/// How the pods of a command leave.
fn to_move(disruptor: &Disruptor, order: &Order, intent: &Intent) -> Move {
    let leavers = order.turns.iter().flat_map(|turn| &turn.leavers);
    let owners = leavers.filter_map(|one| one.owner.as_ref());
    Move {
        id: intent.id.clone(),
        members: order.command.claims.clone(),
        replicas: seating::replicas(&disruptor.shared.world.snapshot(), owners),
        turns: order.turns.clone(),
    }
}

/// Counts the moves of a command on the workloads that mind, before anything happens. Without a
/// limit no workload does.
async fn counted(
    disruptor: &Disruptor,
    book: &mut Book,
    order: &Order,
) -> Result<BTreeMap<Name, u32>, Failure> {
    let limited = disruptor.settings.moves_per_replica > 0;
    if !limited || !order.command.reason.is_for_money() {
        return Ok(BTreeMap::new());
    }
    let mut moves = order.moves.clone();
    moves.remove("");
    moves::note(&disruptor.shared, book, &moves).await?;
    Ok(moves)
}
