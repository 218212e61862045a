//! The same as JSON, as a CloudFormation template, and as Terraform.

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use super::documents::{
    node_role_policies, trust_controller, trust_irsa, trust_nodes, trust_pod_identity,
};
use super::queue::{queue_attributes, queue_policy, rules};
use super::statements::policies;
use super::{Identity, PolicySettings};
use crate::yaml_text;

/// What stands for the account in JSON, where it is not known.
const ACCOUNT_IN_JSON: &str = "ACCOUNT_ID";
const ACCOUNT_IN_FORMATION: &str = "${AWS::AccountId}";
const ACCOUNT_IN_TERRAFORM: &str = "${data.aws_caller_identity.current.account_id}";

/// Everything in one JSON document.
#[must_use]
pub fn json(settings: &PolicySettings) -> Value {
    let policies = policies(settings)
        .into_iter()
        .map(|policy| (policy.name, policy.document));
    let issuer = match &settings.identity {
        Identity::Irsa { issuer } => issuer.as_str(),
        Identity::PodIdentity => "OIDC_ISSUER",
    };
    let mut all = json!({
        "policies": policies.collect::<Map<_, _>>(),
        "controllerRole": {
            "name": settings.controller_role_name(),
            "trust": {
                "irsa": trust_irsa(settings, issuer),
                "podIdentity": trust_pod_identity(),
            },
        },
        "nodeRole": {
            "name": settings.node_role_name(),
            "trust": trust_nodes(settings),
            "managedPolicies": node_role_policies(settings),
        },
    });
    if let Some(queue) = &settings.queue {
        let attributes: Map<String, Value> = queue_attributes()
            .into_iter()
            .map(|(key, value)| (key.to_owned(), json!(value)))
            .collect();
        let patterns = rules(settings)
            .into_iter()
            .map(|rule| (rule.name, rule.pattern));
        all["queue"] = json!({
            "name": queue,
            "attributes": attributes,
            "policy": queue_policy(settings, queue),
            "rules": patterns.collect::<Map<_, _>>(),
        });
    }
    settings.with_account(&all, ACCOUNT_IN_JSON)
}

/// A CloudFormation template in YAML.
#[must_use]
pub fn cloud_formation(settings: &PolicySettings) -> String {
    let mut resources = Map::new();
    let mut add = |name: String, kind: &str, properties: Value| {
        let properties = settings.with_account(&properties, ACCOUNT_IN_FORMATION);
        resources.insert(
            name,
            json!({"Type": kind, "Properties": substituted(properties)}),
        );
    };
    let policies = policies(settings);
    for policy in &policies {
        let properties =
            json!({"ManagedPolicyName": policy.name, "PolicyDocument": policy.document});
        add(
            format!("Controller{}Policy", policy.what),
            "AWS::IAM::ManagedPolicy",
            properties,
        );
    }
    let attached: Vec<Value> = policies
        .iter()
        .map(|policy| json!({"Ref": format!("Controller{}Policy", policy.what)}))
        .collect();
    let trusted = trust_controller(settings);
    let role = json!({"RoleName": settings.controller_role_name(), "AssumeRolePolicyDocument": trusted,
        "ManagedPolicyArns": attached});
    add("ControllerRole".to_owned(), "AWS::IAM::Role", role);
    if settings.identity == Identity::PodIdentity {
        let association = json!({
            "ClusterName": settings.cluster,
            "Namespace": settings.namespace,
            "ServiceAccount": settings.service_account,
            "RoleArn": {"Fn::GetAtt": ["ControllerRole", "Arn"]},
        });
        add(
            "ControllerIdentity".to_owned(),
            "AWS::EKS::PodIdentityAssociation",
            association,
        );
    }
    let role = json!({"RoleName": settings.node_role_name(), "AssumeRolePolicyDocument": trust_nodes(settings),
        "ManagedPolicyArns": node_role_policies(settings)});
    add("NodeRole".to_owned(), "AWS::IAM::Role", role);
    if let Some(queue) = &settings.queue {
        let mut properties = json!({"QueueName": queue});
        for (key, value) in queue_attributes() {
            let plain = serde_json::from_str(&value).unwrap_or(json!(value));
            properties[key] = plain;
        }
        add(
            "InterruptionQueue".to_owned(),
            "AWS::SQS::Queue",
            properties,
        );
        let policy = json!({"Queues": [{"Ref": "InterruptionQueue"}], "PolicyDocument": queue_policy(settings, queue)});
        add(
            "InterruptionQueuePolicy".to_owned(),
            "AWS::SQS::QueuePolicy",
            policy,
        );
        for rule in rules(settings) {
            let target =
                json!({"Id": "Queue", "Arn": {"Fn::GetAtt": ["InterruptionQueue", "Arn"]}});
            let properties =
                json!({"Name": rule.name, "EventPattern": rule.pattern, "Targets": [target]});
            add(
                format!("{}Rule", rule.what),
                "AWS::Events::Rule",
                properties,
            );
        }
    }
    let template = json!({
        "AWSTemplateFormatVersion": "2010-09-09",
        "Description": format!("What Joiner needs to run for the cluster {}", settings.cluster),
        "Resources": resources,
    });
    yaml_text::render(&template)
}

/// Texts that mention the account are put through the function that fills it in.
fn substituted(value: Value) -> Value {
    match value {
        Value::String(text) if text.contains(ACCOUNT_IN_FORMATION) => json!({"Fn::Sub": text}),
        Value::Array(items) => items.into_iter().map(substituted).collect(),
        Value::Object(fields) => {
            let fields = fields
                .into_iter()
                .map(|(key, value)| (key, substituted(value)));
            Value::Object(fields.collect())
        }
        Value::String(_) | Value::Null | Value::Bool(_) | Value::Number(_) => value,
    }
}

/// Terraform.
#[must_use]
pub fn terraform(settings: &PolicySettings) -> String {
    let mut text = String::new();
    if settings.account.is_none() {
        text.push_str("data \"aws_caller_identity\" \"current\" {}\n\n");
    }
    let document = |document: &Value| {
        let document = settings.with_account(document, ACCOUNT_IN_TERRAFORM);
        format!("<<-JSON\n{}\n  JSON", indented(&document))
    };
    let role = |label: &str, name: &str, trust: &Value| {
        let trust = document(trust);
        format!(
            "resource \"aws_iam_role\" \"{label}\" {{\n  name               = \"{name}\"\n  assume_role_policy = {trust}\n}}\n\n"
        )
    };
    // Writing to a string does not fail.
    text += &role(
        "controller",
        &settings.controller_role_name(),
        &trust_controller(settings),
    );
    for policy in policies(settings) {
        let label = format!("controller_{}", policy.what.to_lowercase());
        let _ = write!(
            text,
            "resource \"aws_iam_policy\" \"{label}\" {{\n  name   = \"{}\"\n  policy = {}\n}}\n\n\
             resource \"aws_iam_role_policy_attachment\" \"{label}\" {{\n  role       = aws_iam_role.controller.name\n  \
             policy_arn = aws_iam_policy.{label}.arn\n}}\n\n",
            policy.name,
            document(&policy.document)
        );
    }
    if settings.identity == Identity::PodIdentity {
        let _ = write!(
            text,
            "resource \"aws_eks_pod_identity_association\" \"controller\" {{\n  cluster_name    = \"{}\"\n  namespace       \
             = \"{}\"\n  service_account = \"{}\"\n  role_arn        = aws_iam_role.controller.arn\n}}\n\n",
            settings.cluster, settings.namespace, settings.service_account
        );
    }
    text += &role("node", &settings.node_role_name(), &trust_nodes(settings));
    for arn in node_role_policies(settings) {
        let label = arn.rsplit('/').next().unwrap_or_default().to_lowercase();
        let _ = write!(
            text,
            "resource \"aws_iam_role_policy_attachment\" \"node_{label}\" {{\n  role       = aws_iam_role.node.name\n  \
             policy_arn = \"{arn}\"\n}}\n\n"
        );
    }
    text += &terraform_queue(settings, document);
    text.trim_end().to_owned() + "\n"
}

fn terraform_queue(settings: &PolicySettings, document: impl Fn(&Value) -> String) -> String {
    let Some(queue) = &settings.queue else {
        return String::new();
    };
    let [(_, retention), (_, encrypted)] = queue_attributes();
    let mut text = format!(
        "resource \"aws_sqs_queue\" \"interruption\" {{\n  name                      = \"{queue}\"\n  \
         message_retention_seconds = {retention}\n  sqs_managed_sse_enabled   = {encrypted}\n}}\n\n\
         resource \"aws_sqs_queue_policy\" \"interruption\" {{\n  queue_url = aws_sqs_queue.interruption.url\n  policy    \
         = {}\n}}\n\n",
        document(&queue_policy(settings, queue))
    );
    for rule in rules(settings) {
        let label = rule.what.to_lowercase();
        // Writing to a string does not fail.
        let _ = write!(
            text,
            "resource \"aws_cloudwatch_event_rule\" \"{label}\" {{\n  name          = \"{}\"\n  event_pattern = {}\n}}\n\n\
             resource \"aws_cloudwatch_event_target\" \"{label}\" {{\n  rule = aws_cloudwatch_event_rule.{label}.name\n  \
             arn  = aws_sqs_queue.interruption.arn\n}}\n\n",
            rule.name,
            document(&rule.pattern)
        );
    }
    text
}

/// A document on several lines, as deep as Terraform has it.
fn indented(document: &Value) -> String {
    let text = serde_json::to_string_pretty(document).unwrap_or_default();
    let lines: Vec<String> = text.lines().map(|line| format!("    {line}")).collect();
    lines.join("\n")
}
