//! Commands with the output that they must have.

/// A command and what it must print.
pub(crate) struct Block {
    /// Where it is in the script, from 1.
    pub(crate) line: usize,
    pub(crate) command: String,
    pub(crate) expected: String,
}

impl Block {
    /// The blocks of a script.
    pub(crate) fn all(script: &str) -> Vec<Self> {
        let mut blocks: Vec<Self> = Vec::new();
        for (index, line) in script.lines().enumerate() {
            if let Some(command) = line.strip_prefix("$ ") {
                blocks.push(Self {
                    line: index + 1,
                    command: command.to_owned(),
                    expected: String::new(),
                });
            } else if line.starts_with("## ") {
                // A heading, for people.
            } else if let Some(block) = blocks.last_mut() {
                block.expected.push_str(line);
                block.expected.push('\n');
            }
        }
        for block in &mut blocks {
            block.expected = block.expected.trim_end().to_owned();
        }
        blocks
    }

    /// True when the output is as expected.
    pub(crate) fn matches(&self, output: &str) -> bool {
        let pattern: Vec<String> = self.expected.lines().map(plain).collect();
        let lines: Vec<String> = output.lines().map(plain).collect();
        lines_match(&pattern, &lines)
    }
}

/// A line with its blanks made one: columns are as wide as their widest cell, ages among them.
fn plain(line: &str) -> String {
    line.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn lines_match(pattern: &[String], lines: &[String]) -> bool {
    match pattern.split_first() {
        None => lines.is_empty(),
        Some((first, rest)) if first == "..." => {
            (0..=lines.len()).any(|skipped| lines_match(rest, &lines[skipped..]))
        }
        Some((first, rest)) => lines
            .split_first()
            .is_some_and(|(line, others)| line_matches(first, line) && lines_match(rest, others)),
    }
}

fn line_matches(pattern: &str, line: &str) -> bool {
    match pattern.split_once("[..]") {
        None => pattern == line,
        Some((before, after)) => line.strip_prefix(before).is_some_and(|rest| {
            let mut starts = rest.char_indices().map(|(at, _)| at).chain([rest.len()]);
            starts.any(|at| line_matches(after, &rest[at..]))
        }),
    }
}

#[test]
fn patterns_match() {
    for (pattern, line, expected) in [
        ("a", "a", true),
        ("a [..] c", "a b c", true),
        ("a[..]", "a", true),
        ("a[..]c", "a b", false),
        ("[..]-[..]", "web-1-x", true),
    ] {
        assert_eq!(line_matches(pattern, line), expected, "{pattern} {line}");
    }
}
