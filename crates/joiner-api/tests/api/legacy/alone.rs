//! One object at a time, as an API server asks.

use super::examples;
use crate::support::full;
use joiner_api::legacy::{Error, check, is_old, to_v1, to_v1beta1};
use serde_json::json;

#[test]
fn upstreams_annotations_hold_what_v1_lacks() {
    let pool = examples::node_pool();
    let new = to_v1(&pool).unwrap().objects.remove(0);
    let kept = &new["metadata"]["annotations"];
    let kubelet = kept["compatibility.karpenter.sh/v1beta1-kubelet-conversion"]
        .as_str()
        .unwrap();
    let kubelet: serde_json::Value = serde_json::from_str(kubelet).unwrap();
    assert_eq!(kubelet, examples::kubelet());
    assert_eq!(new["spec"]["template"]["spec"]["expireAfter"], "336h");
    assert_eq!(new["spec"]["disruption"].get("expireAfter"), None);

    let claim = to_v1(&examples::node_claim()).unwrap().objects.remove(0);
    let kept = &claim["metadata"]["annotations"];
    assert_eq!(
        kept["compatibility.karpenter.sh/v1beta1-nodeclass-reference"],
        "{\"name\":\"general\"}"
    );
}

#[test]
fn policies_of_v1beta1_are_what_they_were() {
    let policy = |disruption: serde_json::Value| {
        let mut pool = examples::node_pool();
        pool["spec"]["disruption"] = disruption;
        to_v1(&pool).unwrap().objects.remove(0)["spec"]["disruption"].clone()
    };
    assert_eq!(
        policy(json!({"consolidationPolicy": "WhenUnderutilized"})),
        json!({"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"})
    );
    assert_eq!(
        policy(json!({"consolidationPolicy": "WhenUnderutilized", "consolidateAfter": "Never"})),
        json!({"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "Never"})
    );
    assert_eq!(
        policy(json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"})),
        json!({"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"})
    );
    assert_eq!(policy(json!({})), json!({"consolidateAfter": "0s"}));
}

#[test]
fn images_follow_the_family() {
    let class = |change: &dyn Fn(&mut serde_json::Value)| {
        let mut class = examples::node_class();
        class["spec"]
            .as_object_mut()
            .unwrap()
            .remove("amiSelectorTerms");
        change(&mut class);
        let new = to_v1(&class).unwrap().objects.remove(0);
        (
            new["spec"]["amiFamily"].clone(),
            new["spec"]["amiSelectorTerms"].clone(),
        )
    };
    let family = |family: &'static str| class(&|class| class["spec"]["amiFamily"] = json!(family));
    assert_eq!(
        family("AL2"),
        (json!(null), json!([{"alias": "al2@latest"}]))
    );
    assert_eq!(
        family("Windows2022"),
        (json!(null), json!([{"alias": "windows2022@latest"}]))
    );
    assert_eq!(
        family("Ubuntu"),
        (json!("AL2"), json!([{"id": "ami-placeholder"}]))
    );
    let pinned = class(&|class| {
        class["metadata"]["annotations"] =
            json!({"compatibility.karpenter.k8s.aws/v1-alias-version": "v20240807"});
    });
    assert_eq!(
        pinned,
        (json!(null), json!([{"alias": "al2023@v20240807"}]))
    );
    let custom = class(&|class| {
        class["spec"]["amiFamily"] = json!("Custom");
        class["spec"]["amiSelectorTerms"] = json!([{"name": "mine"}]);
    });
    assert_eq!(custom, (json!("Custom"), json!([{"name": "mine"}])));
}

#[test]
fn an_alias_is_a_family_and_a_version() {
    let class = full::ec2_node_classes().remove(1);
    let old = to_v1beta1(&class).unwrap();
    assert_eq!(old["spec"]["amiFamily"], "AL2023");
    assert_eq!(old["spec"].get("amiSelectorTerms"), None);
    let kept = &old["metadata"]["annotations"];
    assert_eq!(
        kept["compatibility.karpenter.k8s.aws/v1-alias-version"],
        "v20240807"
    );
    assert!(check(&old).is_ok(), "{:?}", check(&old));
}

#[test]
fn images_in_v1beta1_are_valid() {
    for object in [
        full::node_pools(),
        full::node_claims(),
        full::ec2_node_classes(),
    ]
    .concat()
    {
        let old = to_v1beta1(&object).unwrap();
        let found = check(&old);
        assert_eq!(found.as_deref(), Ok(&[][..]), "{old:#}");
    }
}

#[test]
fn only_old_kinds_are_converted() {
    assert!(is_old("karpenter.sh/v1alpha5", "Provisioner"));
    assert!(!is_old("karpenter.sh/v1", "NodePool"));
    let pod = json!({"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}});
    for error in [
        to_v1(&pod).map(drop),
        to_v1beta1(&pod).map(drop),
        check(&pod).map(drop),
    ] {
        let error = error.unwrap_err();
        assert!(matches!(error, Error::NotOld { .. }));
        assert_eq!(
            error.to_string(),
            "Pod a: v1 Pod is no older kind; there is nothing to convert"
        );
    }
    assert!(to_v1beta1(&examples::provisioner()).is_err());
}
