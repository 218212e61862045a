//! How it is shown: a live view in a terminal, else a plain log.

use std::io::{self, Write};

use jiff::Timestamp;

use super::scene::{NodeRow, Picture};

/// Cells of a fill bar.
const BAR: usize = 16;
/// Decisions that are shown.
const DECISIONS: usize = 4;

/// Where it is shown.
pub(super) struct Screen {
    live: bool,
    /// Lines of the last frame, to be drawn over.
    drawn: usize,
    /// Decisions that the plain log has shown.
    told: usize,
    start: Option<Timestamp>,
}

impl Screen {
    pub(super) fn new(live: bool) -> Self {
        Self {
            live,
            drawn: 0,
            told: 0,
            start: None,
        }
    }

    /// What this is.
    pub(super) fn title(&self, out: &mut dyn Write, speed: u32) -> io::Result<()> {
        writeln!(
            out,
            "joiner demo: a cluster in this process, a simulated EC2 with the real catalog and prices,"
        )?;
        writeln!(
            out,
            "and the production controllers; the clock runs {speed} times as fast as yours."
        )?;
        writeln!(out)?;
        out.flush()
    }

    /// A new chapter of the story.
    pub(super) fn chapter(
        &mut self,
        out: &mut dyn Write,
        at: Timestamp,
        text: &str,
    ) -> io::Result<()> {
        self.clear(out)?;
        let at = self.passed(at);
        writeln!(out, "{at}  {text}")?;
        out.flush()
    }

    /// Seconds of the cluster's time since the start.
    fn passed(&mut self, at: Timestamp) -> String {
        let start = *self.start.get_or_insert(at);
        let secs = at.duration_since(start).as_secs();
        format!("{:>3}:{:02}", secs / 60, secs % 60)
    }

    /// Shows how things stand.
    pub(super) fn show(&mut self, out: &mut dyn Write, picture: &Picture) -> io::Result<()> {
        if self.live {
            self.clear(out)?;
            let lines = self.frame(picture);
            for line in &lines {
                writeln!(out, "{line}")?;
            }
            self.drawn = lines.len();
        } else {
            for (at, text) in picture.decisions.iter().skip(self.told) {
                let at = self.passed(*at);
                writeln!(out, "{at}    decided: {text}")?;
            }
            self.told = picture.decisions.len();
        }
        out.flush()
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
        let mut lines = vec![String::new()];
        lines.push(format!(
            "{}  {} nodes, {} pods running, {} waiting, ${:.3} an hour",
            self.passed(picture.at),
            picture.nodes.len(),
            picture.n_running,
            picture.n_waiting,
            picture.price(),
        ));
        lines.extend(picture.nodes.iter().map(node_line));
        lines.push(String::new());
        let decisions = &picture.decisions;
        let first = decisions.len().saturating_sub(DECISIONS);
        for (at, text) in &decisions[first..] {
            let at = self.passed(*at);
            lines.push(format!("{at}  decided: {text}"));
        }
        lines
    }
}

fn node_line(node: &NodeRow) -> String {
    format!(
        "        {:<32} {:<10} {:<11} {:<8} {} {:>3} pods  ${:.4}",
        shortened(&node.name, 32),
        node.instance_type,
        node.zone,
        node.state,
        bar(node.memory),
        node.n_pods,
        node.price,
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
}
