//! The interruption queue, and the rules that fill it.

use serde_json::{Value, json};

use super::{PolicySettings, SHORT_NAME_MAX, short};

/// For how long a message stays: what is older says nothing any more.
const RETENTION_SECONDS: u32 = 300;

/// A rule that puts messages of a kind into the queue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QueueRule {
    /// What it is about: `SpotInterruption`, ..
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// Which messages it takes.
    pub pattern: Value,
}

/// What each rule is about, and source and detail type of its messages.
const KINDS: [(&str, &str, &str); 5] = [
    ("ScheduledChange", "aws.health", "AWS Health Event"),
    (
        "SpotInterruption",
        "aws.ec2",
        "EC2 Spot Instance Interruption Warning",
    ),
    (
        "Rebalance",
        "aws.ec2",
        "EC2 Instance Rebalance Recommendation",
    ),
    (
        "InstanceStateChange",
        "aws.ec2",
        "EC2 Instance State-change Notification",
    ),
    (
        "CapacityReservationInterruption",
        "aws.ec2",
        "EC2 Capacity Reservation Instance Interruption Warning",
    ),
];

/// The rules.
#[must_use]
pub fn rules(settings: &PolicySettings) -> Vec<QueueRule> {
    let rule = |(what, source, kind): (&'static str, &str, &str)| QueueRule {
        what,
        name: short(
            &format!("Karpenter{what}"),
            &settings.cluster,
            SHORT_NAME_MAX,
        ),
        pattern: json!({"source": [source], "detail-type": [kind]}),
    };
    KINDS.map(rule).into()
}

/// Who may put messages into the queue: the services that tell of machines, and none without TLS.
#[must_use]
pub fn queue_policy(settings: &PolicySettings, queue: &str) -> Value {
    let resource = settings.arn("sqs", queue);
    json!({
        "Version": "2012-10-17",
        "Statement": [
            {
                "Sid": "Send",
                "Effect": "Allow",
                "Principal": {"Service": ["events.amazonaws.com", "sqs.amazonaws.com"]},
                "Action": ["sqs:SendMessage"],
                "Resource": [resource],
            },
            {
                "Sid": "DenyPlainHttp",
                "Effect": "Deny",
                "Principal": "*",
                "Action": ["sqs:*"],
                "Resource": [resource],
                "Condition": {"Bool": {"aws:SecureTransport": "false"}},
            },
        ],
    })
}

/// The queue's attributes, without its policy.
#[must_use]
pub fn queue_attributes() -> [(&'static str, String); 2] {
    [
        ("MessageRetentionPeriod", RETENTION_SECONDS.to_string()),
        ("SqsManagedSseEnabled", "true".to_owned()),
    ]
}
