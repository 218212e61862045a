//! Admission must be cheap enough to read ten thousand pools in a few seconds.

use crate::support::full_node_pool;
use joiner_api::admit;
use serde_json::Value;
use std::time::Instant;

const POOLS: usize = 10_000;

#[test]
#[ignore = "a measurement: run with --release -- --ignored --nocapture"]
fn ten_thousand_pools() {
    let mut pools: Vec<Value> = (0..POOLS)
        .map(|index| {
            let mut pool = full_node_pool();
            pool["metadata"]["name"] = format!("pool-{index}").into();
            pool
        })
        .collect();
    let start = Instant::now();
    admit(&mut pools[0].clone())
        .expect("the example is fine")
        .warnings
        .clear();
    println!(
        "the first, with all schemas compiled: {:?}",
        start.elapsed()
    );
    let start = Instant::now();
    for pool in &mut pools {
        assert!(admit(pool).is_ok());
    }
    let elapsed = start.elapsed();
    println!(
        "{POOLS} pools in {elapsed:?}, {:?} each",
        elapsed / POOLS as u32
    );
    assert!(elapsed.as_secs() < 5);
}
