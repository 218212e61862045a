//! Who may take which role.

use serde_json::{Value, json};

use super::{Identity, PolicySettings};

/// Policies of AWS that nodes need.
const NODE_POLICIES: [&str; 4] = [
    "AmazonEKS_CNI_Policy",
    "AmazonEKSWorkerNodePolicy",
    "AmazonEC2ContainerRegistryPullOnly",
    "AmazonSSMManagedInstanceCore",
];

/// The policies of AWS that are attached to the role of nodes, by ARN.
#[must_use]
pub fn node_role_policies(settings: &PolicySettings) -> Vec<String> {
    let arn = |name: &str| format!("arn:{}:iam::aws:policy/{name}", settings.partition);
    NODE_POLICIES.map(arn).into()
}

/// Machines may take the role of nodes.
#[must_use]
pub fn trust_nodes(settings: &PolicySettings) -> Value {
    let service = match settings.partition.as_str() {
        "aws-cn" => "ec2.amazonaws.com.cn",
        _ => "ec2.amazonaws.com",
    };
    trust(
        &json!({"Service": service}),
        &json!(["sts:AssumeRole"]),
        None,
    )
}

/// The controller's service account may take its role, by EKS Pod Identity.
#[must_use]
pub fn trust_pod_identity() -> Value {
    let principal = json!({"Service": "pods.eks.amazonaws.com"});
    trust(
        &principal,
        &json!(["sts:AssumeRole", "sts:TagSession"]),
        None,
    )
}

/// The controller's service account may take its role, by the issuer of the cluster.
#[must_use]
pub fn trust_irsa(settings: &PolicySettings, issuer: &str) -> Value {
    let issuer = issuer
        .strip_prefix("https://")
        .unwrap_or(issuer)
        .trim_end_matches('/');
    let provider = settings.iam(&format!("oidc-provider/{issuer}"));
    let PolicySettings {
        namespace,
        service_account,
        ..
    } = settings;
    let account = format!("system:serviceaccount:{namespace}:{service_account}");
    let condition = json!({"StringEquals": {
        format!("{issuer}:aud"): "sts.amazonaws.com",
        format!("{issuer}:sub"): account,
    }});
    let principal = json!({"Federated": provider});
    trust(
        &principal,
        &json!(["sts:AssumeRoleWithWebIdentity"]),
        Some(condition),
    )
}

/// Who may take the controller's role.
pub(super) fn trust_controller(settings: &PolicySettings) -> Value {
    match &settings.identity {
        Identity::PodIdentity => trust_pod_identity(),
        Identity::Irsa { issuer } => trust_irsa(settings, issuer),
    }
}

fn trust(principal: &Value, actions: &Value, condition: Option<Value>) -> Value {
    let mut statement = json!({"Effect": "Allow", "Principal": principal, "Action": actions});
    if let Some(condition) = condition {
        statement["Condition"] = condition;
    }
    json!({"Version": "2012-10-17", "Statement": [statement]})
}
