//! The helm program, with which tests render the chart: built once, outside of the tree.
//!
//! It comes from the module that `hack/helm/go.mod` pins, apart from the control plane's, so that
//! neither sways the versions of what the other is built from.

use std::path::{Path, PathBuf};

use anyhow::Context;
use joiner_testkit::control_plane::{Helm, VERSION, helm_cache, is_ci};

use crate::control_plane::{build_one, fill, go_build, has_go, tell};
use crate::say;

/// The Go module, below the root.
const MODULE: &str = "hack/helm";
const PACKAGE: &str = "helm.sh/helm/v3/cmd/helm";

/// Builds the program unless it is there, and prints its path.
pub(crate) fn run(root: &Path) -> anyhow::Result<()> {
    let program = find_or_build(root)?;
    let program = program.context("there is no helm: install Go, or set JOINER_HELM")?;
    say(&program.display().to_string())
}

/// The program, from `JOINER_HELM`, from the cache, or from a build. None when it cannot be had and
/// this is not CI.
pub(crate) fn find_or_build(root: &Path) -> anyhow::Result<Option<PathBuf>> {
    if let Some(helm) = Helm::named()? {
        return Ok(Some(helm.program().to_owned()));
    }
    let folder = helm_cache().context("set JOINER_CACHE or HOME: there is no cache folder")?;
    let program = folder.join("helm");
    if program.is_file() {
        return Ok(Some(program));
    }
    if !has_go() {
        let why = "there is no helm to test the chart with: install Go, or set JOINER_HELM";
        anyhow::ensure!(!is_ci(), why);
        return Ok(None);
    }
    tell("building helm: once, about 2 minutes on two cores");
    fill(&folder, |draft| {
        let (module, target) = (root.join(MODULE), draft.join("helm"));
        build_one(&mut go_build(&module, PACKAGE, &flags(), &target), "helm")
    })?;
    Ok(Some(program))
}

/// Without these it renders for a Kubernetes of years ago.
fn flags() -> String {
    let mut numbers = VERSION.trim_start_matches('v').split('.');
    let mut flags = "-s -w".to_owned();
    for name in ["k8sVersionMajor", "k8sVersionMinor"] {
        let number = numbers.next().unwrap_or_default();
        for package in ["chartutil", "lint/rules"] {
            flags.push_str(&format!(
                " -X helm.sh/helm/v3/pkg/{package}.{name}={number}"
            ));
        }
    }
    flags
}

#[cfg(test)]
mod tests {
    use super::*;
    use joiner_testkit::control_plane::HELM_VERSION;

    #[test]
    fn the_module_is_of_our_version() {
        let root = crate::root().unwrap();
        let module = std::fs::read_to_string(root.join(MODULE).join("go.mod")).unwrap();
        assert!(module.contains(&format!("tool {PACKAGE}\n")));
        assert!(module.contains(&format!("helm.sh/helm/v3 {HELM_VERSION} ")));
    }

    #[test]
    fn the_version_of_kubernetes_is_linked_in() {
        let minor = VERSION.split('.').nth(1).unwrap();
        let flags = flags();
        assert!(
            flags.contains(&format!("chartutil.k8sVersionMinor={minor}")),
            "{flags}"
        );
    }
}
