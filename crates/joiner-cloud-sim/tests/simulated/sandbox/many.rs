//! Many machines, and many crashes.

use futures::StreamExt;
use joiner_cloud::Cloud;
use joiner_cloud_sim::{Delays, Settings, State};

use crate::sandbox::support::{World, ec2_order, kwok_order};

const N_MACHINES: usize = 150;

#[tokio::test(start_paused = true)]
async fn crashes_at_any_moment_neither_lose_nor_double_machines() {
    let world = World::new(Settings {
        delays: Delays {
            launch: "1s".parse().unwrap(),
            boot: "5s~0.8".parse().unwrap(),
            ..Delays::default()
        },
        ..Settings::default()
    });
    let orders = (0..N_MACHINES).map(|n| match n % 2 {
        0 => kwok_order(&format!("web-{n}")),
        _ => ec2_order(&format!("web-{n}")),
    });
    let orders: Vec<_> = orders.collect();
    for round in 0..10 {
        // Each round places some orders, again and anew, and dies in the middle of it.
        let some = orders.iter().take(N_MACHINES * (round + 1) / 10);
        let cloud = world.cloud();
        let placed = futures::stream::iter(some)
            .map(|order| cloud.launch(order))
            .buffer_unordered(8);
        let n_placed = placed.take(N_MACHINES * (round + 1) / 12).count().await;
        assert!(n_placed > 0);
        world.crash();
    }
    for order in &orders {
        world.launch(order).await;
    }
    world.pass(120).await;
    let records = world.records().await;
    assert_eq!(records.len(), N_MACHINES);
    assert!(records.iter().all(|record| record.state == State::Running));
    let mut names: Vec<_> = records
        .iter()
        .map(|record| record.node_name.clone())
        .collect();
    names.sort_unstable();
    assert_eq!(world.node_names().await, names);
    assert_eq!(world.cloud().instances().await.unwrap().len(), N_MACHINES);
    for record in &records {
        let id = record.instance().id;
        world.cloud().terminate(&id).await.unwrap();
    }
    world.pass(10).await;
    assert!(world.node_names().await.is_empty());
    assert!(world.records().await.is_empty());
}
