//! The hash of a node class's static fields, as it stands in the annotation
//! `karpenter.k8s.aws/ec2nodeclass-hash` of classes and claims.
//!
//! Nodes drift when it changes, so it is upstream's to the digit: otherwise a take-over would replace every
//! node. What selectors come to is compared by value, see [`crate::drift`].

use joiner_api::structural::{Fields, bytes, map, map_with, numbers, set, string, text};
use joiner_api::types::{
    BlockDevice, BlockDeviceMapping, ConnectionTracking, CpuOptions, DurationText,
    Ec2NodeClassSpec, Kubelet, MaxPods, MetadataOptions, NetworkInterface, PlacementGroupSelector,
    Quantity,
};

use crate::family;

/// The version of the algorithm that we write into annotations.
pub const HASH_VERSION: HashVersion = HashVersion::V5;

/// A version of upstream's algorithm.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HashVersion {
    /// Of the releases 1.12 to 1.14: kubelet settings are a structure inside of the spec.
    V5,
    /// Of the release after 1.14: kubelet settings count as the text of their JSON.
    V6,
}

impl HashVersion {
    /// As the annotation says it.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V5 => "v5",
            Self::V6 => "v6",
        }
    }
}

/// The hash of a class in decimal. `ca_bundle` is the cluster's certificate as nodes get it, in base64.
#[must_use]
pub fn class_hash(spec: &Ec2NodeClassSpec, ca_bundle: &str, version: HashVersion) -> String {
    let family = string(family::of(spec).as_str());
    let parts = [spec_hash(spec, version), family, string(ca_bundle)];
    let kubelet = match version {
        HashVersion::V5 => None,
        HashVersion::V6 => Some(string(&kubelet_text(spec.kubelet.as_ref()))),
    };
    set(parts.into_iter().chain(kubelet)).to_string()
}

fn spec_hash(spec: &Ec2NodeClassSpec, version: HashVersion) -> u64 {
    let kubelet = match version {
        HashVersion::V5 => spec.kubelet.as_ref().map(kubelet),
        HashVersion::V6 => None,
    };
    let volumes = spec.block_device_mappings.as_deref();
    let interfaces = spec.network_interfaces.as_deref();
    let policy = spec.instance_store_policy.map(|policy| policy.as_str());
    Fields::of("EC2NodeClassSpec")
        .with(
            "PlacementGroupSelector",
            spec.placement_group_selector.as_ref().map(placement_group),
        )
        .with(
            "AssociatePublicIPAddress",
            spec.associate_public_ip_address.map(flag),
        )
        .with("UserData", spec.user_data.as_deref().map(string))
        .with("Role", spec.role.as_deref().and_then(text))
        .with(
            "InstanceProfile",
            spec.instance_profile.as_deref().map(string),
        )
        .with("Tags", spec.tags.as_ref().map(map))
        .with("Kubelet", kubelet)
        .with(
            "BlockDeviceMappings",
            volumes.map(|volumes| set(volumes.iter().map(mapping))),
        )
        .with("InstanceStorePolicy", policy.map(string))
        .with(
            "NetworkInterfaces",
            interfaces.map(|interfaces| set(interfaces.iter().map(interface))),
        )
        .with("DetailedMonitoring", spec.detailed_monitoring.map(flag))
        .with(
            "MetadataOptions",
            spec.metadata_options.as_ref().map(metadata_options),
        )
        .with(
            "ConnectionTracking",
            spec.connection_tracking.as_ref().map(connection_tracking),
        )
        .with("Context", spec.context.as_deref().map(string))
        .with("CPUOptions", spec.cpu_options.as_ref().map(cpu_options))
        .hash()
}

fn placement_group(group: &PlacementGroupSelector) -> u64 {
    Fields::of("PlacementGroupSelector")
        .with("Name", group.name.as_deref().and_then(text))
        .with("ID", group.id.as_deref().and_then(text))
        .hash()
}

fn kubelet(kubelet: &Kubelet) -> u64 {
    let dns = kubelet.cluster_dns.as_deref();
    let max_pods = match &kubelet.max_pods {
        Some(MaxPods::Number(count)) => Some(int32(*count)),
        // The releases that hash this way know no expressions.
        Some(MaxPods::Expression(text)) => Some(string(text)),
        None => None,
    };
    let grace = kubelet.eviction_soft_grace_period.as_ref();
    let number = |number: Option<i32>| number.map(|number| int32(number.into()));
    Fields::of("KubeletConfiguration")
        .with(
            "ClusterDNS",
            dns.map(|addresses| set(addresses.iter().map(|address| string(address)))),
        )
        .with("MaxPods", max_pods)
        .with("PodsPerCore", number(kubelet.pods_per_core))
        .with("SystemReserved", kubelet.system_reserved.as_ref().map(map))
        .with("KubeReserved", kubelet.kube_reserved.as_ref().map(map))
        .with("EvictionHard", kubelet.eviction_hard.as_ref().map(map))
        .with("EvictionSoft", kubelet.eviction_soft.as_ref().map(map))
        .with(
            "EvictionSoftGracePeriod",
            grace.map(|notices| {
                map_with(
                    notices
                        .iter()
                        .map(|(signal, notice)| (signal, duration(notice))),
                )
            }),
        )
        .with(
            "EvictionMaxPodGracePeriod",
            number(kubelet.eviction_max_pod_grace_period),
        )
        .with(
            "ImageGCHighThresholdPercent",
            number(kubelet.image_gc_high_threshold_percent),
        )
        .with(
            "ImageGCLowThresholdPercent",
            number(kubelet.image_gc_low_threshold_percent),
        )
        .with("CPUCFSQuota", kubelet.cpu_cfs_quota.map(flag))
        .hash()
}

/// Text that is no duration counts as none; the schema keeps it out.
fn duration(text: &DurationText) -> u64 {
    let length = text.parse().ok().flatten();
    let nanos = length.and_then(|length| u64::try_from(length.as_nanos()).ok());
    let nanos = nanos.filter(|nanos| *nanos > 0);
    Fields::of("Duration")
        .with("Duration", nanos.map(|nanos| numbers(&[nanos])))
        .hash()
}

/// Kubelet settings as compact JSON with sorted keys; `null` when there are none.
fn kubelet_text(kubelet: Option<&Kubelet>) -> String {
    let value = kubelet.and_then(|kubelet| serde_json::to_value(kubelet).ok());
    match value {
        Some(value) if value.as_object().is_some_and(|fields| !fields.is_empty()) => {
            value.to_string()
        }
        _ => "null".to_owned(),
    }
}

fn mapping(mapping: &BlockDeviceMapping) -> u64 {
    Fields::of("BlockDeviceMapping")
        .with("DeviceName", mapping.device_name.as_deref().map(string))
        .with("EBS", mapping.ebs.as_ref().map(volume))
        // No pointer upstream: false counts as not set.
        .with(
            "RootVolume",
            mapping.root_volume.filter(|root| *root).map(flag),
        )
        .hash()
}

fn volume(volume: &BlockDevice) -> u64 {
    let rate = volume.volume_initialization_rate;
    let size = volume.volume_size.as_ref().map(canonical_size);
    Fields::of("BlockDevice")
        .with(
            "DeleteOnTermination",
            volume.delete_on_termination.map(flag),
        )
        .with("Encrypted", volume.encrypted.map(flag))
        .with("IOPS", volume.iops.map(int64))
        .with("KMSKeyID", volume.kms_key_id.as_deref().map(string))
        .with("SnapshotID", volume.snapshot_id.as_deref().map(string))
        .with("Throughput", volume.throughput.map(int64))
        .with(
            "VolumeInitializationRate",
            rate.map(|rate| int32(rate.into())),
        )
        .with("VolumeSize", size.as_deref().map(string))
        .with(
            "VolumeType",
            volume
                .volume_type
                .map(|volume_type| string(volume_type.as_str())),
        )
        .hash()
}

/// A size in the largest unit that divides it: `1024Gi` is `1Ti`. What the schema does not let in stays.
fn canonical_size(size: &Quantity) -> String {
    const UNITS: [(&str, u64, &[&str]); 4] = [
        ("Gi", 1024, &["Gi", "Ti", "Pi", "Ei"]),
        ("Ti", 1024, &["Ti", "Pi", "Ei"]),
        ("G", 1000, &["G", "T", "P", "E"]),
        ("T", 1000, &["T", "P", "E"]),
    ];
    let text = size.as_str();
    let parsed = UNITS.iter().find_map(|(unit, step, names)| {
        let number: u64 = text.strip_suffix(unit)?.parse().ok()?;
        Some((number, *step, *names))
    });
    let Some((mut number, step, names)) = parsed else {
        return text.to_owned();
    };
    let mut names = names.iter().peekable();
    let mut unit = names.next().copied().unwrap_or_default();
    while number > 0 && number.is_multiple_of(step) && names.peek().is_some() {
        number /= step;
        unit = names.next().copied().unwrap_or_default();
    }
    format!("{number}{unit}")
}

fn interface(interface: &NetworkInterface) -> u64 {
    let index = |index: i32| (index != 0).then(|| int32(index.into()));
    Fields::of("NetworkInterface")
        .with("NetworkCardIndex", index(interface.network_card_index))
        .with("DeviceIndex", index(interface.device_index))
        .with(
            "InterfaceType",
            Some(string(interface.interface_type.as_str())),
        )
        .hash()
}

fn metadata_options(options: &MetadataOptions) -> u64 {
    let hops = options.http_put_response_hop_limit;
    Fields::of("MetadataOptions")
        .with(
            "HTTPEndpoint",
            options
                .http_endpoint
                .map(|endpoint| string(endpoint.as_str())),
        )
        .with(
            "HTTPProtocolIPv6",
            options.http_protocol_ipv6.map(|ipv6| string(ipv6.as_str())),
        )
        .with("HTTPPutResponseHopLimit", hops.map(int64))
        .with(
            "HTTPTokens",
            options.http_tokens.map(|tokens| string(tokens.as_str())),
        )
        .hash()
}

fn connection_tracking(tracking: &ConnectionTracking) -> u64 {
    let seconds = |seconds: Option<i32>| seconds.map(|seconds| int32(seconds.into()));
    Fields::of("ConnectionTracking")
        .with(
            "TCPEstablishedTimeout",
            seconds(tracking.tcp_established_timeout),
        )
        .with("UDPStreamTimeout", seconds(tracking.udp_stream_timeout))
        .with("UDPTimeout", seconds(tracking.udp_timeout))
        .hash()
}

fn cpu_options(options: &CpuOptions) -> u64 {
    let nested = options.nested_virtualization;
    Fields::of("CPUOptions")
        .with(
            "NestedVirtualization",
            nested.map(|nested| string(nested.as_str())),
        )
        .hash()
}

fn flag(flag: bool) -> u64 {
    bytes([u8::from(flag)].into_iter())
}

/// A number of 32 bits; schemas keep larger ones out.
fn int32(number: i64) -> u64 {
    bytes(number.to_le_bytes().into_iter().take(4))
}

fn int64(number: i64) -> u64 {
    bytes(number.to_le_bytes().into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_told_in_the_largest_unit() {
        for (text, expected) in [
            ("100G", "100G"),
            ("1000G", "1T"),
            ("4Gi", "4Gi"),
            ("1024Gi", "1Ti"),
            ("1536Gi", "1536Gi"),
            ("020Gi", "20Gi"),
            ("10Ti", "10Ti"),
            ("odd", "odd"),
        ] {
            assert_eq!(canonical_size(&Quantity::from(text)), expected);
        }
    }
}
