//! Launch templates: all that machines of a launch have in common.
//!
//! A template's name is a hash of its content, so that equal needs find the same template, and one that is found
//! is known to be right.

use std::collections::BTreeMap;

use joiner_api::labels::aws::PLACEMENT_GROUP_PARTITION;
use joiner_api::structural;
use joiner_api::types::{Ec2NodeClassSpec, Ec2NodeClassStatus, Taint};
use joiner_catalog::{PlacementGroup, PlacementStrategy};

use super::interfaces::interfaces;
use super::needs::Need;
use super::{Ask, CapacityType, Reservation, ReservationKind, Tenancy};
use crate::cluster::Cluster;
use crate::family;
use crate::request::{
    CapacityReservationSpecification, CapacityReservationTarget, CpuOptions, CreateLaunchTemplate,
    EnclaveOptions, Filter, IamInstanceProfile, InstanceMarketOptions, LaunchTemplateData,
    MetadataOptions, Monitoring, Placement, Query,
};
use crate::tags::{self, Tag, TagSpecification};
use crate::user_data::{self, Bootstrap, UserData, UserDataError};
use crate::volumes;

/// How names of templates start.
pub const PREFIX: &str = "karpenter.k8s.aws/";
/// Templates a page.
const PAGE: i32 = 200;

/// Regions whose metadata service does not know of IPv6.
const WITHOUT_IPV6_METADATA: [&str; 6] = [
    "us-iso-east-1",
    "us-iso-west-1",
    "us-isob-east-1",
    "us-isob-west-1",
    "us-isof-south-1",
    "us-isof-east-1",
];

/// The placement group of a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlacedIn {
    /// Id of the group.
    pub group: String,
    /// Partition, if the claim asks for one; else EC2 picks.
    pub partition: Option<i32>,
}

impl PlacedIn {
    /// Where a claim's machine is put in the group of its class: of the partitions that it asks for, the lowest.
    /// Partitions are compared as texts, as upstream does: 10 comes before 2.
    #[must_use]
    pub fn of(group: &PlacementGroup, ask: &Ask<'_>) -> Self {
        let has_partitions = matches!(group.strategy, PlacementStrategy::Partition(_));
        let asked = ask
            .requirements
            .get(PLACEMENT_GROUP_PARTITION)
            .filter(|_| has_partitions);
        let lowest = asked.and_then(|requirement| requirement.members()?.first().cloned());
        Self {
            group: group.id.to_string(),
            partition: lowest.and_then(|partition| partition.parse().ok()),
        }
    }
}

/// What all templates of a launch have in common.
#[derive(Clone, Copy, Debug)]
pub struct Common<'a> {
    /// The cluster that machines join.
    pub cluster: &'a Cluster,
    /// Name of the class.
    pub class: &'a str,
    /// What the class says.
    pub spec: &'a Ec2NodeClassSpec,
    /// What its selectors came to.
    pub status: &'a Ec2NodeClassStatus,
    /// Pool of the claim; empty without one.
    pub pool: &'a str,
    /// Labels of the node, see [`user_data::node_labels`].
    pub labels: &'a BTreeMap<String, String>,
    /// Taints of the node, see [`user_data::node_taints`].
    pub taints: &'a [Taint],
    /// How machines are paid for.
    pub capacity_type: CapacityType,
    /// On whose hardware they are.
    pub tenancy: Tenancy,
    /// Where they are put.
    pub placed_in: Option<&'a PlacedIn>,
    /// The claim asks for Nitro Enclaves.
    pub enclaves: bool,
    /// The feature gate `ReservedCapacity`: without it nothing is said of reservations, and open ones are used.
    pub reserving: bool,
}

/// A template, and what to tell of its user data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    /// The request that makes it.
    pub request: CreateLaunchTemplate,
    /// Its user data, before encoding.
    pub user_data: UserData,
}

/// The template for a need.
///
/// # Errors
/// There is no user data.
pub fn template(common: &Common<'_>, need: &Need) -> Result<Template, UserDataError> {
    let Common { spec, status, .. } = common;
    let family = family::of(spec);
    let user_data = user_data::user_data(&Bootstrap {
        class: common.class,
        cluster: common.cluster,
        family,
        kubelet: spec.kubelet.as_ref(),
        max_pods: need.max_pods,
        labels: common.labels,
        taints: common.taints,
        custom: spec.user_data.as_deref(),
        raid0: spec.instance_store_policy.is_some(),
        binds_by_default: user_data::binds_by_default(spec, status),
    })?;
    let tags = common.tags();
    let groups = status.security_groups.as_deref().unwrap_or_default();
    let groups: Vec<String> = groups.iter().map(|group| group.id.clone()).collect();
    let reservation = need.reservation.as_ref();
    let data = LaunchTemplateData {
        block_device_mappings: volumes::mappings(spec.block_device_mappings.as_deref(), family),
        capacity_reservation_specification: common.reserving.then(|| reserving(reservation)),
        cpu_options: spec.cpu_options.as_ref().and_then(|options| {
            let nested = options.nested_virtualization?;
            Some(CpuOptions {
                nested_virtualization: Some(nested.as_str().to_owned()),
            })
        }),
        enclave_options: EnclaveOptions {
            enabled: common.enclaves,
        },
        iam_instance_profile: IamInstanceProfile {
            name: status.instance_profile.clone().unwrap_or_default(),
        },
        image_id: need.ami.clone(),
        instance_market_options: reservation.and_then(market),
        metadata_options: common.metadata_options(),
        monitoring: Monitoring {
            enabled: spec.detailed_monitoring.unwrap_or_default(),
        },
        network_interfaces: interfaces(spec, &groups, need.efa, common.cluster.is_ipv6()),
        placement: Placement {
            group_id: common.placed_in.map(|placed| placed.group.clone()),
            partition_number: common.placed_in.and_then(|placed| placed.partition),
            tenancy: common.tenancy.as_str().to_owned(),
        },
        tag_specifications: TagSpecification::for_each(common.tagged_by_template(), &tags),
        user_data: user_data.encoded(),
    };
    let mut request = CreateLaunchTemplate {
        launch_template_name: String::new(),
        launch_template_data: data,
        tag_specifications: TagSpecification::for_each(&["launch-template"], &tags),
    };
    request.launch_template_name = name(&request);
    Ok(Template { request, user_data })
}

impl Common<'_> {
    /// The tags of all that a launch makes.
    #[must_use]
    pub fn tags(&self) -> Vec<Tag> {
        let cluster = &self.cluster.name;
        tags::of_launch(self.spec.tags.as_ref(), cluster, self.pool, self.class)
    }

    /// What fleets cannot tag.
    fn tagged_by_template(&self) -> &'static [&'static str] {
        match self.capacity_type {
            CapacityType::Spot => &["network-interface", "spot-instances-request"],
            CapacityType::OnDemand | CapacityType::Reserved => &["network-interface"],
        }
    }

    /// The class's options, or what the schema would have made of none. Tags are never told: keys of ours
    /// have slashes, which the service does not take.
    fn metadata_options(&self) -> MetadataOptions {
        let region = self.cluster.region.as_str();
        let given = self.spec.metadata_options.clone().unwrap_or_else(|| {
            use joiner_api::types::{HttpTokens, MetadataOptions, Toggle};
            MetadataOptions {
                http_endpoint: Some(Toggle::Enabled),
                http_protocol_ipv6: Some(Toggle::Disabled),
                http_put_response_hop_limit: Some(1),
                http_tokens: Some(HttpTokens::Required),
            }
        });
        let hops = given.http_put_response_hop_limit;
        let ipv6 = given
            .http_protocol_ipv6
            .map(|ipv6| ipv6.as_str().to_owned());
        MetadataOptions {
            http_endpoint: given
                .http_endpoint
                .map(|endpoint| endpoint.as_str().to_owned()),
            http_protocol_ipv6: ipv6.filter(|_| !WITHOUT_IPV6_METADATA.contains(&region)),
            http_put_response_hop_limit: hops.and_then(|hops| i32::try_from(hops).ok()),
            http_tokens: given.http_tokens.map(|tokens| tokens.as_str().to_owned()),
            instance_metadata_tags: "disabled".to_owned(),
        }
    }
}

/// A machine for a reservation uses that one and no other; any other machine uses none, not even open ones.
fn reserving(reservation: Option<&Reservation>) -> CapacityReservationSpecification {
    let target = reservation.map(|reservation| CapacityReservationTarget {
        capacity_reservation_id: reservation.id.to_string(),
    });
    let preference = match target {
        Some(_) => "capacity-reservations-only",
        None => "none",
    };
    CapacityReservationSpecification {
        capacity_reservation_preference: preference.to_owned(),
        capacity_reservation_target: target,
    }
}

fn market(reservation: &Reservation) -> Option<InstanceMarketOptions> {
    let market_type = match reservation.kind {
        ReservationKind::Default => return None,
        ReservationKind::CapacityBlock => "capacity-block",
        ReservationKind::Interruptible => "interruptible-capacity-reservation",
    };
    Some(InstanceMarketOptions {
        market_type: market_type.to_owned(),
    })
}

/// The name of a template: the same for the same content.
fn name(request: &CreateLaunchTemplate) -> String {
    let content = serde_json::to_string(request).unwrap_or_default();
    format!("{PREFIX}{}", structural::string(&content))
}

/// Looks for a template by its name.
#[must_use]
pub fn by_name(name: &str) -> Query {
    Query {
        launch_template_names: vec![name.to_owned()],
        ..Query::default()
    }
}

/// All templates of the cluster, which a new leader takes over and lets expire.
#[must_use]
pub fn of_cluster(cluster: &str) -> Query {
    Query {
        filters: vec![Filter::tag(tags::CLUSTER_NAME, cluster)],
        max_results: Some(PAGE),
        ..Query::default()
    }
}

/// All templates of a class, which go with it.
#[must_use]
pub fn of_class(cluster: &str, class: &str) -> Query {
    let mut query = of_cluster(cluster);
    let key = joiner_api::labels::aws::EC2_NODE_CLASS;
    query.filters.push(Filter::tag(key, class));
    query
}
