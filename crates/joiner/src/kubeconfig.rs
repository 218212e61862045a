//! Reading the kubeconfig that users name.

use std::path::Path;

use anyhow::Context;
use kube::config::Kubeconfig;

use crate::sources::Reader;

/// The kubeconfig in a file, or in what stands for one, such as the pipe of a shell.
pub(crate) fn read(path: &Path, reader: &mut Reader) -> anyhow::Result<Kubeconfig> {
    let source = reader.read_named("the kubeconfig", path)?;
    // In a file, other files are named as seen from its folder.
    let parsed = match path.is_file() {
        true => Kubeconfig::read_from(path),
        false => Kubeconfig::from_yaml(&source.text),
    };
    parsed.with_context(|| format!("cannot read the kubeconfig {}", path.display()))
}
