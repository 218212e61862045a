//! Widgets, as controllers see them.

use joiner_model::Name;
use joiner_state::live::{Kind, KindApi, Live, Meta, Reading};
use serde_json::Value;

pub(crate) const WIDGET: Kind = Kind::new(&KindApi {
    group: "example.com",
    kind: "Widget",
    version: "v1",
    plural: "widgets",
});

#[derive(Debug)]
pub(crate) struct LiveWidget {
    pub(crate) meta: Meta,
    pub(crate) size: i64,
}

impl Live for LiveWidget {
    const KINDS: &'static [Kind] = &[WIDGET];

    fn read(object: &Value, reading: &mut Reading<'_>) -> Result<Self, String> {
        Ok(Self {
            meta: reading.meta(object),
            size: object["spec"]["size"]
                .as_i64()
                .ok_or("spec.size is no number")?,
        })
    }

    fn identity(&self) -> (&Name, u64) {
        self.meta.identity()
    }
}
