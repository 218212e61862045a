//! How it is shown: a live view in a terminal, else a plain log. What was decided, and how a chapter
//! ended, stays in both.

use std::collections::BTreeMap;
use std::io::{self, Write};

use jiff::Timestamp;
use joiner_receipts::Decision;

use super::scene::{NodeRow, Picture};
use super::story::Told;
use super::summary;
use crate::table::{count, shortened};
use crate::terminal::{Size, broken};

/// Cells of a fill bar where there is room, and where there is not.
const BAR: usize = 16;
const BAR_MIN: usize = 8;
/// Columns of a row that is as short as it can be: name, bar and all others.
const NAME_MIN: usize = 17;
const NAME_FULL: usize = 30;
const ROW_MIN: usize = 80;
/// Where the text of a line begins that tells of a decision, a node or a price.
const TEXT_AT: usize = 18;
/// Lines of the live view besides those of nodes, and the one where the cursor stands.
const LINES_BESIDES: usize = 5;
/// Longest line of a paragraph.
const TITLE_MAX: usize = 96;

/// Where it is shown.
pub(super) struct Screen {
    /// The terminal, if there is one.
    terminal: Option<Size>,
    /// It is drawn on, and not only written to line by line.
    is_live: bool,
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
    pub(super) fn new(terminal: Option<Size>, is_live: bool) -> Self {
        Self {
            terminal,
            is_live: is_live && terminal.is_some(),
            drawn: 0,
            told: None,
            told_then: Vec::new(),
            nodes: BTreeMap::new(),
            n_chapters: 0,
            start: None,
        }
    }

    /// The terminal may have become larger or smaller.
    pub(super) fn resize(&mut self, size: Option<Size>) {
        self.terminal = self.terminal.and(size.or(self.terminal));
    }

    /// What this is.
    pub(super) fn title(&self, out: &mut dyn Write, speed: u32) -> io::Result<()> {
        let text = format!(
            "joiner demo: a cluster in this process, a simulated EC2 with the real types and \
             prices, and the production controllers. The clock runs {speed} times as fast as yours."
        );
        let columns = self.terminal.map_or(TITLE_MAX, |own| own.columns);
        for line in broken(&text, columns.min(TITLE_MAX), 0) {
            match line.strip_prefix("joiner demo") {
                Some(rest) => writeln!(out, "{}{rest}", self.bold("joiner demo"))?,
                None => writeln!(out, "{line}")?,
            }
        }
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
        self.styled(out, at, &text, |screen, line| screen.bold(line))
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
        let prices = format!("{} an hour", summary::prices(own));
        let text = format!("   price  {prices}; {pods} on {nodes}");
        // The prices stand in the first line, however narrow the terminal is.
        self.styled(out, picture.at, &text, |screen, line| {
            line.replacen(&prices, &screen.bold(&prices), 1)
        })
    }

    fn line(&mut self, out: &mut dyn Write, at: Timestamp, text: &str) -> io::Result<()> {
        self.styled(out, at, text, |_, line| line.to_owned())
    }

    /// A line of the log, broken between words where the terminal is narrower.
    fn styled(
        &mut self,
        out: &mut dyn Write,
        at: Timestamp,
        text: &str,
        style: impl Fn(&Self, &str) -> String,
    ) -> io::Result<()> {
        self.clear(out)?;
        let at = self.passed(at);
        let columns = self.terminal.map_or(usize::MAX, |own| own.columns);
        let before = at.chars().count() + 2;
        let indent = match text.starts_with("   ") {
            true => TEXT_AT - before,
            false => 3,
        };
        let parts = broken(text, columns.saturating_sub(before), indent);
        for (n, part) in parts.iter().enumerate() {
            let (at, part) = match n {
                0 => (self.dim(&at), style(self, part)),
                _ => (" ".repeat(at.len()), style(self, part)),
            };
            writeln!(out, "{at}  {part}")?;
        }
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
        let Some(size) = self.terminal.filter(|_| self.is_live) else {
            return Ok(());
        };
        self.clear(out)?;
        let lines = self.frame(picture, size);
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
            let text = format!("   node   + {}", self.node_words(&own));
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
                let text = format!("   node   - {}", self.node_words(&own));
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

    fn frame(&mut self, picture: &Picture, size: Size) -> Vec<String> {
        let at = self.passed(picture.at);
        let price = self.bold(&format!("${:.3} an hour", picture.price()));
        let mut lines = vec![
            String::new(),
            format!(
                "{at}  {}, {} running, {} waiting, {price}",
                count(picture.nodes.len(), "node"),
                count(picture.n_running, "pod"),
                picture.n_waiting,
            ),
        ];
        let rows_max = size.lines.saturating_sub(LINES_BESIDES);
        let shape = Shape::of(picture, size.columns);
        if !picture.nodes.is_empty() && rows_max > 0 {
            lines.push(self.dim(&shortened(&shape.titles(), size.columns)));
        }
        for node in picture.nodes.iter().take(rows_max) {
            let line = shortened(&shape.row(node), size.columns);
            lines.push(match node.state {
                "ready" => line,
                _ => self.dim(&line),
            });
        }
        let n_more = picture.nodes.len().saturating_sub(rows_max);
        if n_more > 0 {
            lines.push(format!("  … and {}", count(n_more, "more node")));
        }
        lines
    }

    /// `ip-10-0-0-1 (m5.large spot in us-east-1a, $0.0960 an hour)`.
    fn node_words(&self, node: &NodeRow) -> String {
        let NodeRow {
            name,
            instance_type,
            capacity_type,
            zone,
            price,
            ..
        } = node;
        let full =
            format!("{name} ({instance_type} {capacity_type} in {zone}, ${price:.4} an hour)");
        let columns = self.terminal.map_or(usize::MAX, |own| own.columns);
        match full.chars().count() + TEXT_AT + 2 > columns {
            false => full,
            true => format!(
                "{} {instance_type} {capacity_type} {zone} ${price:.4}/h",
                short_name(name)
            ),
        }
    }

    fn bold(&self, text: &str) -> String {
        self.in_style("1", text)
    }

    fn dim(&self, text: &str) -> String {
        self.in_style("2", text)
    }

    fn in_style(&self, style: &str, text: &str) -> String {
        match self.is_live {
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

/// A node's name without the domain, which all nodes share.
pub(super) fn short_name(name: &str) -> &str {
    name.split_once('.').map_or(name, |(host, _)| host)
}

/// How wide the columns of the live view are: the same for every frame, so that they stand still.
struct Shape {
    has_domain: bool,
    name: usize,
    bar: usize,
}

impl Shape {
    /// Names are spelled out where there is room, and bars are longer.
    fn of(picture: &Picture, columns: usize) -> Self {
        let room = columns.saturating_sub(ROW_MIN);
        let names = picture.nodes.iter().map(|own| own.name.chars().count());
        let longest = names.max().unwrap_or(0).max(NAME_FULL);
        let has_domain = longest - NAME_MIN <= room;
        let name = if has_domain { longest } else { NAME_MIN };
        let bar = BAR_MIN + room - (name - NAME_MIN);
        Self {
            has_domain,
            name,
            bar: bar.min(BAR),
        }
    }

    fn line(&self, cells: [&str; 8]) -> String {
        let [
            name,
            instance_type,
            capacity,
            zone,
            memory,
            pods,
            price,
            state,
        ] = cells;
        let (name_width, bar) = (self.name, self.bar);
        let name = shortened(name, name_width);
        let line = format!(
            "  {name:<name_width$} {instance_type:<9} {capacity:<9} {zone:<10} {memory:<bar$} \
             {pods:>4} {price:>6} {state}"
        );
        line.trim_end().to_owned()
    }

    fn titles(&self) -> String {
        self.line([
            "NODE", "TYPE", "CAPACITY", "ZONE", "MEMORY", "PODS", "$/H", "STATE",
        ])
    }

    fn row(&self, node: &NodeRow) -> String {
        let name = match self.has_domain {
            true => node.name.as_str(),
            false => short_name(&node.name),
        };
        self.line([
            name,
            &node.instance_type,
            &node.capacity_type,
            &node.zone,
            &bar(node.memory, self.bar),
            &node.n_pods.to_string(),
            &format!("{:.4}", node.price),
            node.state,
        ])
    }
}

/// How full something is.
fn bar((used, room): (u64, u64), width: usize) -> String {
    let cells = width as u64;
    let full = match room {
        0 => 0,
        room => (used.min(room) * cells).div_ceil(room),
    };
    let full = usize::try_from(full).unwrap_or(width).min(width);
    format!("{}{}", "█".repeat(full), "░".repeat(width - full))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    #[test]
    fn bars_show_a_little_as_something_and_never_too_much() {
        assert_eq!(bar((0, 100), 16), "░".repeat(16));
        assert_eq!(bar((1, 100), 16), format!("█{}", "░".repeat(15)));
        assert_eq!(bar((100, 100), 16), "█".repeat(16));
        assert_eq!(bar((900, 100), 16), "█".repeat(16));
        assert_eq!(bar((1, 0), 16), "░".repeat(16));
    }

    fn picture(n_nodes: usize) -> Picture {
        let node = |n: usize| NodeRow {
            name: format!("ip-10-255-255-{}.ec2.internal", 100 + n),
            instance_type: "m5.xlarge".to_owned(),
            capacity_type: "on-demand".to_owned(),
            zone: "us-east-1a".to_owned(),
            state: "booting",
            price: 0.1,
            n_pods: 12,
            memory: (1, 2),
            ..NodeRow::default()
        };
        Picture {
            at: Timestamp::from_second(10).unwrap(),
            nodes: (0..n_nodes).map(node).collect(),
            n_running: 1,
            ..Picture::default()
        }
    }

    /// Lines as they are seen: without orders to the terminal.
    fn seen(lines: &[String]) -> Vec<String> {
        let plain = |line: &String| {
            let mut parts = line.split('\u{1b}');
            let mut plain = parts.next().unwrap().to_owned();
            for part in parts {
                plain.push_str(part.split_once(['m', 'l', 'h', 'J', 'A']).unwrap().1);
            }
            plain
        };
        lines.iter().map(plain).collect()
    }

    fn frame(n_nodes: usize, columns: usize, lines: usize) -> Vec<String> {
        let size = Size { columns, lines };
        let picture = picture(n_nodes);
        seen(&Screen::new(Some(size), true).frame(&picture, size))
    }

    #[test]
    fn the_live_view_fits_the_terminal_and_uses_it() {
        let narrow = frame(2, 80, 24);
        assert_eq!(
            narrow,
            [
                "",
                "  0:00  2 nodes, 1 pod running, 0 waiting, $0.200 an hour",
                "  NODE              TYPE      CAPACITY  ZONE       MEMORY   PODS    $/H STATE",
                "  ip-10-255-255-100 m5.xlarge on-demand us-east-1a ████░░░░   12 0.1000 booting",
                "  ip-10-255-255-101 m5.xlarge on-demand us-east-1a ████░░░░   12 0.1000 booting",
            ]
        );
        assert_eq!(
            frame(1, 80, 24)[1].split(", ").next(),
            Some("  0:00  1 node")
        );
        let wide = frame(1, 110, 24);
        assert!(
            wide[3].contains("ip-10-255-255-100.ec2.internal "),
            "{wide:?}"
        );
        assert!(wide[3].contains("████████░░░░░░░░ "), "{wide:?}");
        for columns in 40..140 {
            for line in frame(3, columns, 24) {
                assert!(
                    line.chars().count() <= columns.max(60),
                    "{columns}: {line:?}"
                );
            }
        }
        let low = frame(30, 80, 24);
        assert!(
            low.len() < 24,
            "a frame that scrolls cannot be drawn over: {low:?}"
        );
        assert_eq!(low.last().unwrap(), "  … and 11 more nodes");
    }

    #[test]
    fn the_log_of_a_narrow_terminal_is_broken_between_words() {
        let size = Size {
            columns: 80,
            lines: 24,
        };
        let mut plain = Screen::new(Some(size), false);
        let mut log = Vec::new();
        let mut screen = Screen::new(Some(size), true);
        let mut out = Vec::new();
        let why = "Underutilized: 2 nodes become 1; $0.1920 an hour now, $0.0960 then, and \
                   moving 3 pods is put at $0.0012";
        let at = Timestamp::from_second(10).unwrap();
        screen
            .line(&mut out, at, &format!("   why    {why}"))
            .unwrap();
        let mut picture = picture(1);
        picture.nodes[0].state = "ready";
        screen.comings(&mut out, &picture).unwrap();
        plain
            .line(&mut log, at, &format!("   why    {why}"))
            .unwrap();
        plain.show(&mut log, &picture).unwrap();
        let text = String::from_utf8(out).unwrap();
        let lines: Vec<String> = text.lines().map(str::to_owned).collect();
        assert_eq!(
            seen(&lines),
            [
                "  0:00     why    Underutilized: 2 nodes become 1; $0.1920 an hour now, $0.0960",
                "                  then, and moving 3 pods is put at $0.0012",
                "  0:00     node   + ip-10-255-255-100 m5.xlarge on-demand us-east-1a $0.1000/h",
            ]
        );
        let log = String::from_utf8(log).unwrap();
        let log: Vec<String> = log.lines().map(str::to_owned).collect();
        assert_eq!(
            log,
            seen(&lines),
            "the same, without orders to the terminal"
        );
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
        let mut screen = Screen::new(None, false);
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
