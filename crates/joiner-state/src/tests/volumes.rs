use super::*;

const CLASSES: &str = "
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: zonal}, provisioner: kubernetes.io/aws-ebs, volumeBindingMode: WaitForFirstConsumer,
 allowedTopologies: [{matchLabelExpressions: [{key: topology.ebs.csi.aws.com/zone, values: [a, b]}]}]}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: at-once}, provisioner: ebs.csi.aws.com}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: older, creationTimestamp: '2025-01-01T00:00:00Z', annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}, provisioner: one, volumeBindingMode: WaitForFirstConsumer}
---
{apiVersion: storage.k8s.io/v1, kind: StorageClass, metadata: {name: newer, creationTimestamp: '2026-01-01T00:00:00Z', annotations: {storageclass.kubernetes.io/is-default-class: 'true'}}, provisioner: two, volumeBindingMode: WaitForFirstConsumer}
";

fn claim(meta: &str, spec: &str, rest: &str) -> String {
    format!(
        "---\n{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: data{meta}}}, spec: {spec}{rest}}}\n"
    )
}

fn volume(spec: &str) -> String {
    format!(
        "---\n{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: pv}}, spec: {spec}}}\n"
    )
}

const MOUNT: &str = "{volumes: [{name: v, persistentVolumeClaim: {claimName: data}}]}";
const BOUND: &str = ", annotations: {pv.kubernetes.io/bind-completed: 'yes'}";
const TO_PV: &str = "{volumeName: pv, storageClassName: ''}";

#[test]
fn core_187_188_193_194_volumes_that_are_not_ready_hold_their_pod_back() {
    let deleting = ", deletionTimestamp: '2026-01-01T00:00:00Z'";
    let pv = volume("{csi: {driver: d}}");
    for (objects, expected) in [
        (
            String::new(),
            Some("its PersistentVolumeClaim default/data does not exist"),
        ),
        (
            claim(deleting, "{storageClassName: zonal}", ""),
            Some("its PersistentVolumeClaim default/data is being deleted"),
        ),
        (
            claim("", "{volumeName: pv}", ", status: {phase: Lost}"),
            Some("its PersistentVolumeClaim default/data has lost its PersistentVolume"),
        ),
        (
            claim(BOUND, TO_PV, ""),
            Some(
                "its PersistentVolumeClaim default/data is bound to PersistentVolume pv, which does not exist",
            ),
        ),
        (
            claim("", TO_PV, "") + &pv,
            Some(
                "its PersistentVolumeClaim default/data names a volume but is not bound to it yet (annotation pv.kubernetes.io/bind-completed is missing)",
            ),
        ),
        (claim(BOUND, TO_PV, "") + &pv, None),
        (claim(BOUND, "{volumeName: pv}", "") + &pv, None),
        (
            claim(BOUND, "{volumeName: pv, storageClassName: gone}", "") + &pv,
            None,
        ),
        (
            claim(BOUND, TO_PV, "") + &pv.replace("name: pv", &format!("name: pv{deleting}")),
            Some("its PersistentVolume pv is being deleted"),
        ),
        (
            claim("", "{storageClassName: ''}", ""),
            Some("its PersistentVolumeClaim default/data is not bound and has no storage class"),
        ),
        (
            claim("", "{storageClassName: gone}", ""),
            Some(
                "its PersistentVolumeClaim default/data is not bound, and its StorageClass gone does not exist",
            ),
        ),
        (
            claim("", "{storageClassName: at-once}", ""),
            Some(
                "its PersistentVolumeClaim default/data is not bound, though StorageClass at-once binds at once; wait for the volume",
            ),
        ),
        (claim("", "{storageClassName: zonal}", ""), None),
        (claim("", "{}", ""), None),
    ] {
        let found = ignored(&format!("{CLASSES}{objects}"), MOUNT);
        assert_eq!(found.as_deref(), expected, "{objects}");
    }
}

fn reach(objects: &str, spec: &str) -> (Vec<String>, Vec<String>) {
    let input = read(&format!("{CLASSES}{objects}---\n{}", pod_with(spec)));
    let pod = pod(&input.problem, "default/p");
    assert_eq!(pod.ignored, None);
    let claims = pod
        .claims
        .iter()
        .map(|c| format!("{} {}", c.driver, c.claim))
        .collect();
    let terms = shape(&input.problem, "default/p").volume_terms.iter();
    let terms = terms
        .map(|term| {
            term.iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join(" & ")
        })
        .collect();
    (terms, claims)
}

#[test]
fn core_189_190_192_198_where_volumes_are() {
    let terms = |expressions: &str| {
        format!(
            "nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: [{expressions}]}}]}}}}"
        )
    };
    let zone = "{key: failure-domain.beta.kubernetes.io/zone, operator: In, values: [a]}";
    let host = "{key: kubernetes.io/hostname, operator: In, values: [n1]}";
    let zone_a = "topology.kubernetes.io/zone In [a]";
    let bound = claim(BOUND, TO_PV, "");
    for (objects, places, drivers) in [
        (
            claim("", "{storageClassName: zonal}", ""),
            vec!["topology.kubernetes.io/zone In [a b]"],
            vec!["ebs.csi.aws.com default/data"],
        ),
        (
            bound.clone() + &volume(&format!("{{csi: {{driver: d}}, {}}}", terms(zone))),
            vec![zone_a],
            vec!["d default/data"],
        ),
        (
            bound.clone()
                + &volume(&format!(
                    "{{awsElasticBlockStore: {{volumeID: v}}, {}}}",
                    terms(zone)
                )),
            vec![zone_a],
            vec!["ebs.csi.aws.com default/data"],
        ),
        (
            bound.clone() + &volume("{nfs: {server: s}}"),
            vec![],
            vec![],
        ),
        (
            bound.clone()
                + &volume(&format!(
                    "{{local: {{path: /x}}, {}}}",
                    terms(&format!("{host}, {zone}"))
                )),
            vec![zone_a],
            vec![],
        ),
        (
            bound.clone() + &volume(&format!("{{hostPath: {{path: /x}}, {}}}", terms(host))),
            vec![],
            vec![],
        ),
        (
            bound.clone() + &volume(&format!("{{csi: {{driver: d}}, {}}}", terms(host))),
            vec!["kubernetes.io/hostname In [n1]"],
            vec!["d default/data"],
        ),
    ] {
        assert_eq!(
            reach(&objects, MOUNT),
            (
                places.iter().map(ToString::to_string).collect(),
                drivers.iter().map(ToString::to_string).collect()
            ),
            "{objects}"
        );
    }
}

#[test]
fn core_191_several_places_and_several_volumes() {
    let pv = |name: &str, zones: &[&str]| {
        let terms: Vec<String> = zones
            .iter()
            .map(|z| format!("{{matchExpressions: [{{key: topology.kubernetes.io/zone, operator: In, values: [{z}]}}]}}"))
            .collect();
        format!(
            "---\n{{apiVersion: v1, kind: PersistentVolume, metadata: {{name: {name}}}, spec: {{csi: {{driver: d}}, nodeAffinity: {{required: {{nodeSelectorTerms: [{}]}}}}}}}}\n\
             ---\n{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: {name}{BOUND}}}, spec: {{volumeName: {name}}}}}\n",
            terms.join(", ")
        )
    };
    let spec = "{volumes: [{name: v, persistentVolumeClaim: {claimName: one}}, {name: w, persistentVolumeClaim: {claimName: two}}]}";
    let both = |one: &[&str], two: &[&str]| {
        reach(&format!("{}{}", pv("one", one), pv("two", two)), spec).0
    };
    assert_eq!(
        both(&["a", "b"], &["b", "c"]),
        ["topology.kubernetes.io/zone In [b]"]
    );
    assert_eq!(both(&["a", "b"], &["b", "a"]).len(), 2);
    assert_eq!(
        both(&["a"], &["b"]),
        ["topology.kubernetes.io/zone DoesNotExist"]
    );
}

#[test]
fn core_197_ephemeral_volumes_use_their_class_or_the_newest_default() {
    let spec = |class: &str| {
        format!(
            "{{volumes: [{{name: scratch, ephemeral: {{volumeClaimTemplate: {{spec: {class}}}}}}}]}}"
        )
    };
    assert_eq!(reach("", &spec("{}")).1, ["two default/p-scratch"]);
    let zonal = reach("", &spec("{storageClassName: zonal}"));
    assert_eq!(zonal.1, ["ebs.csi.aws.com default/p-scratch"]);
    assert_eq!(zonal.0, ["topology.kubernetes.io/zone In [a b]"]);
    assert_eq!(
        ignored(CLASSES, &spec("{storageClassName: gone}")).as_deref(),
        Some(
            "its PersistentVolumeClaim default/p-scratch is not bound, and its StorageClass gone does not exist"
        )
    );
}

#[test]
fn core_196_bound_pods_hold_their_claims() {
    let text = format!(
        "{CLASSES}{}---\n{{apiVersion: v1, kind: Node, metadata: {{name: n1}}}}\n---\n{}",
        claim("", "{storageClassName: zonal}", ""),
        pod_with(
            "{nodeName: n1, volumes: [{name: v, persistentVolumeClaim: {claimName: data}}, {name: w, persistentVolumeClaim: {claimName: gone}}]}"
        )
    );
    let input = read(&text);
    let claims = &pod(&input.problem, "default/p").claims;
    assert_eq!(claims.len(), 1);
    assert_eq!(&*claims[0].claim, "default/data");
    assert!(shape(&input.problem, "default/p").volume_terms.is_empty());
}

#[test]
fn stateful_sets_have_a_claim_for_each_pod() {
    let set = "
apiVersion: apps/v1
kind: StatefulSet
metadata: {name: db}
spec:
  replicas: 2
  template: {}
  volumeClaimTemplates: [{metadata: {name: data}, spec: {storageClassName: zonal}}]
";
    let bound = format!(
        "---\n{{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {{name: data-db-1{BOUND}}}, spec: {TO_PV}}}\n{}",
        volume("{csi: {driver: d}}")
    );
    let input = read(&format!("{CLASSES}---\n{set}{bound}"));
    let claims = |name: &str| {
        pod(&input.problem, name)
            .claims
            .iter()
            .map(|c| format!("{} {}", c.driver, c.claim))
            .collect::<Vec<_>>()
    };
    assert_eq!(
        claims("default/db-0"),
        ["ebs.csi.aws.com default/data-db-0"]
    );
    assert_eq!(claims("default/db-1"), ["d default/data-db-1"]);
    assert_eq!(shape(&input.problem, "default/db-0").volume_terms.len(), 1);
    let alone = read(set);
    assert_eq!(pod(&alone.problem, "default/db-0").ignored, None);
}

#[test]
fn node_affinity_of_volumes_is_checked() {
    let bound = claim(BOUND, TO_PV, "");
    let with = |terms: &str| {
        let spec = format!("{{nodeAffinity: {{required: {{nodeSelectorTerms: {terms}}}}}}}");
        format!("{bound}{}", volume(&spec))
    };
    assert_eq!(
        ignored(&with("[{}]"), MOUNT).as_deref(),
        Some("the node affinity of its PersistentVolume pv matches no node")
    );
    let (terms, _) = reach(
        &with("[{}, {matchExpressions: [{key: k, operator: In, values: [a]}]}]"),
        MOUNT,
    );
    assert_eq!(terms, ["k In [a]"]);
    let path = "PersistentVolume pv: spec.nodeAffinity.required.nodeSelectorTerms";
    for (terms, expected) in [
        (
            "[]",
            ": there must be at least one term; remove the list if every node will do",
        ),
        (
            "[{matchExpressions: [{key: k, operator: Foo}]}]",
            "[0].matchExpressions[0].operator: \"Foo\" is not one of In, NotIn, Exists, DoesNotExist, Gt, Lt",
        ),
    ] {
        let message = refused(&with(terms));
        assert!(message.ends_with(&format!("{path}{expected}")), "{message}");
    }
}

#[test]
fn volumes_name_claims_and_classes_name_places() {
    let nameless = pod_with("{volumes: [{name: v}, {name: w, persistentVolumeClaim: {}}]}");
    assert_eq!(
        refused(&nameless),
        "in.yaml:1: Pod default/p: spec.volumes[1].persistentVolumeClaim.claimName: there is no name of a claim"
    );
    let class = CLASSES.replace("values: [a, b]", "values: []");
    assert_eq!(
        refused(&class),
        "in.yaml:2: StorageClass zonal: allowedTopologies[0].matchLabelExpressions[0].values: there must be at least one value"
    );
}
