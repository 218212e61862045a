//! Objects go in, rows come out.

use std::sync::Arc;

use super::*;
use crate::kinds::builtin;

const NOW: &str = "2026-03-01T12:00:00Z";

fn kind(group: &str, plural: &str) -> Kind {
    let mut all = builtin().into_iter();
    let found = all.find(|kind| kind.group == group && kind.plural == plural);
    found.unwrap_or_else(|| panic!("no kind {plural}.{group}"))
}

fn table(kind: &Kind, object: Value) -> Value {
    let mut object = object;
    object["metadata"]["name"] = json!("x");
    object["metadata"]["creationTimestamp"] = json!("2026-03-01T11:00:00Z");
    let now = meta::parse_time(NOW).unwrap();
    render(kind, [&object].into_iter(), &Options::default(), now)
}

fn cells(kind: &Kind, object: Value) -> Value {
    table(kind, object)["rows"][0]["cells"].clone()
}

/// The cells `READY`, `STATUS` and `RESTARTS` of a pod.
fn pod(object: Value) -> String {
    let row = cells(&kind("", "pods"), object);
    let text = |at: usize| row[at].as_str().unwrap().to_owned();
    format!("{} {} {}", text(1), text(2), text(3))
}

#[test]
fn pods_say_what_holds_them_up() {
    let ended = |code: i64, reason: &str| {
        json!({"terminated": {
            "exitCode": code, "reason": reason, "finishedAt": "2026-03-01T11:55:00Z",
        }})
    };
    let running = json!({"running": {}});
    let container = |state: &Value| json!({"name": "a", "ready": false, "state": state});
    let one = json!({"containers": [{"name": "a"}]});
    let init =
        json!({"initContainers": [{"name": "i"}, {"name": "j"}], "containers": [{"name": "a"}]});
    let cases = [
        (
            "0/1 Pending 0",
            json!({"spec": one, "status": {"phase": "Pending"}}),
        ),
        (
            "0/1 Evicted 0",
            json!({"spec": one, "status": {"phase": "Failed", "reason": "Evicted"}}),
        ),
        (
            "0/1 SchedulingGated 0",
            json!({"spec": one, "status": {"phase": "Pending", "conditions": [
                {"type": "PodScheduled", "status": "False", "reason": "SchedulingGated"},
            ]}}),
        ),
        (
            "0/1 CrashLoopBackOff 3 (5m ago)",
            json!({"spec": one, "status": {"phase": "Running", "containerStatuses": [{
                "name": "a", "restartCount": 3, "lastState": ended(1, "Error"),
                "state": {"waiting": {"reason": "CrashLoopBackOff"}},
            }]}}),
        ),
        (
            "0/1 Completed 0",
            json!({"spec": one, "status": {
                "phase": "Succeeded", "containerStatuses": [container(&ended(0, "Completed"))],
            }}),
        ),
        (
            "0/1 ExitCode:2 0",
            json!({"spec": one, "status": {
                "phase": "Failed", "containerStatuses": [container(&ended(2, ""))],
            }}),
        ),
        (
            "0/1 Init:1/2 0",
            json!({"spec": init, "status": {"phase": "Pending", "initContainerStatuses": [
                {"name": "i", "state": ended(0, "Completed")},
                {"name": "j", "state": running},
            ]}}),
        ),
        (
            "0/1 Init:ImagePullBackOff 0",
            json!({"spec": init, "status": {"phase": "Pending", "initContainerStatuses": [
                {"name": "i", "state": {"waiting": {"reason": "ImagePullBackOff"}}},
            ]}}),
        ),
        (
            "0/1 Init:Error 2 (5m ago)",
            json!({"spec": init, "status": {"phase": "Pending", "initContainerStatuses": [{
                "name": "i", "restartCount": 2, "state": ended(1, "Error"),
                "lastState": ended(1, "Error"),
            }]}}),
        ),
    ];
    for (expected, object) in cases {
        assert_eq!(pod(object.clone()), expected, "{object}");
    }
}

#[test]
fn pods_with_sidecars_and_mixed_ends() {
    let spec = json!({
        "initContainers": [{"name": "s", "restartPolicy": "Always"}],
        "containers": [{"name": "a"}, {"name": "b"}],
    });
    let done = json!({"terminated": {"exitCode": 0, "reason": "Completed"}});
    let status = |ready: &str, second: Value| {
        json!({
            "phase": "Running",
            "conditions": [
                {"type": "Initialized", "status": "True"},
                {"type": "Ready", "status": ready},
            ],
            "initContainerStatuses": [{
                "name": "s", "ready": true, "started": true, "restartCount": 4,
                "state": {"running": {}},
            }],
            "containerStatuses": [{"name": "a", "ready": false, "state": done}, second],
        })
    };
    let running = json!({"name": "b", "ready": true, "restartCount": 1, "state": {"running": {}}});
    let failed = json!({"name": "b", "state": {"terminated": {"exitCode": 9, "reason": "Error"}}});
    let object = |status: Value| json!({"spec": spec, "status": status});
    assert_eq!(
        pod(object(status("True", running.clone()))),
        "2/3 Running 5"
    );
    assert_eq!(pod(object(status("False", running))), "2/3 NotReady 5");
    assert_eq!(pod(object(status("False", failed))), "1/3 Error 4");
}

#[test]
fn pods_that_go() {
    let gone = |status: Value| {
        json!({
            "metadata": {"deletionTimestamp": NOW},
            "spec": {"containers": [{"name": "a"}]},
            "status": status,
        })
    };
    assert_eq!(pod(gone(json!({"phase": "Running"}))), "0/1 Terminating 0");
    assert_eq!(
        pod(gone(json!({"phase": "Running", "reason": "NodeLost"}))),
        "0/1 Unknown 0"
    );
    assert_eq!(pod(gone(json!({"phase": "Succeeded"}))), "0/1 Succeeded 0");
}

#[test]
fn pods_have_wide_columns_and_marks() {
    let table = table(
        &kind("", "pods"),
        json!({
            "spec": {
                "nodeName": "n", "containers": [],
                "readinessGates": [{"conditionType": "p"}, {"conditionType": "q"}],
            },
            "status": {
                "phase": "Succeeded", "podIPs": [{"ip": "10.0.0.9"}],
                "conditions": [{"type": "q", "status": "True"}],
            },
        }),
    );
    let row = &table["rows"][0];
    assert_eq!(
        row["cells"],
        json!([
            "x",
            "0/0",
            "Succeeded",
            "0",
            "60m",
            "10.0.0.9",
            "n",
            "<none>",
            "1/2"
        ])
    );
    assert_eq!(row["conditions"][0]["reason"], "Succeeded");
    assert_eq!(row["object"]["kind"], "PartialObjectMetadata");
    assert_eq!(table["columnDefinitions"][5]["priority"], 1);
    assert_eq!(table["columnDefinitions"][0]["format"], "name");
}

#[test]
fn rows_of_built_in_kinds() {
    let template = json!({"spec": {
        "containers": [{"name": "a", "image": "i"}, {"name": "b", "image": "j"}],
        "nodeSelector": {"z": "1", "a": "2"},
    }});
    let selector = json!({
        "matchLabels": {"k": "v"},
        "matchExpressions": [
            {"key": "a", "operator": "In", "values": ["y", "x"]},
            {"key": "z", "operator": "DoesNotExist"},
        ],
    });
    let cases = [
        (
            kind("apps", "deployments"),
            json!({
                "spec": {"replicas": 3, "template": template, "selector": selector},
                "status": {"readyReplicas": 2, "updatedReplicas": 1},
            }),
            json!(["x", "2/3", 1, 0, "60m", "a,b", "i,j", "a in (x,y),k=v,!z"]),
        ),
        (
            kind("apps", "daemonsets"),
            json!({"spec": {"template": template}, "status": {"desiredNumberScheduled": 4}}),
            json!(["x", 4, 0, 0, 0, 0, "a=2,z=1", "60m", "a,b", "i,j", "<none>"]),
        ),
        (
            kind("batch", "jobs"),
            json!({
                "spec": {"parallelism": 2, "template": template},
                "status": {"succeeded": 1, "startTime": "2026-03-01T11:59:00Z"},
            }),
            json!([
                "x", "Running", "1/1 of 2", "60s", "60m", "a,b", "i,j", "<none>"
            ]),
        ),
        (
            kind("batch", "cronjobs"),
            json!({"spec": {"schedule": "@daily", "suspend": true}, "status": {}}),
            json!([
                "x", "@daily", "<none>", "True", 0, "<none>", "60m", "", "", "<none>"
            ]),
        ),
        (
            kind("", "nodes"),
            json!({
                "metadata": {"labels": {"node-role.kubernetes.io/edge": ""}},
                "spec": {"unschedulable": true},
                "status": {
                    "conditions": [{"type": "Ready", "status": "Unknown"}],
                    "addresses": [{"type": "InternalIP", "address": "10.0.0.1"}],
                    "nodeInfo": {"kubeletVersion": "v1.36.0", "architecture": "arm64"},
                },
            }),
            json!([
                "x",
                "NotReady,SchedulingDisabled",
                "edge",
                "60m",
                "v1.36.0",
                "10.0.0.1",
                "<none>",
                "<unknown>",
                "<unknown> (arm64)",
                "<unknown>",
            ]),
        ),
        (
            kind("", "services"),
            json!({"spec": {
                "type": "LoadBalancer", "clusterIP": "10.1.1.1", "selector": {"a": "b"},
                "ports": [{"port": 80, "nodePort": 30001, "protocol": "TCP"}],
            }}),
            json!([
                "x",
                "LoadBalancer",
                "10.1.1.1",
                "<pending>",
                "80:30001/TCP",
                "60m",
                "a=b"
            ]),
        ),
        (
            kind("", "persistentvolumeclaims"),
            json!({
                "spec": {"volumeName": "v", "storageClassName": "gp3"},
                "status": {
                    "phase": "Bound", "capacity": {"storage": "1Gi"},
                    "accessModes": ["ReadWriteMany", "ReadWriteOnce"],
                },
            }),
            json!([
                "x", "Bound", "v", "1Gi", "RWO,RWX", "gp3", "<unset>", "60m", "<unset>"
            ]),
        ),
        (
            kind("policy", "poddisruptionbudgets"),
            json!({"spec": {"minAvailable": "50%"}, "status": {"disruptionsAllowed": 2}}),
            json!(["x", "50%", "N/A", 2, "60m"]),
        ),
        (
            kind("storage.k8s.io", "storageclasses"),
            json!({
                "metadata": {"annotations": {"storageclass.kubernetes.io/is-default-class": "true"}},
                "provisioner": "p",
            }),
            json!(["x (default)", "p", "Delete", "Immediate", false, "60m"]),
        ),
        (
            kind("rbac.authorization.k8s.io", "roles"),
            json!({}),
            json!(["x", "2026-03-01T11:00:00Z"]),
        ),
    ];
    for (kind, object, expected) in cases {
        assert_eq!(cells(&kind, object), expected, "{}", kind.plural);
    }
}

#[test]
fn autoscalers_show_what_is_measured() {
    let mut v1 = kind("autoscaling", "horizontalpodautoscalers");
    v1.version = "v1".to_owned();
    let target = json!({"kind": "Deployment", "name": "d"});
    let row = cells(
        &v1,
        json!({
            "spec": {
                "scaleTargetRef": target, "maxReplicas": 4, "targetCPUUtilizationPercentage": 80,
            },
            "status": {"currentReplicas": 2},
        }),
    );
    let expected = json!([
        "x",
        "Deployment/d",
        "cpu: <unknown>/80%",
        "<unset>",
        4,
        2,
        "60m"
    ]);
    assert_eq!(row, expected);

    let v2 = kind("autoscaling", "horizontalpodautoscalers");
    let row = cells(
        &v2,
        json!({
            "spec": {"scaleTargetRef": target, "minReplicas": 1, "maxReplicas": 4, "metrics": [
                {"type": "Resource", "resource": {
                    "name": "cpu", "target": {"averageUtilization": 60},
                }},
                {"type": "External", "external": {"target": {"averageValue": "5"}}},
                {"type": "Pods", "pods": {"target": {"averageValue": "1"}}},
            ]},
            "status": {"currentMetrics": [
                {"type": "Resource", "resource": {"current": {"averageUtilization": 30}}},
            ]},
        }),
    );
    assert_eq!(row[2], "cpu: 30%/60%, <unknown>/5 (avg) + 1 more...");
}

#[test]
fn events_of_both_groups_read_the_same() {
    let older = json!({
        "involvedObject": {"kind": "Pod", "name": "p"}, "reason": "R", "message": " m\n",
        "type": "Normal", "firstTimestamp": "2026-03-01T11:58:00Z",
        "lastTimestamp": "2026-03-01T11:59:00Z", "count": 2, "source": {"component": "c", "host": "h"},
    });
    let newer = json!({
        "regarding": {"kind": "Pod", "name": "p"}, "reason": "R", "note": " m\n", "type": "Normal",
        "eventTime": "2026-03-01T11:58:00.000001Z", "reportingController": "c",
        "reportingInstance": "h",
        "series": {"count": 2, "lastObservedTime": "2026-03-01T11:59:00.000000Z"},
    });
    let row = cells(&kind("", "events"), older);
    assert_eq!(
        row,
        json!(["60s", "Normal", "R", "pod/p", "", "c, h", "m", "2m", 2, "x"])
    );
    let mut expected = row;
    expected[7] = json!("119s");
    assert_eq!(cells(&kind("events.k8s.io", "events"), newer), expected);
}

#[test]
fn custom_kinds_have_the_columns_of_their_crd() {
    let version = json!({"additionalPrinterColumns": [
        {"name": "Ready", "type": "string", "jsonPath": ".status.conditions[?(@.type==\"Ready\")].status"},
        {"name": "Size", "type": "integer", "jsonPath": ".spec.size", "priority": 1},
        {"name": "Since", "type": "date", "jsonPath": ".spec.since"},
        {"name": "On", "type": "boolean", "jsonPath": ".spec.on"},
        {"name": "All", "type": "string", "jsonPath": ".spec.list"},
        {"name": "Odd", "type": "string", "jsonPath": ".spec["},
    ]});
    let mut gadgets = kind("", "pods");
    gadgets.custom = Some(Arc::new(version));
    let shown = table(
        &gadgets,
        json!({
            "spec": {"size": 3, "since": "2026-03-01T11:59:30Z", "on": true, "list": ["a", 1]},
            "status": {"conditions": [{"type": "Ready", "status": "True"}]},
        }),
    );
    let expected = json!(["x", "True", 3, "30s", true, "[\"a\",1]", null]);
    assert_eq!(shown["rows"][0]["cells"], expected);
    assert_eq!(shown["columnDefinitions"][2]["priority"], 1);
    assert_eq!(
        cells(&gadgets, json!({"spec": {"since": "soon", "on": "yes"}})),
        json!(["x", null, null, "<invalid>", null, null, null])
    );

    gadgets.custom = Some(Arc::new(json!({})));
    let plain = table(&gadgets, json!({}));
    assert_eq!(plain["rows"][0]["cells"], json!(["x", "60m"]));
    assert_eq!(plain["columnDefinitions"][1]["type"], "date");
}

#[test]
fn every_kind_has_as_many_cells_as_columns() {
    for kind in builtin() {
        let table = table(&kind, json!({}));
        let columns = table["columnDefinitions"].as_array().unwrap().len();
        let cells = table["rows"][0]["cells"].as_array().unwrap().len();
        assert_eq!(columns, cells, "{}", kind.resource());
    }
}

#[test]
fn options_say_what_goes_around_the_rows() {
    let object = json!({"metadata": {"name": "x"}, "data": {}});
    let mut options = Options {
        include: IncludeObject::None,
        no_headers: true,
        ..Options::default()
    };
    options
        .metadata
        .insert("resourceVersion".to_owned(), json!("7"));
    let now = meta::parse_time(NOW).unwrap();
    let kind = kind("", "configmaps");
    assert_eq!(
        render(&kind, [&object].into_iter(), &options, now),
        json!({
            "kind": "Table", "apiVersion": "meta.k8s.io/v1",
            "metadata": {"resourceVersion": "7"}, "columnDefinitions": null,
            "rows": [{"cells": ["x", 0, "<unknown>"], "object": null}],
        })
    );
    options.include = IncludeObject::Object;
    let whole = render(&kind, [&object].into_iter(), &options, now);
    assert_eq!(whole["rows"][0]["object"], object);
    assert_eq!(IncludeObject::parse("nope"), None);
    assert_eq!(IncludeObject::parse(""), Some(IncludeObject::Metadata));
}

#[test]
fn tables_are_for_those_who_ask() {
    for (accept, expected) in [
        (
            "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
            true,
        ),
        ("application/json;as=Table;v=v1beta1;g=meta.k8s.io", true),
        (
            "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io,application/json",
            false,
        ),
        ("application/json", false),
        (
            "application/vnd.kubernetes.protobuf,application/json;as=Table;g=meta.k8s.io;v=v1",
            true,
        ),
        ("", false),
    ] {
        assert_eq!(is_wanted(accept), expected, "{accept}");
    }
}
