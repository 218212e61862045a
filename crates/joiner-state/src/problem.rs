//! From objects to a problem.

mod expand;
mod pods;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use joiner_model::{InstanceType, Labels, Name, Policy, Problem, TypeIx, keys};

use self::pods::{Builder, built_in_priority};
use crate::documents::Source;
use crate::draft::Priority;
use crate::error::ReadError;
use crate::objects::Objects;
use crate::pools::NodeClassRef;

/// The label that every namespace has.
const NAMESPACE_NAME: &str = "kubernetes.io/metadata.name";

/// The instance types on sale, for each node class.
#[derive(Clone, Debug, Default)]
pub struct Catalog {
    shared: Arc<Vec<InstanceType>>,
    per_class: BTreeMap<NodeClassRef, Arc<Vec<InstanceType>>>,
}

impl Catalog {
    /// One list for all pools.
    #[must_use]
    pub fn shared(types: impl Into<Arc<Vec<InstanceType>>>) -> Self {
        Self {
            shared: types.into(),
            per_class: BTreeMap::new(),
        }
    }

    /// The list for pools with this class, instead of the shared one.
    #[must_use]
    pub fn with_class(
        mut self,
        class: NodeClassRef,
        types: impl Into<Arc<Vec<InstanceType>>>,
    ) -> Self {
        self.per_class.insert(class, types.into());
        self
    }
}

/// A problem, and things worth telling the user about how it was read.
#[derive(Debug, Default)]
pub struct Input {
    /// The problem.
    pub problem: Problem,
    /// One line each.
    pub warnings: Vec<String>,
}

/// Reads all sources and puts them together with the catalog.
///
/// # Errors
/// The first piece of input that cannot be used.
pub fn read(
    sources: impl IntoIterator<Item = Source>,
    catalog: Catalog,
) -> Result<Input, ReadError> {
    Objects::read(sources)?.problem(catalog)
}

impl Objects {
    /// The instance type lists this input needs: the classes of its pools, sorted.
    #[must_use]
    pub fn class_refs(&self) -> BTreeSet<NodeClassRef> {
        self.pools
            .iter()
            .map(|record| record.class.clone())
            .collect()
    }

    /// Turns everything that was read into a problem.
    ///
    /// # Errors
    /// When there are more pods than can be planned for.
    pub fn problem(mut self, catalog: Catalog) -> Result<Input, ReadError> {
        let missing = self.missing()?;
        let mut problem = Problem {
            nodes: self.model_nodes(),
            policy: Policy::default(),
            ..Problem::default()
        };
        self.fill_pools(catalog, &mut problem);
        self.apply_overlays(&mut problem);
        let namespaces = self.all_namespaces();
        let mut builder = Builder::new(&self, namespaces, &problem);
        let daemons = builder.daemons();
        let total = missing.iter().map(|m| m.count).sum::<usize>();
        builder.pods.reserve_exact(self.pods.len() + total);
        for pod in &self.pods {
            builder.pod(pod);
        }
        builder.expand(&missing);
        let (pods, shapes, strays) = (builder.pods, builder.shapes.all, builder.strays);
        problem.pods = pods;
        problem.shapes = shapes;
        problem.daemons = daemons;
        let mut warnings = self.all_warnings();
        warnings.extend(self.absent_classes());
        warnings.extend(left_out(&strays));
        Ok(Input { problem, warnings })
    }

    fn fill_pools(&mut self, catalog: Catalog, problem: &mut Problem) {
        let mut lists = BTreeMap::new();
        let mut append = |types| problem.types.append(types).collect::<Vec<TypeIx>>();
        let used: BTreeSet<NodeClassRef> = self.class_refs();
        let needs_shared =
            used.is_empty() || used.iter().any(|c| !catalog.per_class.contains_key(c));
        let shared = if needs_shared {
            append(catalog.shared)
        } else {
            Vec::new()
        };
        for (class, types) in catalog.per_class {
            if used.contains(&class) {
                lists.insert(class, append(types));
            }
        }
        problem.well_known = keys::WELL_KNOWN
            .iter()
            .map(|key| Name::from(*key))
            .collect();
        for instance_type in &problem.types {
            problem
                .well_known
                .extend(instance_type.labels.keys().cloned());
            for offering in &instance_type.offerings {
                problem.well_known.extend(offering.labels.keys().cloned());
            }
        }
        for record in std::mem::take(&mut self.pools) {
            let mut pool = record.pool;
            pool.types = lists.get(&record.class).unwrap_or(&shared).clone();
            let class = self
                .node_classes
                .iter()
                .find(|c| c.reference == record.class);
            if let Some(why) = class.and_then(|c| c.not_ready.as_ref()) {
                let class = &record.class;
                let why = format!("its {} {} {why}", class.kind, class.name);
                pool.closed.get_or_insert(why.into());
            }
            problem.pools.push(pool);
        }
    }

    /// Classes that pods name and that are not in the input.
    fn absent_classes(&self) -> BTreeSet<String> {
        let mut absent = BTreeSet::new();
        for draft in self.drafts.iter() {
            if let Priority::Class(class) = &draft.priority
                && !self.priorities.contains_key(class)
                && built_in_priority(class) == 0
            {
                absent.insert(format!(
                    "PriorityClass {class} is not in the input; its pods count as priority 0"
                ));
            }
            if let Some(class) = &draft.runtime_class
                && !self.runtimes.contains_key(class)
            {
                absent.insert(format!(
                    "RuntimeClass {class} is not in the input; overhead of its pods is not counted"
                ));
            }
        }
        absent
    }

    /// Every namespace that is known of, with its labels.
    fn all_namespaces(&mut self) -> BTreeMap<Name, Labels> {
        let mut all = self.namespaces.clone();
        for draft in self.drafts.iter() {
            all.entry(draft.shape.namespace.clone()).or_default();
        }
        let key = self.names.get(NAMESPACE_NAME);
        for (name, labels) in &mut all {
            labels.entry(key.clone()).or_insert_with(|| name.clone());
        }
        all
    }
}

/// What to say about pods on nodes that are not there, in one line.
fn left_out(strays: &BTreeMap<Name, usize>) -> Option<String> {
    let n_pods: usize = strays.values().sum();
    let shown: Vec<&str> = strays.keys().take(3).map(AsRef::as_ref).collect();
    let more = strays.len() - shown.len();
    let others = match more {
        0 => String::new(),
        1 => " and 1 other".to_owned(),
        _ => format!(" and {more} others"),
    };
    let pods = match n_pods {
        0 => return None,
        1 => "1 pod is".to_owned(),
        _ => format!("{n_pods} pods are"),
    };
    Some(format!(
        "{pods} left out: bound to nodes that are not in the input ({}{others})",
        shown.join(", ")
    ))
}
