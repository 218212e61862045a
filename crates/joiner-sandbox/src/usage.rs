//! `metrics.k8s.io`: what nodes and pods use, computed when asked.

use std::sync::Arc;

use http::{Method, StatusCode};
use joiner_cluster::{View, metrics};
use joiner_machinery::selector::LabelSelector;
use joiner_machinery::{ApiError, meta};
use serde_json::Value;

use crate::exchange::{Reply, Request};
use crate::server::Server;
use crate::verbs::{About, not_allowed};

/// GET of usage, of one object or of all.
pub(crate) fn read(
    server: &Arc<Server>,
    about: &About,
    request: &Request,
) -> Result<Reply, ApiError> {
    if request.method != Method::GET {
        return Err(not_allowed(&request.method));
    }
    let load = metrics::Load::default();
    let now = server.clock.now();
    let labels = LabelSelector::parse(request.param("labelSelector").unwrap_or(""))?;
    let is_nodes = about.served.kind.plural == "nodes";
    let mut list = server.store.with(|s| {
        let view = View {
            kinds: s.kinds(),
            now,
            seed: 0,
        };
        if is_nodes {
            metrics::node_metrics_list(&view, &load)
        } else {
            metrics::pod_metrics_list(&view, about.namespace.as_deref(), &load)
        }
    });
    if let Some(items) = list["items"].as_array_mut() {
        items.retain(|item| labels.matches(item));
        if let Some(name) = about.name.as_deref() {
            let found = items.iter().find(|item| meta::name(item) == name).cloned();
            let found: Value =
                found.ok_or_else(|| ApiError::not_found(&about.served.kind, name))?;
            return Ok(Reply::json(StatusCode::OK, &found));
        }
    }
    Ok(Reply::json(StatusCode::OK, &list))
}
