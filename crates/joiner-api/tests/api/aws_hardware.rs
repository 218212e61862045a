//! AWS behaviors 13 to 19: volumes, interfaces, options and kubelet settings of EC2NodeClasses.

use crate::support::{accepted, ec2_node_class, probe, refused, with};
use joiner_api::admit;
use serde_json::{Value, json};

fn texts(values: &[&str]) -> Vec<Value> {
    values.iter().map(|value| json!(value)).collect()
}

fn with_volumes(volumes: Value) -> Value {
    with(ec2_node_class(), "/spec/blockDeviceMappings", volumes)
}

fn with_ebs(ebs: Value) -> Value {
    with_volumes(json!([{"deviceName": "/dev/xvda", "ebs": ebs}]))
}

fn with_kubelet(kubelet: Value) -> Value {
    with(ec2_node_class(), "/spec/kubelet", kubelet)
}

#[test]
fn aws_28_13_volumes() {
    let root = json!({"deviceName": "a", "rootVolume": true, "ebs": {"volumeSize": "20Gi"}});
    let plain = json!({"deviceName": "b", "rootVolume": false, "ebs": {"volumeSize": "20Gi"}});
    let path = "spec.blockDeviceMappings";
    accepted(with_volumes(json!([root, plain])));
    refused(
        with_volumes(json!([root, plain, root])),
        path,
        "only one volume",
    );
    accepted(with_volumes(json!(vec![plain.clone(); 50])));
    refused(
        with_volumes(json!(vec![plain.clone(); 51])),
        path,
        "at most 50 items",
    );

    let ebs = "spec.blockDeviceMappings[0].ebs";
    probe(
        with_ebs(json!({})),
        "/spec/blockDeviceMappings/0/ebs/volumeSize",
        "spec.blockDeviceMappings[0].ebs.volumeSize",
    )
    .accepts(texts(&[
        "1Gi", "59000Gi", "1G", "64000G", "1Ti", "18Ti", "58Ti", "1T", "64T", "9999G",
    ]))
    .refuses(
        "size from",
        texts(&[
            "0Gi", "59001Gi", "64001G", "59Ti", "65T", "100", "1Mi", "big", "", "-1Gi", "Ti",
            "1.5Gi", "1Gi ",
        ]),
    )
    .refuses("must be a string", [json!(20)]);
    refused(
        with_ebs(json!({"encrypted": true})),
        ebs,
        "needs a snapshotID or a volumeSize",
    );
    accepted(with_ebs(json!({"snapshotID": "snap-1"})));
    for volume in ["standard", "io1", "io2", "gp2", "sc1", "st1", "gp3"] {
        accepted(with_ebs(json!({"volumeSize": "1Gi", "volumeType": volume})));
    }
    let bad = with_ebs(json!({"volumeSize": "1Gi", "volumeType": "gp4"}));
    refused(
        bad,
        "spec.blockDeviceMappings[0].ebs.volumeType",
        "must be one of",
    );
}

#[test]
fn aws_28_14_initialization_rate() {
    let path = "spec.blockDeviceMappings[0].ebs";
    let at = |rate: i64, snapshot: Value| {
        let ebs = json!({"volumeSize": "1Gi", "volumeInitializationRate": rate});
        with_ebs(if snapshot.is_null() {
            ebs
        } else {
            with(ebs, "/snapshotID", snapshot)
        })
    };
    accepted(at(100, json!("snap-1")));
    accepted(at(300, json!("snap-1")));
    refused(at(200, Value::Null), path, "needs a snapshotID");
    refused(at(200, json!("")), path, "needs a snapshotID");
    let rate = "spec.blockDeviceMappings[0].ebs.volumeInitializationRate";
    refused(at(99, json!("snap-1")), rate, "at least 100");
    refused(at(301, json!("snap-1")), rate, "at most 300");
}

#[test]
fn aws_28_15_network_interfaces() {
    let path = "spec.networkInterfaces";
    let at = |list: &[(i64, i64, &str)]| {
        let item = |(card, device, kind): &(i64, i64, &str)| json!({"networkCardIndex": card, "deviceIndex": device, "interfaceType": kind});
        let list: Vec<Value> = list.iter().map(item).collect();
        with(ec2_node_class(), "/spec/networkInterfaces", json!(list))
    };
    let main = (0, 0, "interface");
    accepted(at(&[]));
    accepted(at(&[main]));
    accepted(at(&[
        main,
        (0, 1, "efa-only"),
        (1, 1, "efa-only"),
        (1, 0, "interface"),
    ]));
    refused(at(&[(0, 1, "interface")]), path, "card 0 needs");
    refused(at(&[(0, 0, "efa-only")]), path, "card 0 needs");
    refused(at(&[main, main]), path, "same card and device");
    refused(
        at(&[main, (1, 1, "interface"), (1, 1, "efa-only")]),
        path,
        "same card and device",
    );
    refused(
        at(&[main, (0, 1, "efa-only"), (0, 2, "efa-only")]),
        path,
        "only one interface",
    );
    refused(
        at(&[main, (-1, 0, "interface")]),
        &format!("{path}[1].networkCardIndex"),
        "least 0",
    );
    refused(
        at(&[main, (0, -1, "interface")]),
        &format!("{path}[1].deviceIndex"),
        "at least 0",
    );
    refused(
        at(&[main, (0, 1, "efa")]),
        &format!("{path}[1].interfaceType"),
        "must be one of",
    );
    let many: Vec<(i64, i64, &str)> = (0..151).map(|index| (index, 0, "interface")).collect();
    accepted(at(&many[..150]));
    refused(at(&many), path, "at most 150 items");
    for field in ["networkCardIndex", "deviceIndex", "interfaceType"] {
        let mut class = at(&[main]);
        crate::support::set(
            &mut class,
            &format!("/spec/networkInterfaces/0/{field}"),
            Value::Null,
        );
        refused(class, &format!("{path}[0].{field}"), "is required");
    }
}

#[test]
fn aws_28_16_connection_tracking() {
    let path = "spec.connectionTracking";
    probe(ec2_node_class(), "/spec/connectionTracking", path)
        .refuses("at least one timeout", [json!({})]);
    for (field, min, max) in [
        ("tcpEstablishedTimeout", 60, 432_000),
        ("udpStreamTimeout", 60, 180),
        ("udpTimeout", 30, 60),
    ] {
        let at = |value: i64| {
            with(
                ec2_node_class(),
                "/spec/connectionTracking",
                json!({field: value}),
            )
        };
        let path = format!("{path}.{field}");
        accepted(at(min));
        accepted(at(max));
        refused(at(min - 1), &path, "at least");
        refused(at(max + 1), &path, "at most");
    }
}

#[test]
fn aws_28_17_metadata_options() {
    let mut class = ec2_node_class();
    assert!(admit(&mut class).is_ok());
    let defaults = json!({
        "httpEndpoint": "enabled", "httpProtocolIPv6": "disabled",
        "httpPutResponseHopLimit": 1, "httpTokens": "required",
    });
    assert_eq!(class["spec"]["metadataOptions"], defaults);
    let mut class = with(
        ec2_node_class(),
        "/spec/metadataOptions",
        json!({"httpTokens": "optional"}),
    );
    assert!(admit(&mut class).is_ok());
    assert_eq!(
        class["spec"]["metadataOptions"],
        with(defaults, "/httpTokens", json!("optional"))
    );
    for (field, good, bad) in [
        ("httpEndpoint", "disabled", "off"),
        ("httpProtocolIPv6", "enabled", "on"),
        ("httpTokens", "optional", "maybe"),
    ] {
        let at = |value: &str| {
            with(
                ec2_node_class(),
                "/spec/metadataOptions",
                json!({field: value}),
            )
        };
        accepted(at(good));
        refused(
            at(bad),
            &format!("spec.metadataOptions.{field}"),
            "must be one of",
        );
    }
    let base = with(ec2_node_class(), "/spec/metadataOptions", json!({}));
    let path = "spec.metadataOptions.httpPutResponseHopLimit";
    probe(base, "/spec/metadataOptions/httpPutResponseHopLimit", path)
        .accepts([json!(1), json!(64)])
        .refuses("at least 1", [json!(0)])
        .refuses("at most 64", [json!(65)]);
}

#[test]
fn aws_28_18_cpu_options() {
    let at = |options: Value| with(ec2_node_class(), "/spec/cpuOptions", options);
    accepted(at(json!({})));
    accepted(at(json!({"nestedVirtualization": "enabled"})));
    accepted(at(json!({"nestedVirtualization": "disabled"})));
    let bad = at(json!({"nestedVirtualization": "yes"}));
    refused(
        bad,
        "spec.cpuOptions.nestedVirtualization",
        "must be one of",
    );
}

#[test]
fn aws_1_1_single_fields() {
    probe(
        ec2_node_class(),
        "/spec/ipPrefixCount",
        "spec.ipPrefixCount",
    )
    .accepts([json!(0), json!(16)])
    .refuses("at least 0", [json!(-1)]);
    probe(
        ec2_node_class(),
        "/spec/instanceStorePolicy",
        "spec.instanceStorePolicy",
    )
    .accepts([json!("RAID0")])
    .refuses("must be one of", [json!("RAID1"), json!("")]);
    for field in ["associatePublicIPAddress", "detailedMonitoring"] {
        let pointer = format!("/spec/{field}");
        accepted(with(ec2_node_class(), &pointer, json!(true)));
        let bad = with(ec2_node_class(), &pointer, json!("yes"));
        refused(bad, &format!("spec.{field}"), "true or false");
    }
    refused(
        with(ec2_node_class(), "/spec", Value::Null),
        "spec",
        "is required",
    );
}

#[test]
fn aws_28_19_unknown_kubelet_fields_persist() {
    let kubelet = json!({
        "registryPullQPS": 10,
        "logging": {"verbosity": {"deep": ["nested", 1]}},
        "registerWithTaints": "not even a list",
    });
    let mut class = with_kubelet(kubelet.clone());
    assert_eq!(admit(&mut class).unwrap().warnings, []);
    assert_eq!(class["spec"]["kubelet"], kubelet);
    let typed: joiner_api::types::Ec2NodeClass = serde_json::from_value(class.clone()).unwrap();
    assert_eq!(serde_json::to_value(typed).unwrap(), class);
}

#[test]
fn aws_1_4_kubelet_numbers() {
    for (field, good, bad) in [
        (
            "maxPods",
            vec![json!(0), json!(110), json!("max_pods - 1")],
            vec![json!(-1)],
        ),
        ("podsPerCore", vec![json!(0), json!(10)], vec![json!(-1)]),
        (
            "imageGCHighThresholdPercent",
            vec![json!(0), json!(100)],
            vec![json!(-1), json!(101)],
        ),
        (
            "imageGCLowThresholdPercent",
            vec![json!(0), json!(100)],
            vec![json!(-1), json!(101)],
        ),
    ] {
        for value in good {
            accepted(with_kubelet(json!({field: value})));
        }
        for value in bad {
            refused(
                with_kubelet(json!({field: value})),
                &format!("spec.kubelet.{field}"),
                "at ",
            );
        }
    }
    refused(
        with_kubelet(json!({"maxPods": true})),
        "spec.kubelet.maxPods",
        "whole number",
    );
    refused(
        with_kubelet(json!({"podsPerCore": "2"})),
        "spec.kubelet.podsPerCore",
        "whole number",
    );
    let gc = |high: i64, low: i64| {
        let high = json!({"imageGCHighThresholdPercent": high, "imageGCLowThresholdPercent": low});
        with_kubelet(high)
    };
    accepted(gc(80, 60));
    refused(gc(60, 60), "spec.kubelet", "must be above");
    refused(gc(50, 60), "spec.kubelet", "must be above");
}

#[test]
fn aws_1_4_kubelet_maps() {
    for field in ["systemReserved", "kubeReserved"] {
        let path = format!("spec.kubelet.{field}");
        let good =
            json!({"cpu": "100m", "memory": "1Gi", "ephemeral-storage": "1Gi", "pid": "100"});
        accepted(with_kubelet(json!({field: good})));
        accepted(with_kubelet(json!({field: {"cpu": "vcpus * 10"}})));
        refused(
            with_kubelet(json!({field: {"gpu": "1"}})),
            &path,
            "keys can be",
        );
        refused(
            with_kubelet(json!({field: {"cpu": "-100m"}})),
            &path,
            "negative",
        );
    }
    let signals = json!({
        "memory.available": "5%", "nodefs.available": "10%", "nodefs.inodesFree": "5%",
        "imagefs.available": "10%", "imagefs.inodesFree": "5%", "pid.available": "5%",
    });
    accepted(with_kubelet(json!({"evictionHard": signals})));
    let bad = with_kubelet(json!({"evictionHard": {"memory": "5%"}}));
    refused(bad, "spec.kubelet.evictionHard", "keys can be");
    let soft = |soft: Value, grace: Value| {
        with_kubelet(json!({"evictionSoft": soft, "evictionSoftGracePeriod": grace}))
    };
    let memory = json!({"memory.available": "5%"});
    accepted(soft(memory.clone(), json!({"memory.available": "1m"})));
    accepted(soft(json!({}), json!({})));
    let words = "needs an evictionSoftGracePeriod";
    refused(soft(memory.clone(), json!({})), "spec.kubelet", words);
    refused(
        with_kubelet(json!({"evictionSoft": memory})),
        "spec.kubelet",
        words,
    );
    let words = "needs an evictionSoft threshold";
    let grace = json!({"memory.available": "1m", "pid.available": "1m"});
    refused(soft(memory, grace), "spec.kubelet", words);
    let alone = with_kubelet(json!({"evictionSoftGracePeriod": {"pid.available": "1m"}}));
    refused(alone, "spec.kubelet", words);
    for field in ["evictionSoft", "evictionSoftGracePeriod"] {
        let bad = with_kubelet(json!({field: {"gpu": "1m"}}));
        refused(bad, &format!("spec.kubelet.{field}"), "keys can be");
    }
}
