//! The contract, kept by machines of both kinds of classes.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use joiner_cloud::conformance::{Subject, check};
use joiner_cloud::{Cloud, NodeClass};
use joiner_cloud_sim::{Delays, Faults, HeldRegistration, Match, Settings, Shortage, Throttle};
use joiner_model::{Labels, Name, keys};
use serde_json::json;

use crate::sandbox::support::{World, ec2_class, kwok_class};

struct Simulated {
    world: World,
    class: NodeClass,
}

#[async_trait]
impl Subject for Simulated {
    fn cloud(&self) -> Arc<dyn Cloud> {
        self.world.cloud()
    }

    async fn crash(&self) {
        self.world.crash();
    }

    fn class(&self) -> NodeClass {
        self.class.clone()
    }

    fn unready_class(&self) -> NodeClass {
        let mut object = (*self.class.object).clone();
        object["status"]["conditions"] = json!([{"type": "Ready", "status": "Unknown"}]);
        NodeClass {
            object: Arc::new(object),
            ..self.class.clone()
        }
    }

    async fn pass(&self, time: Duration) {
        tokio::time::sleep(time).await;
    }

    async fn sell_out(&self, offerings: &[(Name, Labels)]) {
        let shortage = |(ty, labels): &(Name, Labels)| Shortage {
            of: Match {
                instance_type: Some(ty.to_string()),
                zone: labels.get(keys::ZONE).map(ToString::to_string),
                capacity_type: labels.get(keys::CAPACITY_TYPE).map(ToString::to_string),
                ..Match::default()
            },
        };
        self.world.cloud().set_faults(Faults {
            shortages: offerings.iter().map(shortage).collect(),
            ..Faults::default()
        });
    }

    async fn throttle(&self, on: bool) {
        let nothing = Throttle {
            calls_per_second: 0,
            burst: 0,
        };
        self.world.cloud().set_faults(Faults {
            throttle: on.then_some(nothing),
            ..Faults::default()
        });
    }
}

async fn conforms(class: NodeClass, delays: Delays) {
    let settings = Settings {
        delays,
        ..Settings::default()
    };
    conforms_with(class, settings).await;
}

async fn conforms_with(class: NodeClass, settings: Settings) {
    let subject = Simulated {
        world: World::new(settings),
        class,
    };
    let violations: Vec<String> = check(&subject)
        .await
        .iter()
        .map(ToString::to_string)
        .collect();
    assert!(violations.is_empty(), "{violations:#?}");
    subject.world.pass(300).await;
    assert!(
        subject.world.node_names().await.is_empty(),
        "nodes go with their machines"
    );
}

fn slow() -> Delays {
    Delays {
        launch: "2s".parse().unwrap(),
        boot: "10s..60s".parse().unwrap(),
        shutdown: "30s~0.5".parse().unwrap(),
    }
}

#[tokio::test(start_paused = true)]
async fn kwok_classes_keep_the_contract() {
    conforms(kwok_class(json!({})), Delays::default()).await;
}

#[tokio::test(start_paused = true)]
async fn slow_kwok_classes_keep_the_contract() {
    conforms(kwok_class(json!({})), slow()).await;
}

#[tokio::test(start_paused = true)]
async fn ec2_classes_keep_the_contract() {
    conforms(ec2_class(), Delays::default()).await;
}

#[tokio::test(start_paused = true)]
async fn slow_ec2_classes_keep_the_contract() {
    conforms(ec2_class(), slow()).await;
}

#[tokio::test(start_paused = true)]
async fn held_registrations_keep_the_contract() {
    let held = HeldRegistration {
        hold_seconds: 90,
        labels: [("example.com/rack".to_owned(), "r1".to_owned())].into(),
    };
    let mut settings = Settings {
        delays: slow(),
        ..Settings::default()
    };
    settings.faults.registration = Some(held);
    conforms_with(ec2_class(), settings).await;
}
