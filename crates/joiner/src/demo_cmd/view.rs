//! How it is shown: a live view in a terminal, else a plain log. What was decided, and how a chapter
//! ended, stays in both.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Timestamp;
use joiner_runtime::Decision;

use super::scene::{NodeRow, Picture};
use super::story::Told;
use super::summary;

/// Cells of a fill bar.
const BAR: usize = 16;

/// Where it is shown.
pub(super) struct Screen {
    live: bool,
    /// Lines of the last frame, to be drawn over.
    drawn: usize,
    /// The last decision that was shown.
    told: Option<Timestamp>,
    /// Decisions of that very time that were shown.
    told_then: Vec<String>,
    /// Nodes and how they were when they were last told of.
    nodes: BTreeMap<String, NodeRow>,
    n_chapters: usize,
    start: Option<Timestamp>,
}

impl Screen {
    pub(super) fn new(live: bool) -> Self {
        Self {
            live,
            drawn: 0,
            told: None,
            told_then: Vec::new(),
            nodes: BTreeMap::new(),
            n_chapters: 0,
            start: None,
        }
    }

    /// What this is.
    pub(super) fn title(&self, out: &mut dyn Write, speed: u32) -> io::Result<()> {
        writeln!(
            out,
            "{}: a cluster in this process, a simulated EC2 with the real types and prices, and the",
            self.bold("joiner demo")
        )?;
        writeln!(
            out,
            "production controllers. The clock runs {speed} times as fast as yours."
        )?;
        writeln!(out)?;
        out.flush()
    }

    /// Something that is good to know.
    pub(super) fn remark(
        &mut self,
        out: &mut dyn Write,
        at: Timestamp,
        text: &str,
    ) -> io::Result<()> {
        self.line(out, at, text)
    }

    /// A new chapter of the story.
    pub(super) fn chapter(
        &mut self,
        out: &mut dyn Write,
        at: Timestamp,
        text: &str,
    ) -> io::Result<()> {
        self.clear(out)?;
        writeln!(out)?;
        self.n_chapters += 1;
        let text = format!("{}. {text}", self.n_chapters);
        let text = self.bold(&text);
        self.line(out, at, &text)
    }

    /// How the chapter ended.
    pub(super) fn end(&mut self, out: &mut dyn Write, own: &Told) -> io::Result<()> {
        let picture = &own.picture;
        let pods = match picture.n_running {
            1 => "1 pod runs".to_owned(),
            n => format!("{n} pods run"),
        };
        let nodes = match picture.nodes.len() {
            0 => "no nodes".to_owned(),
            1 => format!("1 node ({})", picture.types()),
            n => format!("{n} nodes ({})", picture.types()),
        };
        let prices = self.bold(&format!("{} an hour", summary::prices(own)));
        let text = format!("   price  {prices}; {pods} on {nodes}");
        self.line(out, picture.at, &text)
    }

    fn line(&mut self, out: &mut dyn Write, at: Timestamp, text: &str) -> io::Result<()> {
        self.clear(out)?;
        let at = self.passed(at);
        writeln!(out, "{}  {text}", self.dim(&at))?;
        out.flush()
    }

    /// Minutes and seconds of the cluster's time since the start.
    fn passed(&mut self, at: Timestamp) -> String {
        let start = *self.start.get_or_insert(at);
        let secs = at.duration_since(start).as_secs().max(0);
        format!("{:>3}:{:02}", secs / 60, secs % 60)
    }

    /// Shows how things stand.
    pub(super) fn show(&mut self, out: &mut dyn Write, picture: &Picture) -> io::Result<()> {
        self.decisions(out, picture)?;
        self.comings(out, picture)?;
        if !self.live {
            return Ok(());
        }
        self.clear(out)?;
        let lines = self.frame(picture);
        // A line that were broken in two could not be drawn over.
        write!(out, "\u{1b}[?7l")?;
        for line in &lines {
            writeln!(out, "{line}")?;
        }
        write!(out, "\u{1b}[?7h")?;
        self.drawn = lines.len();
        out.flush()
    }

    /// What was decided since the last look.
    fn decisions(&mut self, out: &mut dyn Write, picture: &Picture) -> io::Result<()> {
        for own in &picture.decisions {
            let Some(text) = why(own) else { continue };
            let seen = self.told.is_some_and(|told| own.time < told);
            if seen || (self.told == Some(own.time) && self.told_then.contains(&text)) {
                continue;
            }
            if self.told != Some(own.time) {
                self.told = Some(own.time);
                self.told_then.clear();
            }
            self.line(out, own.time, &format!("   why    {text}"))?;
            self.told_then.push(text);
        }
        Ok(())
    }

    /// Nodes that have come or gone since the last look.
    fn comings(&mut self, out: &mut dyn Write, picture: &Picture) -> io::Result<()> {
        let ready = picture.nodes.iter().filter(|own| own.state == "ready");
        let new: Vec<NodeRow> = ready
            .filter(|own| !self.nodes.contains_key(&own.name))
            .cloned()
            .collect();
        for own in new {
            let text = format!("   node   + {}", node_words(&own));
            self.line(out, picture.at, &text)?;
            self.nodes.insert(own.name.clone(), own);
        }
        let there = |name: &String| picture.nodes.iter().any(|own| own.name == *name);
        let names: Vec<String> = self
            .nodes
            .keys()
            .filter(|own| !there(own))
            .cloned()
            .collect();
        for name in names {
            if let Some(own) = self.nodes.remove(&name) {
                let text = format!("   node   - {}", node_words(&own));
                self.line(out, picture.at, &text)?;
            }
        }
        Ok(())
    }

    /// Takes the last frame away.
    fn clear(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if self.drawn > 0 {
            write!(out, "\u{1b}[{}A\u{1b}[J", self.drawn)?;
            self.drawn = 0;
        }
        Ok(())
    }

    /// The live view ends.
    pub(super) fn leave(&mut self, out: &mut dyn Write) -> io::Result<()> {
        self.clear(out)?;
        out.flush()
    }

    fn frame(&mut self, picture: &Picture) -> Vec<String> {
        let at = self.passed(picture.at);
        let price = self.bold(&format!("${:.3} an hour", picture.price()));
        let mut lines = vec![
            String::new(),
            format!(
                "{at}  {} nodes, {} pods running, {} waiting, {price}",
                picture.nodes.len(),
                picture.n_running,
                picture.n_waiting,
            ),
        ];
        for node in &picture.nodes {
            let line = node_line(node);
            lines.push(match node.state {
                "ready" => line,
                _ => self.dim(&line),
            });
        }
        lines
    }

    fn bold(&self, text: &str) -> String {
        self.in_style("1", text)
    }

    fn dim(&self, text: &str) -> String {
        self.in_style("2", text)
    }

    fn in_style(&self, style: &str, text: &str) -> String {
        match self.live {
            true => format!("\u{1b}[{style}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }
}

/// A decision in one line, if something comes or goes by it.
fn why(own: &Decision) -> Option<String> {
    match own.kind.as_str() {
        // It begins with the reason in one word.
        "disruption" => own.reasons.first().cloned(),
        "interruption" => Some(own.outcome.clone()),
        "provisioning" => {
            let nodes = own.details["nodes"].as_array();
            let buys = nodes.is_some_and(|nodes| !nodes.is_empty());
            buys.then(|| own.outcome.clone())
        }
        // How a command ended, for one, is to be seen by its nodes.
        _ => None,
    }
}

/// `ip-10-0-0-1 (m5.large spot in us-east-1a, $0.0960 an hour)`.
fn node_words(node: &NodeRow) -> String {
    format!(
        "{} ({} {} in {}, ${:.4} an hour)",
        node.name, node.instance_type, node.capacity_type, node.zone, node.price
    )
}

fn node_line(node: &NodeRow) -> String {
    format!(
        "        {:<30} {:<10} {:<9} {:<11} {} {:>2} pods  ${:.4}  {}",
        shortened(&node.name, 30),
        node.instance_type,
        node.capacity_type,
        node.zone,
        bar(node.memory),
        node.n_pods,
        node.price,
        node.state,
    )
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most) {
        None => text.to_owned(),
        Some(_) => {
            let kept: String = text.chars().take(most - 1).collect();
            format!("{kept}…")
        }
    }
}

/// How full something is.
pub(super) fn bar((used, room): (u64, u64)) -> String {
    let cells = BAR as u64;
    let full = match room {
        0 => 0,
        room => (used.min(room) * cells).div_ceil(room),
    };
    let full = usize::try_from(full).unwrap_or(BAR).min(BAR);
    format!("{}{}", "█".repeat(full), "░".repeat(BAR - full))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn bars_show_a_little_as_something_and_never_too_much() {
        assert_eq!(bar((0, 100)), "░".repeat(16));
        assert_eq!(bar((1, 100)), format!("█{}", "░".repeat(15)));
        assert_eq!(bar((100, 100)), "█".repeat(16));
        assert_eq!(bar((900, 100)), "█".repeat(16));
        assert_eq!(bar((1, 0)), "░".repeat(16));
    }

    #[test]
    fn long_names_are_cut() {
        assert_eq!(shortened("abcdef", 4), "abc…");
        assert_eq!(shortened("abcd", 4), "abcd");
    }

    fn shown(screen: &mut Screen, picture: &Picture) -> String {
        let mut out = Vec::new();
        screen.show(&mut out, picture).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn the_log_tells_every_decision_and_every_node_once() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let decision = |second, outcome: &str| {
            Arc::new(Decision {
                time: at(second),
                kind: "interruption".to_owned(),
                outcome: outcome.to_owned(),
                ..Decision::default()
            })
        };
        let node = |name: &str, state| NodeRow {
            name: name.to_owned(),
            instance_type: "m5.large".to_owned(),
            capacity_type: "spot".to_owned(),
            zone: "a".to_owned(),
            state,
            price: 0.1,
            ..NodeRow::default()
        };
        let mut screen = Screen::new(false);
        let mut picture = Picture {
            at: at(10),
            decisions: vec![decision(10, "one")],
            nodes: vec![node("n", "booting")],
            ..Picture::default()
        };
        assert_eq!(shown(&mut screen, &picture), "  0:00     why    one\n");
        picture.decisions.push(decision(10, "two"));
        picture.decisions.push(Arc::new(Decision {
            kind: "ledger".to_owned(),
            ..Decision::clone(&decision(10, "done"))
        }));
        picture.nodes[0].state = "ready";
        let two =
            "  0:00     why    two\n  0:00     node   + n (m5.large spot in a, $0.1000 an hour)\n";
        assert_eq!(shown(&mut screen, &picture), two);
        assert_eq!(shown(&mut screen, &picture), "");
        picture.nodes.clear();
        let gone = "  0:00     node   - n (m5.large spot in a, $0.1000 an hour)\n";
        assert_eq!(shown(&mut screen, &picture), gone);
    }
}
