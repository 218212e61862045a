//! User data of every family.

use std::collections::BTreeMap;

use crate::cluster::Cluster;
use crate::user_data::{
    Bootstrap, UserData, UserDataError, binds_by_default, node_labels, node_taints, user_data,
};
use joiner_api::types::{AmiFamily, Ec2NodeClassSpec, Kubelet, Taint};
use serde_json::{Value, json};

struct Case {
    cluster: Cluster,
    family: AmiFamily,
    kubelet: Value,
    custom: Option<&'static str>,
    labels: &'static [(&'static str, &'static str)],
    taints: Value,
    raid0: bool,
    binds_by_default: bool,
}

impl Case {
    fn of(family: AmiFamily) -> Self {
        Self {
            cluster: Cluster {
                name: "demo".to_owned(),
                region: "us-east-1".to_owned(),
                endpoint: "https://demo.example.com".to_owned(),
                ca_bundle: Some("Y2EK".to_owned()),
                dns_ip: Some("10.100.0.10".to_owned()),
                cidr: Some("10.100.0.0/16".to_owned()),
            },
            family,
            kubelet: json!({}),
            custom: None,
            labels: &[("karpenter.sh/nodepool", "default")],
            taints: json!([]),
            raid0: false,
            binds_by_default: false,
        }
    }

    fn try_render(&self) -> Result<UserData, UserDataError> {
        let kubelet: Kubelet = serde_json::from_value(self.kubelet.clone()).unwrap();
        let taints: Vec<Taint> = serde_json::from_value(self.taints.clone()).unwrap();
        let labels = node_labels(self.labels.iter().copied(), "spot", self.family);
        user_data(&Bootstrap {
            class: "default",
            cluster: &self.cluster,
            family: self.family,
            kubelet: Some(&kubelet),
            max_pods: 58,
            labels: &labels,
            taints: &node_taints(&taints, &[]),
            custom: self.custom,
            raid0: self.raid0,
            binds_by_default: self.binds_by_default,
        })
    }

    fn render(&self) -> String {
        self.try_render().unwrap().text
    }

    fn error(&self) -> String {
        self.try_render().unwrap_err().to_string()
    }
}

const ALL_KUBELET: fn() -> Value = || {
    json!({
        "clusterDNS": ["10.0.0.9", "10.0.0.8"],
        "podsPerCore": 2,
        "systemReserved": {"cpu": "1", "memory": "200Mi"},
        "kubeReserved": {"cpu": "150m"},
        "evictionHard": {"nodefs.available": "10%", "memory.available": "5%"},
        "evictionSoft": {"memory.available": "500Mi"},
        "evictionSoftGracePeriod": {"memory.available": "2m"},
        "evictionMaxPodGracePeriod": 60,
        "imageGCHighThresholdPercent": 80,
        "imageGCLowThresholdPercent": 60,
        "cpuCFSQuota": false,
    })
};

const HEAD: &str = "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"//\"\n\n--//\n";
const SHELL: &str = "Content-Type: text/x-shellscript; charset=\"us-ascii\"\n\n";
const CONFIG: &str = "Content-Type: application/node.eks.aws\n\n";

fn al2_script(rest: &str) -> String {
    format!(
        "{SHELL}#!/bin/bash -xe\n\
         exec > >(tee /var/log/user-data.log|logger -t user-data -s 2>/dev/console) 2>&1\n\
         /etc/eks/bootstrap.sh 'demo' --apiserver-endpoint 'https://demo.example.com' \
         --b64-cluster-ca 'Y2EK' \\\n{rest}\n--//--\n"
    )
}

const AL2_REST: &str = "--dns-cluster-ip '10.100.0.10' \\\n--use-max-pods false \\\n\
    --kubelet-extra-args '--node-labels=\"karpenter.sh/capacity-type=spot,\
    karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=default\" \
    --register-with-taints=\"karpenter.sh/unregistered:NoExecute\" --max-pods=58'";

#[test]
fn aws_158_al2_merges_archives_and_scripts() {
    let mut case = Case::of(AmiFamily::Al2);
    assert_eq!(case.render(), format!("{HEAD}{}", al2_script(AL2_REST)));
    case.custom = Some("#!/bin/bash\necho hi");
    let merged = format!(
        "{HEAD}{SHELL}#!/bin/bash\necho hi\n--//\n{}",
        al2_script(AL2_REST)
    );
    assert_eq!(case.render(), merged);
    case.custom = Some(
        "Content-Type: multipart/mixed; boundary=\"B\"\nMIME-Version: 1.0\n\n--B\nContent-Type: text/x-shellscript; \
         charset=\"us-ascii\"\n\n#!/bin/bash\necho hi\n--B--\n",
    );
    assert_eq!(case.render(), merged);
    case.custom = Some(
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"B\"\n\n--B\nMIME-Version: 1.0\nContent-Type: \
         text/cloud-config\n\na: b\n\n--B--\n",
    );
    let part = "Content-Type: text/cloud-config\nMime-Version: 1.0\n\na: b\n";
    assert_eq!(
        case.render(),
        format!("{HEAD}{part}\n--//\n{}", al2_script(AL2_REST))
    );
    case.custom = Some("");
    assert_eq!(case.render(), format!("{HEAD}{}", al2_script(AL2_REST)));
}

#[test]
fn aws_159_160_al2_flags() {
    let mut case = Case::of(AmiFamily::Al2);
    case.kubelet = ALL_KUBELET();
    case.kubelet["registryPullQPS"] = json!(5);
    case.taints = json!([{"key": "a", "value": "b", "effect": "NoSchedule"}]);
    case.raid0 = true;
    let text = case.render();
    assert!(
        text.contains("--dns-cluster-ip '10.0.0.9' \\\n--use-max-pods false \\\n"),
        "{text}"
    );
    let flags = text.split("--max-pods=58 ").nth(1).unwrap();
    assert_eq!(
        flags,
        "--pods-per-core=2 --system-reserved=\"cpu=1,memory=200Mi\" --kube-reserved=\"cpu=150m\" \
         --eviction-hard=\"memory.available<5%,nodefs.available<10%\" --eviction-soft=\"memory.available<500Mi\" \
         --eviction-soft-grace-period=\"memory.available=2m0s\" --eviction-max-pod-grace-period=60 \
         --image-gc-high-threshold=80 --image-gc-low-threshold=60 --cpu-cfs-quota=false' \\\n\
         --local-disks raid0\n--//--\n"
    );
    let taints = "--register-with-taints=\"a=b:NoSchedule,karpenter.sh/unregistered:NoExecute\" --max-pods=58";
    assert!(text.contains(taints), "{text}");
}

#[test]
fn aws_160_al2_in_an_ipv6_cluster() {
    let mut case = Case::of(AmiFamily::Al2);
    case.cluster.dns_ip = Some("fd30::a".to_owned());
    let text = case.render();
    let line =
        "'Y2EK' \\\n--ip-family ipv6 \\\n--dns-cluster-ip 'fd30::a' \\\n--use-max-pods false";
    assert!(text.contains(line), "{text}");
}

#[test]
fn aws_161_kubernetes_domains_stay_away() {
    let labels = [
        ("kubernetes.io/arch", "amd64"),
        ("node.kubernetes.io/instance-type", "m5.large"),
        ("a.k8s.io/b", "c"),
        ("node-restriction.kubernetes.io/a", "b"),
        ("topology.k8s.aws/zone-id", "use1-az1"),
        ("notkubernetes.io/a", "b"),
        ("kubernetes.io", "plain"),
        ("team", "a"),
    ];
    let kept = node_labels(labels.into_iter(), "spot", AmiFamily::Custom);
    let kept: Vec<&str> = kept.keys().map(String::as_str).collect();
    assert_eq!(
        kept,
        [
            "karpenter.sh/capacity-type",
            "kubernetes.io",
            "notkubernetes.io/a",
            "team",
            "topology.k8s.aws/zone-id"
        ]
    );
}

fn node_config(kubelet: &str) -> String {
    format!(
        "{CONFIG}# Karpenter Generated NodeConfig\napiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\n\
         metadata: {{}}\nspec:\n  cluster:\n    apiServerEndpoint: https://demo.example.com\n    \
         certificateAuthority: Y2EK\n    cidr: 10.100.0.0/16\n    name: demo\n  containerd: {{}}\n  instance:\n    \
         localStorage: {{}}\n  kubelet:\n    config:\n{kubelet}    flags:\n    - --node-labels=\
         \"karpenter.sh/capacity-type=spot,karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=default\"\n\n\
         --//--\n"
    )
}

const KUBELET: &str = "      clusterDNS:\n      - 10.100.0.10\n      maxPods: 58\n      registerWithTaints:\n      \
    - effect: NoExecute\n        key: karpenter.sh/unregistered\n";

#[test]
fn aws_162_al2023_merges() {
    let mut case = Case::of(AmiFamily::Al2023);
    let config = node_config(KUBELET);
    assert_eq!(case.render(), format!("{HEAD}{config}"));
    let yaml = "apiVersion: node.eks.aws/v1alpha1\nkind: NodeConfig\nspec:\n  kubelet: {}\n";
    case.custom = Some(yaml);
    assert_eq!(
        case.render(),
        format!("{HEAD}{CONFIG}{yaml}\n--//\n{config}")
    );
    case.custom = Some("#!/bin/bash\necho \"hi\"");
    let shell = format!("{HEAD}{SHELL}#!/bin/bash\necho \"hi\"\n--//\n{config}");
    assert_eq!(case.render(), shell);
    case.custom = Some(
        "MIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=\"BOUNDARY\"\n\n--BOUNDARY\nContent-Type: \
         text/x-shellscript; charset=\"us-ascii\"\n\n#!/bin/bash\necho \"hi\"\n--BOUNDARY--\n",
    );
    assert_eq!(case.render(), shell);
}

#[test]
fn aws_162_al2023_kubelet_settings_are_inline() {
    let mut case = Case::of(AmiFamily::Al2023);
    case.kubelet = ALL_KUBELET();
    case.kubelet["maxPods"] = json!(7);
    case.kubelet["featureGates"] = json!({"A": true});
    case.kubelet["evictionMinimumReclaim"] = json!({});
    case.taints = json!([{"key": "a", "value": "true", "effect": "NoSchedule"}]);
    case.raid0 = true;
    let text = case.render();
    let config = text
        .split("    config:\n")
        .nth(1)
        .unwrap()
        .split("    flags:")
        .next()
        .unwrap();
    assert_eq!(
        config,
        "      clusterDNS:\n      - 10.0.0.9\n      - 10.0.0.8\n      cpuCFSQuota: false\n      \
         evictionHard:\n        memory.available: 5%\n        nodefs.available: 10%\n      \
         evictionMaxPodGracePeriod: 60\n      evictionSoft:\n        memory.available: 500Mi\n      \
         evictionSoftGracePeriod:\n        memory.available: 2m0s\n      featureGates:\n        A: true\n      \
         imageGCHighThresholdPercent: 80\n      imageGCLowThresholdPercent: 60\n      kubeReserved:\n        \
         cpu: 150m\n      maxPods: 58\n      podsPerCore: 2\n      registerWithTaints:\n      - effect: \
         NoSchedule\n        key: a\n        value: \"true\"\n      - effect: NoExecute\n        key: \
         karpenter.sh/unregistered\n      systemReserved:\n        cpu: \"1\"\n        memory: 200Mi\n"
    );
    assert!(
        text.contains("    localStorage:\n      strategy: RAID0\n"),
        "{text}"
    );
}

#[test]
fn aws_162_al2023_needs_the_range_of_addresses() {
    let mut case = Case::of(AmiFamily::Al2023);
    case.cluster.cidr = None;
    let error = case.error();
    assert!(
        error.starts_with("EC2NodeClass default: the cluster's range"),
        "{error}"
    );
    assert!(error.ends_with("allow eks:DescribeCluster"), "{error}");
}

const ROCKET: &str = "\
[settings.kubernetes]
unknown-key = \"lost\"
api-server = \"replaced\"
max-pods = 1
event-qps = 0
[settings.kubernetes.node-labels]
\"user/label\" = \"yes\"
\"karpenter.sh/nodepool\" = \"replaced\"
[settings.kubernetes.node-taints]
\"user/taint\" = [\"x:NoSchedule\"]
[settings.kubernetes.eviction-hard]
\"nodefs.available\" = \"3%\"
[settings.host-containers.admin]
enabled = true
[settings.network]
hosts = [[\"10.0.0.0\", [\"a.example.com\"]]]
";

#[test]
fn aws_164_bottlerocket_merges() {
    let mut case = Case::of(AmiFamily::Bottlerocket);
    let plain = "[settings]\n[settings.kubernetes]\napi-server = 'https://demo.example.com'\ncluster-certificate = \
                 'Y2EK'\ncluster-name = 'demo'\ncluster-dns-ip = '10.100.0.10'\nmax-pods = 58\n\n\
                 [settings.kubernetes.node-labels]\n'karpenter.sh/capacity-type' = 'spot'\n\
                 'karpenter.sh/do-not-sync-taints' = 'true'\n'karpenter.sh/nodepool' = 'default'\n\n\
                 [settings.kubernetes.node-taints]\n'karpenter.sh/unregistered' = [':NoExecute']\n";
    assert_eq!(case.render(), plain);
    case.custom = Some(ROCKET);
    case.taints = json!([
        {"key": "a", "value": "b", "effect": "NoSchedule"},
        {"key": "a", "effect": "NoExecute"},
    ]);
    let merged = case.try_render().unwrap();
    assert_eq!(
        merged.text,
        "[settings]\n[settings.host-containers]\n[settings.host-containers.admin]\nenabled = true\n\n\
         [settings.kubernetes]\napi-server = 'https://demo.example.com'\ncluster-certificate = 'Y2EK'\n\
         cluster-name = 'demo'\ncluster-dns-ip = '10.100.0.10'\nmax-pods = 58\nevent-qps = 0\n\n\
         [settings.kubernetes.node-labels]\n'karpenter.sh/capacity-type' = 'spot'\n\
         'karpenter.sh/do-not-sync-taints' = 'true'\n'karpenter.sh/nodepool' = 'default'\n'user/label' = 'yes'\n\n\
         [settings.kubernetes.node-taints]\na = ['b:NoSchedule', ':NoExecute']\n\
         'karpenter.sh/unregistered' = [':NoExecute']\n\n[settings.kubernetes.eviction-hard]\n\
         'nodefs.available' = '3%'\n\n[settings.network]\nhosts = [['10.0.0.0', ['a.example.com']]]\n"
    );
    assert_eq!(
        merged.ignored,
        [
            "settings.kubernetes.unknown-key",
            "settings.kubernetes.node-taints"
        ]
    );
}

#[test]
fn aws_164_bottlerocket_settings_of_the_class_win() {
    let mut case = Case::of(AmiFamily::Bottlerocket);
    case.custom = Some(ROCKET);
    case.kubelet = ALL_KUBELET();
    let text = case.render();
    let lines = "cluster-dns-ip = '10.0.0.9'\nmax-pods = 58\neviction-max-pod-grace-period = 60\nevent-qps = 0\n\
                 image-gc-high-threshold-percent = '80'\nimage-gc-low-threshold-percent = '60'\n\
                 cpu-cfs-quota-enforced = false\n";
    assert!(text.contains(lines), "{text}");
    let tables = "[settings.kubernetes.eviction-hard]\n'memory.available' = '5%'\n'nodefs.available' = '10%'\n\n\
                  [settings.kubernetes.eviction-soft]\n'memory.available' = '500Mi'\n\n\
                  [settings.kubernetes.eviction-soft-grace-period]\n'memory.available' = '2m0s'\n\n\
                  [settings.kubernetes.kube-reserved]\ncpu = '150m'\n\n[settings.kubernetes.system-reserved]\n\
                  cpu = '1'\nmemory = '200Mi'\n";
    assert!(text.contains(tables), "{text}");
}

#[test]
fn aws_164_what_is_no_toml_says_where() {
    let mut case = Case::of(AmiFamily::Bottlerocket);
    for (text, said) in [
        (
            "[settings]\nx = = 1",
            "is not TOML, which Bottlerocket needs: line 2: ",
        ),
        (
            "#!/bin/bash\necho",
            "is not TOML, which Bottlerocket needs: line 2: ",
        ),
        (
            "settings = 1",
            "has settings, which must be a table: write [settings]",
        ),
        (
            "[settings]\nkubernetes = []",
            "has settings.kubernetes, which must be a table: write [settings.kubernetes]",
        ),
        (
            "[settings.kubernetes]\nevent-qps = 'many'",
            "has settings.kubernetes.event-qps, which must be a whole number",
        ),
        (
            "[settings.kubernetes.node-labels]\na = 1",
            "has settings.kubernetes.node-labels, which must be a table of texts",
        ),
        (
            "[settings.bootstrap-commands]\na = 1",
            "has settings.bootstrap-commands.a, which must be a table",
        ),
    ] {
        case.custom = Some(text);
        let error = case.error();
        let start = format!("EC2NodeClass default: spec.userData {said}");
        assert!(error.starts_with(&start), "{error}");
    }
}

#[test]
fn aws_165_local_disks_of_bottlerocket() {
    let mut case = Case::of(AmiFamily::Bottlerocket);
    case.raid0 = true;
    case.custom = Some(
        "[settings.bootstrap-commands.mine]\nessential = false\ncommands = [[\"a\"]]\nmode = \"once\"\n",
    );
    let head = "[settings]\n[settings.bootstrap-commands]\n[settings.bootstrap-commands.000-mount-instance-storage]\n";
    let tail = "mode = 'always'\nessential = true\n\n[settings.bootstrap-commands.mine]\ncommands = [['a']]\n\
                mode = 'once'\nessential = false\n";
    let text = case.render();
    let listed = "commands = [['apiclient', 'ephemeral-storage', 'init'], ['apiclient', 'ephemeral-storage', 'bind', \
                  '--dirs', '/var/lib/containerd', '/var/lib/kubelet', '/var/log/pods']]\n";
    assert!(text.starts_with(&format!("{head}{listed}{tail}")), "{text}");
    case.binds_by_default = true;
    let text = case.render();
    let short = "commands = [['apiclient', 'ephemeral-storage', 'init'], ['apiclient', 'ephemeral-storage', 'bind']]\n";
    assert!(text.starts_with(&format!("{head}{short}{tail}")), "{text}");
}

#[test]
fn aws_165_versions_of_bottlerocket() {
    let binds = |term: Value, amis: Value| {
        let spec: Ec2NodeClassSpec =
            serde_json::from_value(json!({"amiSelectorTerms": [term]})).unwrap();
        binds_by_default(
            &spec,
            &serde_json::from_value(json!({"amis": amis})).unwrap(),
        )
    };
    let amis = json!([
        {"id": "ami-1", "name": "bottlerocket-aws-k8s-1.36-x86_64-v1.45.0-0123abcd"},
        {"id": "ami-2", "name": "bottlerocket-aws-k8s-1.36-x86_64-v1.48.0-0123abcd"},
    ]);
    for (term, expected) in [
        (json!({"alias": "bottlerocket@latest"}), true),
        (json!({"alias": "bottlerocket@v1.46.0"}), true),
        (json!({"alias": "bottlerocket@1.45.0"}), false),
        (json!({"alias": "bottlerocket@1.46"}), false),
        (json!({"alias": "bottlerocket@new"}), false),
        (
            json!({"name": "bottlerocket-aws-k8s-1.36-x86_64-v1.46.1-*"}),
            true,
        ),
        (json!({"name": "bottlerocket-*"}), false),
        (json!({"id": "ami-1"}), false),
        (json!({"id": "ami-2"}), true),
        (json!({"tags": {"a": "b"}}), false),
    ] {
        assert_eq!(binds(term.clone(), amis.clone()), expected, "{term}");
    }
    assert!(!binds(json!({"tags": {"a": "b"}}), json!([])));
}

#[test]
fn aws_166_windows_and_custom() {
    let mut case = Case::of(AmiFamily::Windows2022);
    let script = "[string]$EKSBootstrapScriptFile = \"$env:ProgramFiles\\Amazon\\EKS\\Start-EKSBootstrap.ps1\"\n\
               & $EKSBootstrapScriptFile -EKSClusterName 'demo' -APIServerEndpoint 'https://demo.example.com' \
               -Base64ClusterCA 'Y2EK' -KubeletExtraArgs '--node-labels=\"karpenter.sh/capacity-type=spot,\
               karpenter.sh/do-not-sync-taints=true,karpenter.sh/nodepool=default\" \
               --register-with-taints=\"karpenter.sh/unregistered:NoExecute\" --max-pods=58' \
               -DNSClusterIP '10.100.0.10'\n</powershell>";
    assert_eq!(case.render(), format!("<powershell>\n{script}"));
    case.custom = Some("Write-Host hi");
    assert_eq!(
        case.render(),
        format!("<powershell>\nWrite-Host hi\n{script}")
    );
    case.family = AmiFamily::Custom;
    assert_eq!(case.render(), "Write-Host hi");
    case.custom = None;
    assert_eq!(case.render(), "");
}

#[test]
fn aws_167_taints_are_synced_for_custom_images_only() {
    for family in AmiFamily::ALL.iter().copied() {
        let labels: BTreeMap<String, String> = node_labels(std::iter::empty(), "spot", family);
        let says = labels.contains_key("karpenter.sh/do-not-sync-taints");
        assert_eq!(says, family != AmiFamily::Custom);
    }
}

#[test]
fn aws_158_an_archive_that_is_none_says_why() {
    for family in [AmiFamily::Al2, AmiFamily::Al2023] {
        let mut case = Case::of(family);
        case.custom = Some("Content-Type: text/plain\n\nhello");
        assert_eq!(
            case.error(),
            "EC2NodeClass default: spec.userData starts like a MIME archive and is of the type \"text/plain\"; \
             the type must be multipart/mixed"
        );
    }
}

#[test]
fn aws_072_there_is_a_largest_size() {
    let mut data = UserData::from("x".repeat(16_384));
    assert!(data.fits());
    data.text.push('x');
    assert!(!data.fits());
}
