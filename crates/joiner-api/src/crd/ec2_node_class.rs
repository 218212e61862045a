//! Definition of EC2NodeClass.

use super::build::{Field, boolean, int32, int64, list, object, string, string_map, whole};
use super::ec2_kubelet::kubelet;
use super::ec2_selectors::{
    amis, capacity_reservations, placement_group, security_groups, subnets,
};
use super::ec2_status::status;
use super::patterns::VOLUME_SIZE;
use super::{Column, Definition};
use crate::types::{AmiFamily, InterfaceType, VolumeType};
use serde_json::json;

/// Tags that the controller sets.
const CONTROLLER_TAGS: &[&str] = &[
    "eks:eks-cluster-name",
    "karpenter.sh/nodepool",
    "karpenter.sh/nodeclaim",
    "karpenter.k8s.aws/ec2nodeclass",
];

pub(super) fn definition() -> Definition {
    Definition {
        group: "karpenter.k8s.aws",
        version: "v1",
        kind: "EC2NodeClass",
        plural: "ec2nodeclasses",
        singular: "ec2nodeclass",
        short_names: &["ec2nc", "ec2ncs"],
        category: "karpenter",
        namespaced: false,
        columns: vec![
            Column::READY,
            Column::AGE,
            Column::wide("Role", "string", ".spec.role"),
        ],
        scale: None,
        schema: whole("How instances are launched on EC2.")
            .required("spec", spec())
            .field("status", status()),
    }
}

fn spec() -> Field {
    let families: Vec<&str> = AmiFamily::ALL.iter().map(|f| f.as_str()).collect();
    let base = object("Settings of the instances.")
        .required("subnetSelectorTerms", subnets())
        .required("securityGroupSelectorTerms", security_groups())
        .field("capacityReservationSelectorTerms", capacity_reservations())
        .field("placementGroupSelector", placement_group())
        .field(
            "associatePublicIPAddress",
            boolean("Whether instances get a public address."),
        )
        .field(
            "ipPrefixCount",
            int32("Address prefixes of the first interface.").at_least(0),
        )
        .required("amiSelectorTerms", amis())
        .field(
            "amiFamily",
            string("How user data and volumes are laid out. An alias says it already.")
                .one_of(&families),
        )
        .field(
            "userData",
            string("User data, merged with what the node needs to join."),
        )
        .field(
            "role",
            string("IAM role of the instances; its profile is managed.").not_empty(),
        )
        .field(
            "instanceProfile",
            string("Instance profile that exists already.").not_empty(),
        )
        .field("tags", tags(CONTROLLER_TAGS))
        .field("kubelet", kubelet());
    with_hardware(base)
        .rule(
            "has(self.role) != has(self.instanceProfile)",
            "set exactly one of role and instanceProfile",
        )
        .rule(
            "has(self.amiFamily) || self.amiSelectorTerms.exists(x, has(x.alias))",
            "amiFamily is needed when no alias is used",
        )
        .rule(
            "!has(self.amiFamily) || self.amiFamily == 'Custom' || \
             self.amiSelectorTerms.all(x, !has(x.alias) || \
             x.alias.find('^[^@]+') == self.amiFamily.lowerAscii())",
            "amiFamily must be the family of the alias, or Custom",
        )
}

fn with_hardware(base: Field) -> Field {
    base.field("blockDeviceMappings", block_devices())
        .field(
            "instanceStorePolicy",
            string("What to do with instance stores; RAID0 joins them for use by pods.")
                .one_of(&["RAID0"]),
        )
        .field("networkInterfaces", network_interfaces())
        .field(
            "detailedMonitoring",
            boolean("Whether metrics come every minute."),
        )
        .field("metadataOptions", metadata_options(1))
        .field("connectionTracking", connection_tracking())
        .field("context", string("Passed on to the fleet request."))
        .field(
            "cpuOptions",
            object("Processor options.").field(
                "nestedVirtualization",
                string("Whether virtual machines can run inside.").one_of(&["enabled", "disabled"]),
            ),
        )
}

/// Tags of what is created, without those that the controller sets.
pub(super) fn tags(reserved: &[&str]) -> Field {
    let field = string_map("Tags for everything that is created.")
        .rule("!('' in self)", "tags need a key")
        .rule(
            "self.all(k, !k.startsWith('kubernetes.io/cluster'))",
            "tags that start with kubernetes.io/cluster are set by the controller",
        );
    reserved.iter().fold(field, |field, tag| {
        field.rule(
            format!("!('{tag}' in self)"),
            format!("the tag {tag} is set by the controller"),
        )
    })
}

fn block_devices() -> Field {
    let types: Vec<&str> = VolumeType::ALL.iter().map(|t| t.as_str()).collect();
    let ebs = object("An EBS volume.")
        .field(
            "deleteOnTermination",
            boolean("Goes away with the instance."),
        )
        .field("encrypted", boolean("Encrypted at rest."))
        .field("iops", int64("Operations per second."))
        .field("kmsKeyID", string("Key for encryption."))
        .field("snapshotID", string("Snapshot to start from."))
        .field("throughput", int64("MiB per second."))
        .field(
            "volumeInitializationRate",
            int32("MiB per second while the snapshot is read in.").range(100, 300),
        )
        .field(
            "volumeSize",
            string("Size such as 50Gi.").pattern(VOLUME_SIZE),
        )
        .field("volumeType", string("Kind of the volume.").one_of(&types))
        .rule(
            "has(self.snapshotID) || has(self.volumeSize)",
            "a volume needs a snapshotID or a volumeSize",
        )
        .rule(
            "!has(self.volumeInitializationRate) || \
             (has(self.snapshotID) && self.snapshotID != '')",
            "volumeInitializationRate needs a snapshotID",
        );
    let item = object("One volume of an instance.")
        .field("deviceName", string("Name of the device."))
        .field("ebs", ebs)
        .field(
            "rootVolume",
            boolean("This volume holds container images and ephemeral storage of pods."),
        );
    list("Volumes of an instance.", item).max_items(50).rule(
        "self.filter(x, has(x.rootVolume) && x.rootVolume).size() <= 1",
        "only one volume can be the rootVolume",
    )
}

fn network_interfaces() -> Field {
    let types: Vec<&str> = InterfaceType::ALL.iter().map(|t| t.as_str()).collect();
    let item = object("One network interface.")
        .required(
            "networkCardIndex",
            int32("Card that it sits on.").at_least(0),
        )
        .required(
            "deviceIndex",
            int32("Its place among the devices.").at_least(0),
        )
        .required(
            "interfaceType",
            string("Kind of the interface.").one_of(&types),
        );
    list("Network interfaces of an instance.", item)
        .max_items(150)
        .rule(
            "size(self) == 0 || self.exists(x, x.networkCardIndex == 0 && x.deviceIndex == 0 && \
             x.interfaceType == 'interface')",
            "card 0 needs an interface of type interface as device 0",
        )
        .rule(
            "self.all(x, self.exists_one(y, x.networkCardIndex == y.networkCardIndex && \
             x.deviceIndex == y.deviceIndex))",
            "two interfaces have the same card and device",
        )
        .rule(
            "self.all(x, x.interfaceType != 'efa-only' || self.exists_one(y, \
             y.interfaceType == 'efa-only' && x.networkCardIndex == y.networkCardIndex))",
            "a card can have only one interface of type efa-only",
        )
}

/// Access to the metadata service, with the number of hops that it has by default.
pub(super) fn metadata_options(hops: i64) -> Field {
    let toggle = |description: &str| string(description).one_of(&["enabled", "disabled"]);
    object("Access to the instance metadata service.")
        .field(
            "httpEndpoint",
            toggle("Whether it answers.").default(json!("enabled")),
        )
        .field(
            "httpProtocolIPv6",
            toggle("Whether it answers over IPv6.").default(json!("disabled")),
        )
        .field(
            "httpPutResponseHopLimit",
            int64("How far its answers travel; 1 keeps them from pods.")
                .range(1, 64)
                .default(json!(hops)),
        )
        .field(
            "httpTokens",
            string("Whether session tokens are needed.")
                .one_of(&["required", "optional"])
                .default(json!("required")),
        )
        .default(json!({
            "httpEndpoint": "enabled",
            "httpProtocolIPv6": "disabled",
            "httpPutResponseHopLimit": hops,
            "httpTokens": "required",
        }))
}

fn connection_tracking() -> Field {
    object("Idle timeouts of tracked connections, in seconds.")
        .field(
            "tcpEstablishedTimeout",
            int32("Established TCP.").range(60, 432_000),
        )
        .field(
            "udpStreamTimeout",
            int32("UDP with traffic both ways.").range(60, 180),
        )
        .field("udpTimeout", int32("Other UDP.").range(30, 60))
        .rule(
            "has(self.tcpEstablishedTimeout) || has(self.udpStreamTimeout) || has(self.udpTimeout)",
            "at least one timeout is needed",
        )
}
