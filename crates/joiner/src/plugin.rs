//! Being a plugin of kubectl: a program called `kubectl-joiner` is what `kubectl joiner` runs.

use std::ffi::OsString;
use std::path::Path;

use clap::Command;

/// The name of a plugin's program.
const PROGRAM: &str = "kubectl-joiner";
/// Flags of kubectl that go before a command of the plugin, too; each has a value.
const FLAGS: [&str; 4] = ["--kubeconfig", "--context", "--namespace", "-n"];

/// True when the first argument, the name of the program, says that kubectl has started it.
pub(crate) fn is_plugin(program: Option<&OsString>) -> bool {
    let stem = program.and_then(|program| Path::new(program).file_stem());
    stem.is_some_and(|stem| stem == PROGRAM)
}

/// The arguments with kubectl's flags behind the commands, where our parser looks for them:
/// `kubectl joiner -n shop why pod web` is `kubectl joiner why pod web -n shop`.
pub(crate) fn arguments(all: Vec<OsString>) -> Vec<OsString> {
    let mut rest = all.into_iter().peekable();
    let mut sorted: Vec<OsString> = rest.next().into_iter().collect();
    let mut moved = Vec::new();
    while let Some(flag) = rest.next_if(is_flag) {
        let has_value = flag.to_string_lossy().contains('=');
        moved.push(flag);
        if !has_value {
            moved.extend(rest.next());
        }
    }
    sorted.extend(rest);
    sorted.extend(moved);
    sorted
}

fn is_flag(argument: &OsString) -> bool {
    let text = argument.to_string_lossy();
    let name = text.split_once('=').map_or(&*text, |(name, _)| name);
    FLAGS.contains(&name)
}

/// The same commands with help that shows how kubectl's users call them.
pub(crate) fn command(joiner: Command) -> Command {
    called(joiner.bin_name("kubectl joiner"))
}

/// Names the program in examples as kubectl's users do.
fn called(mut command: Command) -> Command {
    if let Some(text) = command.get_after_help() {
        let text = text.to_string();
        command = command.after_help(as_plugin(&text));
    }
    let names: Vec<String> = command
        .get_subcommands()
        .map(|own| own.get_name().to_owned())
        .collect();
    for name in names {
        command = command.mut_subcommand(name, called);
    }
    command
}

/// Examples begin lines, or follow a pipe.
fn as_plugin(text: &str) -> String {
    text.replace("  joiner ", "  kubectl joiner ")
        .replace("| joiner ", "| kubectl joiner ")
        .replace("`joiner ", "`kubectl joiner ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sorted(line: &str) -> String {
        let all = line.split(' ').map(OsString::from).collect();
        let all = arguments(all).into_iter();
        let all: Vec<String> = all.map(|own| own.into_string().unwrap()).collect();
        all.join(" ")
    }

    #[test]
    fn flags_of_kubectl_may_come_first() {
        assert_eq!(
            sorted("kubectl-joiner -n shop --context=kind why pod web"),
            "kubectl-joiner why pod web -n shop --context=kind"
        );
        assert_eq!(
            sorted("kubectl-joiner --kubeconfig k run --cloud simulated"),
            "kubectl-joiner run --cloud simulated --kubeconfig k"
        );
        assert_eq!(
            sorted("kubectl-joiner plan -f -"),
            "kubectl-joiner plan -f -"
        );
        assert_eq!(sorted("kubectl-joiner"), "kubectl-joiner");
        assert_eq!(sorted("kubectl-joiner -n"), "kubectl-joiner -n");
    }

    #[test]
    fn the_name_of_the_program_decides() {
        for (name, expected) in [
            ("kubectl-joiner", true),
            ("/usr/local/bin/kubectl-joiner", true),
            ("C:/bin/kubectl-joiner.exe", true),
            ("joiner", false),
            ("/kubectl-joiner/joiner", false),
        ] {
            assert_eq!(is_plugin(Some(&name.into())), expected, "{name}");
        }
        assert!(!is_plugin(None));
    }
}
