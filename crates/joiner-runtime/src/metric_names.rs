//! The table of all metrics: name, type, labels, buckets, meaning. Tabular.
//!
//! Names, types, labels and buckets are upstream's, so that dashboards and alerts keep working; the
//! words are ours. Metrics that upstream does not have start with `joiner_`.

/// What a family of metrics measures.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Measure {
    /// Goes up only.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Counts by upper bounds.
    Histogram(&'static [f64]),
    /// Quantiles of the last ten minutes.
    Summary,
}

/// One family of metrics.
#[derive(Clone, Copy, Debug)]
pub struct Family {
    /// The full name.
    pub name: &'static str,
    /// What it measures.
    pub measure: Measure,
    /// Labels that every series has.
    pub labels: &'static [&'static str],
    /// Series may have further labels, which depend on the cloud or on the kind.
    pub open: bool,
    /// So many series at most; more are dropped and counted.
    pub series_max: usize,
    /// One line for people.
    pub help: &'static str,
}

/// Series of a family whose labels are pools, reasons, controllers and the like.
pub const SERIES_MAX: usize = 5_000;
/// Series of a family with one or more for each object.
pub const OBJECT_SERIES_MAX: usize = 200_000;

const COUNTER: Measure = Measure::Counter;
const GAUGE: Measure = Measure::Gauge;
const SUMMARY: Measure = Measure::Summary;
const DURATION: Measure = Measure::Histogram(DURATION_SECS);
const CONDITION: Measure = Measure::Histogram(CONDITION_SECS);

/// Upper bounds of most durations, in seconds.
pub const DURATION_SECS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45, 0.5, 0.6, 0.7, 0.8, 0.9,
    1.0, 1.25, 1.5, 1.75, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 15.0, 20.0,
    25.0, 30.0, 40.0, 50.0, 60.0, 120.0, 150.0, 300.0, 450.0, 600.0,
];
/// Upper bounds for a reconcile, in seconds: those of controller-runtime.
const RECONCILE_SECS: &[f64] = DURATION_SECS.split_at(40).0;
/// 1 to 2048 s, doubling.
const CLAIM_TERMINATION_SECS: &[f64] = &[
    1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0,
];
/// 1 to 1024 s, doubling.
const INSTANCE_TERMINATION_SECS: &[f64] = CLAIM_TERMINATION_SECS.split_at(11).0;
/// 0.5 to 8192 s, doubling.
const CONDITION_SECS: &[f64] = &[
    0.5, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0, 1024.0, 2048.0, 4096.0, 8192.0,
];
/// What Prometheus' Go client uses unless told otherwise, in seconds.
const PLAIN_SECS: &[f64] = &[
    0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0,
];
/// Ages of nodes: 15 minutes to 30 days, in seconds.
const LIFETIME_SECS: &[f64] = &[
    900.0,
    1800.0,
    2700.0,
    3600.0,
    7200.0,
    14_400.0,
    21_600.0,
    28_800.0,
    36_000.0,
    43_200.0,
    57_600.0,
    72_000.0,
    86_400.0,
    172_800.0,
    259_200.0,
    432_000.0,
    864_000.0,
    1_296_000.0,
    1_728_000.0,
    2_160_000.0,
    2_592_000.0,
];
/// Ten nanoseconds to a thousand seconds, times ten.
const QUEUE_SECS: &[f64] = &[
    1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0, 1000.0,
];
/// Scores of consolidations.
const SCORES: &[f64] = &[0.1, 0.25, 0.33, 0.5, 1.0, 2.0, 5.0, 10.0];

/// Writes each family once: a constant for its name, and its row in the table.
macro_rules! families {
    ($($id:ident $name:literal $measure:expr, [$($label:literal),*] $($scope:ident)?, $help:literal;)*) => {
        $(#[doc = $help] pub const $id: &str = $name;)*

        /// All families but those of conditions, in the order in which they are shown.
        const PLAIN: &[Family] = &[$(Family {
            name: $name,
            measure: $measure,
            labels: &[$($label),*],
            open: families!(@open $($scope)?),
            series_max: families!(@max $($scope)?),
            help: $help,
        }),*];
    };
    (@open per_node) => { true };
    (@open $($scope:ident)?) => { false };
    (@max $scope:ident) => { OBJECT_SERIES_MAX };
    (@max) => { SERIES_MAX };
}

#[rustfmt::skip]
families! {
    // NodeClaims.
    NODECLAIMS_CREATED "karpenter_nodeclaims_created_total" COUNTER, ["reason", "nodepool", "min_values_relaxed"], "NodeClaims created, by why and for which pool.";
    NODECLAIMS_TERMINATED "karpenter_nodeclaims_terminated_total" COUNTER, ["nodepool", "capacity_type", "zone"], "NodeClaims whose instance is gone and whose finalizer was removed.";
    NODECLAIMS_DISRUPTED "karpenter_nodeclaims_disrupted_total" COUNTER, ["reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"], "NodeClaims whose deletion the controller started, by why.";
    NODECLAIMS_UNHEALTHY_DISRUPTED "karpenter_nodeclaims_unhealthy_disrupted_total" COUNTER, ["condition", "nodepool", "capacity_type", "image_id"], "NodeClaims deleted by node repair, by the condition of the node.";
    NODECLAIMS_TERMINATION_DURATION "karpenter_nodeclaims_termination_duration_seconds" Measure::Histogram(CLAIM_TERMINATION_SECS), ["nodepool"], "Seconds from the deletion of a NodeClaim to the removal of its finalizer.";
    NODECLAIMS_INSTANCE_TERMINATION_DURATION "karpenter_nodeclaims_instance_termination_duration_seconds" Measure::Histogram(INSTANCE_TERMINATION_SECS), ["nodepool"], "Seconds from the end of an instance being asked for to its being gone.";
    PODS_DISRUPTION_INITIATED "karpenter_pods_disruption_initiated_total" COUNTER, ["reason", "nodepool", "capacity_type", "consolidation_policy", "termination_mode"], "Pods to be rescheduled from nodes whose deletion the controller started.";
    // Nodes.
    NODES_CREATED "karpenter_nodes_created_total" COUNTER, ["nodepool", "zone"], "Nodes that registered.";
    NODES_TERMINATED "karpenter_nodes_terminated_total" COUNTER, ["nodepool", "zone"], "Nodes whose finalizer was removed.";
    NODES_DRAINED "karpenter_nodes_drained_total" COUNTER, ["nodepool"], "Nodes that were drained.";
    NODES_TERMINATION_DURATION "karpenter_nodes_termination_duration_seconds" SUMMARY, ["nodepool"], "Seconds from the deletion of a node to the removal of its finalizer.";
    NODES_LIFETIME_DURATION "karpenter_nodes_lifetime_duration_seconds" Measure::Histogram(LIFETIME_SECS), ["nodepool"], "Age of nodes at their end, in seconds.";
    NODES_ALLOCATABLE "karpenter_nodes_allocatable" GAUGE, ["node_name", "nodepool", "phase", "managed", "resource_type"] per_node, "What pods can use of a node.";
    NODES_TOTAL_POD_REQUESTS "karpenter_nodes_total_pod_requests" GAUGE, ["node_name", "nodepool", "phase", "managed", "resource_type"] per_node, "What the pods on a node request, those of DaemonSets included.";
    NODES_TOTAL_POD_LIMITS "karpenter_nodes_total_pod_limits" GAUGE, ["node_name", "nodepool", "phase", "managed", "resource_type"] per_node, "Limits of the pods on a node, those of DaemonSets included.";
    NODES_TOTAL_DAEMON_REQUESTS "karpenter_nodes_total_daemon_requests" GAUGE, ["node_name", "nodepool", "phase", "managed", "resource_type"] per_node, "What the DaemonSet pods on a node request.";
    NODES_TOTAL_DAEMON_LIMITS "karpenter_nodes_total_daemon_limits" GAUGE, ["node_name", "nodepool", "phase", "managed", "resource_type"] per_node, "Limits of the DaemonSet pods on a node.";
    NODES_SYSTEM_OVERHEAD "karpenter_nodes_system_overhead" GAUGE, ["node_name", "nodepool", "phase", "managed", "resource_type"] per_node, "What a node keeps for itself: capacity less allocatable.";
    NODES_CURRENT_LIFETIME "karpenter_nodes_current_lifetime_seconds" GAUGE, ["node_name", "nodepool", "phase", "managed"] per_node, "Age of a node in seconds.";
    CLUSTER_UTILIZATION "karpenter_cluster_utilization_percent" GAUGE, ["resource_type"], "Requests of all pods over what all nodes offer, in percent.";
    // NodePools.
    NODEPOOLS_LIMIT "karpenter_nodepools_limit" GAUGE, ["resource_type", "nodepool"], "Limits of a pool.";
    NODEPOOLS_USAGE "karpenter_nodepools_usage" GAUGE, ["resource_type", "nodepool"], "What a pool has in use of its limits.";
    NODEPOOLS_COST "karpenter_nodepools_cost_total" GAUGE, ["nodepool"], "Price of all nodes of a pool, in dollars an hour.";
    NODEPOOLS_COST_TRACKER_ERRORS "karpenter_nodepools_cost_tracker_errors_total" COUNTER, ["nodepool"], "Nodes whose price could not be found.";
    NODEPOOLS_ALLOWED_DISRUPTIONS "karpenter_nodepools_allowed_disruptions" GAUGE, ["nodepool", "reason"], "Nodes that the budgets of a pool allow to be disrupted at a time.";
    NODEPOOLS_NODES_CONSUMING_BUDGETS "karpenter_nodepools_nodes_consuming_budgets" GAUGE, ["nodepool", "reason"], "Nodes that count against the budgets of a pool now.";
    // Pods.
    PODS_STATE "karpenter_pods_state" GAUGE, ["name", "namespace", "owner", "node", "nodepool", "zone", "arch", "capacity_type", "instance_type", "phase", "scheduled", "ready", "managed"] per_pod, "1 for each pod, with where it is and how it is.";
    PODS_STARTUP_DURATION "karpenter_pods_startup_duration_seconds" SUMMARY, [], "Seconds from the creation of a pod to its being ready.";
    PODS_UNSTARTED_TIME "karpenter_pods_unstarted_time_seconds" GAUGE, ["name", "namespace"] per_pod, "Age of a pod that is not ready yet, in seconds.";
    PODS_BOUND_DURATION "karpenter_pods_bound_duration_seconds" DURATION, [], "Seconds from the creation of a pod to its being bound.";
    PODS_UNBOUND_TIME "karpenter_pods_unbound_time_seconds" GAUGE, ["name", "namespace"] per_pod, "Age of a pod that is not bound yet, in seconds.";
    PODS_PROVISIONING_BOUND_DURATION "karpenter_pods_provisioning_bound_duration_seconds" DURATION, [], "Seconds from the first plan that places a pod to its being bound.";
    PODS_PROVISIONING_STARTUP_DURATION "karpenter_pods_provisioning_startup_duration_seconds" DURATION, [], "Seconds from the first plan that places a pod to its being ready.";
    PODS_PROVISIONING_UNBOUND_TIME "karpenter_pods_provisioning_unbound_time_seconds" GAUGE, ["name", "namespace"] per_pod, "Seconds since the first plan that places a pod which is not bound yet.";
    PODS_PROVISIONING_UNSTARTED_TIME "karpenter_pods_provisioning_unstarted_time_seconds" GAUGE, ["name", "namespace"] per_pod, "Seconds since the first plan that places a pod which is not ready yet.";
    PODS_PROVISIONING_UNDECIDED_TIME "karpenter_pods_provisioning_scheduling_undecided_time_seconds" GAUGE, ["name", "namespace"] per_pod, "Seconds since a pod was first seen that no plan has looked at yet.";
    PODS_SCHEDULING_DECISION_DURATION "karpenter_pods_scheduling_decision_duration_seconds" DURATION, [], "Seconds from a pod being first seen to the first decision about it.";
    PODS_EVICTION_REQUESTS "karpenter_pods_eviction_requests_total" COUNTER, ["code"], "Evictions asked for, by the status code of the answer.";
    PODS_DRAINED "karpenter_pods_drained_total" COUNTER, ["reason"], "Pods that left because their node was drained, by why.";
    // Planning.
    SCHEDULING_DURATION "karpenter_scheduler_scheduling_duration_seconds" DURATION, ["controller"], "Seconds that a plan took.";
    SCHEDULER_QUEUE_DEPTH "karpenter_scheduler_queue_depth" GAUGE, ["controller", "scheduling_id"], "Pods that the plan in the making has yet to place.";
    SCHEDULER_UNFINISHED_WORK "karpenter_scheduler_unfinished_work_seconds" GAUGE, ["controller", "scheduling_id"], "Seconds that the plan in the making has taken so far.";
    SCHEDULER_IGNORED_PODS "karpenter_scheduler_ignored_pods_count" GAUGE, [], "Pods that planning leaves alone because they are not valid for it.";
    SCHEDULER_UNSCHEDULABLE_PODS "karpenter_scheduler_unschedulable_pods_count" GAUGE, ["controller"], "Pods that the last plan could not place.";
    SCHEDULER_PENDING_PODS_BY_ZONE "karpenter_scheduler_pending_pods_by_effective_zone_count" GAUGE, ["controller", "zone"], "Pending pods by the zone that their rules leave them.";
    // Disruption.
    DISRUPTION_EVALUATION_DURATION "karpenter_voluntary_disruption_decision_evaluation_duration_seconds" DURATION, ["reason", "consolidation_type"], "Seconds that looking for nodes to disrupt took.";
    DISRUPTION_DECISIONS "karpenter_voluntary_disruption_decisions_total" COUNTER, ["decision", "reason", "consolidation_type"], "Decisions to disrupt nodes.";
    DISRUPTION_DECISIONS_BY_NODEPOOL "karpenter_voluntary_disruption_decisions_by_nodepool_total" COUNTER, ["nodepool", "decision", "reason", "consolidation_type"], "Decisions to disrupt nodes, by pool.";
    DISRUPTION_ELIGIBLE_NODES "karpenter_voluntary_disruption_eligible_nodes" GAUGE, ["reason"], "Nodes that could be disrupted.";
    CONSOLIDATION_TIMEOUTS "karpenter_voluntary_disruption_consolidation_timeouts_total" COUNTER, ["consolidation_type"], "Searches for a consolidation that used up their steps.";
    DISRUPTION_FAILED_VALIDATIONS "karpenter_voluntary_disruption_failed_validations_total" COUNTER, ["consolidation_type"], "Consolidations dropped because a second look came to another result.";
    DISRUPTION_QUEUE_FAILURES "karpenter_voluntary_disruption_queue_failures_total" COUNTER, ["decision", "reason", "consolidation_type"], "Disruptions that were begun and given up.";
    CONSOLIDATION_SCORE "karpenter_consolidation_score" Measure::Histogram(SCORES), ["decision", "nodepool", "policy"], "Scores of consolidations that were weighed.";
    CONSOLIDATION_MOVES "karpenter_consolidation_moves_total" COUNTER, ["decision", "nodepool", "policy"], "Consolidations that were weighed, by outcome.";
    INTERRUPTION_MESSAGES "karpenter_interruption_received_messages_total" COUNTER, ["message_type"], "Notices of machines that the cloud takes away, or may.";
    // State, cloud, build.
    CLUSTER_STATE_NODE_COUNT "karpenter_cluster_state_node_count" GAUGE, [], "Nodes and NodeClaims that are known.";
    CLUSTER_STATE_SYNCED "karpenter_cluster_state_synced" GAUGE, [], "1 when what is known agrees with the API server, else 0.";
    CLUSTER_STATE_UNSYNCED_TIME "karpenter_cluster_state_unsynced_time_seconds" GAUGE, [], "Seconds for which it has not agreed.";
    CLOUDPROVIDER_DURATION "karpenter_cloudprovider_duration_seconds" DURATION, ["controller", "method", "provider"], "Seconds that a call to the cloud took.";
    CLOUDPROVIDER_ERRORS "karpenter_cloudprovider_errors_total" COUNTER, ["controller", "method", "provider", "error"], "Calls to the cloud that failed, by class of error.";
    BUILD_INFO "karpenter_build_info" GAUGE, ["version", "goversion", "goarch", "commit"], "1, with what this program was built from.";
    // Twins of the metrics of conditions, with the kind as a label.
    ANY_CONDITION_COUNT "operator_status_condition_count" GAUGE, ["namespace", "name", "type", "status", "reason", "group", "kind"] per_object, "1 for each condition of an object (deprecated twin).";
    ANY_CONDITION_CURRENT "operator_status_condition_current_status_seconds" GAUGE, ["namespace", "name", "type", "status", "reason", "group", "kind"] per_object, "Seconds since a condition last changed (deprecated twin).";
    ANY_CONDITION_TRANSITION "operator_status_condition_transition_seconds" Measure::Histogram(PLAIN_SECS), ["type", "status", "group", "kind"], "Seconds that a condition had a status before it changed (deprecated twin).";
    ANY_CONDITION_TRANSITIONS "operator_status_condition_transitions_total" COUNTER, ["type", "status", "reason", "group", "kind"], "Changes of conditions (deprecated twin).";
    ANY_TERMINATION_CURRENT "operator_termination_current_time_seconds" GAUGE, ["namespace", "name", "group", "kind"] per_object, "Seconds since the deletion of an object that is still there (deprecated twin).";
    ANY_TERMINATION_DURATION "operator_termination_duration_seconds" Measure::Histogram(PLAIN_SECS), ["group", "kind"], "Seconds from the deletion of an object to its end (deprecated twin).";
    // Requests and controllers.
    CLIENT_REQUEST_DURATION "client_go_request_duration_seconds" DURATION, ["verb", "group", "version", "kind", "subresource"], "Seconds that a request to the API server took.";
    CLIENT_REQUESTS "client_go_request_total" COUNTER, ["code", "method"], "Requests to the API server.";
    RECONCILES "controller_runtime_reconcile_total" COUNTER, ["controller", "result"], "Reconciles of a controller, by result.";
    RECONCILE_ERRORS "controller_runtime_reconcile_errors_total" COUNTER, ["controller"], "Reconciles that failed.";
    RECONCILE_TERMINAL_ERRORS "controller_runtime_terminal_reconcile_errors_total" COUNTER, ["controller"], "Reconciles that failed for good.";
    RECONCILE_PANICS "controller_runtime_reconcile_panics_total" COUNTER, ["controller"], "Reconciles that panicked.";
    RECONCILE_TIME "controller_runtime_reconcile_time_seconds" Measure::Histogram(RECONCILE_SECS), ["controller"], "Seconds that a reconcile took.";
    RECONCILES_MAX "controller_runtime_max_concurrent_reconciles" GAUGE, ["controller"], "Reconciles that a controller may run at a time.";
    RECONCILES_ACTIVE "controller_runtime_active_workers" GAUGE, ["controller"], "Reconciles that a controller runs now.";
    QUEUE_DEPTH "workqueue_depth" GAUGE, ["name", "controller"], "Keys that wait in a queue.";
    QUEUE_ADDS "workqueue_adds_total" COUNTER, ["name", "controller"], "Keys that were added to a queue.";
    QUEUE_RETRIES "workqueue_retries_total" COUNTER, ["name", "controller"], "Keys that were put back into a queue.";
    QUEUE_DURATION "workqueue_queue_duration_seconds" Measure::Histogram(QUEUE_SECS), ["name", "controller"], "Seconds that a key waited in a queue.";
    QUEUE_WORK_DURATION "workqueue_work_duration_seconds" Measure::Histogram(QUEUE_SECS), ["name", "controller"], "Seconds that work on a key took.";
    QUEUE_UNFINISHED_WORK "workqueue_unfinished_work_seconds" GAUGE, ["name", "controller"], "Seconds of work under way, over all keys.";
    QUEUE_LONGEST_RUNNING "workqueue_longest_running_processor_seconds" GAUGE, ["name", "controller"], "Seconds of the longest work under way.";
    LEADER_STATUS "leader_election_master_status" GAUGE, ["name"], "1 while this process leads, else 0.";
    // The process.
    PROCESS_CPU "process_cpu_seconds_total" COUNTER, [], "Processor time used, in seconds.";
    PROCESS_RESIDENT_MEMORY "process_resident_memory_bytes" GAUGE, [], "Memory in use, in bytes.";
    PROCESS_VIRTUAL_MEMORY "process_virtual_memory_bytes" GAUGE, [], "Address space in use, in bytes.";
    PROCESS_OPEN_FDS "process_open_fds" GAUGE, [], "Open files and sockets.";
    PROCESS_MAX_FDS "process_max_fds" GAUGE, [], "Files and sockets that may be open.";
    PROCESS_START_TIME "process_start_time_seconds" GAUGE, [], "When the process started, in seconds since 1970.";
    // Ours.
    DECISIONS "joiner_decisions_total" COUNTER, ["kind", "outcome"], "Decisions that were recorded.";
    LEDGER_COMMANDS "joiner_disruption_commands_total" COUNTER, ["reason", "outcome"], "Disruptions that came to an end, done or undone.";
    LEDGER_MOVES "joiner_disruption_moves_total" COUNTER, ["reason"], "Pods that disruptions have moved.";
    LEDGER_PROMISED "joiner_disruption_savings_promised_dollars_per_hour" GAUGE, ["reason"], "What all disruptions that are over promised to save, in dollars an hour.";
    LEDGER_REALIZED "joiner_disruption_savings_realized_dollars_per_hour" GAUGE, ["reason"], "What all disruptions that are over have saved, in dollars an hour; below zero when they cost.";
    EVENTS_WRITTEN "joiner_events_written_total" COUNTER, ["reason"], "Kubernetes events that were written.";
    EVENTS_DROPPED "joiner_events_dropped_total" COUNTER, ["why"], "Kubernetes events that were not written.";
    METRICS_REJECTED "joiner_metrics_rejected_total" COUNTER, ["metric", "why"], "Measurements that were dropped.";
}

/// The metrics about conditions and ends of the objects of one kind.
#[derive(Clone, Copy, Debug)]
pub struct ConditionFamilies {
    /// The kind, as in manifests.
    pub kind: &'static str,
    /// Its API group.
    pub group: &'static str,
    /// 1 for each condition of an object.
    pub count: &'static str,
    /// Seconds since a condition last changed.
    pub current: &'static str,
    /// Seconds that a condition had a status before it changed.
    pub transition: &'static str,
    /// Changes of conditions.
    pub transitions: &'static str,
    /// Seconds since the deletion of an object that is still there.
    pub terminating: &'static str,
    /// Seconds from the deletion of an object to its end.
    pub termination: &'static str,
    /// The deprecated twins are kept, too.
    pub twins: bool,
}

/// Writes the six families of a kind.
macro_rules! conditions {
    ($($id:ident $rows:ident $kind:literal $group:literal $word:literal $twins:literal;)*) => {
        $(
            #[doc = concat!("Metrics about conditions of a ", $kind, ".")]
            pub const $id: ConditionFamilies = ConditionFamilies {
                kind: $kind,
                group: $group,
                count: concat!("operator_", $word, "_status_condition_count"),
                current: concat!("operator_", $word, "_status_condition_current_status_seconds"),
                transition: concat!("operator_", $word, "_status_condition_transition_seconds"),
                transitions: concat!("operator_", $word, "_status_condition_transitions_total"),
                terminating: concat!("operator_", $word, "_termination_current_time_seconds"),
                termination: concat!("operator_", $word, "_termination_duration_seconds"),
                twins: $twins,
            };
            const $rows: [Family; 6] = rows(&$id);
        )*
        /// The families of all kinds with conditions.
        const CONDITIONS: &[&[Family]] = &[$(&$rows),*];
        /// All kinds with conditions.
        pub const CONDITION_FAMILIES: &[ConditionFamilies] = &[$($id),*];
    };
}

conditions! {
    NODECLAIM_CONDITIONS NODECLAIM_ROWS "NodeClaim" "karpenter.sh" "nodeclaim" true;
    NODEPOOL_CONDITIONS NODEPOOL_ROWS "NodePool" "karpenter.sh" "nodepool" true;
    NODE_CONDITIONS NODE_ROWS "Node" "" "node" false;
    CAPACITYBUFFER_CONDITIONS CAPACITYBUFFER_ROWS "CapacityBuffer" "autoscaling.x-k8s.io" "capacitybuffer" true;
}

/// The rows of one kind. They are open: claims and nodes also show their pool and class.
const fn rows(of: &ConditionFamilies) -> [Family; 6] {
    const EACH: &[&str] = &["namespace", "name", "type", "status", "reason"];
    let row = Family {
        name: of.count,
        measure: GAUGE,
        labels: EACH,
        open: true,
        series_max: OBJECT_SERIES_MAX,
        help: "1 for each condition of an object.",
    };
    let mut rows = [row; 6];
    rows[1].name = of.current;
    rows[1].help = "Seconds since a condition of an object last changed.";
    rows[2].name = of.transition;
    rows[2].measure = CONDITION;
    rows[2].labels = &["type", "status"];
    rows[2].series_max = SERIES_MAX;
    rows[2].help = "Seconds that a condition had a status before it changed.";
    rows[3].name = of.transitions;
    rows[3].measure = COUNTER;
    rows[3].labels = &["type", "status", "reason"];
    rows[3].series_max = SERIES_MAX;
    rows[3].help = "Changes of conditions.";
    rows[4].name = of.terminating;
    rows[4].labels = &["namespace", "name"];
    rows[4].help = "Seconds since the deletion of an object that is still there.";
    rows[5].name = of.termination;
    rows[5].measure = CONDITION;
    rows[5].labels = &[];
    rows[5].series_max = SERIES_MAX;
    rows[5].help = "Seconds from the deletion of an object to its end.";
    rows
}

/// All families, in the order in which they are shown.
pub fn all() -> impl Iterator<Item = &'static Family> {
    let conditions = CONDITIONS.iter().flat_map(|rows| rows.iter());
    PLAIN.iter().chain(conditions)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn names_are_well_formed_and_unique() {
        let mut seen = BTreeSet::new();
        for family in all() {
            let name = family.name;
            assert!(seen.insert(name), "{name} twice");
            let legal = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
            assert!(name.chars().all(legal), "{name}");
            let is_counter = family.measure == Measure::Counter;
            // Upstream calls the price of a pool a total although it goes down, too.
            if name != NODEPOOLS_COST {
                assert_eq!(name.ends_with("_total"), is_counter, "{name}");
            }
            assert!(family.help.ends_with('.'), "{name}");
            let labels: BTreeSet<_> = family.labels.iter().collect();
            assert_eq!(labels.len(), family.labels.len(), "{name}: a label twice");
        }
    }

    #[test]
    fn buckets_are_upstreams() {
        let bounds = |name: &str| {
            let family = all().find(|family| family.name == name).unwrap();
            let Measure::Histogram(bounds) = family.measure else {
                panic!("{name} is no histogram");
            };
            assert!(bounds.is_sorted(), "{name}");
            (bounds.len(), bounds[0], bounds[bounds.len() - 1])
        };
        for (name, expected) in [
            (SCHEDULING_DURATION, (45, 0.005, 600.0)),
            (PODS_BOUND_DURATION, (45, 0.005, 600.0)),
            (CLOUDPROVIDER_DURATION, (45, 0.005, 600.0)),
            (NODECLAIMS_TERMINATION_DURATION, (12, 1.0, 2048.0)),
            (NODECLAIMS_INSTANCE_TERMINATION_DURATION, (11, 1.0, 1024.0)),
            (NODES_LIFETIME_DURATION, (21, 900.0, 2_592_000.0)),
            (CONSOLIDATION_SCORE, (8, 0.1, 10.0)),
            (RECONCILE_TIME, (40, 0.005, 60.0)),
            (NODECLAIM_CONDITIONS.transition, (15, 0.5, 8192.0)),
        ] {
            assert_eq!(bounds(name), expected, "{name}");
        }
    }
}
