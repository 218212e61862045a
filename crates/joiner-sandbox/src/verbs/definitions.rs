//! The server's part in the life of definitions: it accepts their names, serves their kinds, and
//! takes their objects along when they go.

use std::sync::Arc;

use jiff::Timestamp;
use joiner_machinery::crd::{self, Termination};
use joiner_machinery::{Kind, apply, meta};
use serde_json::{Value, json};

use crate::server::Server;
use crate::store::{Inner, Resource, packed};
use crate::verbs::remove::{self, How};

/// Rounds after which definitions that still change one another are left alone.
const ROUNDS_MAX: usize = 10;

/// Where definitions are stored.
pub(crate) fn resource() -> Resource {
    (
        "apiextensions.k8s.io".to_owned(),
        "customresourcedefinitions".to_owned(),
    )
}

/// True for the kind of definitions.
pub(crate) fn is_definition(kind: &Kind) -> bool {
    kind.is("apiextensions.k8s.io", "CustomResourceDefinition")
}

/// True when the definition of a custom kind has been deleted and waits for its objects.
pub(crate) fn is_going(store: &Inner, kind: &Kind) -> bool {
    let key = (String::new(), kind.resource());
    kind.custom.is_some()
        && store
            .get(&resource(), &key)
            .is_some_and(|crd| meta::is_deleting(crd))
}

/// What a change to an object means for definitions: they are looked at after a change to one of
/// them, and after one to an object that a definition waits for.
pub(crate) fn after_change(server: &Server, kind: &Kind) {
    let is_one = is_definition(kind);
    if is_one || kind.custom.is_some() && server.store.with(|s| is_going(s, kind)) {
        settle(server);
        server.reload_kinds();
    }
}

fn settle(server: &Server) {
    let now = server.clock.now();
    for _ in 0..ROUNDS_MAX {
        if !server.store.with(|s| round(server, s, now)) {
            return;
        }
    }
}

/// Looks at every definition once; true when something has changed.
fn round(server: &Server, store: &mut Inner, now: Timestamp) -> bool {
    let all = store.objects(&resource()).into_iter();
    let all: Vec<Arc<Value>> = all.flat_map(|all| all.values().cloned()).collect();
    let mut has_changed = false;
    for crd in &all {
        if meta::is_deleting(crd) {
            has_changed |= end(server, store, crd, now);
            continue;
        }
        let others = all.iter().filter(|other| !meta::is_deleting(other));
        let status = crd::settled_status(crd, others.map(AsRef::as_ref), now);
        if status != crd["status"] {
            write_status(server, store, crd, status, now);
            return true;
        }
    }
    has_changed
}

/// Writes a status as the server itself.
fn write_status(
    server: &Server,
    store: &mut Inner,
    crd: &Value,
    status: Value,
    now: Timestamp,
) -> Value {
    let mut before = crd.clone();
    packed::unpack(&mut before);
    let mut new = before.clone();
    new["status"] = status;
    let writer = apply::Writer {
        manager: "kube-apiserver",
        subresource: Some("status"),
        now,
    };
    let (group, plural) = resource();
    if let Ok(served) = server.registry().find(&group, "v1", &plural) {
        apply::record(&served.kind, Some(&before), &mut new, &writer);
    }
    let key = (String::new(), meta::name(crd).to_owned());
    Value::clone(&store.put(&resource(), &key, new))
}

/// Takes the objects of a definition along, and the definition once they are gone.
fn end(server: &Server, store: &mut Inner, crd: &Value, now: Timestamp) -> bool {
    let has_finalizer = |value: &Value| {
        let list = value["metadata"]["finalizers"].as_array();
        list.is_some_and(|list| list.iter().any(|f| f == crd::FINALIZER))
    };
    if !has_finalizer(crd) {
        return false;
    }
    let mut crd = crd.clone();
    let begun = crd::terminating(&crd, Termination::InProgress, now);
    let is_new = begun != crd["status"];
    if is_new {
        crd = write_status(server, store, &crd, begun, now);
    }
    if remove_objects(store, &crd, now) > 0 {
        return is_new;
    }
    let done = crd::terminating(&crd, Termination::Completed, now);
    if let Some(list) = crd["metadata"]["finalizers"].as_array_mut() {
        list.retain(|f| f != crd::FINALIZER);
    }
    let is_last = crd["metadata"]["finalizers"] == json!([]);
    write_status(server, store, &crd, done, now);
    if is_last {
        let key = (String::new(), meta::name(&crd).to_owned());
        store.remove(&resource(), &key);
    }
    true
}

/// Deletes the objects of a definition; those with finalizers are marked. Returns how many are left.
fn remove_objects(store: &mut Inner, crd: &Value, now: Timestamp) -> usize {
    // What is not served any more goes, too.
    let mut served = crd.clone();
    for version in served["spec"]["versions"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        version["served"] = json!(true);
    }
    let Some(kind) = crd::custom_kinds(&served).into_iter().next() else {
        return 0;
    };
    let custom: Resource = (kind.group.clone(), kind.plural.clone());
    let all = store.objects(&custom).into_iter().flatten();
    let all: Vec<_> = all
        .map(|(key, object)| (key.clone(), Arc::clone(object)))
        .collect();
    let mut n_left = 0;
    for (key, object) in all {
        let marked = remove::marked(&kind, &object, &How::default(), now);
        if remove::is_finished(&kind, &marked) {
            store.remove(&custom, &key);
            continue;
        }
        n_left += 1;
        if marked != *object {
            store.put(&custom, &key, marked);
        }
    }
    n_left
}
