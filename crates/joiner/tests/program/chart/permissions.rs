//! What the service account of the chart may do.

use joiner_testkit::control_plane::{Chart, ControlPlane};
use serde_json::{Value, json};

use super::{CLOUD, helm, objects, plane, render};

const MACHINES: &str = joiner_cloud_sim::MACHINES_NAMESPACE;
const FAULTS: &str = joiner_cloud_sim::FAULTS_CONFIG_MAP;
const READ: [&str; 3] = ["get", "list", "watch"];

/// What may be asked: group, resource, subresource, verb, namespace, name.
type Question = [&'static str; 6];

/// Asks the API server what the service account may do.
fn answers(plane: &ControlPlane, chart: &Chart, questions: &[Question]) -> Vec<bool> {
    let review = |[group, resource, subresource, verb, namespace, name]: &Question| {
        json!({
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SelfSubjectAccessReview",
            "spec": {"resourceAttributes": {
                "group": group, "resource": resource, "subresource": subresource, "verb": verb,
                "namespace": namespace, "name": name,
            }},
        })
    };
    let items: Vec<Value> = questions.iter().map(review).collect();
    let list = json!({"apiVersion": "v1", "kind": "List", "items": items});
    let kubeconfig = chart.kubeconfig.display().to_string();
    let arguments = [
        "--kubeconfig",
        &kubeconfig,
        "create",
        "--output=json",
        "--filename=-",
    ];
    let text = plane
        .kubectl_with_input(&arguments, &list.to_string())
        .unwrap();
    let printed = serde_json::Deserializer::from_str(&text).into_iter::<Value>();
    let printed: Vec<Value> = printed.map(Result::unwrap).collect();
    let reviews = match printed.as_slice() {
        [list] if list["kind"] == "List" => list["items"].as_array().unwrap(),
        reviews => reviews,
    };
    assert_eq!(reviews.len(), questions.len());
    let allowed = |review: &Value| review["status"]["allowed"] == true;
    reviews.iter().map(allowed).collect()
}

fn assert_answers(plane: &ControlPlane, chart: &Chart, questions: &[Question], expected: bool) {
    for (question, allowed) in questions.iter().zip(answers(plane, chart, questions)) {
        assert_eq!(allowed, expected, "{question:?}");
    }
}

/// What the controllers and the simulated cloud do, besides reading.
const NEEDED: [Question; 40] = [
    ["karpenter.k8s.aws", "ec2nodeclasses", "", "patch", "", ""],
    [
        "karpenter.k8s.aws",
        "ec2nodeclasses",
        "status",
        "patch",
        "",
        "",
    ],
    ["apps", "deployments", "scale", "patch", "web", ""],
    ["apps", "deployments", "status", "patch", "web", ""],
    ["apps", "replicasets", "status", "patch", "web", ""],
    ["apps", "statefulsets", "status", "patch", "web", ""],
    ["storage.k8s.io", "csinodes", "", "create", "", ""],
    [
        "coordination.k8s.io",
        "leases",
        "",
        "watch",
        "kube-node-lease",
        "",
    ],
    ["karpenter.sh", "nodeclaims", "", "create", "", ""],
    ["karpenter.sh", "nodeclaims", "", "patch", "", ""],
    ["karpenter.sh", "nodeclaims", "", "delete", "", ""],
    ["karpenter.sh", "nodeclaims", "status", "patch", "", ""],
    ["karpenter.sh", "nodepools", "", "patch", "", ""],
    ["karpenter.sh", "nodepools", "status", "patch", "", ""],
    ["karpenter.sh", "nodeoverlays", "status", "patch", "", ""],
    [
        "autoscaling.x-k8s.io",
        "capacitybuffers",
        "status",
        "patch",
        "web",
        "",
    ],
    ["", "nodes", "", "create", "", ""],
    ["", "nodes", "", "patch", "", ""],
    ["", "nodes", "", "delete", "", ""],
    ["", "nodes", "status", "patch", "", ""],
    ["", "pods", "", "delete", "web", ""],
    ["", "pods", "eviction", "create", "web", ""],
    ["", "pods", "status", "patch", "web", ""],
    ["", "events", "", "create", "web", ""],
    ["events.k8s.io", "events", "", "patch", "web", ""],
    ["coordination.k8s.io", "leases", "", "create", "joiner", ""],
    [
        "coordination.k8s.io",
        "leases",
        "",
        "get",
        "joiner",
        "karpenter-leader-election",
    ],
    [
        "coordination.k8s.io",
        "leases",
        "",
        "update",
        "joiner",
        "karpenter-leader-election",
    ],
    [
        "coordination.k8s.io",
        "leases",
        "",
        "create",
        "kube-node-lease",
        "",
    ],
    [
        "coordination.k8s.io",
        "leases",
        "",
        "update",
        "kube-node-lease",
        "a-node",
    ],
    ["", "configmaps", "", "get", MACHINES, ""],
    ["", "configmaps", "", "list", MACHINES, ""],
    ["", "configmaps", "", "watch", MACHINES, ""],
    ["", "configmaps", "", "create", MACHINES, ""],
    ["", "configmaps", "", "update", MACHINES, ""],
    ["", "configmaps", "", "delete", MACHINES, ""],
    ["", "configmaps", "", "get", "joiner", FAULTS],
    ["", "configmaps", "", "list", "joiner", FAULTS],
    ["", "configmaps", "", "watch", "joiner", FAULTS],
    [
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "",
        "get",
        "",
        "nodepools.karpenter.sh",
    ],
];

/// What the controllers watch.
const WATCHED: [(&str, &str); 20] = [
    ("", "pods"),
    ("", "nodes"),
    ("", "namespaces"),
    ("", "persistentvolumes"),
    ("", "persistentvolumeclaims"),
    ("", "podtemplates"),
    ("apps", "daemonsets"),
    ("apps", "deployments"),
    ("apps", "replicasets"),
    ("apps", "statefulsets"),
    ("storage.k8s.io", "storageclasses"),
    ("storage.k8s.io", "csinodes"),
    ("storage.k8s.io", "volumeattachments"),
    ("policy", "poddisruptionbudgets"),
    ("scheduling.k8s.io", "priorityclasses"),
    ("node.k8s.io", "runtimeclasses"),
    ("karpenter.sh", "nodepools"),
    ("karpenter.sh", "nodeclaims"),
    ("karpenter.sh", "nodeoverlays"),
    ("autoscaling.x-k8s.io", "capacitybuffers"),
];

/// What a thief of the token should not get.
const FORBIDDEN: [Question; 27] = [
    ["", "secrets", "", "get", "joiner", ""],
    ["", "secrets", "", "list", "", ""],
    ["", "pods", "", "create", "joiner", ""],
    ["", "pods", "", "patch", "web", ""],
    ["", "pods", "exec", "create", "web", ""],
    ["", "nodes", "proxy", "get", "", ""],
    ["", "configmaps", "", "get", "kube-system", ""],
    ["", "configmaps", "", "get", "joiner", ""],
    ["", "configmaps", "", "list", "joiner", ""],
    ["", "configmaps", "", "create", "joiner", ""],
    ["", "configmaps", "", "update", "joiner", FAULTS],
    ["", "configmaps", "", "patch", "joiner", FAULTS],
    ["", "configmaps", "", "delete", "joiner", FAULTS],
    [
        "",
        "configmaps",
        "",
        "delete",
        "joiner",
        "simulated-instance-x",
    ],
    ["", "secrets", "", "get", MACHINES, ""],
    ["", "pods", "", "create", MACHINES, ""],
    ["", "namespaces", "", "create", "", ""],
    ["", "serviceaccounts", "token", "create", "joiner", ""],
    ["", "services", "", "list", "", ""],
    ["apps", "deployments", "", "patch", "web", ""],
    ["karpenter.sh", "nodepools", "", "create", "", ""],
    ["karpenter.sh", "nodepools", "", "delete", "", ""],
    ["karpenter.kwok.sh", "kwoknodeclasses", "", "patch", "", ""],
    [
        "coordination.k8s.io",
        "leases",
        "",
        "update",
        "joiner",
        "another",
    ],
    [
        "coordination.k8s.io",
        "leases",
        "",
        "get",
        "kube-system",
        "kube-scheduler",
    ],
    [
        "apiextensions.k8s.io",
        "customresourcedefinitions",
        "",
        "update",
        "",
        "",
    ],
    [
        "rbac.authorization.k8s.io",
        "clusterroles",
        "",
        "create",
        "",
        "",
    ],
];

#[test]
fn the_account_may_do_what_it_needs_and_no_more() {
    let Some((plane, chart)) = plane() else {
        return;
    };
    assert_answers(plane, chart, &NEEDED, true);
    let classes = [
        ("karpenter.kwok.sh", "kwoknodeclasses"),
        ("karpenter.k8s.aws", "ec2nodeclasses"),
    ];
    let watched: Vec<Question> = (WATCHED.iter().chain(&classes))
        .flat_map(|(group, resource)| READ.map(|verb| [*group, *resource, "", verb, "", ""]))
        .collect();
    assert_answers(plane, chart, &watched, true);
    assert_answers(plane, chart, &FORBIDDEN, false);
}

#[test]
fn the_token_is_of_the_account() {
    let Some((plane, chart)) = plane() else {
        return;
    };
    let kubeconfig = chart.kubeconfig.display().to_string();
    let who = [
        "--kubeconfig",
        &kubeconfig,
        "auth",
        "whoami",
        "--output=json",
    ];
    let who: Value = serde_json::from_str(&plane.kubectl(&who).unwrap()).unwrap();
    let name = &who["status"]["userInfo"]["username"];
    assert_eq!(name, "system:serviceaccount:joiner:joiner");
    let list = [
        "--kubeconfig",
        &kubeconfig,
        "get",
        "nodepools,nodeclaims,nodes",
    ];
    plane.kubectl(&list).unwrap();
    let secrets = ["--kubeconfig", &kubeconfig, "get", "secrets"];
    let refused = plane.kubectl(&secrets).unwrap_err().to_string();
    assert!(refused.contains("forbidden"), "{refused}");
    // The pods of the chart would be pending ones to a program under test.
    let pods = plane.kubectl(&["get", "pods", "--all-namespaces", "--output=name"]);
    assert_eq!(pods.unwrap(), "");
}

/// Rules of all roles of a rendering, as `group/resource verb namespace`.
fn rules(objects: &[Value]) -> Vec<String> {
    let texts = |value: &Value| -> Vec<String> {
        let list = value.as_array().unwrap().iter();
        list.map(|text| text.as_str().unwrap().to_owned()).collect()
    };
    let mut found = Vec::new();
    let own = |o: &&Value| o["rules"].is_array() && o["metadata"]["name"] != "joiner-admin";
    for role in objects.iter().filter(own) {
        let namespace = role["metadata"]["namespace"].as_str().unwrap_or("*");
        for rule in role["rules"].as_array().unwrap() {
            for (group, resource, verb) in texts(&rule["apiGroups"])
                .iter()
                .flat_map(|g| texts(&rule["resources"]).into_iter().map(move |r| (g, r)))
                .flat_map(|(g, r)| {
                    texts(&rule["verbs"])
                        .into_iter()
                        .map(move |v| (g, r.clone(), v))
                })
            {
                found.push(format!("{group}/{resource} {verb} {namespace}"));
            }
        }
    }
    found
}

#[test]
fn roles_grow_and_shrink_with_the_settings() {
    let Some(helm) = helm() else { return };
    let rules = |settings: &[&str]| rules(&objects(&render(&helm, settings).unwrap()));
    let kubelets = [
        "storage.k8s.io/csinodes create *",
        "coordination.k8s.io/leases update kube-node-lease",
    ];
    let (with, without) = (
        rules(&[CLOUD]),
        rules(&[CLOUD, "simulatedCloud.kubelets=false"]),
    );
    for rule in kubelets {
        assert!(with.iter().any(|r| r == rule), "{rule} in {with:?}");
        assert!(!without.iter().any(|r| r == rule), "{rule} in {without:?}");
    }
    let spread = rules(&[CLOUD, "settings.schedulerConfig=x"]);
    assert!(spread.iter().any(|r| r == "/services watch *"));
    assert!(!with.iter().any(|r| r.contains("/services ")));
    // Stars are for those who have not thought about it.
    assert!(
        with.iter()
            .all(|rule| !rule.contains("/* ") && !rule.contains(" * "))
    );
}
