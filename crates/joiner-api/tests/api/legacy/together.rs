//! Objects that concern each other.

use super::{all, examples, said};
use crate::support::{full, with};
use joiner_api::legacy::{convert_all, may_mention, mentions, with_pool_names};
use serde_json::{Value, json};

fn pool(name: &str, kubelet: Value) -> Value {
    let pool = with(examples::node_pool(), "/metadata/name", json!(name));
    let path = "/spec/template/spec/kubelet";
    with(pool, path, kubelet)
}

fn class_name(pool: &Value) -> &str {
    pool["spec"]["template"]["spec"]["nodeClassRef"]["name"]
        .as_str()
        .expect("a name")
}

#[test]
fn pools_with_the_same_settings_share_their_class() {
    let kubelet = json!({"maxPods": 20});
    let new = all(&[
        pool("a", kubelet.clone()),
        examples::node_class(),
        pool("b", kubelet.clone()),
    ]);
    assert_eq!(new[1].objects.len(), 1);
    assert_eq!(new[1].objects[0]["spec"]["kubelet"], kubelet);
    for ix in [0, 2] {
        assert_eq!(class_name(&new[ix].objects[0]), "general");
        assert_eq!(
            new[ix].objects[0]["metadata"]["annotations"],
            json!({"c": "d"})
        );
    }
}

#[test]
fn a_class_is_split_where_two_pools_differ() {
    let taken = with(examples::node_class(), "/metadata/name", json!("general-b"));
    let claim = with(
        examples::node_claim(),
        "/metadata/labels",
        json!({"karpenter.sh/nodepool": "b"}),
    );
    let new = all(&[
        pool("a", json!({"maxPods": 20})),
        pool("b", json!({"maxPods": 30})),
        pool("c", Value::Null),
        examples::node_class(),
        taken,
        claim,
    ]);
    let classes: Vec<(&str, &Value)> = new[3]
        .objects
        .iter()
        .map(|class| {
            (
                class["metadata"]["name"].as_str().unwrap(),
                &class["spec"]["kubelet"],
            )
        })
        .collect();
    // The pool without settings keeps the class as it is.
    assert_eq!(
        classes,
        [
            ("general", &Value::Null),
            ("general-a", &json!({"maxPods": 20})),
            ("general-b-2", &json!({"maxPods": 30})),
        ]
    );
    let names: Vec<&str> = new[..3]
        .iter()
        .map(|new| class_name(&new.objects[0]))
        .collect();
    assert_eq!(names, ["general-a", "general-b-2", "general"]);
    assert_eq!(new[3].objects[1].get("status"), None);
    assert_eq!(
        new[5].objects[0]["spec"]["nodeClassRef"]["name"],
        "general-b-2"
    );
    assert!(said(&new[1]).iter().any(|line| line
        == "spec.template.spec.kubelet: is spec.kubelet \
        of the EC2NodeClass general-b-2 now, a copy of general, which other pools use with other \
        settings"));
}

#[test]
fn a_class_of_today_takes_the_settings_too() {
    let class = with(
        full::ec2_node_classes().remove(0),
        "/metadata/name",
        json!("general"),
    );
    let class = with(class, "/spec/kubelet", Value::Null);
    let new = all(&[pool("a", json!({"maxPods": 20})), class.clone()]);
    let expected = with(class, "/spec/kubelet", json!({"maxPods": 20}));
    assert_eq!(new[1].objects, [expected]);
}

#[test]
fn without_the_class_settings_stay_in_an_annotation() {
    let new = all(&[pool("a", json!({"maxPods": 20}))]);
    let kept = "compatibility.karpenter.sh/v1beta1-kubelet-conversion";
    assert_eq!(
        new[0].objects[0]["metadata"]["annotations"][kept],
        "{\"maxPods\":20}"
    );
    assert!(
        said(&new[0]).iter().any(|line| line
            == "! spec.template.spec.kubelet: belongs to the \
        EC2NodeClass general in v1, which is not in the input: give both, or write under its \
        spec.kubelet: {\"maxPods\":20}"),
        "{:?}",
        said(&new[0])
    );
}

#[test]
fn objects_of_today_stay_as_they_are() {
    let objects = [full::node_pools(), full::ec2_node_classes()[..1].to_vec()].concat();
    let objects = &objects[1..];
    assert_eq!(convert_all(objects).unwrap(), [None, None]);
}

#[test]
fn claims_live_as_long_as_their_pool_says() {
    let alone = with(examples::node_claim(), "/metadata/labels", Value::Null);
    let alone = with(alone, "/metadata/name", json!("alone"));
    let new = all(&[pool("general", Value::Null), examples::node_claim(), alone]);
    assert_eq!(new[1].objects[0]["spec"]["expireAfter"], "336h");
    assert_eq!(new[2].objects[0]["spec"]["expireAfter"], "Never");
    let stray = all(&[examples::node_claim()]);
    assert!(said(&stray[0]).iter().any(|line| line.starts_with(
        "! spec.expireAfter: its NodePool \
        general is not in the input"
    )));
}

#[test]
fn two_of_the_same_name_are_an_error() {
    let today = with(
        full::node_pools().remove(0),
        "/metadata/name",
        json!("general"),
    );
    let failure = convert_all(&[today, examples::provisioner()]).unwrap_err();
    assert_eq!(failure.ix, 1);
    assert_eq!(
        failure.to_string(),
        "Provisioner general: metadata.name: NodePool general would be there twice, from NodePool \
         general (v1) and from Provisioner general (v1alpha5); remove or rename one of them"
    );
    assert!(convert_all(&[examples::node_class(), examples::node_template()]).is_err());
}

#[test]
fn old_names_elsewhere_are_told() {
    let deployment = json!({
        "apiVersion": "apps/v1", "kind": "Deployment",
        "metadata": {"name": "web", "namespace": "shop"},
        "spec": {"template": {
            "metadata": {"annotations": {"karpenter.sh/do-not-evict": "true"}},
            "spec": {
                "nodeSelector": {"karpenter.sh/provisioner-name": "general"},
                "topologySpreadConstraints": [{"topologyKey": "karpenter.sh/provisioner-name"}],
            },
        }},
    });
    assert!(may_mention(&deployment.to_string()));
    let lines: Vec<String> = mentions(&deployment)
        .iter()
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        lines,
        [
            "Deployment shop/web: spec.template.metadata.annotations[karpenter.sh/do-not-evict]: \
             the annotation karpenter.sh/do-not-evict keeps nothing any longer; write \
             karpenter.sh/do-not-disrupt",
            "Deployment shop/web: spec.template.spec.nodeSelector[karpenter.sh/provisioner-name]: \
             nodes of NodePools do not have the label karpenter.sh/provisioner-name; write \
             karpenter.sh/nodepool",
            "Deployment shop/web: spec.template.spec.topologySpreadConstraints[0].topologyKey: \
             nodes of NodePools do not have the label karpenter.sh/provisioner-name; write \
             karpenter.sh/nodepool",
        ]
    );
    let spec = &with_pool_names(&deployment)["spec"]["template"]["spec"];
    assert_eq!(
        spec["nodeSelector"],
        json!({"karpenter.sh/nodepool": "general"})
    );
    assert_eq!(
        spec["topologySpreadConstraints"][0]["topologyKey"],
        "karpenter.sh/nodepool"
    );
    let node =
        json!({"kind": "Node", "metadata": {"labels": {"karpenter.sh/provisioner-name": "x"}}});
    assert!(mentions(&node).is_empty());
}
