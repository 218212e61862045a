//! How long claims live: their pool said so until v1, since then they do.

use super::fields::{at, put};
use super::remark::Remarks;
use crate::labels::NODE_POOL;
use serde_json::Value;
use std::collections::BTreeMap;

/// Age at which nodes of a pool go, by the pool's name.
pub(super) type Lives = BTreeMap<String, Value>;

/// Notes how long nodes of a v1 pool live.
pub(super) fn of_pool(pool: &Value, lives: &mut Lives) {
    let name = at(pool, &["metadata", "name"]).and_then(Value::as_str);
    let life = at(pool, &["spec", "template", "spec", "expireAfter"]);
    if let Some(name) = name {
        let life = life.cloned().unwrap_or_else(|| "720h".into());
        lives.insert(name.to_owned(), life);
    }
}

/// Writes into a converted claim how long it lives.
pub(super) fn of_claim(claim: &mut Value, lives: &Lives, remarks: &mut Remarks<'_>) {
    let path = ["spec", "expireAfter"];
    if at(claim, &path).is_some() {
        return;
    }
    let pool = at(claim, &["metadata", "labels", NODE_POOL]).and_then(Value::as_str);
    let life = match pool {
        None => "Never".into(),
        Some(pool) => match lives.get(pool) {
            Some(life) => life.clone(),
            None => {
                let message = format!(
                    "its NodePool {pool} is not in the input: expireAfter is Never; write what the \
                     pool says"
                );
                remarks.hand(path.join("."), message);
                "Never".into()
            }
        },
    };
    put(claim, &path, life);
}
