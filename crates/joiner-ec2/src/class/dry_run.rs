//! Validation by dry run: would EC2 allow what a launch does?
//!
//! *Flow*: [`type_to_try`] says which machine is asked for; its launch template is really made, with
//! [`MAX_PODS`]; then [`fleet`] is asked, then each of [`machines`] until one passes. [`judge`] reads refusals.

use joiner_api::structural;
use joiner_api::types::{Ami, AmiFamily, Ec2NodeClass, Operator, Subnet};
use joiner_model::InstanceType;

use super::conditions::{ClassCondition, VALIDATION_SUCCEEDED};
use crate::ami;
use crate::family::is_windows;
use crate::fault::{Fault, FaultClass};
use crate::request::{
    AllocationOptions, CreateFleet, FleetLaunchTemplateConfig, FleetLaunchTemplateOverrides,
    LaunchTemplateSpecification, NetworkInterfaceSpecification, RunInstances, TargetCapacity,
};
use crate::tags::{Tag, TagSpecification};

/// Pods in the user data of the template: it is never booted.
pub const MAX_PODS: u32 = 0;
/// Types to try when pools say nothing.
pub const FALLBACK: [&str; 2] = ["m5.large", "m6g.large"];
/// What is tried for Windows, for which some types are wrongly thought fit.
const FALLBACK_WINDOWS: [&str; 1] = ["m5.large"];

/// What is tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// CreateLaunchTemplate.
    CreateLaunchTemplate,
    /// CreateFleet.
    CreateFleet,
    /// RunInstances.
    RunInstances,
}

impl Call {
    fn as_str(self) -> &'static str {
        match self {
            Self::CreateLaunchTemplate => "ec2:CreateLaunchTemplate",
            Self::CreateFleet => "ec2:CreateFleet",
            Self::RunInstances => "ec2:RunInstances",
        }
    }

    fn reason(self) -> &'static str {
        match self {
            Self::CreateLaunchTemplate => "CreateLaunchTemplateAuthCheckFailed",
            Self::CreateFleet => "CreateFleetAuthCheckFailed",
            Self::RunInstances => "RunInstancesAuthCheckFailed",
        }
    }
}

/// What a refusal means for the class.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judged {
    /// It would work.
    Passed,
    /// Nothing is known: ask again soon, and leave the condition as it is.
    Again,
    /// It would not work.
    Failed {
        /// The condition.
        condition: ClassCondition,
        /// The answer holds until something changes, and is not asked for again.
        is_lasting: bool,
    },
    /// Something else is wrong, to be logged and tried again.
    Error(String),
}

/// Reads a refusal. `names_profile` is true for a class that names an instance profile of the user's.
#[must_use]
pub fn judge(call: Call, fault: &Fault, names_profile: bool) -> Judged {
    if fault.is_user_data_too_long() {
        let message = format!(
            "spec.userData makes user data too long with what is added to it, of which {} bytes are allowed; \
             shorten it",
            crate::user_data::BYTES_MAX
        );
        return failed("UserDataSizeLimitExceeded", message, true);
    }
    match fault.class() {
        FaultClass::DryRun => Judged::Passed,
        FaultClass::Throttled | FaultClass::ServerSide | FaultClass::Credentials => Judged::Again,
        FaultClass::Unauthorized => failed(call.reason(), unauthorized(call, fault), true),
        FaultClass::NotFound | FaultClass::AlreadyExists | FaultClass::Other => {
            match (fault.is_profile_invalid(), names_profile) {
                (false, _) => Judged::Error(fault.to_string()),
                // A profile of ours needs a while until EC2 knows it.
                (true, false) => Judged::Again,
                (true, true) => {
                    let message = "spec.instanceProfile names a profile that does not exist; create it, or set \
                                   spec.role instead";
                    failed("InstanceProfileNotFound", message.to_owned(), false)
                }
            }
        }
    }
}

fn failed(reason: &'static str, message: String, is_lasting: bool) -> Judged {
    Judged::Failed {
        condition: ClassCondition::is_false(VALIDATION_SUCCEEDED, reason, message),
        is_lasting,
    }
}

/// Who forbids it, where EC2 says so.
fn unauthorized(call: Call, fault: &Fault) -> String {
    let said = fault.message.to_lowercase();
    let by = match () {
        () if said.contains("permissions boundary") => "; a permissions boundary forbids it",
        () if said.contains("service control policy") => "; a service control policy forbids it",
        () => "",
    };
    format!(
        "the controller is not authorized to call {}{by}; `joiner aws policies` prints the policies that it needs",
        call.as_str()
    )
}

/// The type to try, and its image: of the types that pools allow, or else of the fallback ones, the first that a
/// standard image fits, else the first that any image fits. `of_pools` and `fallback` must hold types that the
/// class can launch only.
#[must_use]
pub fn type_to_try<'a>(
    family: AmiFamily,
    amis: &'a [Ami],
    of_pools: &'a [InstanceType],
    fallback: &'a [InstanceType],
) -> Option<(&'a InstanceType, &'a Ami)> {
    let of_windows =
        |ty: &&InstanceType| !is_windows(family) || FALLBACK_WINDOWS.contains(&&*ty.name);
    let with_image = |types: Vec<&'a InstanceType>| {
        let fits = types
            .into_iter()
            .filter_map(|ty| Some((ty, ami::for_type(amis, ty)?)));
        let fits: Vec<_> = fits.collect();
        let standard = fits.iter().find(|(_, ami)| is_standard(ami)).copied();
        standard.or_else(|| fits.first().copied())
    };
    let usable: Vec<&InstanceType> = of_pools.iter().filter(|_| !is_windows(family)).collect();
    with_image(usable).or_else(|| with_image(fallback.iter().filter(of_windows).collect()))
}

/// An image for machines without accelerators.
fn is_standard(ami: &Ami) -> bool {
    ami.requirements
        .iter()
        .all(|requirement| requirement.operator != Operator::Exists)
}

/// Asks whether the fleet would be made.
#[must_use]
pub fn fleet(template: &str, instance_type: &str, subnets: &[Subnet], tags: &[Tag]) -> CreateFleet {
    let overrides = subnets.iter().map(|subnet| FleetLaunchTemplateOverrides {
        instance_type: instance_type.to_owned(),
        subnet_id: subnet.id.clone(),
        ..FleetLaunchTemplateOverrides::default()
    });
    CreateFleet {
        dry_run: Some(true),
        launch_template_configs: vec![FleetLaunchTemplateConfig {
            launch_template_specification: LaunchTemplateSpecification::latest(template),
            overrides: overrides.collect(),
        }],
        on_demand_options: Some(AllocationOptions {
            allocation_strategy: "lowest-price".to_owned(),
        }),
        tag_specifications: TagSpecification::for_each(&["instance", "volume", "fleet"], tags),
        target_capacity_specification: TargetCapacity {
            default_target_capacity_type: "on-demand".to_owned(),
            total_target_capacity: 1,
        },
        r#type: "instant".to_owned(),
        ..CreateFleet::default()
    }
}

/// Asks whether a machine would be made in each subnet. If none passes, what the first one said counts.
#[must_use]
pub fn machines(
    template: &str,
    instance_type: &str,
    subnets: &[Subnet],
    tags: &[Tag],
) -> Vec<RunInstances> {
    let one = |subnet: &Subnet| RunInstances {
        dry_run: Some(true),
        instance_type: instance_type.to_owned(),
        launch_template: LaunchTemplateSpecification::latest(template),
        max_count: 1,
        min_count: 1,
        network_interfaces: vec![NetworkInterfaceSpecification {
            subnet_id: Some(subnet.id.clone()),
            ..NetworkInterfaceSpecification::default()
        }],
        tag_specifications: TagSpecification::for_each(
            &["instance", "volume", "network-interface"],
            tags,
        ),
    };
    subnets.iter().map(one).collect()
}

/// What an answer that lasts is remembered under: it changes with everything that a launch rests on.
#[must_use]
pub fn key(class: &Ec2NodeClass) -> String {
    let status = class.status.clone().unwrap_or_default();
    let content = serde_json::json!([
        class.spec,
        class.metadata.annotations,
        status.subnets,
        status.security_groups,
        status.amis,
        status.capacity_reservations,
        status.instance_profile,
    ]);
    format!(
        "{}:{}",
        class.name(),
        structural::string(&content.to_string())
    )
}
