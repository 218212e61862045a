//! How an EC2NodeClass stands in the simulated account, and which image a machine of it boots.

use joiner_api::types::{Ami, Ec2NodeClass, Ec2NodeClassSpec, Operator, Requirement};
use joiner_catalog::{Zone, zones};
use joiner_cloud::{ClassStatus, ClassVerdict, NodeClass};
use joiner_cluster::{Digest, ImageFamily};
use serde::Deserialize as _;
use serde_json::{Value, json};

use crate::account;
use crate::images::{NoImage, images, release_in};
use crate::record::Image;

/// Cluster that managed instance profiles are named after.
const CLUSTER: &str = "simulated";
/// What EC2 takes of user data.
const USER_DATA_BYTES_MAX: usize = 16_384;

/// Where a class is looked up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Where<'a> {
    /// Region of the account.
    pub(crate) region: &'a str,
    /// Version of Kubernetes, such as `1.36`.
    pub(crate) version: &'a str,
    /// Reservations are used.
    pub(crate) reserving: bool,
}

/// What became of one thing that a class selects: its field of the status, or what is wrong.
type Found = Result<Value, (&'static str, String)>;

/// How a class stands.
///
/// # Errors
/// The object is not an EC2NodeClass.
pub(crate) fn class_status(class: &NodeClass, at: Where<'_>) -> Result<ClassStatus, String> {
    let parsed = Ec2NodeClass::deserialize(&*class.object);
    let spec = parsed.map_err(|error| error.to_string())?.spec;
    let zones = zones(at.region).map_err(|error| error.to_string());
    let zones = zones.as_deref();
    let mut looked_up: Vec<(&'static str, Option<&'static str>, Found)> =
        vec![("AMIsReady", Some("amis"), amis(&spec, at.version))];
    if at.reserving {
        let found = reservations(&spec, zones.unwrap_or_default());
        let field = Some("capacityReservations");
        looked_up.push(("CapacityReservationsReady", field, Ok(found)));
    }
    looked_up.extend([
        ("PlacementGroupReady", None, placement_group(&spec)),
        ("SubnetsReady", Some("subnets"), subnets(&spec, zones)),
        ("SecurityGroupsReady", Some("securityGroups"), groups(&spec)),
        (
            "InstanceProfileReady",
            Some("instanceProfile"),
            Ok(profile(&spec, class, at.region)),
        ),
    ]);
    let mut status = ClassStatus {
        verdicts: Vec::new(),
        fields: json!({}),
        again: None,
    };
    if !at.reserving {
        status.fields["capacityReservations"] = Value::Null;
    }
    for (condition, field, found) in looked_up {
        let (value, failed) = match found {
            Ok(value) => (value, None),
            Err(failed) => (Value::Null, Some(failed)),
        };
        if let Some(field) = field {
            status.fields[field] = value;
        }
        status.verdicts.push(ClassVerdict { condition, failed });
    }
    let failed = validation(&spec, &status.verdicts);
    status.verdicts.push(ClassVerdict {
        condition: "ValidationSucceeded",
        failed,
    });
    Ok(status)
}

/// A list as the status has it: none is no field at all.
fn listed<T: serde::Serialize>(all: &[T]) -> Value {
    match all.is_empty() {
        true => Value::Null,
        false => json!(all),
    }
}

fn amis(spec: &Ec2NodeClassSpec, version: &str) -> Found {
    match images(&spec.ami_selector_terms, version) {
        Ok(found) => Ok(listed(&found)),
        Err(NoImage::NotFound(why)) => Err(("AMINotFound", why)),
        Err(NoImage::Unsupported(why)) => Err(("UnsupportedAlias", why)),
    }
}

fn reservations(spec: &Ec2NodeClassSpec, zones: &[Zone]) -> Value {
    let terms = spec.capacity_reservation_selector_terms.as_deref();
    listed(&account::reservations(terms.unwrap_or_default(), zones))
}

fn placement_group(spec: &Ec2NodeClassSpec) -> Found {
    match &spec.placement_group_selector {
        Some(selector) if !account::has_placement_group(selector) => Err((
            "PlacementGroupNotFound",
            "the simulated account has no such placement group".to_owned(),
        )),
        Some(_) | None => Ok(Value::Null),
    }
}

fn subnets(spec: &Ec2NodeClassSpec, zones: Result<&[Zone], &String>) -> Found {
    let zones = zones.map_err(|error| ("SubnetsNotFound", error.clone()))?;
    let found = account::subnets(&spec.subnet_selector_terms, zones);
    match found.is_empty() {
        true => Err((
            "SubnetsNotFound",
            "the simulated account has no subnet that spec.subnetSelectorTerms match".to_owned(),
        )),
        false => Ok(listed(&found)),
    }
}

fn groups(spec: &Ec2NodeClassSpec) -> Found {
    let found = account::security_groups(&spec.security_group_selector_terms);
    match found.is_empty() {
        true => Err((
            "SecurityGroupsNotFound",
            "the simulated account has no security group that spec.securityGroupSelectorTerms match"
                .to_owned(),
        )),
        false => Ok(listed(&found)),
    }
}

/// The profile that is named, or the one that is made for the role.
fn profile(spec: &Ec2NodeClassSpec, class: &NodeClass, region: &str) -> Value {
    match &spec.instance_profile {
        Some(named) => json!(named),
        None => {
            let role = spec.role.as_deref().unwrap_or_default();
            let digest = Digest::default().text(region).text(&class.name).text(role);
            json!(format!("{CLUSTER}_{}", digest.finish()))
        }
    }
}

/// What is wrong with a class as a whole.
fn validation(
    spec: &Ec2NodeClassSpec,
    verdicts: &[ClassVerdict],
) -> Option<(&'static str, String)> {
    let failed: Vec<&str> = (verdicts.iter())
        .filter(|own| own.failed.is_some() && own.condition != "PlacementGroupReady")
        .map(|own| own.condition)
        .collect();
    if !failed.is_empty() {
        let message = format!("waits for {}", failed.join(", "));
        return Some(("DependenciesNotReady", message));
    }
    if let Some(profile) = &spec.instance_profile
        && !account::is_there(profile)
    {
        let message = format!("the simulated account has no instance profile {profile:?}");
        return Some(("InstanceProfileNotFound", message));
    }
    let user_data = spec.user_data.as_deref().map_or(0, str::len);
    if user_data > USER_DATA_BYTES_MAX {
        let message = format!(
            "spec.userData has {user_data} bytes, and EC2 takes {USER_DATA_BYTES_MAX} at most"
        );
        return Some(("UserDataSizeLimitExceeded", message));
    }
    None
}

/// What a machine boots: the first image in the status of its class that is for its hardware, and the
/// family. None where the class says neither.
pub(crate) fn image<'l>(
    class: &NodeClass,
    label: impl Fn(&str) -> Option<&'l str>,
) -> Option<Image> {
    let class = Ec2NodeClass::deserialize(&*class.object).ok()?;
    let family = family(&class.spec);
    let amis = class.status.and_then(|status| status.amis);
    let is_for = |ami: &&Ami| ami.requirements.iter().all(|own| holds(own, &label));
    let ami = amis.iter().flatten().find(is_for);
    let name = ami.and_then(|ami| ami.name.as_deref());
    let is_known = ami.is_some() || family.is_some();
    is_known.then(|| Image {
        id: ami.map(|ami| ami.id.clone()),
        family: family.map(str::to_owned),
        release: name.and_then(release_in).map(str::to_owned),
    })
}

/// The family that a class names, or that its alias stands for.
fn family(spec: &Ec2NodeClassSpec) -> Option<&str> {
    let named = spec.ami_family.map(joiner_api::types::AmiFamily::as_str);
    let terms = spec.ami_selector_terms.iter();
    let mut aliases = terms.filter_map(|term| term.alias.as_deref());
    let alias = aliases.next();
    named.or_else(|| alias.map(|alias| alias.split('@').next().unwrap_or(alias)))
}

/// What a family is called, by whatever name a class has for it.
pub(crate) fn family_named(name: Option<&str>) -> ImageFamily {
    name.and_then(ImageFamily::named).unwrap_or_default()
}

fn holds<'l>(requirement: &Requirement, label: impl Fn(&str) -> Option<&'l str>) -> bool {
    let own = label(&requirement.key);
    let is_in = || own.is_some_and(|own| requirement.values.iter().any(|value| value == own));
    match requirement.operator {
        Operator::In => is_in(),
        Operator::NotIn => !is_in(),
        Operator::Exists => own.is_some(),
        Operator::DoesNotExist => own.is_none(),
        Operator::Gt | Operator::Lt | Operator::Gte | Operator::Lte => true,
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn class(change: Value) -> NodeClass {
        let mut object = json!({
            "apiVersion": "karpenter.k8s.aws/v1", "kind": "EC2NodeClass",
            "metadata": {"name": "default", "uid": "u"},
            "spec": {"role": "nodes", "amiSelectorTerms": [{"alias": "al2023@latest"}],
                "subnetSelectorTerms": [{"tags": {"karpenter.sh/discovery": "shop"}}],
                "securityGroupSelectorTerms": [{"tags": {"karpenter.sh/discovery": "shop"}}]},
        });
        for (field, value) in change.as_object().unwrap() {
            object["spec"][field] = value.clone();
        }
        NodeClass {
            group: "karpenter.k8s.aws".into(),
            kind: "EC2NodeClass".into(),
            name: "default".into(),
            object: Arc::new(object),
        }
    }

    fn status(change: Value, reserving: bool) -> ClassStatus {
        let at = Where {
            region: "us-west-2",
            version: "1.36",
            reserving,
        };
        class_status(&class(change), at).unwrap()
    }

    fn failed(status: &ClassStatus) -> Vec<String> {
        let verdicts = status.verdicts.iter();
        let failed = verdicts.filter_map(|own| Some((own.condition, own.failed.as_ref()?.0)));
        failed
            .map(|(condition, why)| format!("{condition}={why}"))
            .collect()
    }

    #[test]
    fn a_good_class_has_everything() {
        let found = status(json!({}), true);
        let conditions: Vec<&str> = found.verdicts.iter().map(|own| own.condition).collect();
        assert_eq!(
            conditions,
            [
                "AMIsReady",
                "CapacityReservationsReady",
                "PlacementGroupReady",
                "SubnetsReady",
                "SecurityGroupsReady",
                "InstanceProfileReady",
                "ValidationSucceeded",
            ]
        );
        assert_eq!(failed(&found), [""; 0]);
        assert_eq!(found.fields["subnets"].as_array().unwrap().len(), 4);
        assert_eq!(
            found.fields["subnets"][0]["zoneID"].as_str().unwrap().len(),
            8
        );
        assert_eq!(found.fields["amis"].as_array().unwrap().len(), 5);
        assert_eq!(found.fields["securityGroups"][0]["name"], "shop-node");
        assert_eq!(found.fields["capacityReservations"], Value::Null);
        let profile = found.fields["instanceProfile"].as_str().unwrap();
        assert!(profile.starts_with("simulated_"), "{profile}");
        let gate_off = status(json!({}), false);
        assert_eq!(gate_off.verdicts.len(), 6);
        assert_eq!(found, status(json!({}), true), "the same again");
    }

    #[test]
    fn what_is_asked_for_is_there() {
        let terms = json!({"capacityReservationSelectorTerms": [{"id": "cr-0123456789abcdef0"}],
            "role": null, "instanceProfile": "given", "amiFamily": "Custom",
            "amiSelectorTerms": [{"id": "ami-0123456789abcdef0"}]});
        let found = status(terms, true);
        assert_eq!(failed(&found), [""; 0]);
        let reservation = &found.fields["capacityReservations"][0];
        assert_eq!(reservation["availabilityZone"], "us-west-2a");
        assert_eq!(reservation["ownerID"], "111122223333");
        assert_eq!(found.fields["instanceProfile"], "given");
        assert_eq!(found.fields["amis"][0]["id"], "ami-0123456789abcdef0");
    }

    #[test]
    fn a_bad_class_says_what_is_wrong() {
        for (change, expected) in [
            (
                json!({"subnetSelectorTerms": [{"id": "subnet-web"}]}),
                &[
                    "SubnetsReady=SubnetsNotFound",
                    "ValidationSucceeded=DependenciesNotReady",
                ][..],
            ),
            (
                json!({"securityGroupSelectorTerms": [{"tags": {"team": "missing"}}]}),
                &[
                    "SecurityGroupsReady=SecurityGroupsNotFound",
                    "ValidationSucceeded=DependenciesNotReady",
                ],
            ),
            (
                json!({"amiSelectorTerms": [{"alias": "al2@latest"}]}),
                &[
                    "AMIsReady=UnsupportedAlias",
                    "ValidationSucceeded=DependenciesNotReady",
                ],
            ),
            (
                json!({"amiSelectorTerms": [{"alias": "al2023@v1"}]}),
                &[
                    "AMIsReady=AMINotFound",
                    "ValidationSucceeded=DependenciesNotReady",
                ],
            ),
            (
                json!({"placementGroupSelector": {"name": "missing"}}),
                &["PlacementGroupReady=PlacementGroupNotFound"],
            ),
            (
                json!({"role": null, "instanceProfile": "no-such-profile"}),
                &["ValidationSucceeded=InstanceProfileNotFound"],
            ),
            (
                json!({"userData": "x".repeat(20_000)}),
                &["ValidationSucceeded=UserDataSizeLimitExceeded"],
            ),
        ] {
            let found = status(change.clone(), true);
            assert_eq!(failed(&found), expected, "{change}");
            if expected[0].starts_with("Subnets") {
                assert_eq!(found.fields["subnets"], Value::Null);
            }
        }
    }

    #[test]
    fn a_machine_boots_the_image_for_its_hardware() {
        let mut class = class(json!({}));
        let fields = status(json!({}), true).fields;
        Arc::make_mut(&mut class.object)["status"] = fields;
        let booted = |arch: &'static str, gpu: Option<&'static str>| {
            let label = |key: &str| match key {
                "kubernetes.io/arch" => Some(arch),
                "karpenter.k8s.aws/instance-gpu-count" => gpu,
                _ => None,
            };
            image(&class, label).unwrap()
        };
        let named = |image: &Image| {
            let amis = class.object["status"]["amis"].as_array().unwrap();
            let own = amis
                .iter()
                .find(|ami| ami["id"] == image.id.as_deref().unwrap())
                .unwrap();
            own["name"].as_str().unwrap().to_owned()
        };
        let arm = booted("arm64", None);
        assert!(named(&arm).contains("arm64-standard"));
        assert_eq!(arm.release.as_deref(), Some("20251112"));
        assert_eq!(family_named(arm.family.as_deref()), ImageFamily::Al2023);
        assert!(named(&booted("amd64", Some("1"))).contains("x86_64-nvidia"));
    }
}
