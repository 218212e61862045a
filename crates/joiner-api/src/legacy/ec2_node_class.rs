//! EC2NodeClass, v1beta1 and v1.

use super::annotations;
use super::fields::{at, list_at, put, take};
use crate::labels::aws::{ALIAS_VERSION, UBUNTU_CONVERSION};
use serde_json::{Value, json};

/// Families that AWS publishes images of: as classes name them, and as aliases do.
const PUBLISHED: &[(&str, &str)] = &[
    ("AL2", "al2"),
    ("AL2023", "al2023"),
    ("Bottlerocket", "bottlerocket"),
    ("Windows2019", "windows2019"),
    ("Windows2022", "windows2022"),
];
/// An image that does not exist: v1 wants one, and nothing says which.
pub(super) const PLACEHOLDER_IMAGE: &str = "ami-placeholder";
/// How a parameter is named where only names of images can be: no image's name has a colon.
const PARAMETER: &str = "ssm:";
/// Fields that v1beta1 does not have.
const ONLY_V1: &[&str] = &[
    "capacityReservationSelectorTerms",
    "placementGroupSelector",
    "networkInterfaces",
    "connectionTracking",
    "cpuOptions",
    "ipPrefixCount",
    "kubelet",
];
const FAMILY: &[&str] = &["spec", "amiFamily"];
const IMAGES: &[&str] = &["spec", "amiSelectorTerms"];
const DEVICES: &[&str] = &["spec", "blockDeviceMappings"];

/// v1beta1 as v1.
pub(super) fn up(mut class: Value) -> Value {
    put(&mut class, &["apiVersion"], "karpenter.k8s.aws/v1".into());
    if at(&class, &["spec"]).is_none_or(|spec| !spec.is_object()) {
        return class;
    }
    for term in list_at(&mut class, IMAGES).into_iter().flatten() {
        let name = term.get("name").and_then(Value::as_str);
        if let Some(parameter) = name.and_then(|name| name.strip_prefix(PARAMETER)) {
            let parameter = parameter.to_owned();
            take(term, &["name"]);
            put(term, &["ssmParameter"], parameter.into());
        }
    }
    let version = annotations::remove(&mut class, ALIAS_VERSION);
    let version = version.as_ref().and_then(Value::as_str).unwrap_or("latest");
    let family = at(&class, FAMILY)
        .and_then(Value::as_str)
        .unwrap_or_default();
    let has_terms = at(&class, IMAGES)
        .and_then(Value::as_array)
        .is_some_and(|terms| !terms.is_empty());
    match PUBLISHED.iter().find(|(name, _)| *name == family) {
        Some(_) if has_terms => {}
        Some((name, alias)) => {
            let version = if name.starts_with("Windows") {
                "latest"
            } else {
                version
            };
            put(
                &mut class,
                IMAGES,
                json!([{"alias": format!("{alias}@{version}")}]),
            );
            take(&mut class, FAMILY);
        }
        None if family == "Ubuntu" => from_ubuntu(&mut class, has_terms),
        None => put(&mut class, FAMILY, "Custom".into()),
    }
    class
}

/// Ubuntu has no family of its own any longer: user data is that of AL2, volumes and images are the
/// user's affair.
fn from_ubuntu(class: &mut Value, has_terms: bool) {
    let mut made_up = vec!["amiFamily"];
    put(class, FAMILY, "AL2".into());
    if at(class, DEVICES).is_none() {
        put(class, DEVICES, ubuntu_devices());
        made_up.push("blockDeviceMappings");
    }
    if !has_terms {
        put(class, IMAGES, json!([{"id": PLACEHOLDER_IMAGE}]));
        made_up.push("incompatible");
    }
    annotations::set(class, UBUNTU_CONVERSION, made_up.join(","));
}

fn ubuntu_devices() -> Value {
    json!([{
        "deviceName": "/dev/sda1",
        "rootVolume": true,
        "ebs": {"encrypted": true, "volumeType": "gp3", "volumeSize": "20Gi"},
    }])
}

/// v1 as v1beta1.
pub(super) fn down(mut class: Value) -> Value {
    put(
        &mut class,
        &["apiVersion"],
        "karpenter.k8s.aws/v1beta1".into(),
    );
    if at(&class, &["spec"]).is_none_or(|spec| !spec.is_object()) {
        return class;
    }
    for field in ONLY_V1 {
        take(&mut class, &["spec", field]);
    }
    for device in list_at(&mut class, DEVICES).into_iter().flatten() {
        take(device, &["ebs", "volumeInitializationRate"]);
    }
    if annotations::get(&class, UBUNTU_CONVERSION).is_some() {
        to_ubuntu(&mut class);
        return class;
    }
    if let Some((family, version)) = alias(&class) {
        put(&mut class, FAMILY, family.into());
        take(&mut class, IMAGES);
        if version != "latest" {
            annotations::set(&mut class, ALIAS_VERSION, version);
        }
    }
    if at(&class, FAMILY).is_some_and(|family| family == "Windows2025") {
        put(&mut class, FAMILY, "Windows2022".into());
    }
    parameters_as_names(&mut class);
    class
}

fn parameters_as_names(class: &mut Value) {
    for term in list_at(class, IMAGES).into_iter().flatten() {
        if let Some(map) = term.as_object_mut()
            && !map.contains_key("name")
            && let Some(Value::String(parameter)) = map.get("ssmParameter")
        {
            let name = format!("{PARAMETER}{parameter}");
            map.remove("ssmParameter");
            map.insert("name".to_owned(), name.into());
        } else if let Some(map) = term.as_object_mut() {
            map.remove("ssmParameter");
        }
    }
}

/// Family and version of an alias.
fn alias(class: &Value) -> Option<(&'static str, String)> {
    let terms = at(class, IMAGES)?.as_array()?;
    let alias = terms.iter().find_map(|term| term.get("alias")?.as_str())?;
    let (family, version) = alias.split_once('@')?;
    let of_this = |(_, alias): &&(&'static str, &str)| *alias == family;
    let family = match PUBLISHED.iter().find(of_this) {
        Some((name, _)) => name,
        None if family == "windows2025" => "Windows2022",
        None => return None,
    };
    Some((family, version.to_owned()))
}

fn to_ubuntu(class: &mut Value) {
    let made_up = annotations::remove(class, UBUNTU_CONVERSION);
    let made_up = made_up.as_ref().and_then(Value::as_str).unwrap_or_default();
    let has = |part: &str| made_up.split(',').any(|made_up| made_up == part);
    if has("amiFamily") {
        put(class, FAMILY, "Ubuntu".into());
    }
    if has("blockDeviceMappings") && at(class, DEVICES) == Some(&ubuntu_devices()) {
        take(class, DEVICES);
    }
    let placeholder = json!([{"id": PLACEHOLDER_IMAGE}]);
    if has("incompatible") && at(class, IMAGES) == Some(&placeholder) {
        take(class, IMAGES);
    }
    parameters_as_names(class);
}
