//! AWS behaviors 1 to 12: identity, images, selectors and tags of EC2NodeClasses.

use crate::support::{accepted, ec2_node_class, probe, refused, set, with};
use joiner_api::admit_update;
use serde_json::{Value, json};

const AMIS: &str = "spec.amiSelectorTerms";

fn with_amis(terms: Value, family: Option<&str>) -> Value {
    let class = with(ec2_node_class(), "/spec/amiSelectorTerms", terms);
    with(
        class,
        "/spec/amiFamily",
        family.map_or(Value::Null, |family| json!(family)),
    )
}

#[test]
fn aws_28_01_role_or_profile() {
    accepted(ec2_node_class());
    let profile = with(
        with(ec2_node_class(), "/spec/role", Value::Null),
        "/spec/instanceProfile",
        json!("nodes"),
    );
    accepted(profile);
    let both = with(ec2_node_class(), "/spec/instanceProfile", json!("nodes"));
    refused(both, "spec", "exactly one of role and instanceProfile");
    let neither = with(ec2_node_class(), "/spec/role", Value::Null);
    refused(
        neither.clone(),
        "spec",
        "exactly one of role and instanceProfile",
    );
    let empty = with(ec2_node_class(), "/spec/role", json!(""));
    refused(empty, "spec.role", "not be empty");
    let empty = with(neither, "/spec/instanceProfile", json!(""));
    refused(empty, "spec.instanceProfile", "not be empty");
}

#[test]
fn aws_28_02_identity_may_change() {
    let mut profile = with(ec2_node_class(), "/spec/role", Value::Null);
    set(&mut profile, "/spec/instanceProfile", json!("nodes"));
    let other = with(ec2_node_class(), "/spec/role", json!("other"));
    for (old, new) in [
        (ec2_node_class(), profile.clone()),
        (profile, ec2_node_class()),
        (ec2_node_class(), other),
    ] {
        assert!(admit_update(&old, &mut new.clone()).is_ok());
    }
}

#[test]
fn aws_28_03_ami_family() {
    let families = [
        "AL2",
        "AL2023",
        "Bottlerocket",
        "Custom",
        "Windows2019",
        "Windows2022",
        "Windows2025",
    ];
    for family in families {
        accepted(with_amis(json!([{"id": "ami-123"}]), Some(family)));
    }
    for family in ["Ubuntu", "al2023", ""] {
        let class = with_amis(json!([{"id": "ami-123"}]), Some(family));
        refused(class, "spec.amiFamily", "must be one of");
    }
}

#[test]
fn aws_28_04_family_needed_without_alias() {
    for term in [
        json!({"id": "ami-1"}),
        json!({"name": "x"}),
        json!({"tags": {"a": "b"}}),
    ] {
        refused(
            with_amis(json!([term]), None),
            "spec",
            "amiFamily is needed",
        );
        accepted(with_amis(json!([term]), Some("Custom")));
    }
    accepted(with_amis(json!([{"alias": "al2023@latest"}]), None));
}

#[test]
fn aws_28_05_family_of_the_alias() {
    let words = "family of the alias";
    for (alias, family) in [
        ("al2@v20240807", "AL2"),
        ("al2023@latest", "AL2023"),
        ("bottlerocket@latest", "Bottlerocket"),
        ("windows2019@latest", "Windows2019"),
        ("windows2022@latest", "Windows2022"),
        ("windows2025@latest", "Windows2025"),
    ] {
        let terms = json!([{"alias": alias}]);
        accepted(with_amis(terms.clone(), None));
        accepted(with_amis(terms.clone(), Some(family)));
        accepted(with_amis(terms.clone(), Some("Custom")));
        let other = if family == "AL2" { "AL2023" } else { "AL2" };
        refused(with_amis(terms, Some(other)), "spec", words);
    }
}

#[test]
fn aws_28_06_alias_form() {
    let path = "spec.amiSelectorTerms[0].alias";
    for alias in [
        "@latest",
        "al2023",
        "al2023@",
        "al2023-latest",
        "",
        "AL2023@latest",
    ] {
        refused(
            with_amis(json!([{"alias": alias}]), None),
            path,
            "family@version",
        );
    }
    for alias in ["ubuntu@latest", "custom@latest", "al@latest"] {
        refused(
            with_amis(json!([{"alias": alias}]), None),
            path,
            "must be one of",
        );
    }
    let long = format!("al2023@{}", "1".repeat(24));
    refused(
        with_amis(json!([{"alias": long}]), None),
        path,
        "at most 30 characters",
    );
}

#[test]
fn aws_28_07_alias_versions() {
    let path = "spec.amiSelectorTerms[0].alias";
    for family in ["windows2019", "windows2022", "windows2025"] {
        let alias = format!("{family}@v1.0.0");
        refused(
            with_amis(json!([{"alias": alias}]), None),
            path,
            "only be @latest",
        );
    }
    accepted(with_amis(json!([{"alias": "bottlerocket@1.10.0"}]), None));
    accepted(with_amis(json!([{"alias": "al2023@v20240807"}]), None));
}

#[test]
fn aws_28_08_ami_terms_exclude() {
    let second = json!([{"alias": "al2023@latest"}, {"id": "ami-1"}]);
    refused(with_amis(second, None), AMIS, "must be the only term");
    for (field, value) in [
        ("alias", json!("al2023@latest")),
        ("tags", json!({"a": "b"})),
        ("name", json!("x")),
        ("owner", json!("self")),
    ] {
        let term = json!({"id": "ami-1", field: value});
        refused(
            with_amis(json!([term]), Some("Custom")),
            AMIS,
            "id cannot be combined",
        );
        // One bad term is enough.
        let mixed = json!([{"id": "ami-2"}, term]);
        refused(
            with_amis(mixed, Some("Custom")),
            AMIS,
            "id cannot be combined",
        );
    }
    for (field, value) in [
        ("tags", json!({"a": "b"})),
        ("name", json!("x")),
        ("owner", json!("self")),
    ] {
        let term = json!({"alias": "al2023@latest", field: value});
        refused(
            with_amis(json!([term]), None),
            AMIS,
            "alias cannot be combined",
        );
    }
    let parameter = json!([{"id": "ami-1", "ssmParameter": "/x"}, {"ssmParameter": "/y"}]);
    accepted(with_amis(parameter, Some("Custom")));
}

#[test]
fn aws_28_09_owner_needs_company() {
    let at = |term: Value| with_amis(json!([term]), Some("Custom"));
    accepted(at(json!({"owner": "self", "tags": {"a": "b"}})));
    accepted(at(json!({"owner": "self", "name": "x"})));
    refused(at(json!({"owner": "self"})), AMIS, "at least one of");
}

#[test]
fn aws_28_10_selector_terms() {
    for (field, good) in [
        ("subnetSelectorTerms", json!({"id": "subnet-1"})),
        ("securityGroupSelectorTerms", json!({"id": "sg-1"})),
        ("amiSelectorTerms", json!({"id": "ami-1"})),
    ] {
        let pointer = format!("/spec/{field}");
        let path = format!("spec.{field}");
        let base = with(ec2_node_class(), "/spec/amiFamily", json!("AL2023"));
        let at = |terms: Value| with(base.clone(), &pointer, terms);
        accepted(at(json!([good])));
        accepted(at(json!([{"tags": {"a": "*"}}])));
        let empty = if field == "amiSelectorTerms" {
            "not be empty"
        } else {
            "at least one term"
        };
        refused(at(json!([])), &path, empty);
        refused(at(Value::Null), &path, "is required");
        refused(at(json!([{}])), &path, "at least one of");
        refused(at(json!([good, {}])), &path, "at least one of");
        let tags = |tags: Value| at(json!([{"tags": tags}]));
        refused(
            tags(json!({"": "x"})),
            &format!("{path}[0].tags"),
            "key and a value",
        );
        refused(
            tags(json!({"x": ""})),
            &format!("{path}[0].tags"),
            "key and a value",
        );
        let many: serde_json::Map<String, Value> = (0..21)
            .map(|index| (format!("k{index}"), json!("v")))
            .collect();
        refused(
            tags(json!(many)),
            &format!("{path}[0].tags"),
            "at most 20 entries",
        );
        refused(at(json!(vec![good.clone(); 31])), &path, "at most 30 items");
        accepted(at(json!(vec![good.clone(); 30])));
        refused(
            at(json!([{"id": "x"}])),
            &format!("{path}[0].id"),
            "id such as",
        );
    }
}

#[test]
fn aws_1_2_id_stands_alone_if_every_term_breaks_it() {
    let tagged = json!({"id": "subnet-1", "tags": {"a": "b"}});
    probe(
        ec2_node_class(),
        "/spec/subnetSelectorTerms",
        "spec.subnetSelectorTerms",
    )
    .refuses(
        "cannot be combined",
        [json!([tagged]), json!([tagged, tagged])],
    )
    .accepts([json!([tagged, {"id": "subnet-2"}])]);
    let tagged = json!({"id": "sg-1", "tags": {"a": "b"}});
    let named = json!({"id": "sg-1", "name": "x"});
    let both = json!({"name": "x", "tags": {"a": "b"}});
    let path = "spec.securityGroupSelectorTerms";
    probe(ec2_node_class(), "/spec/securityGroupSelectorTerms", path)
        .refuses(
            "cannot be combined",
            [json!([tagged]), json!([named]), json!([both])],
        )
        .accepts([json!([tagged, {"id": "sg-2"}]), json!([{"name": "x"}])]);
}

#[test]
fn aws_28_11_tags() {
    for key in [
        "eks:eks-cluster-name",
        "karpenter.sh/nodepool",
        "karpenter.sh/nodeclaim",
        "karpenter.k8s.aws/ec2nodeclass",
        "kubernetes.io/cluster/mine",
        "kubernetes.io/cluster",
    ] {
        let class = with(
            ec2_node_class(),
            "/spec/tags",
            json!({key: "x", "fine": "y"}),
        );
        refused(class, "spec.tags", "set by the controller");
    }
    refused(
        with(ec2_node_class(), "/spec/tags", json!({"": "x"})),
        "spec.tags",
        "need a key",
    );
    for tags in [
        json!({}),
        json!({"team": "a", "empty": "", "kubernetes.io/other": "x"}),
    ] {
        accepted(with(ec2_node_class(), "/spec/tags", tags));
    }
}

#[test]
fn aws_28_12_capacity_reservations() {
    let path = "spec.capacityReservationSelectorTerms";
    let at = |terms: Value| {
        with(
            ec2_node_class(),
            "/spec/capacityReservationSelectorTerms",
            terms,
        )
    };
    accepted(at(Value::Null));
    accepted(at(json!([])));
    for term in [
        json!({"id": "cr-123"}),
        json!({"tags": {"a": "b"}}),
        json!({"tags": {"a": "b"}, "ownerID": "123456789012"}),
        json!({"instanceMatchCriteria": "open"}),
        json!({"instanceMatchCriteria": "targeted", "ownerID": "123456789012"}),
    ] {
        accepted(at(json!([term])));
    }
    refused(
        at(json!([{"ownerID": "123456789012"}])),
        path,
        "at least one of",
    );
    refused(
        at(json!([{"id": "r-123"}])),
        &format!("{path}[0].id"),
        "reservation id",
    );
    refused(
        at(json!([{"id": "xcr-123"}])),
        &format!("{path}[0].id"),
        "reservation id",
    );
    let owner = json!([{"tags": {"a": "b"}, "ownerID": "me"}]);
    refused(at(owner), &format!("{path}[0].ownerID"), "12 digits");
    let criteria = json!([{"instanceMatchCriteria": "any"}]);
    refused(
        at(criteria),
        &format!("{path}[0].instanceMatchCriteria"),
        "must be one of",
    );
    for (field, value) in [
        ("tags", json!({"a": "b"})),
        ("ownerID", json!("123456789012")),
        ("instanceMatchCriteria", json!("open")),
    ] {
        refused(
            at(json!([{"id": "cr-1", field: value}])),
            path,
            "cannot be combined",
        );
    }
    refused(
        at(json!(vec![json!({"id": "cr-1"}); 31])),
        path,
        "at most 30 items",
    );
}

#[test]
fn aws_1_1_placement_group() {
    let path = "spec.placementGroupSelector";
    probe(ec2_node_class(), "/spec/placementGroupSelector", path)
        .accepts([json!({"name": "x"}), json!({"id": "pg-12ab"})])
        .refuses(
            "exactly one",
            [json!({}), json!({"name": "x", "id": "pg-1"})],
        );
    let empty = with(
        ec2_node_class(),
        "/spec/placementGroupSelector",
        json!({"name": ""}),
    );
    refused(empty, "spec.placementGroupSelector.name", "not be empty");
    let bad = with(
        ec2_node_class(),
        "/spec/placementGroupSelector",
        json!({"id": "xpg-1"}),
    );
    refused(bad, "spec.placementGroupSelector.id", "placement group id");
}
