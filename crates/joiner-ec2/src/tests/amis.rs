//! Images.

use std::collections::BTreeMap;

use jiff::Timestamp;
use joiner_api::types::{Ami, Ec2NodeClassSpec};
use joiner_catalog::{ClassSettings, ec2_type};
use serde_json::{Value, json};

use crate::ami::{for_type, lookups, queries, select, stale};
use crate::answer::Image;

fn spec(terms: Value) -> Ec2NodeClassSpec {
    serde_json::from_value(json!({"amiSelectorTerms": terms})).unwrap()
}

fn alias(alias: &str) -> Ec2NodeClassSpec {
    spec(json!([{"alias": alias}]))
}

fn now() -> Timestamp {
    "2026-11-18T12:00:00Z".parse().unwrap()
}

fn image(id: &str, arch: &str, created: &str) -> Value {
    json!({"ImageId": id, "Name": format!("name-{id}"), "Architecture": arch, "State": "available",
        "CreationDate": format!("{created}T00:00:00.000Z")})
}

fn images(all: &[Value]) -> Vec<Image> {
    serde_json::from_value(json!(all)).unwrap()
}

fn paths(alias_text: &str, kubernetes: &str) -> Vec<String> {
    let found = lookups(&alias(alias_text), kubernetes).unwrap();
    found.into_iter().map(|lookup| lookup.parameter).collect()
}

/// Ids and requirements, shortly.
fn told(amis: &[Ami]) -> Vec<String> {
    let requirement = |requirement: &joiner_api::types::Requirement| {
        let key = requirement.key.rsplit('/').next().unwrap_or_default();
        format!(
            "{key} {} {}",
            requirement.operator,
            requirement.values.join(",")
        )
    };
    let one = |ami: &Ami| {
        let all: Vec<String> = ami.requirements.iter().map(requirement).collect();
        format!(
            "{}: {}",
            ami.id,
            all.join("; ").replace(" ;", ";").trim_end()
        )
    };
    amis.iter().map(one).collect()
}

#[test]
fn aws_052_what_aliases_stand_for() {
    let start = "/aws/service/eks/optimized-ami/1.36/amazon-linux-2023";
    assert_eq!(
        paths("al2023@latest", "1.36"),
        [
            "x86_64/standard",
            "x86_64/nvidia",
            "x86_64/neuron",
            "arm64/standard",
            "arm64/nvidia"
        ]
        .map(|variant| format!("{start}/{variant}/recommended/image_id"))
    );
    assert_eq!(
        paths("al2023@v20260801", "1.36")[4],
        format!("{start}/arm64/nvidia/amazon-eks-node-al2023-arm64-nvidia-1.36-v20260801/image_id")
    );
    let start = "/aws/service/eks/optimized-ami/1.32";
    assert_eq!(
        paths("al2@latest", "1.32"),
        [
            "amazon-linux-2",
            "amazon-linux-2-arm64",
            "amazon-linux-2-gpu"
        ]
        .map(|variant| format!("{start}/{variant}/recommended/image_id"))
    );
    assert_eq!(
        paths("al2@v20250101", "1.32"),
        [
            "amazon-linux-2/amazon-eks-node",
            "amazon-linux-2-arm64/amazon-eks-arm64-node",
            "amazon-linux-2-gpu/amazon-eks-gpu-node"
        ]
        .map(|family| format!("{start}/{family}-1.32-v20250101/image_id"))
    );
    let start = "/aws/service/bottlerocket/aws-k8s-1.36";
    assert_eq!(
        paths("bottlerocket@v1.48.0", "1.36"),
        ["/x86_64", "/arm64", "-nvidia/x86_64", "-nvidia/arm64"]
            .map(|variant| format!("{start}{variant}/1.48.0/image_id"))
    );
    assert_eq!(
        paths("bottlerocket@latest", "1.36")[0],
        format!("{start}/x86_64/latest/image_id")
    );
    assert_eq!(
        paths("windows2025@latest", "1.36"),
        [
            "/aws/service/ami-windows-latest/Windows_Server-2025-English-Core-EKS_Optimized-1.36/image_id"
        ]
    );
}

#[test]
fn aws_052_images_of_aliases_and_their_requirements() {
    let resolved = |alias_text: &str, kubernetes: &str, arches: &[&str]| {
        let lookups = lookups(&alias(alias_text), kubernetes).unwrap();
        let ids = (1..).map(|number| format!("ami-{number}"));
        let values: BTreeMap<String, String> = lookups
            .iter()
            .map(|lookup| lookup.parameter.clone())
            .zip(ids)
            .collect();
        let all: Vec<Value> = (1..)
            .zip(arches)
            .map(|(number, arch)| image(&format!("ami-{number}"), arch, "2026-08-01"))
            .collect();
        told(&select(&images(&all), &lookups, &values, now()))
    };
    let gpu = "instance-gpu-count";
    let accelerator = "instance-accelerator-count";
    let plain = format!("{gpu} DoesNotExist; {accelerator} DoesNotExist");
    assert_eq!(
        resolved(
            "al2023@latest",
            "1.36",
            &["x86_64", "x86_64", "x86_64", "arm64", "arm64"]
        ),
        [
            format!("ami-1: arch In amd64; {plain}"),
            format!("ami-2: arch In amd64; {gpu} Exists"),
            format!("ami-3: arch In amd64; {accelerator} Exists"),
            format!("ami-4: arch In arm64; {plain}"),
            format!("ami-5: arch In arm64; {gpu} Exists"),
        ]
    );
    assert_eq!(
        resolved("al2@latest", "1.32", &["x86_64", "arm64", "x86_64"]),
        [
            format!("ami-1: arch In amd64; {plain}"),
            format!("ami-2: arch In arm64; {plain}"),
            format!("ami-3: arch In amd64; {gpu} Exists"),
            format!("ami-3: arch In amd64; {accelerator} Exists"),
        ]
    );
    assert_eq!(
        resolved(
            "bottlerocket@latest",
            "1.36",
            &["x86_64", "arm64", "x86_64", "arm64"]
        )[..2],
        [
            format!("ami-1: arch In amd64; {plain}"),
            format!("ami-1: arch In amd64; {accelerator} Exists"),
        ]
    );
    assert_eq!(
        resolved("windows2022@latest", "1.36", &["x86_64"]),
        ["ami-1: os In windows; arch In amd64; windows-build In 10.0.20348"]
    );
}

#[test]
fn aws_053_parameters_that_are_missing() {
    let spec = alias("al2023@latest");
    let lookups = lookups(&spec, "1.36").unwrap();
    let mut values = BTreeMap::new();
    let error = queries(&spec, &lookups, &values).unwrap_err().to_string();
    assert!(
        error.starts_with(
            "none of the 5 parameters of al2023@latest in spec.amiSelectorTerms is there"
        ),
        "{error}"
    );
    values.insert(lookups[1].parameter.clone(), "ami-2".to_owned());
    values.insert(lookups[0].parameter.clone(), "ami-1".to_owned());
    let found = queries(&spec, &lookups, &values).unwrap();
    assert_eq!(
        serde_json::to_value(&found).unwrap(),
        json!([{"Filters": [{"Name": "image-id", "Values": ["ami-1", "ami-2"]},
            {"Name": "state", "Values": ["available"]}], "IncludeDeprecated": true, "MaxResults": 1000}])
    );
}

#[test]
fn aws_054_aliases_that_a_version_has_no_images_for() {
    let result = |alias_text: &str, kubernetes: &str| {
        let found = lookups(&alias(alias_text), kubernetes);
        found.map(|_| ()).map_err(|error| error.to_string())
    };
    let error = result("al2@latest", "1.33").unwrap_err();
    assert_eq!(
        error,
        "there are no images of AL2 for Kubernetes 1.33; select al2023@latest or bottlerocket@latest in \
         spec.amiSelectorTerms"
    );
    assert!(result("al2@latest", "1.34").is_err());
    assert!(result("al2@latest", "1.32").is_ok());
    assert!(result("al2023@latest", "1.33").is_ok());
    assert!(result("windows2025@latest", "1.34").is_err());
    assert!(result("windows2025@latest", "1.35").is_ok());
}

fn by_tags(all: &[Value]) -> Vec<Ami> {
    select(&images(all), &[], &BTreeMap::new(), now())
}

fn deprecated(mut image: Value) -> Value {
    image["DeprecationTime"] = json!("2026-11-01T00:00:00.000Z");
    image
}

#[test]
fn aws_055_056_deprecated_images_come_last() {
    let old = || image("ami-old", "x86_64", "2026-01-01");
    let new = || image("ami-new", "x86_64", "2026-02-01");
    let id = |all: &[Value]| {
        by_tags(all)
            .into_iter()
            .map(|ami| ami.id)
            .collect::<Vec<_>>()
            .join(" ")
    };
    assert_eq!(id(&[old(), new()]), "ami-new");
    assert_eq!(id(&[old(), deprecated(new())]), "ami-old");
    assert_eq!(id(&[deprecated(old()), deprecated(new())]), "ami-new");
    let same = image("ami-other", "x86_64", "2026-02-01");
    assert_eq!(id(&[same.clone(), new()]), "ami-other");
    let shown = by_tags(&[deprecated(old())]);
    assert_eq!(shown[0].deprecated, Some(true));
    assert_eq!(by_tags(&[old()])[0].deprecated, None);
    let mut later = old();
    later["DeprecationTime"] = json!("2027-01-01T00:00:00.000Z");
    assert_eq!(by_tags(&[later])[0].deprecated, None);
}

#[test]
fn aws_057_059_images_that_do_not_count() {
    let mut gone = image("ami-1", "x86_64", "2026-01-01");
    gone["State"] = json!("deregistered");
    let odd = image("ami-2", "i386", "2026-01-01");
    let mut tagged = image("ami-3", "arm64", "2026-01-01");
    tagged["Tags"] = json!([{"Key": "kubernetes.io/arch", "Value": "amd64"}]);
    assert_eq!(
        told(&by_tags(&[gone, odd, tagged])),
        ["ami-3: arch In arm64"]
    );
}

#[test]
fn aws_058_060_questions_about_images() {
    let ask = |term: Value, value: Option<&str>| {
        let spec = spec(json!([term]));
        let lookups = lookups(&spec, "1.36").unwrap();
        let values = lookups
            .iter()
            .zip(value)
            .map(|(lookup, value)| (lookup.parameter.clone(), value.to_owned()));
        let found = queries(&spec, &lookups, &values.collect()).unwrap();
        serde_json::to_value(&found).unwrap()
    };
    let rest = |filters: Value, owners: Option<Value>| {
        let mut query = json!({"Filters": filters, "IncludeDeprecated": true, "MaxResults": 1000});
        if let Some(owners) = owners {
            query["Owners"] = owners;
        }
        json!([query])
    };
    let available = || json!({"Name": "state", "Values": ["available"]});
    let filter = |name: &str, value: &str| json!({"Name": name, "Values": [value]});
    assert_eq!(
        ask(json!({"name": "my-*"}), None),
        rest(
            json!([filter("name", "my-*"), available()]),
            Some(json!(["self", "amazon"]))
        )
    );
    assert_eq!(
        ask(
            json!({"name": "my-*", "owner": "123456789012", "tags": {"a": "*"}}),
            None
        ),
        rest(
            json!([filter("name", "my-*"), filter("tag-key", "a"), available()]),
            Some(json!(["123456789012"]))
        )
    );
    assert_eq!(
        ask(json!({"tags": {"a": "b"}}), None),
        rest(json!([filter("tag:a", "b"), available()]), None)
    );
    assert_eq!(
        ask(json!({"id": "ami-1"}), None),
        rest(json!([filter("image-id", "ami-1"), available()]), None)
    );
    let by_parameter = ask(json!({"ssmParameter": "/mine"}), Some("ami-7"));
    assert_eq!(
        by_parameter,
        rest(json!([filter("image-id", "ami-7"), available()]), None)
    );
    assert_eq!(ask(json!({"ssmParameter": "/mine"}), None), json!([]));
    assert_eq!(
        ask(json!({"ssmParameter": "/mine"}), Some("no image")),
        json!([])
    );
}

#[test]
fn aws_180_parameters_that_name_deprecated_images() {
    let told = |alias_text: &str, all: &[Value]| {
        let lookups = lookups(&alias(alias_text), "1.36").unwrap();
        let values = BTreeMap::from([(lookups[0].parameter.clone(), "ami-1".to_owned())]);
        stale(&lookups, &values, &images(all), now()).len()
    };
    let image = image("ami-1", "x86_64", "2026-01-01");
    assert_eq!(told("al2023@latest", &[deprecated(image.clone())]), 1);
    assert_eq!(told("al2023@v20260801", &[deprecated(image.clone())]), 0);
    assert_eq!(told("al2023@latest", &[image]), 0);
}

#[test]
fn aws_101_each_type_boots_an_image_of_its_kind() {
    let lookups = lookups(&alias("al2023@latest"), "1.36").unwrap();
    let ids = (1..).map(|number| format!("ami-{number}"));
    let values: BTreeMap<String, String> = lookups
        .iter()
        .map(|lookup| lookup.parameter.clone())
        .zip(ids)
        .collect();
    let arches = ["x86_64", "x86_64", "x86_64", "arm64", "arm64"];
    let all: Vec<Value> = (1..)
        .zip(arches)
        .map(|(number, arch)| image(&format!("ami-{number}"), arch, "2026-08-01"))
        .collect();
    let amis = select(&images(&all), &lookups, &values, now());
    let of = |name: &str| {
        let ty = ec2_type(name, "us-east-1", &ClassSettings::default())
            .unwrap()
            .unwrap();
        for_type(&amis, &ty).map(|ami| ami.id.clone())
    };
    for (name, id) in [
        ("m5.large", "ami-1"),
        ("g4dn.xlarge", "ami-2"),
        ("inf2.xlarge", "ami-3"),
        ("m6g.large", "ami-4"),
        ("g5g.xlarge", "ami-5"),
    ] {
        assert_eq!(of(name).as_deref(), Some(id), "{name}");
    }
    assert!(
        for_type(
            &[],
            &ec2_type("m5.large", "us-east-1", &ClassSettings::default())
                .unwrap()
                .unwrap()
        )
        .is_none()
    );
}
