//! From the spec of a pod or pod template to a draft.

use joiner_model::{HostPort, Labels, Name, Protocol};

use crate::draft::{Draft, Priority};
use crate::error::ReadError;
use crate::names::Names;
use crate::wire::pod::{ContainerPort, PodSpec, PodStatus};
use crate::wire::{TextMap, text};
use crate::{requests, selection, topology};

/// A volume that a pod mounts through a claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum VolumeUse {
    /// A claim with this name in the pod's namespace.
    Claim(Name),
    /// A claim that is made together with the pod.
    Ephemeral {
        /// Name of the volume; the claim is called `pod-volume`.
        volume: Name,
        /// Storage class of the template: `None` is the default class.
        class: Option<Name>,
    },
}

impl VolumeUse {
    /// The claim of a pod, as `namespace/name`.
    pub(crate) fn claim(&self, namespace: &str, pod: &str) -> Name {
        match self {
            Self::Claim(claim) => format!("{namespace}/{claim}").into(),
            Self::Ephemeral { volume, .. } => format!("{namespace}/{pod}-{volume}").into(),
        }
    }
}

/// Reads a pod spec, and what is odd about it though not wrong. Errors name the field from `spec`
/// on.
pub(crate) fn draft(
    namespace: &str,
    labels: Option<&TextMap<'_>>,
    (spec, status): (&PodSpec<'_>, Option<&PodStatus<'_>>),
    names: &mut Names,
) -> Result<(Draft, Vec<String>), ReadError> {
    let mut draft = Draft::default();
    draft.shape.namespace = names.get(namespace);
    draft.shape.labels = self::labels(labels, names);
    draft.priority = match (spec.priority, text(&spec.priority_class_name)) {
        (Some(priority), _) => Priority::Given(priority),
        (None, "") => Priority::Unset,
        (None, class) => Priority::Class(names.get(class)),
    };
    let class = text(&spec.runtime_class_name);
    if spec.overhead.is_none() && !class.is_empty() {
        draft.runtime_class = Some(names.get(class));
    }
    draft.shape.requests = requests::effective(spec, status);
    draft.limits = requests::limits(spec);
    let selection = selection::selection(spec, names)?;
    draft.shape.node_selector = selection.selector;
    draft.shape.node_terms = selection.required;
    draft.shape.preferred_node_terms = selection.preferred;
    let devices = claims_devices(spec)
        .then(|| "it claims devices (resourceClaims), which is not supported yet".to_owned());
    draft.ignored = devices.or(selection.ignored).map(|why| names.get(&why));
    let tolerations = spec.tolerations.as_deref().unwrap_or_default();
    draft.shape.tolerations = selection::tolerations(tolerations, "spec.tolerations", names)?;
    draft.shape.ports = ports(spec, names)?;
    let notes = topology::rules(spec, &mut draft, names)?;
    Ok((draft, notes))
}

/// True for a pod that needs devices handed out by a driver: the pod as a whole, or one of its
/// containers.
pub(crate) fn claims_devices(spec: &PodSpec<'_>) -> bool {
    let containers = spec.containers.iter().chain(&spec.init_containers);
    let of_containers = containers.flatten().map(|own| own.resources.as_ref());
    let resources = of_containers.chain([spec.resources.as_ref()]).flatten();
    let mut claims = resources
        .map(|own| own.claims.as_ref())
        .chain([spec.resource_claims.as_ref()])
        .flatten();
    claims.any(|claims| !claims.is_empty())
}

/// Labels as the model keeps them.
pub(crate) fn labels(given: Option<&TextMap<'_>>, names: &mut Names) -> Labels {
    given
        .into_iter()
        .flatten()
        .map(|(key, value)| (names.get(key), names.get(value)))
        .collect()
}

/// Claims behind the volumes of a pod, in order. Errors name the field from `spec` on.
pub(crate) fn volumes(
    spec: &PodSpec<'_>,
    names: &mut Names,
) -> Result<Box<[VolumeUse]>, ReadError> {
    let mut uses = Vec::new();
    for (ix, volume) in spec.volumes.iter().flatten().enumerate() {
        if let Some(claim) = &volume.persistent_volume_claim {
            let claim = text(&claim.claim_name);
            if claim.is_empty() {
                let field = format!("spec.volumes[{ix}].persistentVolumeClaim.claimName");
                return Err(ReadError::new("there is no name of a claim").field(field));
            }
            uses.push(VolumeUse::Claim(names.get(claim)));
        } else if let Some(ephemeral) = &volume.ephemeral {
            let template = ephemeral.volume_claim_template.as_ref();
            let class = template
                .and_then(|template| template.spec.as_ref())
                .and_then(|spec| spec.storage_class_name.as_deref());
            uses.push(VolumeUse::Ephemeral {
                volume: names.get(text(&volume.name)),
                class: class.map(|class| names.get(class)),
            });
        }
    }
    Ok(uses.into_boxed_slice())
}

fn ports(spec: &PodSpec<'_>, names: &mut Names) -> Result<Vec<HostPort>, ReadError> {
    let host_network = spec.host_network == Some(true);
    let mut ports = Vec::new();
    for (container_ix, container) in spec.containers.iter().flatten().enumerate() {
        for (port_ix, port) in container.ports.iter().flatten().enumerate() {
            let taken = host_port(port, host_network);
            if taken == 0 {
                continue;
            }
            let protocol = match text(&port.protocol) {
                "" | "TCP" => Protocol::Tcp,
                "UDP" => Protocol::Udp,
                "SCTP" => Protocol::Sctp,
                other => {
                    let field =
                        format!("spec.containers[{container_ix}].ports[{port_ix}].protocol");
                    let problem = format!("{other:?} is not one of TCP, UDP, SCTP");
                    return Err(ReadError::new(problem).field(field));
                }
            };
            let ip = match text(&port.host_ip) {
                "" => "0.0.0.0",
                ip => ip,
            };
            ports.push(HostPort {
                ip: names.get(ip),
                port: taken,
                protocol,
            });
        }
    }
    ports.sort();
    ports.dedup();
    Ok(ports)
}

/// On the network of the host, every port of a container is one of the host.
fn host_port(port: &ContainerPort<'_>, host_network: bool) -> u16 {
    match port.host_port {
        Some(port) if port != 0 => port,
        _ if host_network => port.container_port.unwrap_or(0),
        _ => 0,
    }
}
