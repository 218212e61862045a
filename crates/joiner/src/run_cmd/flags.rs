//! Flags of `joiner run`, as typed: upstream's names, variables and defaults, and a few of ours.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, bail};
use clap::{ArgAction, Args, ValueEnum};
use joiner_api::types::DurationText;
use joiner_controllers::Settings;
use joiner_controllers::settings::{Background, Batching, DisruptionSettings, FeatureGates};
use joiner_model::{MinValuesPolicy, PreferencePolicy};

use crate::scheduler_config::spread_defaults;
use crate::sources::{InputArgs, Reader};

/// Clouds that can be named.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum CloudName {
    /// Machines that do not exist: for tests and for trying things out.
    Simulated,
}

/// How log lines look.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// Flags of `joiner run`.
#[derive(Args, Clone, Debug)]
pub(crate) struct RunFlags {
    /// Who sells the machines; there is no default
    #[arg(long, value_enum, env = "JOINER_CLOUD")]
    pub(crate) cloud: Option<CloudName>,
    /// Decide, log and count, but change nothing; uses a Lease of its own
    #[arg(long, default_value_t = false, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) dry_run: bool,
    /// Kubeconfig; by default KUBECONFIG, ~/.kube/config, or the service account of the pod
    #[arg(long, value_name = "FILE")]
    pub(crate) kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig; by default its current one
    #[arg(long, value_name = "NAME")]
    pub(crate) context: Option<String>,
    #[command(flatten)]
    pub(crate) input: InputArgs,
    /// Simulated cloud: take instance types from this JSON file
    #[arg(
        long,
        alias = "instance-types-file-path",
        env = "INSTANCE_TYPES_FILE_PATH",
        value_name = "FILE"
    )]
    pub(crate) instance_types: Option<PathBuf>,
    /// Simulated cloud: region of the EC2 catalog, for EC2NodeClasses
    #[arg(long, default_value = "us-east-1")]
    pub(crate) region: String,
    /// Simulated cloud: play the kubelets of its nodes; false leaves that to an outside KWOK. By default true, except on a joiner sandbox, which has kubelets
    #[arg(long, action = ArgAction::Set, value_name = "BOOL")]
    pub(crate) simulated_kubelets: Option<bool>,
    /// Write every decision to this file, one JSON object a line
    #[arg(long, value_name = "FILE")]
    pub(crate) decision_log: Option<PathBuf>,
    /// How log lines look
    #[arg(long, value_enum, default_value = "json")]
    pub(crate) log_format: LogFormat,

    /// Port of the metrics endpoint; 0 takes any free one
    #[arg(long, env = "METRICS_PORT", default_value_t = 8080)]
    pub(crate) metrics_port: u16,
    /// Port of the health endpoint; 0 takes any free one
    #[arg(long, env = "HEALTH_PROBE_PORT", default_value_t = 8081)]
    pub(crate) health_probe_port: u16,
    /// Show decisions (/debug) to other machines, too, under these names; by default only this machine may ask, as localhost
    #[arg(
        long,
        env = "JOINER_DEBUG_HOSTS",
        value_delimiter = ',',
        value_name = "NAMES"
    )]
    pub(crate) debug_hosts: Vec<String>,
    /// Most requests a second to the API server
    #[arg(long, env = "KUBE_CLIENT_QPS", default_value_t = 200)]
    pub(crate) kube_client_qps: u32,
    /// Most requests at once beyond that
    #[arg(long, env = "KUBE_CLIENT_BURST", default_value_t = 300)]
    pub(crate) kube_client_burst: u32,
    /// Do not elect a leader: there is only one of us
    #[arg(long, env = "DISABLE_LEADER_ELECTION", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) disable_leader_election: bool,
    /// Name of the Lease
    #[arg(
        long,
        env = "LEADER_ELECTION_NAME",
        default_value = "karpenter-leader-election"
    )]
    pub(crate) leader_election_name: String,
    /// Namespace of the Lease; by default our own
    #[arg(long, env = "LEADER_ELECTION_NAMESPACE", default_value = "")]
    pub(crate) leader_election_namespace: String,
    /// Leave out metrics and events about single pods, nodes and pools
    #[arg(long, env = "DISABLE_CLUSTER_STATE_OBSERVABILITY", default_value_t = false, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) disable_cluster_state_observability: bool,
    /// debug, info or error
    #[arg(long, env = "LOG_LEVEL", default_value = "info")]
    pub(crate) log_level: String,
    /// Where log lines go: stdout, stderr or files, separated by commas
    #[arg(long, env = "LOG_OUTPUT_PATHS", default_value = "stdout")]
    pub(crate) log_output_paths: String,
    /// Longest time that pods are collected for one plan
    #[arg(long, env = "BATCH_MAX_DURATION", default_value = "10s", value_parser = duration)]
    pub(crate) batch_max_duration: Duration,
    /// A batch ends when no new pod has come for this long; by default it adapts
    #[arg(long, env = "BATCH_IDLE_DURATION", value_parser = duration)]
    pub(crate) batch_idle_duration: Option<Duration>,
    /// What to do with wishes that are not rules: Respect or Ignore
    #[arg(long, env = "PREFERENCE_POLICY", default_value = "Respect")]
    pub(crate) preference_policy: String,
    /// What to do when minValues cannot be met: Strict or BestEffort
    #[arg(long, env = "MIN_VALUES_POLICY", default_value = "Strict")]
    pub(crate) min_values_policy: String,
    /// Switches, as Name=bool,...: NodeRepair, ReservedCapacity, SpotToSpotConsolidation, NodeOverlay, StaticCapacity, CapacityBuffer
    #[arg(long, env = "FEATURE_GATES", default_value = "")]
    pub(crate) feature_gates: String,
    /// How often a replica of a workload may be moved for money in 24 hours, on average over its replicas; 0 is without limit
    #[arg(
        long,
        env = "MOVES_PER_REPLICA_PER_DAY",
        default_value_t = DisruptionSettings::default().moves_per_replica,
        value_name = "NUMBER"
    )]
    pub(crate) moves_per_replica_per_day: u32,
    /// Spread constraints for pods that declare none, as the cluster's scheduler has them: YAML or JSON with podTopologySpread.defaultConstraints, or the path of a file with that
    #[arg(
        long,
        env = "SCHEDULER_CONFIG",
        default_value = "",
        value_name = "FILE",
        hide_default_value = true
    )]
    pub(crate) scheduler_config: String,
    /// Have the scheduler follow the plan: nodes open when their pods know of them, and pods of tight moves leave in turns; false leaves the scheduler alone
    #[arg(long, default_value_t = true, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) follow_plan: bool,
    /// Consolidate as upstream does: moving pods costs nothing, however often, and at most one node replaces others
    #[arg(long, default_value_t = false, action = ArgAction::Set, num_args = 0..=1, default_missing_value = "true", value_name = "BOOL")]
    pub(crate) disrupt_like_upstream: bool,
    #[command(flatten)]
    pub(crate) accepted: AcceptedFlags,
}

/// Flags of upstream that mean nothing here: accepted, so that manifests keep working.
#[derive(Args, Clone, Debug)]
pub(crate) struct AcceptedFlags {
    /// Accepted for compatibility
    #[arg(long, env = "KARPENTER_SERVICE", default_value = "", hide = true)]
    karpenter_service: String,
    /// Accepted for compatibility
    #[arg(long, env = "ENABLE_PROFILING", default_value = "false", hide = true)]
    enable_profiling: String,
    /// Accepted for compatibility: watches always start before the lease is won
    #[arg(
        long,
        env = "DISABLE_CONTROLLER_WARMUP",
        default_value = "true",
        hide = true
    )]
    disable_controller_warmup: String,
    /// Accepted for compatibility
    #[arg(
        long,
        env = "MEMORY_LIMIT",
        default_value = "-1",
        hide = true,
        allow_hyphen_values = true
    )]
    memory_limit: String,
    /// Accepted for compatibility
    #[arg(
        long,
        env = "CPU_REQUESTS",
        default_value = "1000",
        hide = true,
        allow_hyphen_values = true
    )]
    cpu_requests: String,
    /// Accepted for compatibility
    #[arg(
        long,
        env = "LOG_ERROR_OUTPUT_PATHS",
        default_value = "stderr",
        hide = true
    )]
    log_error_output_paths: String,
    /// Accepted for compatibility: pods that claim devices are never planned for, and false is refused
    #[arg(
        long,
        env = "IGNORE_DRA_REQUESTS",
        default_value = "true",
        num_args = 0..=1,
        default_missing_value = "true",
        hide = true
    )]
    ignore_dra_requests: String,
}

impl RunFlags {
    /// The settings as meant.
    pub(crate) fn settings(&self, reader: &mut Reader) -> anyhow::Result<Settings> {
        let preferences = match self.preference_policy.as_str() {
            "Respect" => PreferencePolicy::Respect,
            "Ignore" => PreferencePolicy::Ignore,
            other => bail!(
                "validating cli flags / env vars, invalid PREFERENCE_POLICY {other:?}: it is \
                 Respect or Ignore"
            ),
        };
        let min_values = match self.min_values_policy.as_str() {
            "Strict" => MinValuesPolicy::Strict,
            "BestEffort" => MinValuesPolicy::BestEffort,
            other => bail!(
                "validating cli flags / env vars, invalid MIN_VALUES_POLICY {other:?}: it is \
                 Strict or BestEffort"
            ),
        };
        self.check_dra_requests()?;
        let gates = gates(&self.feature_gates)?;
        Ok(Settings {
            batching: Batching {
                idle: self.batch_idle_duration,
                max: self.batch_max_duration,
            },
            preferences,
            min_values,
            gates,
            spread_defaults: spread_defaults(&self.scheduler_config, reader)?.map(Arc::new),
            disruption: self.disruption(gates),
            quiet_state: self.disable_cluster_state_observability,
            follow_plan: self.follow_plan,
            background: Background::Beside,
        })
    }
}

impl RunFlags {
    /// Pods that claim devices are not planned for. Who counts on it hears so at once, and not from
    /// pods that wait.
    fn check_dra_requests(&self) -> anyhow::Result<()> {
        match truth(&self.accepted.ignore_dra_requests) {
            Some(true) => Ok(()),
            Some(false) => bail!(
                "validating cli flags / env vars, IGNORE_DRA_REQUESTS is false, but nodes for pods \
                 that claim devices (Dynamic Resource Allocation) are not supported yet: leave out \
                 --ignore-dra-requests, or set it to true; such pods then wait and get an event, \
                 and all others get nodes"
            ),
            None => bail!(
                "validating cli flags / env vars, invalid IGNORE_DRA_REQUESTS {:?}: it is true",
                self.accepted.ignore_dra_requests
            ),
        }
    }

    fn disruption(&self, gates: FeatureGates) -> DisruptionSettings {
        let settings = DisruptionSettings {
            spot_to_spot: gates.spot_to_spot_consolidation,
            moves_per_replica: self.moves_per_replica_per_day,
            ..DisruptionSettings::default()
        };
        if self.disrupt_like_upstream {
            settings.as_upstream()
        } else {
            settings
        }
    }
}

fn duration(text: &str) -> Result<Duration, String> {
    match DurationText(text.to_owned()).parse() {
        Ok(Some(duration)) => Ok(duration),
        Ok(None) => Err("must be a duration such as 1s or 500ms".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

/// Reads true or false in all the ways that upstream takes.
fn truth(text: &str) -> Option<bool> {
    match text {
        "true" | "True" | "TRUE" | "t" | "T" | "1" => Some(true),
        "false" | "False" | "FALSE" | "f" | "F" | "0" => Some(false),
        _ => None,
    }
}

/// Reads `Name=bool,…`. Names that nobody knows are ignored, as upstream does.
fn gates(text: &str) -> anyhow::Result<FeatureGates> {
    let mut gates = FeatureGates::default();
    for part in text
        .split(',')
        .map(str::trim)
        .filter(|part| !part.is_empty())
    {
        let (name, value) = part
            .split_once('=')
            .with_context(|| format!("invalid FEATURE_GATES: {part:?} is not Name=bool"))?;
        let value = value.trim();
        let value = truth(value).with_context(|| {
            format!("invalid FEATURE_GATES: {value:?} of {name} is not true or false")
        })?;
        match name.trim() {
            "NodeRepair" => gates.node_repair = value,
            "ReservedCapacity" => gates.reserved_capacity = value,
            "SpotToSpotConsolidation" => gates.spot_to_spot_consolidation = value,
            "NodeOverlay" => gates.node_overlay = value,
            "StaticCapacity" => gates.static_capacity = value,
            "CapacityBuffer" => gates.capacity_buffer = value,
            _ => {}
        }
    }
    Ok(gates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn core_360_one_gate_leaves_the_others_at_their_defaults() {
        let all = gates(" NodeRepair=true , StaticCapacity=true").unwrap();
        assert!(all.node_repair && all.static_capacity && all.reserved_capacity);
        assert!(!all.node_overlay && !all.capacity_buffer);
        assert_eq!(gates("").unwrap(), FeatureGates::default());
        assert_eq!(gates("Unheard=true").unwrap(), FeatureGates::default());
    }

    #[derive(clap::Parser)]
    struct Cli {
        #[command(flatten)]
        flags: RunFlags,
    }

    fn parsed(flags: &[&str]) -> RunFlags {
        use clap::Parser as _;
        let all = std::iter::once("run").chain(flags.iter().copied());
        Cli::try_parse_from(all).unwrap().flags
    }

    #[test]
    fn core_359_defaults_and_flags() {
        let flags = parsed(&[]);
        assert_eq!((flags.metrics_port, flags.health_probe_port), (8080, 8081));
        assert_eq!((flags.kube_client_qps, flags.kube_client_burst), (200, 300));
        assert_eq!(flags.leader_election_name, "karpenter-leader-election");
        assert!(!flags.disable_leader_election && !flags.dry_run);
        let settings = flags.settings(&mut Reader::unbounded()).unwrap();
        assert_eq!(settings.batching.max, Duration::from_secs(10));
        assert_eq!(settings.batching.idle, None, "ours adapts");
        let flags = parsed(&["--batch-idle-duration=1s", "--preference-policy=Ignore"]);
        let settings = flags.settings(&mut Reader::unbounded()).unwrap();
        assert_eq!(settings.batching.idle, Some(Duration::from_secs(1)));
        assert_eq!(settings.preferences, PreferencePolicy::Ignore);
        for wrong in ["--preference-policy=Maybe", "--min-values-policy=None"] {
            assert!(
                parsed(&[wrong]).settings(&mut Reader::unbounded()).is_err(),
                "{wrong}"
            );
        }
    }

    #[test]
    fn core_206_device_claims_cannot_be_asked_for() {
        for flags in [
            &[][..],
            &["--ignore-dra-requests"],
            &["--ignore-dra-requests=true"],
            &["--ignore-dra-requests=1"],
        ] {
            assert!(
                parsed(flags).settings(&mut Reader::unbounded()).is_ok(),
                "{flags:?}"
            );
        }
        for (flag, words) in [
            (
                "--ignore-dra-requests=false",
                "not supported yet: leave out",
            ),
            ("--ignore-dra-requests=0", "not supported yet: leave out"),
            ("--ignore-dra-requests=maybe", "\"maybe\": it is true"),
        ] {
            let error = parsed(&[flag])
                .settings(&mut Reader::unbounded())
                .unwrap_err()
                .to_string();
            assert!(error.contains("IGNORE_DRA_REQUESTS"), "{error}");
            assert!(error.contains(words), "{flag}: {error}");
        }
    }

    #[test]
    fn moves_are_limited_unless_upstream_is_followed() {
        for (flags, expected) in [
            (&[][..], 2),
            (&["--moves-per-replica-per-day=5"], 5),
            (&["--moves-per-replica-per-day=0"], 0),
            (&["--disrupt-like-upstream"], 0),
        ] {
            let settings = parsed(flags).settings(&mut Reader::unbounded()).unwrap();
            assert_eq!(settings.disruption.moves_per_replica, expected, "{flags:?}");
        }
    }

    #[test]
    fn a_malformed_gate_is_an_error() {
        for text in ["NodeRepair", "NodeRepair=maybe", "=", "NodeRepair=true,x"] {
            assert!(gates(text).is_err(), "{text}");
        }
    }
}
