//! `crds`.

use crate::cli::support::joiner;

const KINDS: [&str; 6] = [
    "NodePool",
    "NodeClaim",
    "NodeOverlay",
    "EC2NodeClass",
    "KWOKNodeClass",
    "CapacityBuffer",
];

#[test]
fn all_kinds_are_printed_as_a_list() {
    let list = joiner(&["crds", "-o", "json"]).exits(0).json();
    assert_eq!(list["kind"], "List");
    let items = list["items"].as_array().unwrap();
    for kind in KINDS {
        let crd = items
            .iter()
            .find(|crd| crd["spec"]["names"]["kind"] == kind);
        let crd = crd.unwrap_or_else(|| panic!("{kind} is missing"));
        assert_eq!(crd["kind"], "CustomResourceDefinition");
        assert!(crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"].is_object());
    }
}

#[test]
fn yaml_is_one_document_each() {
    let run = joiner(&["crds"]).exits(0);
    let documents = run.stdout.lines().filter(|line| *line == "---").count();
    assert_eq!(documents, KINDS.len());
    run.prints(&[
        "name: nodepools.karpenter.sh",
        "name: ec2nodeclasses.karpenter.k8s.aws",
    ]);
}

#[test]
fn kinds_can_be_chosen() {
    let run = joiner(&["crds", "--kind", "nodepool"]).exits(0);
    assert!(!run.stdout.contains("nodeclaims.karpenter.sh"));
    run.prints(&["name: nodepools.karpenter.sh"]);
    joiner(&["crds", "--kind", "Foo"]).fails_in_one_line(&["no kind \"Foo\"", "NodePool"]);
}
