//! Policies, roles and the queue.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use crate::policies::{
    Identity, PolicySettings, cloud_formation, commands, json as as_json, policies, rules,
    terraform, trust_irsa,
};

fn settings() -> PolicySettings {
    PolicySettings {
        account: Some("123456789012".to_owned()),
        zonal_shift: true,
        ..PolicySettings::new("demo", "us-east-1")
    }
}

fn actions(settings: &PolicySettings) -> BTreeSet<String> {
    let statements = policies(settings).into_iter().flat_map(|policy| {
        let all = policy.document["Statement"].as_array();
        all.cloned().unwrap_or_default()
    });
    let actions = statements
        .flat_map(|statement| statement["Action"].as_array().cloned().unwrap_or_default());
    actions
        .filter_map(|action| action.as_str().map(str::to_owned))
        .collect()
}

/// Everything that the controller calls.
const CALLED: [&str; 31] = [
    "arc-zonal-shift:GetManagedResource",
    "ec2:CreateFleet",
    "ec2:CreateLaunchTemplate",
    "ec2:CreateTags",
    "ec2:DeleteLaunchTemplate",
    "ec2:DescribeCapacityReservations",
    "ec2:DescribeImages",
    "ec2:DescribeInstanceStatus",
    "ec2:DescribeInstanceTypeOfferings",
    "ec2:DescribeInstanceTypes",
    "ec2:DescribeInstances",
    "ec2:DescribeLaunchTemplates",
    "ec2:DescribePlacementGroups",
    "ec2:DescribeSecurityGroups",
    "ec2:DescribeSpotPriceHistory",
    "ec2:DescribeSubnets",
    "ec2:RunInstances",
    "ec2:TerminateInstances",
    "eks:DescribeCluster",
    "iam:AddRoleToInstanceProfile",
    "iam:CreateInstanceProfile",
    "iam:DeleteInstanceProfile",
    "iam:GetInstanceProfile",
    "iam:ListInstanceProfiles",
    "iam:PassRole",
    "iam:RemoveRoleFromInstanceProfile",
    "pricing:GetProducts",
    "sqs:DeleteMessage",
    "sqs:GetQueueUrl",
    "sqs:ReceiveMessage",
    "ssm:GetParameter",
];

#[test]
fn the_policies_allow_what_is_called_and_nothing_else() {
    let all: Vec<String> = actions(&settings()).into_iter().collect();
    assert_eq!(all, CALLED);
    let less = PolicySettings {
        queue: None,
        zonal_shift: false,
        isolated_vpc: true,
        ..settings()
    };
    let gone: BTreeSet<String> = actions(&settings())
        .difference(&actions(&less))
        .cloned()
        .collect();
    let gone: Vec<&str> = gone.iter().map(String::as_str).collect();
    assert_eq!(
        gone,
        [
            "arc-zonal-shift:GetManagedResource",
            "iam:AddRoleToInstanceProfile",
            "iam:CreateInstanceProfile",
            "iam:DeleteInstanceProfile",
            "iam:ListInstanceProfiles",
            "iam:RemoveRoleFromInstanceProfile",
            "pricing:GetProducts",
            "sqs:DeleteMessage",
            "sqs:GetQueueUrl",
            "sqs:ReceiveMessage"
        ]
    );
}

#[test]
fn what_changes_machines_is_bound_to_tags() {
    let all = policies(&settings());
    let lifecycle = &all[0];
    assert_eq!(
        lifecycle.name,
        "KarpenterControllerNodeLifecyclePolicy-demo"
    );
    let statement = |id: &str| {
        let mut all = lifecycle.document["Statement"].as_array().unwrap().iter();
        all.find(|statement| statement["Sid"] == id)
            .unwrap()
            .clone()
    };
    let owned = json!({
        "StringEquals": {"aws:ResourceTag/kubernetes.io/cluster/demo": "owned"},
        "StringLike": {"aws:ResourceTag/karpenter.sh/nodepool": "*"}});
    assert_eq!(statement("EndOwn")["Condition"], owned);
    assert_eq!(
        statement("EndOwn")["Resource"],
        json!([
            "arn:aws:ec2:us-east-1:*:instance/*",
            "arn:aws:ec2:us-east-1:*:launch-template/*"
        ])
    );
    assert_eq!(
        statement("TagWhatIsMade")["Condition"],
        json!({
            "StringEquals": {"aws:RequestTag/eks:eks-cluster-name": "demo",
                "aws:RequestTag/kubernetes.io/cluster/demo": "owned",
                "ec2:CreateAction": ["CreateFleet", "CreateLaunchTemplate", "RunInstances"]},
            "StringLike": {"aws:RequestTag/karpenter.sh/nodepool": "*"}})
    );
    assert_eq!(
        statement("TagRegistered")["Condition"]["ForAllValues:StringEquals"],
        json!({"aws:TagKeys": ["Name", "eks:eks-cluster-name", "karpenter.sh/nodeclaim"]})
    );
    assert_eq!(
        statement("UseForLaunches")["Resource"][0],
        json!("arn:aws:ec2:us-east-1::image/*")
    );
}

#[test]
fn who_may_take_the_role() {
    let trust = trust_irsa(
        &settings(),
        "https://oidc.eks.us-east-1.amazonaws.com/id/ABC",
    );
    let statement = &trust["Statement"][0];
    assert_eq!(
        statement["Condition"]["StringEquals"],
        json!({"oidc.eks.us-east-1.amazonaws.com/id/ABC:aud": "sts.amazonaws.com",
            "oidc.eks.us-east-1.amazonaws.com/id/ABC:sub": "system:serviceaccount:kube-system:karpenter"})
    );
    let all = as_json(&settings());
    let trust = &all["controllerRole"]["trust"];
    assert_eq!(
        trust["podIdentity"]["Statement"][0]["Action"],
        json!(["sts:AssumeRole", "sts:TagSession"])
    );
    let provider = trust["irsa"]["Statement"][0]["Principal"]["Federated"]
        .as_str()
        .unwrap();
    assert_eq!(
        provider,
        "arn:aws:iam::123456789012:oidc-provider/OIDC_ISSUER"
    );
    assert_eq!(all["nodeRole"]["name"], json!("KarpenterNodeRole-demo"));
}

#[test]
fn the_queue_and_its_rules() {
    let queue = &as_json(&settings())["queue"];
    assert_eq!(
        queue["attributes"],
        json!({"MessageRetentionPeriod": "300", "SqsManagedSseEnabled": "true"})
    );
    assert_eq!(queue["policy"]["Statement"][1]["Effect"], json!("Deny"));
    assert_eq!(
        queue["policy"]["Statement"][0]["Resource"],
        json!(["arn:aws:sqs:us-east-1:123456789012:demo"])
    );
    assert_eq!(
        queue["rules"]["KarpenterSpotInterruption-demo"],
        json!({"source": ["aws.ec2"], "detail-type": ["EC2 Spot Instance Interruption Warning"]})
    );
    assert_eq!(rules(&settings()).len(), 5);
}

#[test]
fn an_unknown_account_is_filled_in_later() {
    let unknown = PolicySettings {
        account: None,
        ..settings()
    };
    assert!(
        as_json(&unknown)
            .to_string()
            .contains("arn:aws:iam::ACCOUNT_ID:role/KarpenterNodeRole-demo")
    );
    let formation = cloud_formation(&unknown);
    assert!(
        formation.contains("Fn::Sub: arn:aws:iam::${AWS::AccountId}:role/KarpenterNodeRole-demo"),
        "{formation}"
    );
    assert!(!cloud_formation(&settings()).contains("Fn::Sub"));
    let terraform = terraform(&unknown);
    assert!(terraform.starts_with("data \"aws_caller_identity\" \"current\" {}\n"));
    assert!(
        terraform.contains(
            "::${data.aws_caller_identity.current.account_id}:role/KarpenterNodeRole-demo"
        )
    );
    let script = commands(&unknown);
    assert!(script.contains("\nACCOUNT_ID=$(aws sts get-caller-identity "));
    assert!(script.contains("arn:aws:iam::${ACCOUNT_ID}:role/KarpenterNodeRole-demo"));
    for text in [as_json(&unknown).to_string(), formation, terraform, script] {
        assert!(!text.contains("${account}"));
    }
}

#[test]
fn the_template_has_everything() {
    let template: Value = serde_saphyr::from_str(&cloud_formation(&settings())).unwrap();
    let resources = template["Resources"].as_object().unwrap();
    let kinds: BTreeSet<&str> = resources
        .values()
        .filter_map(|resource| resource["Type"].as_str())
        .collect();
    assert_eq!(
        kinds.into_iter().collect::<Vec<_>>(),
        [
            "AWS::EKS::PodIdentityAssociation",
            "AWS::Events::Rule",
            "AWS::IAM::ManagedPolicy",
            "AWS::IAM::Role",
            "AWS::SQS::Queue",
            "AWS::SQS::QueuePolicy"
        ]
    );
    assert_eq!(
        resources["InterruptionQueue"]["Properties"]["MessageRetentionPeriod"],
        json!(300)
    );
    assert_eq!(resources.len(), 6 + 2 + 1 + 2 + 5);
    let policy = &resources["ControllerNodeLifecyclePolicy"]["Properties"]["PolicyDocument"];
    assert_eq!(policy, &policies(&settings())[0].document);
    let with_issuer = PolicySettings {
        identity: Identity::Irsa {
            issuer: "issuer.example.com".to_owned(),
        },
        ..settings()
    };
    let text = cloud_formation(&with_issuer);
    assert!(!text.contains("PodIdentityAssociation") && text.contains("issuer.example.com:sub"));
}

#[test]
fn names_have_room_for_long_clusters() {
    let long = PolicySettings::new(&"x".repeat(100), "cn-north-1");
    for policy in policies(&long) {
        assert!(policy.name.len() <= 128, "{}", policy.name);
    }
    for name in rules(&long)
        .into_iter()
        .map(|rule| rule.name)
        .chain([long.node_role_name()])
    {
        assert!(name.len() <= 64, "{name}");
    }
    assert_eq!(long.partition, "aws-cn");
    let passed = &policies(&long)[1].document["Statement"][0]["Condition"]["StringEquals"];
    assert_eq!(
        passed["iam:PassedToService"],
        json!(["ec2.amazonaws.com", "ec2.amazonaws.com.cn"])
    );
}

#[test]
fn parameters_of_the_users_are_allowed() {
    let settings = PolicySettings {
        parameters: vec![
            "/mine/ami".to_owned(),
            "arn:aws:ssm:us-east-1:1:parameter/x".to_owned(),
        ],
        ..settings()
    };
    let all = as_json(&settings);
    let policy = &all["policies"]["KarpenterControllerResourceDiscoveryPolicy-demo"];
    assert_eq!(
        policy["Statement"][1]["Resource"],
        json!([
            "arn:aws:ssm:us-east-1::parameter/aws/service/*",
            "arn:aws:ssm:us-east-1:123456789012:parameter/mine/ami",
            "arn:aws:ssm:us-east-1:1:parameter/x"
        ])
    );
}
