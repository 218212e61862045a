//! The receipt of a pod, for people.

use std::io::{self, Write};

use jiff::Timestamp;
use joiner_receipts::why::PodAnswer;
use joiner_receipts::{Helps, LeftOver, PlannedNode, PodFate, Receipt};

use super::words::{count, funnel, machine, price, since, target, when};

/// Earlier decisions that are shown.
const EARLIER_MAX: usize = 3;

/// Prints it.
pub(super) fn render(
    answer: &PodAnswer,
    columns: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    headline(answer, out)?;
    let Some((last, earlier)) = answer.receipts.split_last() else {
        let waits = answer
            .state
            .as_ref()
            .is_some_and(|own| own.waits_for.is_some());
        return match is_bound(answer) {
            true => writeln!(out, "Nothing is recorded about it: there was room for it."),
            false if waits => Ok(()),
            false => writeln!(
                out,
                "Nothing was decided about it yet: ask again in a few seconds."
            ),
        };
    };
    writeln!(out)?;
    match &last.fate {
        PodFate::Unschedulable { why } if !is_bound(answer) => {
            left_over(why, &when(last.time, answer.now), columns, out)?;
        }
        PodFate::NewNode { node } => planned(answer, node, last.time, out)?,
        PodFate::Unschedulable { .. } | PodFate::ExistingNode { .. } | PodFate::Moved { .. } => {
            writeln!(out, "{}", line(last, answer.now))?;
        }
    }
    let shown = earlier.iter().rev().take(EARLIER_MAX);
    let lines: Vec<String> = shown.map(|own| line(own, answer.now)).collect();
    if !lines.is_empty() {
        writeln!(out, "\nEarlier:")?;
        for line in lines {
            writeln!(out, "  {line}")?;
        }
    }
    Ok(())
}

fn is_bound(answer: &PodAnswer) -> bool {
    let state = answer.state.as_ref();
    state.is_some_and(|own| own.node.is_some())
}

fn headline(answer: &PodAnswer, out: &mut dyn Write) -> io::Result<()> {
    let name = &answer.pod;
    let Some(state) = &answer.state else {
        let gone = if answer.now.is_some() { " is gone" } else { "" };
        return writeln!(out, "Pod {name}{gone}");
    };
    let requests = state.requests.trim_end_matches(", pods 1");
    match &state.node {
        Some(node) => writeln!(
            out,
            "Pod {name} is {} on {node}; requests {requests}",
            state.phase
        )?,
        None => {
            let long = since(state.created, answer.now);
            writeln!(
                out,
                "Pod {name} is {} {long}; requests {requests}",
                state.phase
            )?;
        }
    }
    if let Some(what) = &state.waits_for {
        writeln!(out, "It waits for {what}.")?;
    }
    Ok(())
}

fn planned(
    answer: &PodAnswer,
    node: &PlannedNode,
    time: Timestamp,
    out: &mut dyn Write,
) -> io::Result<()> {
    let own = &node.machine;
    let claim = match own.node_claim.as_str() {
        "" => "which could not be created",
        claim => claim,
    };
    writeln!(
        out,
        "Planned {} on a new node, {claim}:",
        when(time, answer.now)
    )?;
    write!(out, "  {}", machine(own))?;
    match node.pods.len().saturating_sub(1) {
        0 => writeln!(out, ", for this pod alone")?,
        n => writeln!(out, ", with {}", count(n, "other pod"))?,
    }
    let others: Vec<String> = (node.next_best.iter())
        .map(|own| format!("{} at ${:.4}", own.instance_type, own.price_per_hour))
        .collect();
    match node.types.saturating_sub(1) {
        0 => writeln!(out, "  no other type would do")?,
        n if others.is_empty() => writeln!(out, "  {} would do, too", count(n, "other type"))?,
        n => writeln!(
            out,
            "  {} would do, too; next best: {}",
            count(n, "other type"),
            others.join(", ")
        )?,
    }
    let state = answer.state.as_ref();
    if let Some((bound, state)) = state.and_then(|own| Some((own.node.as_ref()?, own)))
        && state.node_claim.as_deref() != Some(&own.node_claim)
    {
        writeln!(out, "The scheduler chose {bound} instead.")?;
    }
    Ok(())
}

/// Why there is no place, and what would help.
fn left_over(
    why: &LeftOver,
    when: &str,
    columns: Option<usize>,
    out: &mut dyn Write,
) -> io::Result<()> {
    let alike = match why.pods {
        0 | 1 => String::new(),
        n => format!(" for it and {} like it", count(n - 1, "other pod")),
    };
    writeln!(out, "No place{alike}, as of {when}:")?;
    for reason in &why.reasons {
        writeln!(out, "  - {reason}")?;
    }
    if why.funnel.is_empty() {
        return Ok(());
    }
    writeln!(out)?;
    funnel(&why.funnel, columns, out)?;
    writeln!(out)?;
    changes(&why.changes, out)
}

/// What would help, cheapest first.
pub(crate) fn changes(all: &[Helps], out: &mut dyn Write) -> io::Result<()> {
    let Some((first, others)) = all.split_first() else {
        return writeln!(
            out,
            "No single change to the pod or to a NodePool would help."
        );
    };
    writeln!(out, "The cheapest change that would help:")?;
    change(first, out)?;
    if !others.is_empty() {
        writeln!(out, "Or:")?;
    }
    for own in others {
        change(own, out)?;
    }
    Ok(())
}

fn change(own: &Helps, out: &mut dyn Write) -> io::Result<()> {
    let cost = match own.price_per_hour {
        0.0 => "nothing more".to_owned(),
        dollars => format!("{} more", price(dollars)),
    };
    writeln!(out, "  {}\n    → {}, {cost}", own.change, own.place)
}

/// A decision in one line.
fn line(own: &Receipt<PodFate>, now: Option<Timestamp>) -> String {
    let at = when(own.time, now);
    match &own.fate {
        PodFate::NewNode { node } => {
            let claim = &node.machine.node_claim;
            format!(
                "Planned {at} on a new node, {claim}: {}",
                machine(&node.machine)
            )
        }
        PodFate::ExistingNode { on } => match on.starts_with("nodeclaim/") {
            true => format!("Planned {at} on {}, which was coming", target(on)),
            false => format!("Planned {at} on {}, which has room", target(on)),
        },
        PodFate::Unschedulable { why } => {
            let reason = why.reasons.first().map_or("", String::as_str);
            format!("No place, {at}: {reason}")
        }
        PodFate::Moved { to, why } => {
            format!("To move {at} from {} to {}: {why}", to.from, target(&to.to))
        }
    }
}
