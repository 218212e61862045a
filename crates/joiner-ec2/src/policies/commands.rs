//! The same as commands of the AWS CLI.

use std::fmt::Write as _;

use serde_json::Value;

use super::documents::{node_role_policies, trust_controller, trust_nodes};
use super::queue::{queue_attributes, queue_policy, rules};
use super::statements::policies;
use super::{Identity, PolicySettings};

/// What stands for the account where it is not known: the first command finds it out.
const ACCOUNT: &str = "${ACCOUNT_ID}";

/// A script that makes everything. It stops at the first thing that is there already.
#[must_use]
pub fn commands(settings: &PolicySettings) -> String {
    let mut script = String::from("#!/bin/sh\nset -eu\n");
    if settings.account.is_none() {
        script
            .push_str("ACCOUNT_ID=$(aws sts get-caller-identity --query Account --output text)\n");
    }
    let account = settings.account.as_deref().unwrap_or(ACCOUNT);
    // Nothing but the account's number is filled in: JSON has no dollar signs otherwise.
    let document = |document: &Value| {
        let document = settings.with_account(document, ACCOUNT);
        let text = serde_json::to_string_pretty(&document).unwrap_or_default();
        format!("\"$(cat <<JSON\n{text}\nJSON\n)\"")
    };
    let role = |name: &str, trust: &Value| {
        let trust = document(trust);
        format!("\naws iam create-role --role-name {name} --assume-role-policy-document {trust}\n")
    };
    let attach = |role: &str, arn: &str| {
        format!("aws iam attach-role-policy --role-name {role} --policy-arn \"{arn}\"\n")
    };
    let controller = settings.controller_role_name();
    script += &role(&controller, &trust_controller(settings));
    for policy in policies(settings) {
        let name = &policy.name;
        let text = document(&policy.document);
        let arn = format!("arn:{}:iam::{account}:policy/{name}", settings.partition);
        // Writing to a string does not fail.
        let _ = write!(
            script,
            "\naws iam create-policy --policy-name {name} --policy-document {text}\n"
        );
        script += &attach(&controller, &arn);
    }
    if settings.identity == Identity::PodIdentity {
        let _ = write!(
            script,
            "\naws eks create-pod-identity-association --region {} --cluster-name {} --namespace {} \
             --service-account {} --role-arn \"arn:{}:iam::{account}:role/{controller}\"\n",
            settings.region,
            settings.cluster,
            settings.namespace,
            settings.service_account,
            settings.partition
        );
    }
    let node = settings.node_role_name();
    script += &role(&node, &trust_nodes(settings));
    for arn in node_role_policies(settings) {
        script += &attach(&node, &arn);
    }
    script + &queue_commands(settings, account, document)
}

fn queue_commands(
    settings: &PolicySettings,
    account: &str,
    document: impl Fn(&Value) -> String,
) -> String {
    let Some(queue) = &settings.queue else {
        return String::new();
    };
    let PolicySettings {
        region, partition, ..
    } = settings;
    let attributes: Vec<String> = queue_attributes()
        .into_iter()
        .map(|(key, value)| format!("{key}={value}"))
        .collect();
    let policy = Value::String(queue_policy(settings, queue).to_string());
    let policy = serde_json::json!({"Policy": policy});
    let mut script = format!(
        "\naws sqs create-queue --region {region} --queue-name {queue} --attributes {}\n\
         QUEUE_URL=$(aws sqs get-queue-url --region {region} --queue-name {queue} --query QueueUrl --output text)\n\
         aws sqs set-queue-attributes --region {region} --queue-url \"$QUEUE_URL\" --attributes {}\n",
        attributes.join(","),
        escaped(&document(&policy))
    );
    for rule in rules(settings) {
        let name = &rule.name;
        // Writing to a string does not fail.
        let _ = write!(
            script,
            "\naws events put-rule --region {region} --name {name} --event-pattern {}\n\
             aws events put-targets --region {region} --rule {name} --targets \
             \"Id=Queue,Arn=arn:{partition}:sqs:{region}:{account}:{queue}\"\n",
            document(&rule.pattern)
        );
    }
    script
}

/// A document inside of a document has backslashes, which the shell takes one of.
fn escaped(text: &str) -> String {
    text.replace("\\\"", "\\\\\"")
}
