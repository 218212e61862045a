//! Zones and instance types that are named and do not exist.

use crate::cli::support::{documents, joiner_reading, plan_with, pod, pool, small_pod};

const ZONE: &str = "topology.kubernetes.io/zone";
const TYPE: &str = "node.kubernetes.io/instance-type";

fn selecting(key: &str, value: &str) -> String {
    let selector = format!("nodeSelector: {{{key}: {value}}}");
    documents(&[&pool("", "[]"), &pod("web", "{cpu: 1}", &selector)])
}

#[test]
fn a_slip_in_a_selector_is_told_with_what_was_meant() {
    for (key, value, said) in [
        (
            ZONE,
            "zone-c",
            "zone \"zone-c\" does not exist in the catalog (did you mean \"zone-a\" or \"zone-b\"?)",
        ),
        (
            TYPE,
            "smal",
            "instance type \"smal\" does not exist in the catalog (did you mean \"small\"?)",
        ),
        (
            ZONE,
            "moon-1a",
            "zone \"moon-1a\" does not exist in the catalog\n",
        ),
    ] {
        let run = plan_with(selecting(key, value), &[]).exits(2);
        let run = run.warns(&[&format!("pod default/web: {said}")]);
        run.prints(&["No place for web:", &format!("- {said}")]);
        let json = plan_with(selecting(key, value), &["-o", "json"])
            .exits(2)
            .json();
        let reason = json["unschedulable"][0]["reasons"][0].as_str().unwrap();
        assert_eq!(reason, said.trim());
    }
    let fine = plan_with(selecting(ZONE, "zone-b"), &[]).exits(0);
    assert!(!fine.stderr.contains("does not exist"), "{fine:?}");
}

#[test]
fn a_slip_beside_what_exists_is_a_warning_only() {
    let requirements = format!("[{{key: {ZONE}, operator: In, values: [zone-a, zone-q]}}]");
    let text = documents(&[&pool("", &requirements), &small_pod("web")]);
    let run = plan_with(text, &[]).exits(0);
    run.warns(&["NodePool general: zone \"zone-q\" does not exist"]);
    let without = format!("[{{key: {ZONE}, operator: NotIn, values: [zone-q]}}]");
    let run = plan_with(documents(&[&pool("", &without), &small_pod("web")]), &[]).exits(0);
    assert!(!run.stderr.contains("does not exist"), "{run:?}");
}

#[test]
fn a_pool_that_names_only_what_does_not_exist_is_told_so() {
    let requirements = format!("[{{key: {TYPE}, operator: In, values: [mediun]}}]");
    let text = documents(&[&pool("", &requirements), &small_pod("web")]);
    plan_with(text, &[]).exits(2).prints(&[
        "- pool \"general\" names a value that is not there: instance type \"mediun\" does not exist",
        "(did you mean \"medium\"?)",
    ]);
}

#[test]
fn a_volume_in_a_zone_that_does_not_exist_counts_too() {
    let text = documents(&[
        &pool("", "[]"),
        &pod("web", "{cpu: 1}", "volumes: [{name: v, persistentVolumeClaim: {claimName: c}}]"),
        "apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: c, annotations: {pv.kubernetes.io/bind-completed: \"yes\"}}
spec: {volumeName: v, storageClassName: s}
",
        &format!(
            "apiVersion: v1
kind: PersistentVolume
metadata: {{name: v}}
spec:
  storageClassName: s
  csi: {{driver: ebs.csi.aws.com, volumeHandle: v}}
  nodeAffinity: {{required: {{nodeSelectorTerms: [{{matchExpressions: [{{key: {ZONE}, operator: In, values: [zone-x]}}]}}]}}}}
"
        ),
    ]);
    plan_with(text, &[])
        .exits(2)
        .prints(&["- zone \"zone-x\" does not exist in the catalog"]);
}

#[test]
fn a_zone_of_another_region_is_recognized() {
    let text = selecting(ZONE, "eu-west-1a");
    let run = joiner_reading(&["plan", "-f", "-"], text.as_bytes()).exits(2);
    run.warns(&[
        "\"eu-west-1a\" does not exist in the catalog; it is a zone of eu-west-1: see --region",
    ]);
}
