//! Volumes: claims, volumes, classes.

use super::{Expression, Meta, Text, TextMap, pod::NodeSelector};

wire! {
    /// A claim on a volume.
    struct PersistentVolumeClaim<'a> {
        metadata: AnnotatedMeta<'a>,
        spec: ClaimSpec<'a>,
        status: ClaimStatus<'a>,
    }

    /// Metadata with annotations.
    struct AnnotatedMeta<'a> {
        name: Text<'a>,
        namespace: Text<'a>,
        annotations: TextMap<'a>,
        deletion_timestamp: Text<'a>,
        creation_timestamp: Text<'a>,
    }

    /// What is claimed.
    struct ClaimSpec<'a> {
        storage_class_name: Text<'a>,
        volume_name: Text<'a>,
    }

    /// What came of it.
    struct ClaimStatus<'a> {
        phase: Text<'a>,
    }

    /// A volume.
    struct PersistentVolume<'a> {
        metadata: Meta<'a>,
        spec: VolumeSpec<'a>,
    }

    /// Where a volume is and who serves it.
    struct VolumeSpec<'a> {
        csi: CsiSource<'a>,
        aws_elastic_block_store: serde::de::IgnoredAny,
        local: serde::de::IgnoredAny,
        host_path: serde::de::IgnoredAny,
        node_affinity: VolumeAffinity<'a>,
    }

    /// A volume served by a driver.
    struct CsiSource<'a> {
        driver: Text<'a>,
    }

    /// Nodes that can reach a volume.
    struct VolumeAffinity<'a> {
        required: NodeSelector<'a>,
    }

    /// A class of volumes.
    struct StorageClass<'a> {
        metadata: AnnotatedMeta<'a>,
        provisioner: Text<'a>,
        volume_binding_mode: Text<'a>,
        allowed_topologies: Vec<TopologyTerm<'a>>,
    }

    /// Where volumes of a class can be made.
    struct TopologyTerm<'a> {
        match_label_expressions: Vec<Expression<'a>>,
    }
}
