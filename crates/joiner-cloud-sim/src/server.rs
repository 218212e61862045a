//! Which version the API server has: machines run kubelets of the same.

use std::sync::OnceLock;

use joiner_cluster::KubeletSettings;
use kube::Client;

/// What is known of the API server.
#[derive(Debug, Default)]
pub(crate) struct Server {
    version: OnceLock<String>,
}

impl Server {
    /// Its version: `v1.36.3`. That of the embedded control plane as long as it does not answer.
    pub(crate) async fn version(&self, client: &Client) -> String {
        if let Some(known) = self.version.get() {
            return known.clone();
        }
        match client.apiserver_version().await {
            Ok(told) => self.version.get_or_init(|| told.git_version).clone(),
            Err(_) => KubeletSettings::default().version,
        }
    }
}
