//! Conditions, validation and profiles of node classes, and what is collected.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use joiner_api::types::{
    Ami, AmiFamily, ConditionStatus, Ec2NodeClass, Ec2NodeClassSpec, Ec2NodeClassStatus, Kubelet,
    Subnet,
};
use joiner_catalog::{ClassSettings, ec2_type};
use joiner_model::InstanceType;
use serde_json::{Value, json};

use crate::class::conditions::{
    ClassCondition, VALIDATION_SUCCEEDED, again_after, placement_group, ready, resolved, validation,
};
use crate::class::dry_run::{Call, Judged, fleet, judge, key, machines, type_to_try};
use crate::class::kubelet::{problems, unsupported};
use crate::class::profile::{self, Known, Needed, needed};
use crate::cluster::Cluster;
use crate::fault::Fault;
use crate::garbage::leaked;
use crate::machine::Machine;
use crate::tags::{self, Tag};

fn spec(value: Value) -> Ec2NodeClassSpec {
    serde_json::from_value(value).unwrap()
}

fn whole() -> Ec2NodeClassStatus {
    serde_json::from_value(json!({
        "amis": [{"id": "ami-1"}], "subnets": [{"id": "subnet-1", "zone": "a"}],
        "securityGroups": [{"id": "sg-1"}], "instanceProfile": "demo_1"}))
    .unwrap()
}

fn good() -> Vec<ClassCondition> {
    let mut all = resolved(&whole(), true);
    all.push(ClassCondition::is_true("InstanceProfileReady"));
    all
}

#[test]
fn aws_063_conditions_of_what_was_found() {
    let told = |status: &Ec2NodeClassStatus, reserving: bool| {
        let all = resolved(status, reserving);
        let one = |condition: &ClassCondition| {
            format!(
                "{}={} {}",
                condition.kind, condition.status, condition.reason
            )
        };
        all.iter().map(one).collect::<Vec<_>>()
    };
    assert_eq!(
        told(&whole(), true),
        [
            "AMIsReady=True AMIsReady",
            "SubnetsReady=True SubnetsReady",
            "SecurityGroupsReady=True SecurityGroupsReady",
            "CapacityReservationsReady=True CapacityReservationsReady"
        ]
    );
    assert_eq!(
        told(&Ec2NodeClassStatus::default(), false),
        [
            "AMIsReady=False AMINotFound",
            "SubnetsReady=False SubnetsNotFound",
            "SecurityGroupsReady=False SecurityGroupsNotFound"
        ]
    );
    for condition in resolved(&Ec2NodeClassStatus::default(), false) {
        assert!(
            condition.message.starts_with("spec.") && condition.message.contains("check "),
            "{}",
            condition.message
        );
    }
}

#[test]
fn aws_064_the_condition_of_a_placement_group() {
    let selecting = spec(json!({"placementGroupSelector": {"name": "a"}}));
    let reason = |spec: &Ec2NodeClassSpec, found| placement_group(spec, found).reason;
    assert_eq!(reason(&selecting, Ok(true)), "PlacementGroupReady");
    assert_eq!(reason(&selecting, Ok(false)), "PlacementGroupNotFound");
    assert_eq!(
        reason(&selecting, Err("throttled")),
        "PlacementGroupResolutionFailed"
    );
    assert_eq!(
        reason(&spec(json!({})), Err("throttled")),
        "PlacementGroupReady"
    );
}

#[test]
fn when_to_look_again() {
    let minutes =
        |condition: &ClassCondition| again_after(condition).map(|time| time.as_secs() / 60);
    let found: Vec<_> = good().iter().map(minutes).collect();
    assert_eq!(found, [Some(5), Some(1), Some(5), Some(1), None]);
    let missing = resolved(&Ec2NodeClassStatus::default(), false);
    assert!(
        missing
            .iter()
            .all(|condition| minutes(condition) == Some(1))
    );
}

#[test]
fn aws_065_validation_waits_for_others() {
    let plain = spec(json!({}));
    assert_eq!(validation(&plain, &good()), None);
    let mut bad = good();
    bad[1] = ClassCondition::is_false("SubnetsReady", "SubnetsNotFound", "none");
    let condition = validation(&plain, &bad).unwrap();
    assert_eq!(
        (condition.status, condition.reason),
        (ConditionStatus::False, "DependenciesNotReady")
    );
    assert_eq!(condition.message, "waiting for SubnetsReady");
    let mut unknown = good();
    unknown.pop();
    let condition = validation(&plain, &unknown).unwrap();
    assert_eq!(
        (condition.status, condition.reason),
        (ConditionStatus::Unknown, "DependenciesNotReady")
    );
    assert_eq!(condition.message, "waiting for InstanceProfileReady");
    assert_eq!(ready(&good()), ConditionStatus::True);
    assert_eq!(ready(&bad), ConditionStatus::False);
    let waiting = [good(), vec![condition]].concat();
    assert_eq!(ready(&waiting), ConditionStatus::Unknown);
}

#[test]
fn aws_067_restricted_tags() {
    let condition = validation(
        &spec(json!({"tags": {"kubernetes.io/cluster/x": "owned"}})),
        &good(),
    )
    .unwrap();
    assert_eq!(
        (condition.kind, condition.reason),
        (VALIDATION_SUCCEEDED, "TagValidationFailed")
    );
    assert_eq!(
        condition.message,
        "spec.tags has kubernetes.io/cluster/x, which only the controller sets; remove it"
    );
    for key in [
        "karpenter.sh/nodepool",
        "karpenter.sh/nodeclaim",
        "eks:eks-cluster-name",
        "karpenter.k8s.aws/ec2nodeclass",
    ] {
        let tags = BTreeMap::from([(key.to_owned(), String::new())]);
        assert_eq!(tags::restricted(&tags), Some(key));
    }
    assert_eq!(
        validation(&spec(json!({"tags": {"Name": "a"}})), &good()),
        None
    );
}

fn told(value: Value) -> Vec<String> {
    let kubelet: Kubelet = serde_json::from_value(value).unwrap();
    problems(&kubelet)
}

#[test]
fn aws_021_every_violation_names_its_field() {
    let all = told(
        json!({"registerWithTaints": [], "podsPerCore": -1, "kubeReserved": {"gpu": "1", "cpu": "-1"},
        "evictionHard": {"disk": "5%"}}),
    );
    let fields: Vec<&str> = all
        .iter()
        .filter_map(|problem| problem.split(' ').next())
        .collect();
    assert_eq!(
        fields,
        [
            "spec.kubelet.registerWithTaints",
            "spec.kubelet.evictionHard[disk]",
            "spec.kubelet.kubeReserved[cpu]",
            "spec.kubelet.kubeReserved[gpu]",
            "spec.kubelet.podsPerCore"
        ]
    );
    let condition = validation(
        &spec(json!({"kubelet": {"podsPerCore": -1, "maxPods": -2}})),
        &[],
    )
    .unwrap();
    assert_eq!(condition.reason, "InvalidKubeletConfiguration");
    assert_eq!(
        condition.message,
        "spec.kubelet.maxPods is negative; spec.kubelet.podsPerCore is negative"
    );
}

#[test]
fn aws_022_soft_eviction_needs_a_grace_period_and_the_reverse() {
    let soft = json!({"memory.available": "500Mi"});
    let grace = json!({"memory.available": "1m30s"});
    assert!(told(json!({"evictionSoft": soft, "evictionSoftGracePeriod": grace})).is_empty());
    assert_eq!(
        told(json!({"evictionSoft": soft})),
        ["spec.kubelet.evictionSoft[memory.available] has no evictionSoftGracePeriod; add one"]
    );
    assert_eq!(
        told(json!({"evictionSoftGracePeriod": grace})),
        ["spec.kubelet.evictionSoftGracePeriod[memory.available] has no evictionSoft; add it"]
    );
}

#[test]
fn aws_023_taints_are_not_a_kubelet_setting() {
    assert_eq!(told(json!({"registerWithTaints": []})).len(), 1);
}

#[test]
fn aws_024_numbers_are_not_negative() {
    for field in ["maxPods", "podsPerCore", "evictionMaxPodGracePeriod"] {
        assert_eq!(
            told(json!({field: -1})),
            [format!("spec.kubelet.{field} is negative")]
        );
        assert!(told(json!({field: 0})).is_empty());
    }
}

#[test]
fn aws_025_thresholds_of_image_collection() {
    let of = |high: i32, low: i32| {
        told(json!({"imageGCHighThresholdPercent": high, "imageGCLowThresholdPercent": low})).len()
    };
    assert_eq!((of(80, 60), of(60, 60), of(101, 60)), (0, 1, 1));
}

#[test]
fn aws_027_expressions_pass() {
    assert!(
        told(json!({"maxPods": "max_pods - 1", "kubeReserved": {"cpu": "vcpus * 10"}})).is_empty()
    );
    let threshold = |text: &str| told(json!({"evictionHard": {"memory.available": text}})).len();
    for text in ["5%", "100%", "0.5%", "500Mi", "1.5Gi", "0", "100m"] {
        assert_eq!(threshold(text), 0, "{text}");
    }
    for text in ["", "101%", "-1%", "-5Mi", "many", "5 Mi", "5Zi"] {
        assert_eq!(threshold(text), 1, "{text}");
    }
}

#[test]
fn aws_029_030_settings_that_a_family_does_not_pass_on() {
    let refused = |value: &Value, family: AmiFamily| {
        let kubelet: Kubelet = serde_json::from_value(value.clone()).unwrap();
        unsupported(&kubelet, family)
    };
    let pull = json!({"registryPullQPS": 5});
    assert_eq!(
        refused(&pull, AmiFamily::Bottlerocket).unwrap(),
        "spec.kubelet.registryPullQPS has no effect on nodes of the Bottlerocket family; remove it, or use the \
         AL2023 family"
    );
    assert!(refused(&pull, AmiFamily::Windows2022).is_some());
    let dns = |count: usize| json!({"clusterDNS": vec!["10.0.0.1"; count]});
    for family in [
        AmiFamily::Al2,
        AmiFamily::Bottlerocket,
        AmiFamily::Windows2022,
    ] {
        assert!(refused(&dns(2), family).is_some());
        assert_eq!(refused(&dns(1), family), None);
    }
    for family in [AmiFamily::Al2023, AmiFamily::Custom] {
        assert_eq!(refused(&pull, family), None);
        assert_eq!(refused(&dns(2), family), None);
    }
    let per_core = json!({"podsPerCore": 3});
    assert!(refused(&per_core, AmiFamily::Bottlerocket).is_some());
    assert_eq!(refused(&per_core, AmiFamily::Al2), None);
    let condition =
        validation(&spec(json!({"amiFamily": "AL2", "kubelet": pull})), &good()).unwrap();
    assert_eq!(condition.reason, "UnsupportedKubeletConfiguration");
}

fn reason(judged: Judged) -> (String, bool, String) {
    let Judged::Failed {
        condition,
        is_lasting,
    } = judged
    else {
        panic!("{judged:?}");
    };
    (condition.reason.to_owned(), is_lasting, condition.message)
}

#[test]
fn aws_068_what_is_not_authorized() {
    let fault = |message: &str| Fault::new("UnauthorizedOperation", message);
    for (call, expected) in [
        (
            Call::CreateLaunchTemplate,
            "CreateLaunchTemplateAuthCheckFailed",
        ),
        (Call::CreateFleet, "CreateFleetAuthCheckFailed"),
        (Call::RunInstances, "RunInstancesAuthCheckFailed"),
    ] {
        let (reason, is_lasting, message) = reason(judge(call, &fault("no"), false));
        assert_eq!((reason.as_str(), is_lasting), (expected, true));
        assert!(
            message.ends_with("`joiner aws policies` prints the policies that it needs"),
            "{message}"
        );
    }
    let by = |message: &str| reason(judge(Call::CreateFleet, &fault(message), false)).2;
    assert!(
        by("explicit deny in a permissions boundary").contains("a permissions boundary forbids it")
    );
    assert!(
        by("explicit deny in a Service Control Policy")
            .contains("a service control policy forbids it")
    );
}

#[test]
fn aws_069_072_other_answers_to_dry_runs() {
    let judged = |code: &str, message: &str, names_profile: bool| {
        judge(
            Call::RunInstances,
            &Fault::new(code, message),
            names_profile,
        )
    };
    assert_eq!(judged("DryRunOperation", "", false), Judged::Passed);
    assert_eq!(judged("RequestLimitExceeded", "", false), Judged::Again);
    assert_eq!(judged("InternalError", "", false), Judged::Again);
    let (why, is_lasting, message) = reason(judged(
        "InvalidParameterValue",
        "User data is limited to 16384 bytes",
        false,
    ));
    assert_eq!(
        (why.as_str(), is_lasting),
        ("UserDataSizeLimitExceeded", true)
    );
    assert!(
        message.starts_with("spec.userData ") && message.ends_with("shorten it"),
        "{message}"
    );
    let profile = "Value (x) for parameter iamInstanceProfile.name is invalid. Invalid IAM Instance Profile name";
    assert_eq!(
        judged("InvalidParameterValue", profile, false),
        Judged::Again
    );
    let (why, is_lasting, _) = reason(judged("InvalidParameterValue", profile, true));
    assert_eq!(
        (why.as_str(), is_lasting),
        ("InstanceProfileNotFound", false)
    );
    let odd = judged("InvalidParameterValue", "odd", false);
    assert_eq!(odd, Judged::Error("InvalidParameterValue: odd".to_owned()));
}

#[test]
fn aws_070_answers_are_remembered_until_something_changes() {
    let class = |change: &dyn Fn(&mut Value)| {
        let mut value = json!({"metadata": {"name": "default", "annotations": {"a": "b"}}, "spec": {"role": "r"},
            "status": {"subnets": [{"id": "subnet-1", "zone": "a"}]}});
        change(&mut value);
        let class: Ec2NodeClass = serde_json::from_value(value).unwrap();
        key(&class)
    };
    let base = class(&|_| {});
    assert_eq!(class(&|_| {}), base);
    assert_eq!(
        class(&|value| value["metadata"]["resourceVersion"] = json!("7")),
        base
    );
    for other in [
        class(&|value| value["metadata"]["annotations"]["c"] = json!("d")),
        class(&|value| value["metadata"]["name"] = json!("other")),
        class(&|value| value["spec"]["tags"] = json!({"a": "b"})),
        class(&|value| value["status"]["subnets"][0]["id"] = json!("subnet-2")),
        class(&|value| value["status"]["instanceProfile"] = json!("p")),
    ] {
        assert_ne!(other, base);
    }
}

#[test]
fn dry_runs_ask_what_upstream_asks() {
    let subnet = |id: &str| Subnet {
        id: id.to_owned(),
        ..Subnet::default()
    };
    let subnets = [subnet("subnet-1"), subnet("subnet-2")];
    let tags = [Tag::new("a", "b")];
    let told = json!([{"Key": "a", "Value": "b"}]);
    let kinds = |kinds: &[&str]| {
        let one = |kind: &&str| json!({"ResourceType": kind, "Tags": told});
        kinds.iter().map(one).collect::<Vec<Value>>()
    };
    assert_eq!(
        serde_json::to_value(fleet("t", "m5.large", &subnets, &tags)).unwrap(),
        json!({
            "DryRun": true,
            "LaunchTemplateConfigs": [{
                "LaunchTemplateSpecification": {"LaunchTemplateName": "t", "Version": "$Latest"},
                "Overrides": [{"InstanceType": "m5.large", "SubnetId": "subnet-1"},
                    {"InstanceType": "m5.large", "SubnetId": "subnet-2"}]}],
            "OnDemandOptions": {"AllocationStrategy": "lowest-price"},
            "TagSpecifications": kinds(&["instance", "volume", "fleet"]),
            "TargetCapacitySpecification": {"DefaultTargetCapacityType": "on-demand", "TotalTargetCapacity": 1},
            "Type": "instant",
        })
    );
    let asked = machines("t", "m5.large", &subnets, &tags);
    assert_eq!(asked.len(), 2);
    assert_eq!(
        serde_json::to_value(&asked[1]).unwrap(),
        json!({
            "DryRun": true, "InstanceType": "m5.large",
            "LaunchTemplate": {"LaunchTemplateName": "t", "Version": "$Latest"},
            "MaxCount": 1, "MinCount": 1,
            "NetworkInterfaces": [{"DeviceIndex": 0, "SubnetId": "subnet-2"}],
            "TagSpecifications": kinds(&["instance", "volume", "network-interface"]),
        })
    );
}

fn types(names: &[&str]) -> Vec<InstanceType> {
    let one = |name: &&str| {
        ec2_type(name, "us-east-1", &ClassSettings::default())
            .unwrap()
            .unwrap()
    };
    names.iter().map(one).collect()
}

#[test]
fn aws_073_074_which_type_is_tried() {
    let amis: Vec<Ami> = serde_json::from_value(json!([
        {"id": "ami-gpu", "requirements": [{"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "Exists"}]},
        {"id": "ami-1", "requirements": [{"key": "kubernetes.io/arch", "operator": "In", "values": ["amd64"]},
            {"key": "karpenter.k8s.aws/instance-gpu-count", "operator": "DoesNotExist"}]}]))
    .unwrap();
    let fallback = types(&crate::class::dry_run::FALLBACK);
    let tried = |family: AmiFamily, pools: &[&str]| {
        let pools = types(pools);
        let (ty, ami) = type_to_try(family, &amis, &pools, &fallback)?;
        Some(format!("{} {}", ty.name, ami.id))
    };
    let al2023 = AmiFamily::Al2023;
    assert_eq!(tried(al2023, &[]).as_deref(), Some("m5.large ami-1"));
    assert_eq!(
        tried(al2023, &["g4dn.xlarge", "c5.large"]).as_deref(),
        Some("c5.large ami-1")
    );
    assert_eq!(
        tried(al2023, &["g4dn.xlarge"]).as_deref(),
        Some("g4dn.xlarge ami-gpu")
    );
    assert_eq!(
        tried(al2023, &["m6g.large"]).as_deref(),
        Some("m5.large ami-1")
    );
    assert_eq!(
        tried(AmiFamily::Windows2022, &["c5.large"]).as_deref(),
        Some("m5.large ami-1")
    );
    assert!(type_to_try(al2023, &[], &[], &fallback).is_none());
}

fn cluster() -> Cluster {
    Cluster {
        name: "demo".to_owned(),
        region: "us-east-1".to_owned(),
        ..Cluster::default()
    }
}

fn ask(class: Value, found: Option<&Known>) -> Needed {
    needed(
        ("default", "uid-1", &spec(class)),
        &cluster(),
        found,
        "0a1b",
    )
}

#[test]
fn aws_076_081_profiles_for_roles() {
    let role = || json!({"role": "arn/path/NodeRole", "tags": {"team": "a"}});
    let Needed::Make(profile) = ask(role(), None) else {
        panic!("a profile is needed");
    };
    assert_eq!(profile.role, "NodeRole");
    assert_eq!(profile.path, "/karpenter/us-east-1/demo/uid-1/");
    let (start, number) = profile.name.split_once('_').unwrap();
    assert_eq!((start, number.parse::<u64>().is_ok()), ("demo", true));
    let tags: Vec<String> = profile
        .tags
        .iter()
        .map(|tag| format!("{}={}", tag.key, tag.value))
        .collect();
    assert_eq!(
        tags,
        [
            "eks:eks-cluster-name=demo",
            "karpenter.k8s.aws/ec2nodeclass=default",
            "kubernetes.io/cluster/demo=owned",
            "team=a",
            "topology.kubernetes.io/region=us-east-1"
        ]
    );
    let known = |role: Option<&str>| Known {
        name: "demo_1".to_owned(),
        role: role.map(str::to_owned),
    };
    assert_eq!(
        ask(role(), Some(&known(Some("NodeRole")))),
        Needed::Keep("demo_1".to_owned())
    );
    assert!(matches!(
        ask(role(), Some(&known(Some("Other")))),
        Needed::Make(_)
    ));
    assert!(matches!(ask(role(), Some(&known(None))), Needed::Make(_)));
}

#[test]
fn aws_077_078_every_profile_has_a_name_of_its_own() {
    let name = |class: &str, uuid: &str| {
        let spec = spec(json!({"role": "r"}));
        let Needed::Make(profile) = needed((class, "u", &spec), &cluster(), None, uuid) else {
            panic!("a profile is needed");
        };
        profile.name
    };
    let names = [name("a", "1"), name("a", "2"), name("b", "1")];
    assert_eq!(BTreeSet::from(names).len(), 3);
}

#[test]
fn aws_083_a_profile_of_the_users_is_taken() {
    assert_eq!(
        ask(json!({"instanceProfile": "mine"}), None),
        Needed::Users("mine".to_owned())
    );
    assert_eq!(ask(json!({}), None), Needed::Nothing);
}

#[test]
fn aws_084_profiles_that_nothing_needs() {
    let profiles = ["a", "b", "c", "d"].map(str::to_owned);
    let set = |name: &str| BTreeSet::from([name.to_owned()]);
    assert_eq!(
        profile::unused(&profiles, &set("a"), &set("b"), &set("c")),
        ["d"]
    );
    assert_eq!(
        profile::path_of_cluster(&cluster()),
        "/karpenter/us-east-1/demo/"
    );
}

#[test]
fn aws_087_names_of_old_profiles() {
    let name = profile::legacy_name(&cluster(), "default").unwrap();
    assert!(name.starts_with("demo_"));
    let long = Cluster {
        name: "x".repeat(120),
        ..cluster()
    };
    assert_eq!(profile::legacy_name(&long, "default"), None);
    let odd = Cluster {
        name: "a b".to_owned(),
        ..cluster()
    };
    assert_eq!(profile::legacy_name(&odd, "default"), None);
}

#[test]
fn aws_176_machines_without_a_claim() {
    let now: Timestamp = "2026-11-18T12:00:00Z".parse().unwrap();
    let machine = |id: &str, time: &str, state: &str, tags: Value| {
        let value = json!({"InstanceId": id, "LaunchTime": time, "State": {"Name": state},
            "Placement": {"AvailabilityZone": "a"}, "Tags": tags});
        Machine::read(&serde_json::from_value(value).unwrap(), true)
    };
    let ours = || {
        json!([{"Key": "karpenter.sh/nodepool", "Value": "p"},
            {"Key": "karpenter.k8s.aws/ec2nodeclass", "Value": "c"}])
    };
    let (old, young) = ("2026-11-18T11:59:29Z", "2026-11-18T11:59:30Z");
    let machines = [
        machine("i-1", old, "running", ours()),
        machine("i-2", old, "running", ours()),
        machine("i-3", young, "running", ours()),
        machine("i-4", old, "running", json!([])),
        machine("i-5", old, "shutting-down", ours()),
        machine("i-6", old, "stopped", ours()),
    ];
    let named = BTreeSet::from(["aws:///a/i-1".to_owned()]);
    let found = leaked(&machines, &named, now);
    let ids: Vec<&str> = found
        .iter()
        .map(|machine| machine.id.instance_id.as_str())
        .collect();
    assert_eq!(ids, ["i-2", "i-6"]);
}
