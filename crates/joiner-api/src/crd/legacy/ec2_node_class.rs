//! Definition of EC2NodeClass v1beta1.

use super::parts;
use crate::crd::build::{Field, boolean, int64, list, object, string, whole};
use crate::crd::ec2_node_class::{metadata_options, tags};
use crate::crd::ec2_selectors::{TERMS_MAX, needs_one_of, security_groups, subnets};
use crate::crd::patterns::AMI_ID;
use crate::crd::{Column, Definition};
use crate::types::VolumeType;

/// Tags that the controller set.
pub(super) const CONTROLLER_TAGS: &[&str] = &[
    "karpenter.sh/managed-by",
    "karpenter.sh/nodepool",
    "karpenter.sh/nodeclaim",
    "karpenter.k8s.aws/ec2nodeclass",
];
const FAMILIES: &[&str] = &[
    "AL2",
    "AL2023",
    "Bottlerocket",
    "Ubuntu",
    "Custom",
    "Windows2019",
    "Windows2022",
];

pub(super) fn definition() -> Definition {
    Definition {
        group: "karpenter.k8s.aws",
        version: "v1beta1",
        kind: "EC2NodeClass",
        plural: "ec2nodeclasses",
        singular: "ec2nodeclass",
        short_names: &["ec2nc", "ec2ncs"],
        category: "karpenter",
        namespaced: false,
        columns: vec![Column::READY, Column::AGE],
        scale: None,
        schema: whole("How instances are launched on EC2.")
            .required("spec", spec())
            .field("status", crate::crd::ec2_status::status()),
    }
}

fn spec() -> Field {
    let base = object("Settings of the instances.")
        .required("subnetSelectorTerms", subnets())
        .required("securityGroupSelectorTerms", security_groups())
        .field(
            "associatePublicIPAddress",
            boolean("Whether instances get a public address."),
        )
        .field("amiSelectorTerms", amis())
        .required(
            "amiFamily",
            string("How user data and volumes are laid out, and which images are used.")
                .one_of(FAMILIES),
        )
        .field("role", string("IAM role of the instances.").not_empty())
        .field(
            "instanceProfile",
            string("Instance profile that exists already.").not_empty(),
        )
        .field("tags", tags(CONTROLLER_TAGS))
        .field(
            "instanceStorePolicy",
            string("What to do with instance stores.").one_of(&["RAID0"]),
        );
    with_instance(base)
        .rule(
            "has(self.role) != has(self.instanceProfile)",
            "set exactly one of role and instanceProfile",
        )
        .rule(
            "self.amiFamily != 'Custom' || \
             (has(self.amiSelectorTerms) && size(self.amiSelectorTerms) > 0)",
            "the amiFamily Custom needs amiSelectorTerms",
        )
}

/// Fields that v1alpha1 had under the same names.
pub(super) fn with_instance(base: Field) -> Field {
    base.field("userData", string("User data."))
        .field("blockDeviceMappings", block_devices())
        .field(
            "detailedMonitoring",
            boolean("Whether metrics come every minute."),
        )
        .field("metadataOptions", metadata_options(2))
        .field("context", string("Passed on to the fleet request."))
}

fn amis() -> Field {
    let term = object("Picks images.")
        .field("tags", crate::crd::ec2_selectors::tags())
        .field("id", string("Id of an image.").pattern(AMI_ID))
        .field("name", string("Name of an image; not its Name tag."))
        .field("owner", string("Account id or alias of the owner."));
    list("Images that instances boot from.", term)
        .max_items(TERMS_MAX)
        .rules(vec![needs_one_of(&["tags", "id", "name"])])
        .rule(
            "!self.exists(x, has(x.id) && (has(x.tags) || has(x.name) || has(x.owner)))",
            "id cannot be combined with tags, name, owner in a term",
        )
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
        .field("volumeSize", parts::volume_size())
        .field("volumeType", string("Kind of the volume.").one_of(&types))
        .rule(
            "has(self.snapshotID) || has(self.volumeSize)",
            "a volume needs a snapshotID or a volumeSize",
        );
    let item = object("One volume of an instance.")
        .field("deviceName", string("Name of the device."))
        .field("ebs", ebs)
        .field("rootVolume", boolean("This volume is the root volume."));
    list("Volumes of an instance.", item).max_items(50).rule(
        "self.filter(x, has(x.rootVolume) && x.rootVolume).size() <= 1",
        "only one volume can be the rootVolume",
    )
}
