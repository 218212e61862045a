//! Which blocks of a page are recorded, and how.
//!
//! An HTML comment before a block says that its output comes from a run of its commands:
//!
//! ```text
//! <!-- recorded -->
//! ```
//!
//! runs the commands that the block shows. With `live`, they need a cluster or a while; with `session
//! NAME`, they run in the shell of the block before that has this name. Further lines of the comment:
//! `setup: COMMAND` runs before, unseen; `run: COMMAND` runs instead of the next command shown; `show:
//! COMMAND` is run, and shown with its variables filled in; `from: TEXT` leaves out what comes before the
//! line that begins so.

use anyhow::{Context, bail, ensure};

const OPEN: &str = "<!-- recorded";
const CLOSE: &str = "-->";
const FENCE: &str = "```";
const PROMPT: &str = "$ ";
/// Kinds of blocks that may be recorded.
const KINDS: [&str; 2] = ["console", "text"];

/// A command, and what it printed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Command {
    /// As shown, without the prompt; nothing for a block that shows output alone.
    pub(super) shown: Option<String>,
    /// What runs instead.
    pub(super) run: Option<String>,
    /// The shell fills in what is shown.
    pub(super) expand: bool,
    pub(super) output: Vec<String>,
}

/// A block whose output is recorded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) live: bool,
    pub(super) session: Option<String>,
    pub(super) setup: Vec<String>,
    pub(super) from: Option<String>,
    pub(super) commands: Vec<Command>,
    /// Lines of the page between the fences.
    pub(super) lines: std::ops::Range<usize>,
    indent: String,
}

/// A page cut into blocks.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Page {
    pub(super) recorded: Vec<Block>,
    /// Numbers, from 1, of the first lines of blocks that show output and are not recorded.
    pub(super) unrecorded: Vec<usize>,
}

impl Page {
    /// Finds the blocks of a page.
    pub(super) fn parse(text: &str) -> anyhow::Result<Self> {
        let lines: Vec<&str> = text.lines().collect();
        let mut page = Self::default();
        let mut marker: Option<(usize, Vec<&str>)> = None;
        let mut ix = 0;
        while ix < lines.len() {
            let line = lines[ix].trim();
            if line.starts_with(OPEN) {
                let end = (ix..lines.len()).find(|end| lines[*end].trim().ends_with(CLOSE));
                let end = end.with_context(|| format!("line {}: {OPEN} has no end", ix + 1))?;
                marker = Some((ix, lines[ix..=end].to_vec()));
                ix = end + 1;
                continue;
            }
            let Some(kind) = line.strip_prefix(FENCE) else {
                if let Some((at, _)) = marker.as_ref().filter(|_| !line.is_empty()) {
                    bail!("line {}: no block follows", at + 1);
                }
                ix += 1;
                continue;
            };
            let end = (ix + 1..lines.len()).find(|end| lines[*end].trim() == FENCE);
            let end = end.with_context(|| format!("line {}: the block has no end", ix + 1))?;
            let indent = &lines[ix][..lines[ix].len() - lines[ix].trim_start().len()];
            let own = lines[ix + 1..end].iter();
            let own: Vec<&str> = own.map(|l| l.strip_prefix(indent).unwrap_or(l)).collect();
            match marker.take() {
                Some((at, marker)) => {
                    ensure!(
                        KINDS.contains(&kind),
                        "line {}: {kind:?} is not recorded",
                        at + 1
                    );
                    let mut block =
                        block(&marker, &own).with_context(|| format!("line {}", at + 1))?;
                    (block.lines, block.indent) = (ix + 1..end, indent.to_owned());
                    page.recorded.push(block);
                }
                None if kind == "console" && shows_output(&own) => page.unrecorded.push(ix + 1),
                None => {}
            }
            ix = end + 1;
        }
        ensure!(
            marker.is_none(),
            "a comment without a block at the end of the page"
        );
        Ok(page)
    }
}

fn shows_output(lines: &[&str]) -> bool {
    let commands = commands(lines);
    commands
        .iter()
        .any(|one| one.shown.is_none() || !one.output.is_empty())
}

/// The block that a comment describes.
fn block(marker: &[&str], lines: &[&str]) -> anyhow::Result<Block> {
    let text = marker.join("\n");
    let text = text.trim().strip_prefix(OPEN).unwrap_or_default();
    let text = text.strip_suffix(CLOSE).unwrap_or_default();
    let mut block = Block {
        live: false,
        session: None,
        setup: Vec::new(),
        from: None,
        commands: commands(lines),
        lines: 0..0,
        indent: String::new(),
    };
    let mut instead = Vec::new();
    for (ix, line) in text.lines().enumerate() {
        let line = line.trim();
        let (key, value) = line.split_once(' ').unwrap_or((line, ""));
        match (ix, key) {
            (0, _) => options(line, &mut block)?,
            (_, "setup:") => block.setup.push(value.to_owned()),
            (_, "run:") => instead.push((value.to_owned(), false)),
            (_, "show:") => instead.push((value.to_owned(), true)),
            (_, "from:") => block.from = Some(value.to_owned()),
            (_, "") => {}
            _ => bail!("{line:?} is not setup:, run:, show: or from: and what follows"),
        }
    }
    if block.commands.is_empty() {
        block.commands = commands(&["$ "]);
    }
    ensure!(
        instead.len() <= block.commands.len(),
        "there are more commands in the comment than in the block"
    );
    for (command, (run, expand)) in block.commands.iter_mut().zip(instead) {
        (command.run, command.expand) = (Some(run), expand);
    }
    let is_known = |one: &Command| one.run.is_some() || one.shown.is_some();
    ensure!(
        block.commands.iter().all(is_known),
        "nothing says what to run"
    );
    Ok(block)
}

/// `live` and `session NAME` of the first line.
fn options(line: &str, block: &mut Block) -> anyhow::Result<()> {
    let line = line.strip_prefix(':').unwrap_or(line);
    let mut words = line.split_whitespace();
    while let Some(word) = words.next() {
        match word {
            "live" => block.live = true,
            "session" => {
                let name = words.next().context("a session has a name")?;
                block.session = Some(name.to_owned());
            }
            other => bail!("{other:?} is not `live` or `session NAME`"),
        }
    }
    Ok(())
}

/// The commands of a block with their outputs.
fn commands(lines: &[&str]) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    let mut lines = lines.iter().peekable();
    while let Some(line) = lines.next() {
        let Some(first) = line.strip_prefix(PROMPT) else {
            if commands.is_empty() {
                commands.push(shown(None));
            }
            if let Some(command) = commands.last_mut() {
                command.output.push((*line).to_owned());
            }
            continue;
        };
        let mut text = first.to_owned();
        while text.ends_with('\\')
            && let Some(next) = lines.next()
        {
            text = format!("{text}\n{next}");
        }
        if let Some(end) = here(&text) {
            for next in lines.by_ref() {
                text = format!("{text}\n{next}");
                if *next == end {
                    break;
                }
            }
        }
        commands.push(shown(Some(text).filter(|text| !text.is_empty())));
    }
    commands
}

fn shown(shown: Option<String>) -> Command {
    Command {
        shown,
        run: None,
        expand: false,
        output: Vec::new(),
    }
}

/// The word at which the text that a command is given in place ends.
fn here(command: &str) -> Option<String> {
    let (_, word) = command.split_once("<<")?;
    let word = word.split_whitespace().next()?.trim_matches(['\'', '"']);
    Some(word.to_owned())
}

impl Block {
    /// The lines between the fences.
    pub(super) fn render(&self) -> Vec<String> {
        let mut lines = Vec::new();
        for command in &self.commands {
            if let Some(shown) = &command.shown {
                lines.extend(format!("{PROMPT}{shown}").lines().map(str::to_owned));
            }
            lines.extend(command.output.iter().cloned());
        }
        let indented = |line: String| format!("{}{line}", self.indent).trim_end().to_owned();
        lines.into_iter().map(indented).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
# A page

<!-- recorded -->
```console
$ joiner plan \\
    -f a
one

$ echo $?
2
```

```console
$ kubectl apply -f - <<'END'
kind: Pod
END
$ joiner run
```

- in a list:

  <!-- recorded: live session why
  setup: joiner sandbox &
  run: joiner demo
  from: what
  -->
  ```text
  old
  ```

```console
$ ls
a
```
";

    #[test]
    fn blocks_say_how_they_are_recorded() {
        let page = Page::parse(PAGE).unwrap();
        assert_eq!(page.unrecorded, [31]);
        let [plan, live] = &page.recorded[..] else {
            panic!("{page:?}");
        };
        let shown: Vec<&str> = plan
            .commands
            .iter()
            .flat_map(|own| own.shown.as_deref())
            .collect();
        assert_eq!(shown, ["joiner plan \\\n    -f a", "echo $?"]);
        assert_eq!(plan.commands[0].output, ["one", ""]);
        assert!(!plan.live && live.live);
        assert_eq!(live.session.as_deref(), Some("why"));
        assert_eq!(live.setup, ["joiner sandbox &"]);
        assert_eq!(live.from.as_deref(), Some("what"));
        assert_eq!(live.commands[0].run.as_deref(), Some("joiner demo"));
        let lines: Vec<&str> = PAGE.lines().collect();
        for block in &page.recorded {
            assert_eq!(block.render(), lines[block.lines.clone()]);
        }
    }

    #[test]
    fn comments_that_say_nothing_are_refused() {
        for (page, why) in [
            ("<!-- recorded -->\ntext\n", "no block"),
            ("<!-- recorded -->\n", "without a block"),
            ("<!-- recorded -->\n```yaml\na: 1\n```\n", "is not recorded"),
            ("<!-- recorded -->\n```text\na\n```\n", "what to run"),
            ("<!-- recorded: often -->\n```console\n$ a\n```\n", "often"),
            (
                "<!-- recorded\nrun: a\nrun: b -->\n```console\n$ a\n```\n",
                "more commands",
            ),
            ("<!-- recorded\n", "no end"),
        ] {
            let error = format!("{:#}", Page::parse(page).unwrap_err());
            assert!(error.contains(why), "{error}");
        }
    }
}
