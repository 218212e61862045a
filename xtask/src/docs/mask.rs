//! What differs from run to run: times, ages and uids become `…`, names drawn by chance become names
//! that are drawn in the order in which they appear.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Context;
use regex::{Captures, Regex};

/// Letters of names that Kubernetes draws.
const LETTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Stands for a column that a name has lost.
const LOST: char = '\u{1}';

/// In every block.
const ALWAYS: [(&str, &str); 3] = [
    (r"\b\d+(?:\.\d+)? (ms|µs)\b", "… ms"),
    (
        r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b",
        "…",
    ),
    (r"\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z", "…"),
];
/// In blocks about a live cluster.
const LIVE: [(&str, &str); 4] = [
    (r"\b(?:\d+[dhms])+ ago\b", "… ago"),
    (r"\bfor (?:\d+[dhms])+\b", "for …"),
    (r"\b\d+(?:\.\d+)? s\b", "… s"),
    (r"(127\.0\.0\.1|localhost):\d+", "$1:…"),
];
/// Nodes, pods of a workload, and NodeClaims; the part that chance decides has a name.
const NAMES: [&str; 3] = [
    r"\bip-(?<chance>10-\d+-\d+-\d+)\b",
    r"-[bcdfghjklmnpqrstvwxz2456789]{8,10}-(?<chance>[bcdfghjklmnpqrstvwxz2456789]{5})\b",
    r"\b[a-z]+-(?<chance>[bcdfghjklmnpqrstvwxz2456789]{10})\b(?<more>-)?",
];

/// Masks the texts of a session, one after the other.
#[derive(Debug)]
pub(super) struct Masks {
    always: Vec<(Regex, &'static str)>,
    live: Vec<(Regex, &'static str)>,
    names: Vec<Regex>,
    /// Names that chance has made, and what stands for them.
    known: BTreeMap<String, String>,
    drawn: BTreeSet<String>,
}

impl Masks {
    /// For a new session.
    pub(super) fn new() -> anyhow::Result<Self> {
        let regex = |text: &str| Regex::new(text).context("a mask is wrong");
        let pairs = |all: &[(&str, &'static str)]| -> anyhow::Result<Vec<_>> {
            let pairs = all.iter().map(|(from, to)| Ok((regex(from)?, *to)));
            pairs.collect()
        };
        let names = NAMES.iter().map(|text| regex(text));
        Ok(Self {
            always: pairs(&ALWAYS)?,
            live: pairs(&LIVE)?,
            names: names.collect::<anyhow::Result<_>>()?,
            known: BTreeMap::new(),
            drawn: BTreeSet::new(),
        })
    }

    /// Forgets the names of the block before: which of several alike comes up again is chance, too.
    pub(super) fn next_block(&mut self) {
        self.known.clear();
    }

    /// A line as it is shown.
    pub(super) fn line(&mut self, line: &str, live: bool) -> String {
        let mut text = line.to_owned();
        let more = self.live.iter().filter(|_| live);
        for (regex, to) in self.always.iter().chain(more) {
            text = in_place(&text, regex, |found| {
                let mut masked = String::new();
                found.expand(to, &mut masked);
                masked
            });
        }
        for regex in self.names.iter().filter(|_| live) {
            let (known, drawn) = (&mut self.known, &mut self.drawn);
            text = in_place(&text, regex, |found| {
                let (whole, chance) = (&found[0], &found["chance"]);
                // The name of a ReplicaSet goes on, and follows from what its pods are like.
                if drawn.contains(chance) || whole.ends_with('-') {
                    return whole.to_owned();
                }
                let name = known.entry(chance.to_owned()).or_insert_with(|| {
                    let alike = |one: &&String| one.contains('-') == chance.contains('-');
                    draw(drawn.iter().filter(alike).count(), chance)
                });
                drawn.insert(name.clone());
                whole.replace(chance, name)
            });
        }
        text
    }
}

/// The n-th name, of the kind of this one.
fn draw(n: usize, like: &str) -> String {
    if like.contains('-') {
        return format!("10-0-{}-{}", n / 250, n % 250 + 1);
    }
    let mut state = (n as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let letters = (0..like.len()).map(|_| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        let ix = usize::try_from(state >> 33).unwrap_or_default() % LETTERS.len();
        char::from(LETTERS[ix])
    });
    letters.collect()
}

/// Replaces what is found, and keeps columns where they are: what is followed by a gap keeps its width
/// with the gap, what comes after one keeps it before.
fn in_place(text: &str, regex: &Regex, mut by: impl FnMut(&Captures<'_>) -> String) -> String {
    let mut line = String::new();
    let mut rest = 0;
    for found in regex.captures_iter(text) {
        let Some(whole) = found.get(0) else { continue };
        let (masked, was) = (by(&found), whole.as_str().chars().count());
        let pad = was.saturating_sub(masked.chars().count());
        line.push_str(&text[rest..whole.start()]);
        let is_after_gap = line.ends_with("  ") && text[whole.end()..].starts_with("  ");
        let is_number = whole.as_str().starts_with(|c: char| c.is_ascii_digit());
        if is_after_gap && is_number {
            line.extend(std::iter::repeat_n(' ', pad));
        }
        line.push_str(&masked);
        if !is_number {
            line.extend(std::iter::repeat_n(LOST, pad));
        }
        rest = whole.end();
    }
    line.push_str(&text[rest..]);
    settle(&line)
}

/// Adds the width that names have lost to the gap that comes next, if one does.
fn settle(line: &str) -> String {
    let mut settled = String::new();
    let (mut owed, mut rest) = (0, line);
    while let Some(c) = rest.chars().next() {
        if c == LOST {
            owed += 1;
        } else {
            if owed > 0 && rest.starts_with("  ") {
                settled.extend(std::iter::repeat_n(' ', owed));
                owed = 0;
            }
            settled.push(c);
        }
        rest = &rest[c.len_utf8()..];
    }
    settled
}

#[cfg(test)]
mod tests {
    use super::*;

    fn masked(lines: &[&str], live: bool) -> Vec<String> {
        let mut masks = Masks::new().unwrap();
        lines.iter().map(|line| masks.line(line, live)).collect()
    }

    #[test]
    fn times_are_masked_and_amounts_are_not() {
        let line = "Read in 18.8 ms, solved in 1200 ms, requests cpu 900m for 19 pods, 5 s.";
        let expected = "Read in … ms, solved in … ms, requests cpu 900m for 19 pods, 5 s.";
        assert_eq!(masked(&[line, expected], false), [expected, expected]);
    }

    #[test]
    fn ages_and_uids_are_masked() {
        let lines = [
            "Kept for 3m11s, decided 49m ago; cpu 900m, m5.large",
            "uid 0a1b2c3d-0000-4000-8000-0123456789ab at 2026-01-01T00:00:00Z on 127.0.0.1:8080",
        ];
        let expected = [
            "Kept for …, decided … ago; cpu 900m, m5.large",
            "uid … at … on 127.0.0.1:…",
        ];
        assert_eq!(masked(&lines, true), expected);
    }

    #[test]
    fn names_are_drawn_in_the_order_of_their_appearance() {
        let lines = |names: [&str; 2]| {
            let [one, two] = names;
            masked(
                &[
                    &format!("web-656dfd485d-{one} on ip-10-4-42-64.ec2.internal"),
                    &format!("web-656dfd485d-{two} general-hznv5jss5r"),
                    &format!("web-656dfd485d-{one}"),
                ],
                true,
            )
        };
        let first = lines(["7f4vs", "qsp2n"]);
        assert!(
            first[0].ends_with("on ip-10-0-0-1.ec2.internal"),
            "{first:?}"
        );
        assert_eq!(first[0].split(' ').next(), Some(first[2].as_str()));
        assert_ne!(first[1].split(' ').next(), Some(first[2].as_str()));
        let second = lines(["bbbbb", "ccccc"]);
        assert_eq!(first, second);
        // What was masked once stays as it is.
        let again = masked(&[&first[0], &first[2]], true);
        assert_eq!(again[0].split(' ').next(), Some(again[1].as_str()));
    }

    #[test]
    fn blocks_have_names_of_their_own() {
        let mut masks = Masks::new().unwrap();
        let mut names = ["ip-10-4-42-64", "ip-10-7-7-7"].map(|name| {
            masks.next_block();
            masks.line(name, true)
        });
        assert_eq!(names, ["ip-10-0-0-1", "ip-10-0-0-2"]);
        masks.next_block();
        names[0] = masks.line("ip-10-4-42-64", true);
        assert_eq!(names[0], "ip-10-0-0-3");
    }

    #[test]
    fn columns_stay_where_they_are() {
        let lines = [
            "a            32 s    $0.096  1 m5.large",
            "-  ip-10-79-117-118.ec2.internal  t3a.small",
            "EC2 takes ip-10-79-117-119.ec2.internal back  41 s  $0",
            "web-656dfd485d-7f4vs on ip-10-4-42-64.ec2.internal; cpu 1",
        ];
        let expected = [
            "a             … s    $0.096  1 m5.large",
            "-  ip-10-0-0-1.ec2.internal       t3a.small",
            "EC2 takes ip-10-0-0-2.ec2.internal back        … s  $0",
            "web-656dfd485d-dthdm on ip-10-0-0-3.ec2.internal; cpu 1",
        ];
        assert_eq!(masked(&lines, true), expected);
    }
}
