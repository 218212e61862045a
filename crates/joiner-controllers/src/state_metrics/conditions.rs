//! Controller `operatorpkg.status`: metrics about the conditions of claims, pools and nodes.
//!
//! It sees every object after each change. Events about a change come from the code that made it; only
//! the conditions of Nodes are written by others, and events about them come from here.

use std::sync::Arc;

use futures::FutureExt as _;
use joiner_api::labels::{INITIALIZED, NODE_POOL, node_class_label};
use joiner_api::types::Condition;
use joiner_cloud::Cloud;
use joiner_engine::events::{self, ConditionChange};
use joiner_engine::{Keyed, Next, Reconcile, Shared};
use joiner_model::Name;
use joiner_runtime::metric_names::{
    ConditionFamilies, NODE_CONDITIONS, NODECLAIM_CONDITIONS, NODEPOOL_CONDITIONS,
};
use joiner_runtime::{ConditionMetrics, Seen};
use joiner_state::live::{Change, LiveNode, Meta, Snapshot};

/// Shows claims, pools and nodes to the metrics whenever they change. Keys are `Kind/name`.
pub(super) struct ConditionObserver {
    shared: Shared,
    cloud: Arc<dyn Cloud>,
    metrics: ConditionMetrics,
}

impl ConditionObserver {
    pub(super) fn new(shared: &Shared, cloud: &Arc<dyn Cloud>) -> Self {
        Self {
            shared: shared.clone(),
            cloud: Arc::clone(cloud),
            metrics: ConditionMetrics::new(Arc::clone(&shared.metrics), &shared.clock),
        }
    }

    fn observe(&self, now: &Snapshot, key: &str) {
        let Some((kind, name)) = key.split_once('/') else {
            return;
        };
        match kind {
            "NodeClaim" => {
                let seen = now.claim(name).map(|claim| {
                    let class = &claim.claim.spec.node_class_ref;
                    let class = node_class_label(&class.group, &class.kind);
                    let keys = vec![class, NODE_POOL.to_owned()];
                    (&claim.meta, claim.conditions().to_vec(), keys)
                });
                self.show(&NODECLAIM_CONDITIONS, name, seen);
            }
            "NodePool" => {
                let seen = now.pool(name).map(|pool| {
                    let status = pool.pool.status.as_ref();
                    let conditions = status.and_then(|status| status.conditions.clone());
                    (&pool.meta, conditions.unwrap_or_default(), Vec::new())
                });
                self.show(&NODEPOOL_CONDITIONS, name, seen);
            }
            "Node" => self.show_node(name, now.node(name).map(AsRef::as_ref)),
            _ => {}
        }
    }

    fn show(
        &self,
        of: &'static ConditionFamilies,
        name: &str,
        seen: Option<(&Meta, Vec<Condition>, Vec<String>)>,
    ) {
        let Some((meta, conditions, keys)) = seen else {
            return self.metrics.gone(of, name, self.shared.clock.now());
        };
        let conditions = conditions.into_iter();
        let conditions = conditions.map(|condition| joiner_runtime::Condition {
            since: condition
                .last_transition_time
                .parse()
                .unwrap_or(meta.created),
            kind: condition.type_,
            status: condition.status.as_str().to_owned(),
            reason: condition.reason.unwrap_or_default(),
        });
        let labels = labels(meta, &keys);
        self.metrics.seen(Seen {
            of,
            name,
            labels: &labels,
            conditions: conditions.collect(),
            deleting: meta.deleting,
        });
    }

    /// Nodes of classes that the cloud knows.
    fn show_node(&self, name: &str, seen: Option<&LiveNode>) {
        let classes = self.cloud.classes().iter();
        let mut keys: Vec<String> = classes
            .map(|class| node_class_label(class.group, class.kind))
            .collect();
        let is_managed = |node: &&LiveNode| keys.iter().any(|key| node.meta.label(key).is_some());
        let Some(node) = seen.filter(is_managed) else {
            let now = self.shared.clock.now();
            return self.metrics.gone(&NODE_CONDITIONS, name, now);
        };
        keys.extend([NODE_POOL.to_owned(), INITIALIZED.to_owned()]);
        let conditions = node.conditions.iter();
        let conditions = conditions.map(|condition| joiner_runtime::Condition {
            kind: condition.kind.to_string(),
            status: condition.status.to_string(),
            reason: String::new(),
            since: condition.since,
        });
        let labels = labels(&node.meta, &keys);
        let changes = self.metrics.seen(Seen {
            of: &NODE_CONDITIONS,
            name,
            labels: &labels,
            conditions: conditions.collect(),
            deleting: node.meta.deleting,
        });
        // A condition that is new was not another one before.
        for change in changes.iter().filter(|change| !change.from.is_empty()) {
            let change = ConditionChange {
                kind: &change.kind,
                from: &change.from,
                to: &change.to,
                reason: &change.reason,
                message: "",
            };
            events::condition_changed(&self.shared.events, &events::node(node), &change);
        }
    }
}

fn labels<'a>(meta: &'a Meta, keys: &'a [String]) -> Vec<(&'a str, &'a str)> {
    let pairs = keys.iter();
    let pairs = pairs.map(|key| (key.as_str(), meta.label(key).unwrap_or_default()));
    pairs.collect()
}

impl Keyed for ConditionObserver {
    fn name(&self) -> &'static str {
        "operatorpkg.status"
    }

    fn keys(&self, change: &Change, _: &Snapshot) -> Vec<Name> {
        // Nodes say often that they are alive; that alone is nothing new, but cheap to look at.
        let (_, _, _, kind) = change.kind.api();
        if ["NodeClaim", "NodePool", "Node"].contains(&kind) {
            vec![format!("{kind}/{}", change.name).into()]
        } else {
            Vec::new()
        }
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        let key = |kind: &str, name: &Name| Name::from(format!("{kind}/{name}"));
        let claims = now.claims().map(|claim| key("NodeClaim", claim.name()));
        let pools = now.pools().map(|pool| key("NodePool", pool.name()));
        let nodes = now.nodes().map(|node| key("Node", node.name()));
        claims.chain(pools).chain(nodes).collect()
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        async move {
            self.observe(now, key);
            Ok(Next::Done)
        }
        .boxed()
    }
}
