//! What a simulated cloud is told at its start.

use joiner_model::InstanceType;

use crate::delays::Delays;
use crate::faults::Faults;

/// Namespace of the ConfigMaps that are machines.
pub const MACHINES_NAMESPACE: &str = "joiner-machines";
/// Label of the Nodes that simulated machines join as.
pub use joiner_api::labels::ours::SIMULATED as SIMULATED_LABEL;
/// Label of the ConfigMaps that are machines.
pub use joiner_api::labels::ours::SIMULATED_INSTANCE as INSTANCE_LABEL;
/// ConfigMap whose key `faults` changes the faults of a running cloud.
pub const FAULTS_CONFIG_MAP: &str = "joiner-simulated-cloud";

/// Settings of a simulated cloud.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Namespace of the controller: of the ConfigMap about faults, and of the machines of older versions.
    pub namespace: String,
    /// EC2 region that EC2NodeClasses buy in.
    pub region: String,
    /// Whatever looks random derives from it.
    pub seed: u64,
    /// Types from a catalog file; without one, KWOKNodeClasses sell upstream's generic machines and
    /// EC2NodeClasses those of the region.
    pub instance_types: Option<Vec<InstanceType>>,
    /// How long machines take.
    pub delays: Delays,
    /// What goes wrong from the start.
    pub faults: Faults,
    /// Plays the kubelets of its machines, too. Off where somebody else does: an embedded control
    /// plane, or KWOK.
    pub simulated_kubelets: bool,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            namespace: "kube-system".to_owned(),
            region: "us-east-1".to_owned(),
            seed: 0,
            instance_types: None,
            delays: Delays::default(),
            faults: Faults::default(),
            simulated_kubelets: false,
        }
    }
}
