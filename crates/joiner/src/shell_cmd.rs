//! `joiner completions` and `joiner man`: what a shell and a manual want to know of the flags.

use std::io::Write;
use std::path::PathBuf;

use anyhow::Context;
use clap::{Args, Command};
use clap_complete::{Shell, generate};

/// Flags of `joiner completions`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  joiner completions bash > ~/.local/share/bash-completion/completions/joiner
  joiner completions zsh > \"${fpath[1]}/_joiner\"
  joiner completions fish > ~/.config/fish/completions/joiner.fish")]
pub(crate) struct CompletionsArgs {
    /// The shell
    shell: Shell,
}

/// Flags of `joiner man`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Example:
  joiner man ~/.local/share/man/man1
  man joiner-plan")]
pub(crate) struct ManArgs {
    /// The folder for the pages, which is made if it is not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Prints the script that completes commands and flags.
pub(crate) fn completions(
    args: &CompletionsArgs,
    mut command: Command,
    out: &mut dyn Write,
) -> anyhow::Result<()> {
    // The generator does not expect that writing fails.
    let mut script = Vec::new();
    generate(args.shell, &mut command, "joiner", &mut script);
    out.write_all(&script)?;
    Ok(())
}

/// Writes one page for each command.
pub(crate) fn man(args: &ManArgs, command: Command, out: &mut dyn Write) -> anyhow::Result<()> {
    let shown = args.folder.display();
    std::fs::create_dir_all(&args.folder)
        .with_context(|| format!("cannot make the folder {shown}"))?;
    clap_mangen::generate_to(command, &args.folder)
        .with_context(|| format!("cannot write manual pages to {shown}"))?;
    writeln!(
        out,
        "Manual pages are in {shown}: try man -l {shown}/joiner.1"
    )?;
    Ok(())
}
