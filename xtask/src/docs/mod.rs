//! The outputs that our pages show come from recorded runs: [`page`] says how a block is recorded, [`play`]
//! runs it, [`mask`] hides what differs from run to run.

mod mask;
mod page;
mod play;

use std::path::{Path, PathBuf};

use anyhow::{Context, ensure};
use clap::Args;
use joiner_testkit::control_plane::Programs;

use crate::{report, say, test};
use page::{Block, Page};
use play::{Place, play};

/// Pages, and folders of pages, that people read.
const PAGES: [&str; 5] = [
    "README.md",
    "CONTRIBUTING.md",
    "deploy/README.md",
    "docs",
    "examples/README.md",
];

/// What is recorded or checked.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct DocsArgs {
    /// Writes nothing; fails when an output has changed. Blocks about a live cluster are left alone.
    #[arg(long)]
    check: bool,
    /// With --check: blocks about a live cluster, too.
    #[arg(long, requires = "check")]
    live: bool,
    /// Only pages whose path contains this.
    #[arg(long, value_name = "PATH")]
    filter: Option<String>,
}

/// Records all blocks, or checks them.
pub(crate) fn run(root: &Path, args: &DocsArgs) -> anyhow::Result<()> {
    let joiner = test::build_joiner(root)?;
    let live = args.live || !args.check;
    let place = place(root, &joiner, live)?;
    let stale = problems(root, &place, args, live)?;
    report(stale)
}

/// Blocks whose output is not what it would be, with this program; those about a live cluster left out.
pub(crate) fn stale(root: &Path, joiner: &Path) -> anyhow::Result<Vec<String>> {
    let args = DocsArgs {
        check: true,
        ..DocsArgs::default()
    };
    problems(root, &place(root, joiner, false)?, &args, false)
}

fn problems(
    root: &Path,
    place: &Place,
    args: &DocsArgs,
    live: bool,
) -> anyhow::Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut n_blocks = 0;
    for path in pages(root)? {
        let name = path
            .strip_prefix(root)
            .unwrap_or(&path)
            .display()
            .to_string();
        if args
            .filter
            .as_ref()
            .is_some_and(|part| !name.contains(part.as_str()))
        {
            continue;
        }
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {name}"))?;
        let page = Page::parse(&text).with_context(|| name.clone())?;
        problems.extend(page.unrecorded.iter().map(|line| {
            format!("{name}:{line}: shows output that is not recorded: put `<!-- recorded -->` before it")
        }));
        let recorded = page
            .recorded
            .into_iter()
            .filter(|block| live || !block.live);
        let mut blocks: Vec<Block> = recorded.collect();
        n_blocks += blocks.len();
        for mut session in sessions(&mut blocks) {
            let line = session.first().map_or(0, |block| block.lines.start);
            if let Err(error) = play(place, &mut session) {
                problems.push(format!("{name}:{line}: {error:#}"));
                // As if it had not been there.
                for block in session {
                    block.commands.clear();
                }
            }
        }
        blocks.retain(|block| !block.commands.is_empty());
        let changed = || {
            let blocks = blocks.iter();
            blocks.filter(|block| !changes(&text, block).is_empty())
        };
        if args.check {
            problems.extend(changed().filter_map(|block| told(&name, &text, block)));
        } else if changed().next().is_some() {
            std::fs::write(&path, replaced(&text, &blocks))
                .with_context(|| format!("cannot write {name}"))?;
            say(&format!("wrote {name}: {}", counted(changed().count())))?;
        }
    }
    ensure!(
        n_blocks > 0 || args.filter.is_some(),
        "no block is recorded"
    );
    Ok(problems)
}

/// Blocks that share a shell; each of the others has one of its own.
fn sessions(blocks: &mut [Block]) -> Vec<Vec<&mut Block>> {
    let mut sessions: Vec<Vec<&mut Block>> = Vec::new();
    for block in blocks {
        let same = sessions.iter_mut().find(|session| {
            let first = session.first();
            block.session.is_some() && first.is_some_and(|one| one.session == block.session)
        });
        match same {
            Some(session) => session.push(block),
            None => sessions.push(vec![block]),
        }
    }
    sessions
}

fn counted(n: usize) -> String {
    format!("{n} {}", if n == 1 { "block" } else { "blocks" })
}

/// Lines that are not what they would be: number, what is there, what would be. Gaps between columns are
/// as wide as the widest name of a run, and do not count.
fn changes(text: &str, block: &Block) -> Vec<(usize, String, String)> {
    let lines: Vec<&str> = text.lines().collect();
    let (was, is) = (&lines[block.lines.clone()], block.render());
    let mut changes = Vec::new();
    for ix in 0..was.len().max(is.len()) {
        let was = was.get(ix).copied().unwrap_or_default();
        let is = is.get(ix).map_or("", String::as_str);
        if !was.split_whitespace().eq(is.split_whitespace()) {
            changes.push((block.lines.start + ix + 1, was.to_owned(), is.to_owned()));
        }
    }
    changes
}

/// What is wrong with a block, by its first line that is.
fn told(name: &str, text: &str, block: &Block) -> Option<String> {
    let changes = changes(text, block);
    let (line, was, is) = changes.first()?;
    let n = match changes.len() {
        1 => "1 line".to_owned(),
        n => format!("{n} lines"),
    };
    Some(format!(
        "{name}:{line}: {n} of this output changed: run `cargo xtask docs --filter {name}`\n    \
         shown: {was}\n    is:    {is}"
    ))
}

/// The page with what was recorded.
fn replaced(text: &str, blocks: &[Block]) -> String {
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    // From the end, so that numbers of lines stay right.
    for block in blocks.iter().rev() {
        if !changes(text, block).is_empty() {
            lines.splice(block.lines.clone(), block.render());
        }
    }
    lines.join("\n") + "\n"
}

/// All pages.
fn pages(root: &Path) -> anyhow::Result<Vec<PathBuf>> {
    let mut pages = Vec::new();
    let mut left: Vec<PathBuf> = PAGES.iter().map(|name| root.join(name)).collect();
    while let Some(path) = left.pop() {
        if path.is_dir() {
            let context = || format!("cannot read {}", path.display());
            for entry in std::fs::read_dir(&path).with_context(context)? {
                left.push(entry.with_context(context)?.path());
            }
        } else if path.extension().is_some_and(|ending| ending == "md") {
            pages.push(path);
        }
    }
    pages.sort();
    Ok(pages)
}

/// Where commands run: in the root, with this `joiner`, and for live blocks with kubectl.
fn place(root: &Path, joiner: &Path, live: bool) -> anyhow::Result<Place> {
    let mut folders: Vec<PathBuf> = joiner.parent().map(Path::to_owned).into_iter().collect();
    if live {
        let programs = Programs::find().context("cannot look for kubectl")?;
        let programs = programs.context(
            "blocks about a live cluster need kubectl: cargo xtask control-plane build, or --check",
        )?;
        folders.push(programs.folder().to_owned());
    }
    folders.extend(["/usr/local/bin", "/usr/bin", "/bin"].map(PathBuf::from));
    Ok(Place {
        root: root.to_owned(),
        path: std::env::join_paths(folders).context("a folder's name has a colon")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: &str = "\
before
<!-- recorded -->
```console
$ a
x  y
old
```
<!-- recorded -->
```console
$ b
same    words
```
after
";

    fn recorded() -> Vec<Block> {
        let mut blocks = Page::parse(PAGE).unwrap().recorded;
        blocks[0].commands[0].output = vec!["x y".to_owned(), "new".to_owned(), "more".to_owned()];
        blocks[1].commands[0].output = vec!["same words".to_owned()];
        blocks
    }

    #[test]
    fn what_has_changed_is_told_and_replaced() {
        let [first, second] = &recorded()[..] else {
            panic!("two blocks");
        };
        let line = |n, was: &str, is: &str| (n, was.to_owned(), is.to_owned());
        let expected = [line(6, "old", "new"), line(7, "", "more")];
        assert_eq!(changes(PAGE, first), expected);
        let message = told("a.md", PAGE, first).unwrap();
        assert!(
            message.starts_with("a.md:6: 2 lines of this output"),
            "{message}"
        );
        assert!(changes(PAGE, second).is_empty());
        let expected = PAGE.replace("x  y\nold", "x y\nnew\nmore");
        assert_eq!(replaced(PAGE, &recorded()), expected);
    }

    #[test]
    fn a_second_recording_changes_nothing() {
        let page = replaced(PAGE, &recorded());
        let mut blocks = Page::parse(&page).unwrap().recorded;
        blocks[0].commands = recorded()[0].commands.clone();
        assert!(blocks.iter().all(|block| changes(&page, block).is_empty()));
        assert_eq!(replaced(&page, &blocks), page);
    }

    #[test]
    fn sessions_share_a_shell() {
        let mut blocks = recorded();
        assert_eq!(sessions(&mut blocks).len(), 2);
        for block in &mut blocks {
            block.session = Some("one".to_owned());
        }
        assert_eq!(sessions(&mut blocks).len(), 1);
    }

    #[test]
    fn every_page_can_be_read() {
        let root = crate::root().unwrap();
        for path in pages(&root).unwrap() {
            let text = std::fs::read_to_string(&path).unwrap();
            Page::parse(&text).unwrap_or_else(|error| panic!("{}: {error:#}", path.display()));
        }
    }
}
