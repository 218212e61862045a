//! Claims and their Nodes from beginning to end, on the embedded control plane in virtual time.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jiff::Timestamp;
use joiner_cloud::{
    CatalogError, ClassKind, Cloud, CloudError, Instance, LaunchError, NodeClass, Order,
    ProviderId, Termination,
};
use joiner_cloud_sim::{Settings as CloudSettings, SimulatedCloud};
use joiner_engine::Shared;
use joiner_runtime::{
    Api, Build, Clock, DecisionSettings, Decisions, Events, Followed, Metrics, World, follow,
    resource,
};
use joiner_sandbox::Sandbox;
use joiner_state::live::{Conditions as _, Kind, Snapshot};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::catalogs::Catalogs;
use crate::nodeclaim::lifecycle;
use crate::nodepool::registrations::RegistrationHealth;
use crate::seating::Seating;
use crate::state_metrics;

/// A cluster in which only claims and Nodes are looked after.
struct Stage {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
    _tasks: JoinSet<()>,
    sandbox: Sandbox,
}

impl Stage {
    async fn start(dry_run: bool) -> Self {
        Self::start_with(dry_run, |cloud, _| cloud).await
    }

    /// With a cloud around the simulated one.
    async fn start_with(
        dry_run: bool,
        around: impl FnOnce(Arc<dyn Cloud>, kube::Client) -> Arc<dyn Cloud>,
    ) -> Self {
        let clock = Clock::new(Timestamp::from_second(1_800_000_000).unwrap(), 1);
        let empty = joiner_sandbox::Settings {
            n_nodes: 0,
            ..joiner_sandbox::Settings::default()
        };
        let sandbox = Sandbox::start(clock.clone(), &empty).unwrap();
        let client = sandbox.client();
        let mut tasks = JoinSet::new();
        let cloud = SimulatedCloud::new(client.clone(), clock.clone(), CloudSettings::default());
        let cloud = Arc::new(cloud);
        tasks.spawn(Arc::clone(&cloud).run());
        let cloud = around(cloud, client.clone());
        let metrics = Arc::new(Metrics::new(clock.clone(), &Build::default()));
        let (events, writer) =
            Events::new(client.clone(), clock.clone(), Arc::clone(&metrics), dry_run);
        tasks.spawn(writer.run());
        let world = World::start();
        let class = (
            "karpenter.kwok.sh",
            "v1alpha1",
            "kwoknodeclasses",
            "KWOKNodeClass",
        );
        let class = Followed::class(class.0, class.1, class.2, class.3);
        let kinds = Kind::ALWAYS.iter().copied().map(Followed::kind);
        for followed in kinds.chain([class]) {
            world.expect(followed.kind, &followed.class);
            tasks.spawn(follow(client.clone(), followed, world.clone()));
        }
        let shared = Shared {
            api: Api::new(client.clone(), world.clone(), dry_run),
            world,
            clock,
            events,
            decisions: Decisions::new(&DecisionSettings::default(), Arc::clone(&metrics)),
            metrics,
        };
        let seating = Seating::default();
        let health = RegistrationHealth::default();
        let controllers = [
            lifecycle::controllers(&shared, &cloud, &health, &seating),
            super::controllers(&shared, &cloud, &seating),
            state_metrics::controllers(&shared, &cloud, &Catalogs::default(), None, false),
        ];
        for controller in controllers.into_iter().flatten() {
            tasks.spawn(joiner_engine::run(controller, shared.clone()));
        }
        let stage = Self {
            shared,
            cloud,
            _tasks: tasks,
            sandbox,
        };
        let class = json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass",
            "metadata": {"name": "default"}});
        let place = resource(
            "karpenter.kwok.sh",
            "v1alpha1",
            "kwoknodeclasses",
            "KWOKNodeClass",
        );
        stage.put(&place, "", class).await;
        stage
    }

    async fn put(&self, place: &ApiResource, namespace: &str, object: Value) {
        let api = self.api(place, namespace);
        let name = object["metadata"]["name"].as_str().unwrap().to_owned();
        let params = PatchParams::apply("test").force();
        api.patch(&name, &params, &Patch::Apply(&object))
            .await
            .unwrap();
    }

    fn api(&self, place: &ApiResource, namespace: &str) -> kube::Api<DynamicObject> {
        match namespace {
            "" => kube::Api::all_with(self.sandbox.client(), place),
            namespace => kube::Api::namespaced_with(self.sandbox.client(), namespace, place),
        }
    }

    /// A claim called `c`, without a pool, that has registered; `more` is merged into its spec.
    async fn claim(&self, more: &Value) {
        self.wish(more).await;
        self.until("registered", 60, |now| {
            now.claim("c")
                .is_some_and(|claim| claim.is_true("Registered"))
        })
        .await;
    }

    async fn wish(&self, more: &Value) {
        let mut claim = json!({"apiVersion": "karpenter.sh/v1", "kind": "NodeClaim",
            "metadata": {"name": "c"}, "spec": {
            "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass",
                "name": "default"},
            "requirements": [{"key": "node.kubernetes.io/instance-type", "operator": "In",
                "values": ["c-4x-amd64-linux"]}],
            "resources": {"requests": {"cpu": "1"}},
            "startupTaints": [{"key": "example.com/start", "effect": "NoSchedule"}],
        }});
        crate::nodeclaim::lifecycle::made::merge(&mut claim["spec"], more);
        self.put(&Followed::kind(Kind::NodeClaim).resource, "", claim)
            .await;
    }

    fn node(&self) -> String {
        let snapshot = self.shared.world.snapshot();
        snapshot.claim("c").unwrap().node_name().unwrap().to_owned()
    }

    /// A pod on the claim's Node.
    async fn pod(&self, name: &str, more: &Value) {
        let mut pod = json!({"apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "namespace": "default", "labels": {"app": name}},
            "spec": {"nodeName": self.node(), "terminationGracePeriodSeconds": 5,
                "containers": [{"name": "c", "image": "pause"}]}});
        crate::nodeclaim::lifecycle::made::merge(&mut pod, more);
        let place = Followed::kind(Kind::Pod).resource;
        self.put(&place, "default", pod).await;
        let full = format!("default/{name}");
        self.until("it runs", 30, |now| {
            now.pod(&full).is_some_and(|pod| pod.ready.is_some())
        })
        .await;
    }

    async fn delete(&self, kind: Kind, namespace: &str, name: &str) {
        let api = self.api(&Followed::kind(kind).resource, namespace);
        api.delete(name, &DeleteParams::default()).await.unwrap();
    }

    async fn patch_node(&self, patch: Value) {
        let api = self.api(&Followed::kind(Kind::Node).resource, "");
        let node = self.node();
        let params = PatchParams::default();
        api.patch(&node, &params, &Patch::Merge(&patch))
            .await
            .unwrap();
    }

    async fn until(&self, what: &str, secs: u64, holds: impl Fn(&Snapshot) -> bool) {
        let deadline = self.shared.clock.now() + Duration::from_secs(secs);
        while !holds(&self.shared.world.snapshot()) {
            let now = self.shared.world.snapshot();
            let claims: Vec<_> = now.claims().map(|own| own.conditions().to_vec()).collect();
            assert!(
                self.shared.clock.now() <= deadline,
                "not {what} in {secs} s: {claims:#?}"
            );
            self.shared.clock.sleep(Duration::from_millis(100)).await;
        }
    }

    async fn all_gone(&self, secs: u64) {
        self.until("gone", secs, |now| {
            now.claims().next().is_none() && now.nodes().next().is_none()
        })
        .await;
        assert!(self.cloud.instances().await.unwrap().is_empty());
    }

    async fn sleep(&self, secs: u64) {
        self.shared.clock.sleep(Duration::from_secs(secs)).await;
    }

    /// Reasons of all events about a kind.
    async fn events(&self, kind: &str) -> Vec<String> {
        self.told(kind, "reason").await
    }

    /// Messages of all events about a kind.
    async fn messages(&self, kind: &str) -> Vec<String> {
        self.told(kind, "message").await
    }

    async fn told(&self, kind: &str, field: &str) -> Vec<String> {
        let place = resource("", "v1", "events", "Event");
        let events = self
            .api(&place, "")
            .list(&ListParams::default())
            .await
            .unwrap();
        let about = |own: &&DynamicObject| own.data["involvedObject"]["kind"] == kind;
        let events = events.items.iter().filter(about);
        events
            .map(|own| own.data[field].as_str().unwrap_or_default().to_owned())
            .collect()
    }

    fn measured(&self, line: &str) -> bool {
        self.shared
            .metrics
            .render()
            .lines()
            .any(|own| own.starts_with(line))
    }
}

fn is_draining(now: &Snapshot) -> bool {
    let tainted = |node: &&Arc<joiner_state::live::LiveNode>| {
        node.has_taint(&joiner_api::labels::DISRUPTED_TAINT)
    };
    now.nodes().any(|node| tainted(&node))
}

#[tokio::test(start_paused = true)]
async fn a_claim_becomes_a_node_and_both_go_with_their_machine() {
    let stage = Stage::start(false).await;
    stage.claim(&json!({})).await;
    stage.sleep(20).await;
    let snapshot = stage.shared.world.snapshot();
    let node = snapshot.nodes().next().unwrap();
    let taints: Vec<&str> = node.taints.iter().map(|own| own.key.as_str()).collect();
    assert_eq!(
        taints,
        ["example.com/start"],
        "only the startup taint is left"
    );
    assert!(snapshot.claim("c").unwrap().is_unknown("Initialized"));
    stage.patch_node(json!({"spec": {"taints": null}})).await;
    stage
        .until("ready", 10, |now| now.claim("c").unwrap().is_true("Ready"))
        .await;
    assert!(stage.measured("karpenter_nodes_created_total"));
    stage.pod("web", &json!({})).await;
    stage.delete(Kind::NodeClaim, "", "c").await;
    stage.until("tainted", 3, is_draining).await;
    stage
        .until("evicted", 20, |now| now.pod("default/web").is_none())
        .await;
    stage.all_gone(60).await;
    for name in [
        "karpenter_nodeclaims_terminated_total",
        "karpenter_nodes_terminated_total",
        "karpenter_nodes_drained_total",
        "karpenter_pods_drained_total{reason=\"Forceful Termination\"} 1",
        "karpenter_pods_eviction_requests_total{code=\"200\"} 1",
    ] {
        assert!(
            stage.measured(name),
            "{name}: {}",
            stage.shared.metrics.render()
        );
    }
    let claims = stage.events("NodeClaim").await;
    for reason in [
        "Launched",
        "Registered",
        "Initialized",
        "Ready",
        "Finalized",
    ] {
        assert!(
            claims.iter().any(|own| own == reason),
            "{reason}: {claims:?}"
        );
    }
    let pods = stage.events("Pod").await;
    assert!(pods.iter().any(|own| own == "Evicted"), "{pods:?}");
}

#[tokio::test(start_paused = true)]
async fn core_314_a_budget_holds_a_drain_up() {
    let stage = Stage::start(false).await;
    stage.claim(&json!({})).await;
    stage.pod("web", &json!({})).await;
    let place = Followed::kind(Kind::PodDisruptionBudget).resource;
    let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
        "metadata": {"name": "all", "namespace": "default"},
        "spec": {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}});
    stage.put(&place, "default", budget).await;
    stage.sleep(5).await;
    let node = stage.node();
    stage.delete(Kind::Node, "", &node).await;
    stage.sleep(60).await;
    let snapshot = stage.shared.world.snapshot();
    assert!(snapshot.pod("default/web").unwrap().is_active());
    assert!(snapshot.claim("c").unwrap().meta.deleting.is_some());
    let nodes = stage.events("Node").await;
    assert!(nodes.iter().any(|own| own == "FailedDraining"), "{nodes:?}");
    assert!(stage.measured("karpenter_pods_eviction_requests_total{code=\"429\"}"));
    stage
        .delete(Kind::PodDisruptionBudget, "default", "all")
        .await;
    stage.all_gone(60).await;
}

#[tokio::test(start_paused = true)]
async fn a_grace_period_ends_even_a_pod_that_must_not_be_disturbed() {
    let stage = Stage::start(false).await;
    stage.claim(&json!({"terminationGracePeriod": "60s"})).await;
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "true"}},
        "spec": {"terminationGracePeriodSeconds": 30}});
    stage.pod("web", &protected).await;
    stage.delete(Kind::NodeClaim, "", "c").await;
    stage.sleep(25).await;
    let snapshot = stage.shared.world.snapshot();
    assert!(snapshot.pod("default/web").unwrap().is_active());
    stage
        .until("on its way out", 8, |now| {
            now.pod("default/web").is_none_or(|pod| !pod.is_active())
        })
        .await;
    stage.all_gone(60).await;
    let pods = stage.events("Pod").await;
    assert!(pods.iter().any(|own| own == "Disrupted"), "{pods:?}");
}

#[tokio::test(start_paused = true)]
async fn do_not_disrupt_for_a_minute_is_a_minute() {
    let stage = Stage::start(false).await;
    stage.claim(&json!({})).await;
    let protected = json!({"metadata": {"annotations": {"karpenter.sh/do-not-disrupt": "1m"}}});
    stage.pod("web", &protected).await;
    let started = stage
        .shared
        .world
        .snapshot()
        .pod("default/web")
        .unwrap()
        .started;
    stage.delete(Kind::NodeClaim, "", "c").await;
    let until = started.unwrap() + Duration::from_secs(59);
    stage.shared.clock.sleep_until(until).await;
    assert!(
        stage
            .shared
            .world
            .snapshot()
            .pod("default/web")
            .unwrap()
            .is_active()
    );
    stage.sleep(3).await;
    let snapshot = stage.shared.world.snapshot();
    assert!(
        snapshot
            .pod("default/web")
            .is_none_or(|pod| !pod.is_active())
    );
    stage.all_gone(60).await;
}

#[tokio::test(start_paused = true)]
async fn the_claim_stays_as_long_as_somebody_holds_the_node() {
    let stage = Stage::start(false).await;
    stage.claim(&json!({})).await;
    let held =
        json!({"metadata": {"finalizers": ["example.com/hold", "karpenter.sh/termination"]}});
    stage.patch_node(held).await;
    stage.delete(Kind::NodeClaim, "", "c").await;
    stage
        .until("terminating", 60, |now| {
            now.claim("c")
                .is_some_and(|claim| claim.is_true("InstanceTerminating"))
        })
        .await;
    stage.sleep(60).await;
    let snapshot = stage.shared.world.snapshot();
    let node = snapshot.nodes().next().unwrap();
    assert_eq!(node.meta.finalizers.len(), 1, "ours is off");
    assert!(snapshot.claim("c").is_some());
    stage
        .patch_node(json!({"metadata": {"finalizers": null}}))
        .await;
    stage.all_gone(30).await;
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_changes_nothing() {
    let stage = Stage::start(true).await;
    stage.wish(&json!({})).await;
    stage.sleep(60).await;
    let snapshot = stage.shared.world.snapshot();
    let claim = snapshot.claim("c").unwrap();
    assert!(claim.meta.finalizers.is_empty() && claim.conditions().is_empty());
    assert!(stage.cloud.instances().await.unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn core_323_two_budgets_hold_a_pod_whatever_they_say() {
    let stage = Stage::start(false).await;
    stage.claim(&json!({})).await;
    stage.pod("web", &json!({})).await;
    let place = Followed::kind(Kind::PodDisruptionBudget).resource;
    for name in ["one", "two"] {
        let budget = json!({"apiVersion": "policy/v1", "kind": "PodDisruptionBudget",
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"minAvailable": 0, "selector": {"matchLabels": {"app": "web"}}}});
        stage.put(&place, "default", budget).await;
    }
    stage.sleep(5).await;
    stage.delete(Kind::NodeClaim, "", "c").await;
    stage.sleep(30).await;
    let snapshot = stage.shared.world.snapshot();
    assert!(snapshot.pod("default/web").unwrap().is_active());
    let told = stage.messages("Node").await;
    let wanted = "eviction does not support multiple PDBs (Pod=default/web)";
    assert!(told.iter().any(|own| own.contains(wanted)), "{told:?}");
    stage
        .delete(Kind::PodDisruptionBudget, "default", "two")
        .await;
    stage.all_gone(60).await;
}

#[tokio::test(start_paused = true)]
async fn core_216_a_claim_of_a_missing_class_is_given_up() {
    let stage = Stage::start(false).await;
    stage
        .wish(&json!({"nodeClassRef": {"name": "missing"}}))
        .await;
    stage.sleep(30).await;
    stage.all_gone(0).await;
    let rows = stage.shared.metrics.render();
    let mut rows = rows.lines();
    let counted = rows.any(|own| {
        own.starts_with("karpenter_nodeclaims_disrupted_total{") && own.contains("graceful")
    });
    assert!(counted);
}

#[tokio::test(start_paused = true)]
async fn core_224_a_machine_that_never_joins_is_given_up() {
    let stage = Stage::start(false).await;
    let place = resource(
        "karpenter.kwok.sh",
        "v1alpha1",
        "kwoknodeclasses",
        "KWOKNodeClass",
    );
    let class = json!({"apiVersion": "karpenter.kwok.sh/v1alpha1", "kind": "KWOKNodeClass",
        "metadata": {"name": "slow"}, "spec": {"nodeRegistrationDelay": "2h"}});
    stage.put(&place, "", class).await;
    stage.wish(&json!({"nodeClassRef": {"name": "slow"}})).await;
    stage.sleep(14 * 60).await;
    let snapshot = stage.shared.world.snapshot();
    let claim = snapshot.claim("c").unwrap();
    assert!(claim.is_true("Launched") && claim.is_unknown("Registered"));
    stage.all_gone(3 * 60).await;
    let rows = stage.shared.metrics.render();
    assert!(rows.contains("reason=\"registration_timeout\""));
}

/// Deletes the claim behind our back, just before the cloud answers.
struct Meddling {
    cloud: Arc<dyn Cloud>,
    client: kube::Client,
}

#[async_trait]
impl Cloud for Meddling {
    fn name(&self) -> &'static str {
        self.cloud.name()
    }

    fn classes(&self) -> &'static [ClassKind] {
        self.cloud.classes()
    }

    async fn instance_types(
        &self,
        class: &NodeClass,
    ) -> Result<Arc<Vec<joiner_model::InstanceType>>, CatalogError> {
        self.cloud.instance_types(class).await
    }

    async fn launch(&self, order: &Order) -> Result<Instance, LaunchError> {
        let instance = self.cloud.launch(order).await;
        let place = Followed::kind(Kind::NodeClaim).resource;
        let api: kube::Api<DynamicObject> = kube::Api::all_with(self.client.clone(), &place);
        let deleted = api.delete(&order.claim, &DeleteParams::default()).await;
        deleted.unwrap();
        instance
    }

    async fn terminate(&self, id: &ProviderId) -> Result<Termination, CloudError> {
        self.cloud.terminate(id).await
    }

    async fn instance(&self, id: &ProviderId) -> Result<Option<Instance>, CloudError> {
        self.cloud.instance(id).await
    }

    async fn instances(&self) -> Result<Vec<Instance>, CloudError> {
        self.cloud.instances().await
    }

    async fn drift(
        &self,
        claim: &joiner_api::types::NodeClaim,
        class: &NodeClass,
    ) -> Result<Option<joiner_model::Name>, CloudError> {
        self.cloud.drift(claim, class).await
    }
}

#[tokio::test(start_paused = true)]
async fn a_claim_that_is_deleted_while_it_is_launched_leaves_no_machine_behind() {
    let stage =
        Stage::start_with(false, |cloud, client| Arc::new(Meddling { cloud, client })).await;
    stage.wish(&json!({})).await;
    stage.sleep(60).await;
    assert!(stage.measured("karpenter_nodeclaims_terminated_total"));
    stage.all_gone(0).await;
}
