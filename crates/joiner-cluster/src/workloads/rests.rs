//! Who had nothing to do at the last look, and need not be looked at before something changes.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use joiner_machinery::meta;
use serde_json::Value;

use crate::fields;
use crate::view::{Resource, Step, View};

/// Workloads at rest, by uid.
#[derive(Default)]
pub(crate) struct Rests(BTreeMap<String, Rest>);

struct Rest {
    object: Arc<Value>,
    wake: Option<Timestamp>,
}

impl Rests {
    /// Looks at every workload of a kind that is not at rest. `is_touched` says whether something
    /// that it depends on has changed; `look` decides what to do with it.
    pub(crate) fn look<'a>(
        &mut self,
        view: &View<'a>,
        resource: Resource,
        is_touched: impl Fn(&Value) -> bool,
        mut look: impl FnMut(&'a Value) -> Step,
    ) -> Step {
        let mut all = Step::default();
        let mut count = 0;
        for object in view.all(resource) {
            count += 1;
            let uid = meta::uid(object);
            let rest = self.0.get(uid).filter(|rest| {
                let is_due = rest.wake.is_some_and(|wake| wake <= view.now);
                Arc::ptr_eq(&rest.object, object) && !is_due && !is_touched(object)
            });
            if let Some(rest) = rest {
                all.wake = fields::sooner(all.wake, rest.wake);
                continue;
            }
            let step = look(object);
            if step.actions.is_empty() {
                let (object, wake) = (Arc::clone(object), step.wake);
                self.0.insert(uid.to_owned(), Rest { object, wake });
            } else {
                self.0.remove(uid);
            }
            all.actions.extend(step.actions);
            all.wake = fields::sooner(all.wake, step.wake);
        }
        if self.0.len() > count {
            self.prune(view, resource);
        }
        all
    }

    /// Forgets workloads that are gone.
    fn prune(&mut self, view: &View<'_>, resource: Resource) {
        self.0.retain(|_, rest| {
            let (namespace, name) = (meta::namespace(&rest.object), meta::name(&rest.object));
            let there = view.get(resource, namespace, name);
            there.is_some_and(|there| meta::uid(there) == meta::uid(&rest.object))
        });
    }
}
