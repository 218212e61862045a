//! What tests need besides Rust and Go: the packages that `hack/packages` lists.
//!
//! In CI they are installed first. Elsewhere tests use what is there, and say what they lack.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, bail};

use super::step::{Verdict, run_for};
use crate::say;

const FILE: &str = "hack/packages";
const INSTALL_MAX: Duration = Duration::from_secs(15 * 60);

/// A package of one of the registries.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Package {
    Debian(String),
    /// With its version, as `NAME==VERSION`.
    Python(String),
    /// With its version, as `PATH@VERSION`.
    Go(String),
}

/// The packages of a list: one a line, after the name of its registry.
fn parse(text: &str) -> anyhow::Result<Vec<Package>> {
    let mut packages = Vec::new();
    for (ix, line) in text.lines().enumerate() {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let package = match line.split_once(' ').map(|(kind, name)| (kind, name.trim())) {
            Some(("apt", name)) => Package::Debian(name.to_owned()),
            Some(("pip", name)) if name.contains("==") => Package::Python(name.to_owned()),
            Some(("go", name)) if name.contains('@') => Package::Go(name.to_owned()),
            _ => bail!(
                "{FILE}:{}: {line:?} is not `apt NAME`, `pip NAME==VERSION` or `go PATH@VERSION`",
                ix + 1
            ),
        };
        packages.push(package);
    }
    Ok(packages)
}

/// Installs what is missing.
pub(super) fn install(root: &Path) -> anyhow::Result<Verdict> {
    let text = std::fs::read_to_string(root.join(FILE)).context("cannot read hack/packages")?;
    let packages = parse(&text)?;
    let names = |of: fn(&Package) -> Option<&String>| -> Vec<String> {
        packages.iter().filter_map(of).cloned().collect()
    };
    let debian = names(|package| match package {
        Package::Debian(name) => Some(name),
        Package::Python(_) | Package::Go(_) => None,
    });
    let python = names(|package| match package {
        Package::Python(name) => Some(name),
        Package::Debian(_) | Package::Go(_) => None,
    });
    let go = names(|package| match package {
        Package::Go(name) => Some(name),
        Package::Debian(_) | Package::Python(_) => None,
    });
    let missing: Vec<String> = debian.into_iter().filter(|name| !is_there(name)).collect();
    if !missing.is_empty() {
        call("apt-get", &["update", "-qq"], &[])?;
        call(
            "apt-get",
            &["install", "-y", "-qq", "--no-install-recommends"],
            &missing,
        )?;
    }
    if !python.is_empty() {
        call("python3", &["-m", "pip", "install", "--quiet"], &python)?;
    }
    for module in go {
        call("go", &["install"], &[module])?;
    }
    Ok(Verdict::Passed(format!("{} listed", packages.len())))
}

/// True when this Debian package is installed.
fn is_there(name: &str) -> bool {
    let mut command = Command::new("dpkg");
    command.args(["--status", name]);
    let quiet = command.stdout(Stdio::null()).stderr(Stdio::null());
    quiet.status().is_ok_and(|status| status.success())
}

fn call(program: &str, arguments: &[&str], names: &[String]) -> anyhow::Result<()> {
    let line = format!("{program} {} {}", arguments.join(" "), names.join(" "));
    say(line.trim())?;
    let mut command = Command::new(program);
    command.args(arguments).args(names);
    command.env("DEBIAN_FRONTEND", "noninteractive");
    match run_for(&mut command, INSTALL_MAX)? {
        Some(status) if status.success() => Ok(()),
        Some(status) => bail!("{line}: {status}"),
        None => bail!("{line}: not done after {} s", INSTALL_MAX.as_secs()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_says_registry_and_version() {
        let text =
            "# for tests\napt postgresql\npip moto==5.1.0 # a fake of EC2\n\ngo x.org/y@v1.2.3\n";
        let expected = [
            Package::Debian("postgresql".to_owned()),
            Package::Python("moto==5.1.0".to_owned()),
            Package::Go("x.org/y@v1.2.3".to_owned()),
        ];
        assert_eq!(parse(text).unwrap(), expected);
    }

    #[test]
    fn a_line_without_a_version_is_refused() {
        for line in ["pip moto", "go x.org/y", "npm left-pad", "postgresql"] {
            let error = parse(&format!("\n{line}\n")).unwrap_err().to_string();
            assert!(
                error.contains("hack/packages:2") && error.contains(line),
                "{error}"
            );
        }
    }

    #[test]
    fn the_list_of_this_repository_is_sound() {
        let root = crate::root().unwrap();
        let text = std::fs::read_to_string(root.join(FILE)).unwrap();
        parse(&text).unwrap();
    }
}
