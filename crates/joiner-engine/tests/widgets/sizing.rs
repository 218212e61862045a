//! Labels Widgets by their size: controller `widget.sizing`.

use std::sync::Arc;

use futures::FutureExt as _;
use joiner_engine::{Keyed, Next, Reconcile, Shared, write};
use joiner_model::Name;
use joiner_state::live::{Change, Snapshot};
use serde_json::json;

use crate::live_widget::{LiveWidget, WIDGET};

pub(crate) struct Sizing(pub(crate) Shared);

impl Keyed for Sizing {
    fn name(&self) -> &'static str {
        "widget.sizing"
    }

    fn keys(&self, change: &Change, _: &Snapshot) -> Vec<Name> {
        change.of_kind(WIDGET)
    }

    fn all(&self, now: &Snapshot) -> Vec<Name> {
        now.names::<LiveWidget>()
    }

    fn reconcile<'a>(&'a self, now: &'a Arc<Snapshot>, key: &'a Name) -> Reconcile<'a> {
        async move {
            if let Some(wanted) = now.get::<LiveWidget>(key).and_then(|widget| label(widget)) {
                let patch = json!({"metadata": {"labels": {"size": wanted}}});
                write::patch(&self.0, WIDGET, key, &patch).await?;
            }
            Ok(Next::Done)
        }
        .boxed()
    }
}

/// The label that a Widget lacks, if any.
fn label(widget: &LiveWidget) -> Option<&'static str> {
    let wanted = if widget.size < 10 { "small" } else { "large" };
    (widget.meta.label("size") != Some(wanted)).then_some(wanted)
}
