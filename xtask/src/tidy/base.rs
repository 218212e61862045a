//! A crate as it was when the table was written last, as git has it.

use std::path::Path;
use std::process::Command;

use super::counts::Source;
use super::table;

/// The Rust files of a crate in the last commit that changed the table; none where git cannot tell.
pub(super) fn sources(root: &Path, folder: &Path) -> Option<Vec<Source>> {
    let commit = git(root, &["log", "-1", "--format=%H", "--", table::PATH])?;
    let commit = commit.trim();
    if commit.is_empty() {
        return None;
    }
    let files = format!("{}/*.rs", folder.display());
    let lines = git(
        root,
        &[
            "grep",
            "--full-name",
            "--null",
            "-e",
            "",
            commit,
            "--",
            &files,
        ],
    )?;
    Some(files_of(&lines, commit))
}

/// Files from their lines, each of which has the commit and the name of the file before it.
fn files_of(lines: &str, commit: &str) -> Vec<Source> {
    let mut sources: Vec<Source> = Vec::new();
    for line in lines.lines() {
        let Some((name, line)) = line.split_once('\0') else {
            continue;
        };
        let name = name.strip_prefix(commit).unwrap_or(name);
        let name = Path::new(name.trim_start_matches(':'));
        match sources.last_mut() {
            Some(last) if last.name == name => {
                last.text.push('\n');
                last.text.push_str(line);
            }
            Some(_) | None => sources.push(Source {
                name: name.to_owned(),
                text: line.to_owned(),
            }),
        }
    }
    sources
}

fn git(root: &Path, arguments: &[&str]) -> Option<String> {
    let output = Command::new("git")
        .current_dir(root)
        .args(arguments)
        .output();
    let output = output.ok().filter(|output| output.status.success())?;
    String::from_utf8(output.stdout).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_come_together_from_their_lines() {
        let lines = "abc:a/b.rs\0one\nabc:a/b.rs\0\nabc:a/b.rs\0x:y\nabc:a/c.rs\0two\n";
        let files = files_of(lines, "abc");
        let files: Vec<_> = files.iter().map(|f| (f.name.to_str(), &*f.text)).collect();
        assert_eq!(
            files,
            [(Some("a/b.rs"), "one\n\nx:y"), (Some("a/c.rs"), "two")]
        );
    }
}
