//! The helm program: where it is, and what it makes of a chart.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::Error;
use super::programs::{cache, is_ci, setting};

/// The version that the module in `hack/helm` pins.
pub const HELM_VERSION: &str = "v3.22.0";
/// Names the program; it goes before the one in the cache.
pub const HELM_VARIABLE: &str = "JOINER_HELM";

/// The helm program.
#[derive(Clone, Debug)]
pub struct Helm {
    program: PathBuf,
}

impl Helm {
    /// The program that the environment names (`JOINER_HELM`), else the one in the cache, if it is
    /// there.
    ///
    /// # Errors
    /// When the named one is not there, or when there is none and `CI` is `true`.
    pub fn find() -> Result<Option<Self>, Error> {
        if let Some(named) = Self::named()? {
            return Ok(Some(named));
        }
        let program = helm_cache().map(|folder| folder.join("helm"));
        match program.filter(|program| program.is_file()) {
            Some(program) => Ok(Some(Self { program })),
            None if is_ci() => Err(Error::NoHelm),
            None => Ok(None),
        }
    }

    /// The program that the environment names.
    ///
    /// # Errors
    /// When it is not there.
    pub fn named() -> Result<Option<Self>, Error> {
        let named = setting(HELM_VARIABLE).map(PathBuf::from);
        named.map(Self::at).transpose()
    }

    fn at(path: PathBuf) -> Result<Self, Error> {
        match path.is_file() {
            true => Ok(Self { program: path }),
            false => Err(Error::NotHelm { path }),
        }
    }

    /// The file of the program.
    #[must_use]
    pub fn program(&self) -> &Path {
        &self.program
    }

    /// Runs helm and returns what it prints. It sees no settings of the user.
    ///
    /// # Errors
    /// When helm fails: the message is what it says.
    pub fn run(&self, arguments: &[&str]) -> Result<String, Error> {
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::null());
        let nowhere = std::env::temp_dir().join("joiner-helm-has-no-settings");
        for name in ["HELM_CONFIG_HOME", "HELM_DATA_HOME", "HELM_CACHE_HOME"] {
            command.env(name, &nowhere);
        }
        command.env("KUBECONFIG", &nowhere);
        let output = command.output();
        let output = output.map_err(Error::io(format!("run {}", self.program.display())))?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(Error::Helm {
            arguments: arguments.join(" "),
            message: String::from_utf8_lossy(&output.stderr).trim().to_owned(),
        })
    }

    /// What a chart makes of a release in a namespace and of settings, each `key=value`.
    ///
    /// # Errors
    /// When the chart refuses the values: the message is what helm says.
    pub fn template(
        &self,
        chart: &Path,
        release: &str,
        namespace: &str,
        settings: &[&str],
    ) -> Result<String, Error> {
        let chart = chart.display().to_string();
        let mut arguments = vec!["template", release, &chart, "--namespace", namespace];
        for setting in settings {
            // A list or an object comes as JSON.
            let is_json = setting.contains("=[") || setting.contains("={");
            arguments.push(if is_json { "--set-json" } else { "--set" });
            arguments.push(setting);
        }
        self.run(&arguments)
    }
}

/// Where a helm that was built from source is kept, outside of any tree.
#[must_use]
pub fn helm_cache() -> Option<PathBuf> {
    Some(cache()?.join("helm").join(HELM_VERSION))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_not_there_is_named() {
        let error = Helm::at(PathBuf::from("nowhere/helm")).expect_err("it is not there");
        let words = "JOINER_HELM names nowhere/helm, which is no file";
        assert_eq!(error.to_string(), words);
    }
}
