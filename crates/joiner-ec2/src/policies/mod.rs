//! What an account must allow and have: the controller's policies, the node role, trust policies, and the queue with
//! its rules; as JSON, as a CloudFormation template, as Terraform, and as commands.
//!
//! The policies allow what the controller calls and nothing else, each as narrowly as EC2 can tell things apart.

mod commands;
mod documents;
mod queue;
mod statements;
mod templates;

use joiner_api::structural;
use serde_json::Value;

pub use commands::commands;
pub use documents::{node_role_policies, trust_irsa, trust_nodes, trust_pod_identity};
pub use queue::{QueueRule, queue_attributes, queue_policy, rules};
pub use statements::{Policy, policies};
pub use templates::{cloud_formation, json, terraform};

/// The longest name of a policy.
const POLICY_NAME_MAX: usize = 128;
/// The longest name of a role or of a rule.
const SHORT_NAME_MAX: usize = 64;
/// Stands for the account until it is known.
const ACCOUNT: &str = "${account}";

/// What is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicySettings {
    /// Name of the cluster.
    pub cluster: String,
    /// Region.
    pub region: String,
    /// `aws`, `aws-cn` or `aws-us-gov`.
    pub partition: String,
    /// Number of the account, if it is known; else the output finds it out.
    pub account: Option<String>,
    /// Name of the role of nodes; `KarpenterNodeRole-CLUSTER` if not given.
    pub node_role: Option<String>,
    /// Name of the interruption queue; without one there is neither queue nor policy for it.
    pub queue: Option<String>,
    /// Namespace of the controller.
    pub namespace: String,
    /// Service account of the controller.
    pub service_account: String,
    /// How the controller gets its role.
    pub identity: Identity,
    /// The controller looks after zonal shifts.
    pub zonal_shift: bool,
    /// The controller has no way to IAM and to prices.
    pub isolated_vpc: bool,
    /// Names of parameters that node classes select images by, besides those of AWS.
    pub parameters: Vec<String>,
}

/// How a service account gets a role.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Identity {
    /// By EKS Pod Identity.
    PodIdentity,
    /// By the cluster's OpenID Connect issuer, without `https://`.
    Irsa {
        /// `oidc.eks.us-east-1.amazonaws.com/id/0123456789ABCDEF`.
        issuer: String,
    },
}

impl PolicySettings {
    /// The usual settings of a cluster: a queue of its name, pod identity, upstream's names.
    #[must_use]
    pub fn new(cluster: &str, region: &str) -> Self {
        let partition = match region {
            region if region.starts_with("cn-") => "aws-cn",
            region if region.starts_with("us-gov-") => "aws-us-gov",
            _ => "aws",
        };
        Self {
            cluster: cluster.to_owned(),
            region: region.to_owned(),
            partition: partition.to_owned(),
            account: None,
            node_role: None,
            queue: Some(cluster.to_owned()),
            namespace: "kube-system".to_owned(),
            service_account: "karpenter".to_owned(),
            identity: Identity::PodIdentity,
            zonal_shift: false,
            isolated_vpc: false,
            parameters: Vec::new(),
        }
    }

    /// Name of the role of nodes.
    #[must_use]
    pub fn node_role_name(&self) -> String {
        let given = self.node_role.clone();
        given.unwrap_or_else(|| short("KarpenterNodeRole", &self.cluster, SHORT_NAME_MAX))
    }

    /// Name of the controller's role.
    #[must_use]
    pub fn controller_role_name(&self) -> String {
        short("KarpenterControllerRole", &self.cluster, SHORT_NAME_MAX)
    }

    fn policy_name(&self, what: &str) -> String {
        short(
            &format!("KarpenterController{what}Policy"),
            &self.cluster,
            POLICY_NAME_MAX,
        )
    }

    /// A resource of the account, in the region.
    fn arn(&self, service: &str, resource: &str) -> String {
        let Self {
            partition, region, ..
        } = self;
        format!("arn:{partition}:{service}:{region}:{ACCOUNT}:{resource}")
    }

    /// A resource of IAM.
    fn iam(&self, resource: &str) -> String {
        format!("arn:{}:iam::{ACCOUNT}:{resource}", self.partition)
    }

    /// The same document with the account's number, or with what stands for it.
    fn with_account(&self, document: &Value, unknown: &str) -> Value {
        let account = self.account.as_deref().unwrap_or(unknown);
        let mut document = document.clone();
        replace(&mut document, account);
        document
    }
}

fn replace(value: &mut Value, account: &str) {
    match value {
        Value::String(text) => *text = text.replace(ACCOUNT, account),
        Value::Array(items) => items.iter_mut().for_each(|item| replace(item, account)),
        Value::Object(fields) => fields
            .values_mut()
            .for_each(|field| replace(field, account)),
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}

/// A name that ends with the cluster's, or with a number for it where that would be too long.
fn short(start: &str, cluster: &str, max: usize) -> String {
    let name = format!("{start}-{cluster}");
    match name.len() <= max {
        true => name,
        false => format!("{start}-{}", structural::string(cluster)),
    }
}
