//! The controller's policies, statement by statement.

use joiner_api::labels::aws::EC2_NODE_CLASS;
use joiner_api::labels::{NODE_POOL, REGION};
use serde_json::{Map, Value, json};

use super::PolicySettings;
use crate::tags::{CLUSTER_NAME, NAME, NODE_CLAIM, OWNED, owned};

/// A policy of the controller.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// What it is for: `NodeLifecycle`, ..
    pub what: &'static str,
    /// Its name.
    pub name: String,
    /// The document.
    pub document: Value,
}

/// What machines are made of and with, and what is tagged.
const MADE: [&str; 6] = [
    "fleet",
    "instance",
    "volume",
    "network-interface",
    "launch-template",
    "spot-instances-request",
];
const DESCRIBED: [&str; 11] = [
    "CapacityReservations",
    "Images",
    "InstanceStatus",
    "InstanceTypeOfferings",
    "InstanceTypes",
    "Instances",
    "LaunchTemplates",
    "PlacementGroups",
    "SecurityGroups",
    "SpotPriceHistory",
    "Subnets",
];

/// The policies of a controller with these settings.
#[must_use]
pub fn policies(settings: &PolicySettings) -> Vec<Policy> {
    let statements = Statements(settings);
    let mut all = vec![
        ("NodeLifecycle", statements.node_lifecycle()),
        ("IAMIntegration", statements.iam_integration()),
        ("EKSIntegration", statements.eks_integration()),
        ("ResourceDiscovery", statements.resource_discovery()),
    ];
    if let Some(queue) = &settings.queue {
        all.push(("Interruption", statements.interruption(queue)));
    }
    if settings.zonal_shift {
        all.push(("ZonalShift", statements.zonal_shift()));
    }
    let policy = |(what, statements): (&'static str, Vec<Value>)| Policy {
        what,
        name: settings.policy_name(what),
        document: json!({"Version": "2012-10-17", "Statement": statements}),
    };
    all.into_iter().map(policy).collect()
}

struct Statements<'a>(&'a PolicySettings);

impl Statements<'_> {
    fn node_lifecycle(&self) -> Vec<Value> {
        let settings = self.0;
        let ours = |kind: &str| self.ec2(kind, true);
        let made = || MADE.map(ours).to_vec();
        let launch = ["ec2:CreateFleet", "ec2:RunInstances"];
        let used = [
            self.ec2("image", false),
            self.ec2("snapshot", false),
            ours("capacity-reservation"),
            ours("placement-group"),
            ours("security-group"),
            ours("subnet"),
        ];
        let owned = self.is_owned();
        let mut requested = self.requests();
        let launched = requested.clone();
        add(
            &mut requested,
            "StringEquals",
            "ec2:CreateAction",
            json!(["CreateFleet", "CreateLaunchTemplate", "RunInstances"]),
        );
        let mut tagged = owned.clone();
        add(
            &mut tagged,
            "StringEqualsIfExists",
            &format!("aws:RequestTag/{CLUSTER_NAME}"),
            json!(settings.cluster),
        );
        add(
            &mut tagged,
            "ForAllValues:StringEquals",
            "aws:TagKeys",
            json!([NAME, CLUSTER_NAME, NODE_CLAIM]),
        );
        let create = [
            "ec2:CreateFleet",
            "ec2:CreateLaunchTemplate",
            "ec2:RunInstances",
        ];
        let end = ["ec2:DeleteLaunchTemplate", "ec2:TerminateInstances"];
        vec![
            statement("UseForLaunches", &launch, json!(used), None),
            statement(
                "UseOwnTemplates",
                &launch,
                json!([ours("launch-template")]),
                Some(&owned),
            ),
            statement("MakeTagged", &create, json!(made()), Some(&launched)),
            statement(
                "TagWhatIsMade",
                &["ec2:CreateTags"],
                json!(made()),
                Some(&requested),
            ),
            statement(
                "TagRegistered",
                &["ec2:CreateTags"],
                json!([ours("instance")]),
                Some(&tagged),
            ),
            statement(
                "EndOwn",
                &end,
                json!([ours("instance"), ours("launch-template")]),
                Some(&owned),
            ),
        ]
    }

    fn iam_integration(&self) -> Vec<Value> {
        let settings = self.0;
        let role = settings.iam(&format!("role/{}", settings.node_role_name()));
        let mut services = vec!["ec2.amazonaws.com"];
        if settings.partition == "aws-cn" {
            services.push("ec2.amazonaws.com.cn");
        }
        let to_machines = json!({"StringEquals": {"iam:PassedToService": services}});
        let mut all = vec![statement(
            "PassNodeRole",
            &["iam:PassRole"],
            json!([role]),
            Some(&to_machines),
        )];
        let profiles = json!([settings.iam("instance-profile/*")]);
        all.push(statement(
            "ReadProfiles",
            &["iam:GetInstanceProfile"],
            profiles.clone(),
            None,
        ));
        if settings.isolated_vpc {
            return all;
        }
        let tags = |kind: &str, with_cluster: bool| {
            let mut condition = json!({});
            let mut equal = |key: &str, value: &str| {
                add(
                    &mut condition,
                    "StringEquals",
                    &format!("aws:{kind}/{key}"),
                    json!(value),
                );
            };
            equal(&owned(&settings.cluster), OWNED);
            equal(REGION, &settings.region);
            if with_cluster {
                equal(CLUSTER_NAME, &settings.cluster);
            }
            add(
                &mut condition,
                "StringLike",
                &format!("aws:{kind}/{EC2_NODE_CLASS}"),
                json!("*"),
            );
            condition
        };
        let change = [
            "iam:AddRoleToInstanceProfile",
            "iam:DeleteInstanceProfile",
            "iam:RemoveRoleFromInstanceProfile",
        ];
        let create = ["iam:CreateInstanceProfile"];
        all.extend([
            statement(
                "MakeProfiles",
                &create,
                profiles.clone(),
                Some(&tags("RequestTag", true)),
            ),
            statement(
                "ChangeOwnProfiles",
                &change,
                profiles,
                Some(&tags("ResourceTag", false)),
            ),
            statement(
                "ListProfiles",
                &["iam:ListInstanceProfiles"],
                json!(["*"]),
                None,
            ),
        ]);
        all
    }

    fn eks_integration(&self) -> Vec<Value> {
        vec![statement(
            "ReadCluster",
            &["eks:DescribeCluster"],
            json!([self.cluster()]),
            None,
        )]
    }

    fn interruption(&self, queue: &str) -> Vec<Value> {
        let actions = ["sqs:DeleteMessage", "sqs:GetQueueUrl", "sqs:ReceiveMessage"];
        vec![statement(
            "ReadQueue",
            &actions,
            json!([self.0.arn("sqs", queue)]),
            None,
        )]
    }

    fn zonal_shift(&self) -> Vec<Value> {
        let of_cluster =
            json!({"StringEquals": {"arc-zonal-shift:ResourceIdentifier": self.cluster()}});
        let actions = ["arc-zonal-shift:GetManagedResource"];
        vec![statement(
            "ReadZonalShifts",
            &actions,
            json!(["*"]),
            Some(&of_cluster),
        )]
    }

    fn resource_discovery(&self) -> Vec<Value> {
        let settings = self.0;
        let describe = DESCRIBED.map(|things| format!("ec2:Describe{things}"));
        let describe: Vec<&str> = describe.iter().map(String::as_str).collect();
        let in_region = json!({"StringEquals": {"aws:RequestedRegion": settings.region}});
        let mut parameters = vec![format!(
            "arn:{}:ssm:{}::parameter/aws/service/*",
            settings.partition, settings.region
        )];
        parameters.extend(settings.parameters.iter().map(|parameter| {
            match parameter.starts_with("arn:") {
                true => parameter.clone(),
                false => settings.arn(
                    "ssm",
                    &format!("parameter/{}", parameter.trim_start_matches('/')),
                ),
            }
        }));
        let mut all = vec![
            statement("ReadEc2", &describe, json!(["*"]), Some(&in_region)),
            statement(
                "ReadParameters",
                &["ssm:GetParameter"],
                json!(parameters),
                None,
            ),
        ];
        if !settings.isolated_vpc {
            all.push(statement(
                "ReadPrices",
                &["pricing:GetProducts"],
                json!(["*"]),
                None,
            ));
        }
        all
    }

    /// Things of EC2. Images and snapshots belong to no account; others may be shared by another one.
    fn ec2(&self, kind: &str, has_account: bool) -> String {
        let PolicySettings {
            partition, region, ..
        } = self.0;
        let account = if has_account { "*" } else { "" };
        format!("arn:{partition}:ec2:{region}:{account}:{kind}/*")
    }

    fn cluster(&self) -> String {
        self.0.arn("eks", &format!("cluster/{}", self.0.cluster))
    }

    /// The thing carries our tags.
    fn is_owned(&self) -> Value {
        let key = format!("aws:ResourceTag/{}", owned(&self.0.cluster));
        json!({
            "StringEquals": {key: OWNED},
            "StringLike": {format!("aws:ResourceTag/{NODE_POOL}"): "*"},
        })
    }

    /// The thing is given our tags.
    fn requests(&self) -> Value {
        let key = format!("aws:RequestTag/{}", owned(&self.0.cluster));
        json!({
            "StringEquals": {
                key: OWNED,
                format!("aws:RequestTag/{CLUSTER_NAME}"): self.0.cluster,
            },
            "StringLike": {format!("aws:RequestTag/{NODE_POOL}"): "*"},
        })
    }
}

fn statement(id: &str, actions: &[&str], resources: Value, condition: Option<&Value>) -> Value {
    let mut statement = json!({
        "Sid": id,
        "Effect": "Allow",
        "Action": actions,
        "Resource": resources,
    });
    if let Some(condition) = condition {
        statement["Condition"] = condition.clone();
    }
    statement
}

/// One more comparison of a condition.
fn add(condition: &mut Value, operator: &str, key: &str, value: Value) {
    if let Some(operators) = condition.as_object_mut() {
        let slot = operators
            .entry(operator)
            .or_insert_with(|| Map::new().into());
        slot[key] = value;
    }
}
