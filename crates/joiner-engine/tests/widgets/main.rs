//! A kind of objects and a controller of its own, on the embedded control plane: the example of
//! `docs/guide/contributing-a-controller.md`.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod live_widget;
mod sizing;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use joiner_engine::{Controller, Shared, run};
use joiner_runtime::{
    Api, Build, Clock, DecisionSettings, Decisions, Events, Followed, Metrics, World, follow,
};
use joiner_sandbox::{Sandbox, Settings};
use joiner_state::live::ClusterState;
use kube::api::{ApiResource, DynamicObject, PostParams};
use serde_json::{Value, json};

use live_widget::{LiveWidget, WIDGET};
use sizing::Sizing;

/// An embedded control plane that knows Widgets, and a controller for them.
struct Stage {
    sandbox: Sandbox,
    shared: Shared,
}

impl Stage {
    async fn start(dry_run: bool) -> Self {
        let clock = Clock::new(Timestamp::from_second(1_800_000_000).unwrap(), 1);
        let sandbox = Sandbox::start(clock.clone(), &Settings::default()).unwrap();
        let client = sandbox.client();
        let crds = joiner_runtime::resource(
            "apiextensions.k8s.io",
            "v1",
            "customresourcedefinitions",
            "CustomResourceDefinition",
        );
        create(&client, &crds, definition()).await;
        let metrics = Arc::new(Metrics::new(clock.clone(), &Build::default()));
        let (events, writer) =
            Events::new(client.clone(), clock.clone(), Arc::clone(&metrics), dry_run);
        tokio::spawn(writer.run());
        let world = World::start_with(ClusterState::default().with::<LiveWidget>());
        world.expect(WIDGET, "");
        tokio::spawn(follow(
            client.clone(),
            Followed::kind(WIDGET),
            world.clone(),
        ));
        let shared = Shared {
            api: Api::new(client, world.clone(), dry_run),
            world,
            clock,
            events,
            decisions: Decisions::new(&DecisionSettings::default(), Arc::clone(&metrics)),
            metrics,
        };
        let controller = Controller::keyed(Sizing(shared.clone()));
        tokio::spawn(run(controller, shared.clone()));
        Self { sandbox, shared }
    }

    async fn put(&self, name: &str, size: i64) {
        let widget = json!({"apiVersion": "example.com/v1", "kind": "Widget",
            "metadata": {"name": name}, "spec": {"size": size}});
        let widgets = Followed::kind(WIDGET).resource;
        create(&self.sandbox.client(), &widgets, widget).await;
        self.shared.clock.sleep(Duration::from_secs(5)).await;
    }

    fn label(&self, name: &str) -> Option<String> {
        let now = self.shared.world.snapshot();
        let widget = now.get::<LiveWidget>(name)?;
        widget.meta.label("size").map(str::to_owned)
    }
}

fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com"},
        "spec": {"group": "example.com", "scope": "Cluster",
            "names": {"plural": "widgets", "singular": "widget", "kind": "Widget"},
            "versions": [{"name": "v1", "served": true, "storage": true,
                "subresources": {"status": {}}, "schema": {"openAPIV3Schema": schema}}]}})
}

async fn create(client: &kube::Client, resource: &ApiResource, object: Value) {
    let api: kube::Api<DynamicObject> = kube::Api::all_with(client.clone(), resource);
    let object = serde_json::from_value(object).unwrap();
    api.create(&PostParams::default(), &object).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn a_kind_and_a_controller_of_its_own_take_two_files() {
    let stage = Stage::start(false).await;
    stage.put("a", 3).await;
    stage.put("b", 30).await;
    assert_eq!(stage.label("a").as_deref(), Some("small"));
    assert_eq!(stage.label("b").as_deref(), Some("large"));
    let rows = stage.shared.metrics.render();
    assert!(rows.contains("controller=\"widget.sizing\""), "{rows}");
}

#[tokio::test(start_paused = true)]
async fn a_dry_run_decides_and_writes_nothing() {
    let stage = Stage::start(true).await;
    stage.put("a", 3).await;
    assert_eq!(stage.label("a"), None);
    let rows = stage.shared.metrics.render();
    assert!(rows.contains("controller=\"widget.sizing\""), "{rows}");
}

#[test]
fn the_guide_shows_these_files_and_they_are_short() {
    let guide = include_str!("../../../../docs/guide/contributing-a-controller.md");
    let files = [include_str!("live_widget.rs"), include_str!("sizing.rs")];
    assert!(files.iter().all(|file| guide.contains(file)));
    let n_lines: usize = files.iter().map(|file| file.lines().count()).sum();
    assert!(n_lines < 80, "{n_lines} lines");
}
