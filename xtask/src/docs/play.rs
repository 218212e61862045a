//! Runs the commands of blocks in a shell, and takes down what they print.

use std::fmt::Write as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use super::mask::Masks;
use super::page::Block;
use crate::test::run_for;

/// A session is over by then.
const CHEAP_MAX: Duration = Duration::from_secs(120);
const LIVE_MAX: Duration = Duration::from_secs(15 * 60);
/// How a session says that something unseen has failed.
const SETUP_FAILED: i32 = 97;
/// How pages call the program where it is not installed.
const FROM_SOURCE: &str = "cargo run --release -- ";

/// Where commands run.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The current folder of commands.
    pub(super) root: PathBuf,
    /// Folders with `joiner`, `kubectl` and what else is called.
    pub(super) path: std::ffi::OsString,
}

/// Runs the blocks of a session; their outputs become what was printed.
pub(super) fn play(place: &Place, blocks: &mut [&mut Block]) -> anyhow::Result<()> {
    let folder = Scratch::new()?;
    let script = script(blocks, &folder.0);
    let live = blocks.iter().any(|block| block.live);
    let mut command = Command::new("bash");
    command.args(["-c", &script]).current_dir(&place.root);
    // No settings of whoever runs this.
    command.env_clear();
    command.env("PATH", &place.path).env("HOME", &folder.0);
    command.env("KUBECONFIG", folder.0.join("kubeconfig"));
    command.envs([("LC_ALL", "C.UTF-8"), ("TERM", "dumb"), ("NO_COLOR", "1")]);
    command.stdin(Stdio::null());
    // In a group of its own, so that what it leaves behind ends with it.
    command.process_group(0);
    let limit = if live { LIVE_MAX } else { CHEAP_MAX };
    let status = run_for(&mut command, limit)?;
    match status {
        None => {
            folder.end_group()?;
            bail!("not done after {} s", limit.as_secs());
        }
        Some(status) if status.code() == Some(SETUP_FAILED) => {
            let said = folder.read("setup")?;
            bail!("a setup has failed: {}", said.trim());
        }
        Some(_) => {}
    }
    let mut masks = Masks::new()?;
    for (n, block) in blocks.iter_mut().enumerate() {
        let (live, from) = (block.live, block.from.clone());
        masks.next_block();
        for (k, command) in block.commands.iter_mut().enumerate() {
            if command.expand {
                let shown = folder.read(&format!("{n}.{k}.shown"))?;
                command.shown = Some(masks.line(shown.trim_end(), live));
            }
            let printed = folder.read(&format!("{n}.{k}"))?;
            let lines = kept(&printed, from.as_deref())?;
            let masked = lines.iter().map(|line| masks.line(line, live));
            command.output = masked.collect();
        }
    }
    Ok(())
}

/// The lines that a page shows.
fn kept<'p>(printed: &'p str, from: Option<&str>) -> anyhow::Result<Vec<&'p str>> {
    let mut lines: Vec<&str> = printed.trim_end().lines().map(str::trim_end).collect();
    if let Some(from) = from {
        let first = lines.iter().position(|line| line.starts_with(from));
        let first = first.with_context(|| format!("no line begins with {from:?}: {printed}"))?;
        lines.drain(..first);
    }
    Ok(lines)
}

/// The whole session for a shell. Each command writes into a file of its own.
fn script(blocks: &[&mut Block], folder: &Path) -> String {
    let mut script = format!("OUT='{}'\nprevious=0\n", folder.display());
    script.push_str("echo $$ >\"$OUT/group\"\n");
    // What still runs at the end goes with it, and its last words with that.
    script.push_str("trap 'trap \"\" TERM; kill -TERM 0; wait' EXIT\n");
    for (n, block) in blocks.iter().enumerate() {
        for setup in &block.setup {
            let _ = writeln!(
                script,
                "{{ {setup}\n}} >\"$OUT/setup\" 2>&1 || exit {SETUP_FAILED}"
            );
        }
        for (k, command) in block.commands.iter().enumerate() {
            let shown = command.run.as_deref().or(command.shown.as_deref());
            let text = shown.unwrap_or_default().replace(FROM_SOURCE, "joiner ");
            if command.expand {
                let _ = writeln!(script, "printf '%s' \"{text}\" >\"$OUT/{n}.{k}.shown\"");
            }
            // A command sees how the one before has ended.
            let _ = writeln!(
                script,
                "(exit $previous)\n{{ {text}\n}} >\"$OUT/{n}.{k}\" 2>&1; previous=$?"
            );
        }
    }
    script
}

/// A folder for one session.
struct Scratch(PathBuf);

impl Scratch {
    fn new() -> anyhow::Result<Self> {
        use std::sync::atomic::{AtomicU32, Ordering};
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let n = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("joiner-docs-{}-{n}", std::process::id());
        let folder = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&folder)
            .with_context(|| format!("cannot create {}", folder.display()))?;
        Ok(Self(folder))
    }

    fn read(&self, name: &str) -> anyhow::Result<String> {
        let bytes = std::fs::read(self.0.join(name));
        let bytes = bytes.with_context(|| format!("nothing was written to {name}"))?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }
}

impl Scratch {
    /// Ends a shell that hangs, and what it has started.
    fn end_group(&self) -> anyhow::Result<()> {
        let group = format!("-{}", self.read("group")?.trim());
        let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
        Ok(())
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::docs::page::Page;

    fn played(page: &str) -> anyhow::Result<Vec<String>> {
        let mut page = Page::parse(page).unwrap();
        let place = Place {
            root: std::env::temp_dir(),
            path: "/usr/local/bin:/usr/bin:/bin".into(),
        };
        let mut blocks: Vec<&mut Block> = page.recorded.iter_mut().collect();
        play(&place, &mut blocks)?;
        Ok(page.recorded.iter().flat_map(Block::render).collect())
    }

    #[test]
    fn outputs_are_what_commands_print() {
        let page = "<!-- recorded -->\n```console\n$ sh -c 'echo a 12.5 ms; echo b >&2; exit 2'\nold\n\
                    $ echo $?\n```\n";
        let expected = [
            "$ sh -c 'echo a 12.5 ms; echo b >&2; exit 2'",
            "a … ms",
            "b",
            "$ echo $?",
            "2",
        ];
        assert_eq!(played(page).unwrap(), expected);
    }

    #[test]
    fn a_session_goes_on_and_ends_what_it_has_started() {
        let page = "<!-- recorded: session a\nsetup: sleep 1000 & echo $! >pid; N=7 -->\n\
                    ```console\n$ cd /\n```\n\
                    <!-- recorded: session a\nshow: echo web-$N\nrun: pwd\nfrom: / -->\n\
                    ```console\n$ echo web-1\n$ ls\n```\n";
        let error = played(page).unwrap_err().to_string();
        assert!(error.contains("no line begins with"), "{error}");
        let page = page.replace("from: / ", "");
        let expected = ["$ cd /", "$ echo web-7", "web-7", "$ ls", "/"];
        assert_eq!(played(&page).unwrap(), expected);
        let pid = std::fs::read_to_string(std::env::temp_dir().join("pid")).unwrap();
        std::fs::remove_file(std::env::temp_dir().join("pid")).unwrap();
        let is_there = Path::new("/proc").join(pid.trim()).join("cwd").exists();
        assert!(!is_there, "{pid}");
    }

    #[test]
    fn a_setup_that_fails_is_told() {
        let page = "<!-- recorded\nsetup: echo no such cluster; false -->\n```console\n$ ls\n```\n";
        let error = played(page).unwrap_err().to_string();
        assert_eq!(error, "a setup has failed: no such cluster");
    }
}
