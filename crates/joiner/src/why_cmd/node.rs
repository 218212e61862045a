//! The receipt of a node, for people.

use std::io::{self, Write};

use jiff::Timestamp;
use joiner_receipts::why::NodeAnswer;
use joiner_receipts::{DisruptionDetails, Kept, Machine, Move, NodeFate, Receipt};

use super::words::{count, machine, machine_briefly, price, since, target, when};
use crate::table::{fits, write_fitting};

/// Names in a line.
const NAMES_MAX: usize = 3;
/// Rows of a table.
const ROWS_MAX: usize = 12;
/// Letters of a name that is cut to fit a terminal.
const NAME_MIN: usize = 12;

/// Prints it.
pub(super) fn render(
    answer: &NodeAnswer,
    columns: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    headline(answer, out)?;
    let is_going = |own: &&Receipt<NodeFate>| matches!(own.fate, NodeFate::Removed { .. });
    let going = answer.receipts.iter().rev().find(is_going);
    if going.is_none()
        && let Some(kept) = &answer.kept
    {
        writeln!(out)?;
        stays(kept, kept.since, answer.now, out)?;
    }
    let mut has_kept = answer.kept.is_some() || going.is_some();
    for own in answer.receipts.iter().rev() {
        match &own.fate {
            // Of reasons from a log only the last one counts.
            NodeFate::Kept { .. } if std::mem::replace(&mut has_kept, true) => {}
            NodeFate::Kept { why } => {
                writeln!(out)?;
                stays(why, why.since, answer.now, out)?;
            }
            NodeFate::Removed { .. } => {
                writeln!(out)?;
                removed(answer, own, columns, out)?;
            }
            NodeFate::Bought { node } => {
                let (at, n) = (when(own.time, answer.now), node.pods.len());
                writeln!(out)?;
                writeln!(
                    out,
                    "Bought {at} for {}; {} would have done, too.",
                    count(n, "pod"),
                    count(node.types.saturating_sub(1), "other type")
                )?;
            }
            NodeFate::Replaces { removed, why, .. } => {
                let at = when(own.time, answer.now);
                let why = first_clause(why);
                writeln!(out)?;
                writeln!(out, "Bought {at} in place of {}: {why}.", few(removed))?;
            }
        }
    }
    let is_ours = answer.node_claim.is_some() && answer.state.is_some();
    if is_ours && answer.kept.is_none() && going.is_none() {
        writeln!(out, "\nNobody has looked yet whether it could go.")?;
    }
    Ok(())
}

/// What was decided, without the figures that have lines of their own.
fn first_clause(why: &str) -> &str {
    why.split("; ").next().unwrap_or(why)
}

/// Some names, and how many more.
fn few(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMES_MAX)].join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        n => format!("{shown} and {n} more"),
    }
}

fn headline(answer: &NodeAnswer, out: &mut dyn Write) -> io::Result<()> {
    let own = facts(answer);
    let what = own
        .map(|own| format!(": {}", machine(own)))
        .unwrap_or_default();
    writeln!(out, "Node {}{what}", answer.node)?;
    if let Some(claim) = answer
        .node_claim
        .as_ref()
        .filter(|claim| **claim != answer.node)
    {
        writeln!(out, "NodeClaim {claim}")?;
    }
    match &answer.state {
        Some(state) => writeln!(out, "It {state}."),
        None if answer.now.is_some() => writeln!(out, "It is gone."),
        None => Ok(()),
    }
}

/// What is known of the machine.
fn facts(answer: &NodeAnswer) -> Option<&Machine> {
    let is = |own: &&Machine| {
        own.node == answer.node || answer.node_claim.as_ref() == Some(&own.node_claim)
    };
    if let Some(kept) = &answer.kept {
        return Some(&kept.machine);
    }
    answer
        .receipts
        .iter()
        .rev()
        .find_map(|own| match &own.fate {
            NodeFate::Bought { node } => Some(&node.machine),
            NodeFate::Replaces { machine, .. } => Some(machine),
            NodeFate::Kept { why } => Some(&why.machine),
            NodeFate::Removed { details, .. } => details.removed.iter().find(is),
        })
}

fn stays(
    why: &Kept,
    from: Timestamp,
    now: Option<Timestamp>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let word = if why.blocked { "Blocked" } else { "Kept" };
    let reason = match &why.pin {
        // The pod and what is in its way have lines of their own.
        Some(pin) if !pin.because.is_empty() => "not all of its pods would have a place".to_owned(),
        _ => why.reason.clone(),
    };
    writeln!(out, "{word} {}: {reason}", since(from, now))?;
    if let Some(pin) = &why.pin {
        writeln!(
            out,
            "  pinned by pod {}, which needs {}",
            pin.pod,
            pin.needs.trim_end_matches(", pods 1")
        )?;
        for part in pin.because.split("; ").filter(|part| !part.is_empty()) {
            writeln!(out, "    - {part}")?;
        }
        if let Some(hole) = &pin.largest_hole {
            writeln!(out, "  the largest hole elsewhere: {hole}")?;
        }
        if pin.more > 0 {
            writeln!(
                out,
                "  {} in the same position",
                count(pin.more, "more pod")
            )?;
        }
    }
    if why.pods > 0 && why.saves_at_most > 0.0 {
        let most = price(why.saves_at_most);
        let pods = count(why.pods, "pod");
        writeln!(
            out,
            "  {pods} would move; its going alone can save {most} at most"
        )?;
    }
    Ok(())
}

fn removed(
    answer: &NodeAnswer,
    own: &Receipt<NodeFate>,
    columns: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let NodeFate::Removed {
        details,
        why,
        price_before,
        price_after,
    } = &own.fate
    else {
        return Ok(());
    };
    let reason = details.command["reason"].as_str().unwrap_or("Disrupted");
    let (at, why) = (when(own.time, answer.now), first_clause(why));
    writeln!(out, "Removed, decided {at} ({reason}): {why}")?;
    if let (Some(before), Some(after)) = (price_before, price_after) {
        let saved = before - after;
        let verdict = match saved >= 0.0 {
            true => format!("saves {}", price(saved)),
            false => format!("costs {} more", price(-saved)),
        };
        let moving = match details.move_cost > 0.0 {
            true => format!("; moving pods is put at ${:.4}", details.move_cost),
            false => String::new(),
        };
        let before = price(*before);
        writeln!(
            out,
            "  {before} before, ${after:.4} after: {verdict}{moving}"
        )?;
    }
    let rows_with = |machine: fn(&Machine) -> String| {
        let gone = details.removed.iter();
        let gone = gone.map(|own| vec!["  -".to_owned(), own.node.clone(), machine(own)]);
        let new = details.replacements.iter();
        let new = new.map(|own| vec!["  +".to_owned(), own.node_claim.clone(), machine(own)]);
        gone.chain(new).collect::<Vec<_>>()
    };
    let mut rows = rows_with(machine);
    let n_more = rows.len().saturating_sub(ROWS_MAX);
    if !fits(&rows[..rows.len() - n_more], columns) {
        rows = rows_with(machine_briefly);
    }
    rows.truncate(ROWS_MAX);
    write_fitting(&rows, columns, &[usize::MAX, NAME_MIN, NAME_MIN], out)?;
    if n_more > 0 {
        writeln!(out, "    … and {n_more} more; -o json shows all")?;
    }
    moves(answer, details, columns, out)
}

/// Where the pods of this node went; those of others are counted.
fn moves(
    answer: &NodeAnswer,
    details: &DisruptionDetails,
    columns: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let (own, others): (Vec<&Move>, Vec<&Move>) = details
        .moves
        .iter()
        .partition(|own| own.from == answer.node);
    if own.is_empty() && others.is_empty() {
        return writeln!(out, "  no pod had to move");
    }
    if !own.is_empty() {
        writeln!(out, "  its pods go:")?;
    }
    let rows: Vec<Vec<String>> = (own.iter().take(ROWS_MAX))
        .map(|own| vec![format!("    {}", own.pod), format!("→ {}", target(&own.to))])
        .collect();
    write_fitting(&rows, columns, &[NAME_MIN, NAME_MIN], out)?;
    if own.len() > ROWS_MAX {
        writeln!(
            out,
            "    … and {} more; -o json shows all",
            own.len() - ROWS_MAX
        )?;
    }
    if !others.is_empty() {
        writeln!(
            out,
            "  and {} of the other nodes",
            count(others.len(), "pod")
        )?;
    }
    Ok(())
}
