//! How much do pods ask for and nodes have?

use joiner_machinery::quantity::Quantity;
use serde_json::{Map, Value};

use super::labels::items;

/// What a container without a request counts as when nodes are compared.
const MISSING_CPU: i64 = 100;
const MISSING_MEMORY: i64 = 200 * 1024 * 1024;

/// Amounts of resources: millicores, bytes, and whole units of the rest.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Amounts {
    /// Millicores.
    pub(crate) cpu: i64,
    /// Bytes.
    pub(crate) memory: i64,
    /// Bytes.
    pub(crate) ephemeral: i64,
    /// Extended resources and huge pages, in order of name.
    pub(crate) others: Vec<(Box<str>, i64)>,
}

impl Amounts {
    /// Reads a resource list; amounts are rounded up, as requests are.
    pub(crate) fn read(list: &Value) -> Self {
        let mut amounts = Self::default();
        for (name, value) in list.as_object().into_iter().flatten() {
            match name.as_str() {
                "cpu" => amounts.cpu = millis(value),
                "memory" => amounts.memory = units(value),
                "ephemeral-storage" => amounts.ephemeral = units(value),
                "pods" => {}
                _ => *amounts.other(name) = units(value),
            }
        }
        amounts
    }

    fn other(&mut self, name: &str) -> &mut i64 {
        let ix = match self.others.binary_search_by(|(own, _)| (**own).cmp(name)) {
            Ok(ix) => ix,
            Err(ix) => {
                self.others.insert(ix, (name.into(), 0));
                ix
            }
        };
        &mut self.others[ix].1
    }

    /// The amount of an extended resource.
    pub(crate) fn get(&self, name: &str) -> i64 {
        let found = self.others.binary_search_by(|(own, _)| (**own).cmp(name));
        found.map_or(0, |ix| self.others[ix].1)
    }

    /// Adds amounts.
    pub(crate) fn add(&mut self, more: &Self) {
        self.combine(more, i64::saturating_add);
    }

    /// Takes amounts away that were added before.
    pub(crate) fn take_away(&mut self, less: &Self) {
        self.combine(less, i64::saturating_sub);
    }

    /// Takes the larger of each.
    pub(crate) fn raise(&mut self, other: &Self) {
        self.combine(other, i64::max);
    }

    fn combine(&mut self, other: &Self, with: fn(i64, i64) -> i64) {
        self.cpu = with(self.cpu, other.cpu);
        self.memory = with(self.memory, other.memory);
        self.ephemeral = with(self.ephemeral, other.ephemeral);
        for (name, amount) in &other.others {
            let own = self.other(name);
            *own = with(*own, *amount);
        }
    }

    /// True when nothing is asked for.
    pub(crate) fn is_zero(&self) -> bool {
        self.cpu == 0 && self.memory == 0 && self.ephemeral == 0 && self.others.is_empty()
    }
}

/// What a pod needs of a node: its containers and sidecars, or the largest step of its start, plus
/// overhead; figures given for the whole pod come first.
pub(crate) fn pod_requests(spec: &Value) -> Amounts {
    total(spec, &|container| container_requests(container))
}

/// The same with a small default for containers that name no cpu or memory, so that such pods are
/// spread, too.
pub(crate) fn pod_weight(spec: &Value) -> (i64, i64) {
    let amounts = total(spec, &|container| {
        let resources = &container["resources"];
        let named = |name: &str| {
            !(resources["requests"][name].is_null() && resources["limits"][name].is_null())
        };
        let mut own = container_requests(container);
        if !named("cpu") {
            own.cpu = MISSING_CPU;
        }
        if !named("memory") {
            own.memory = MISSING_MEMORY;
        }
        own
    });
    (amounts.cpu, amounts.memory)
}

fn total(spec: &Value, of: &dyn Fn(&Value) -> Amounts) -> Amounts {
    let mut running = Amounts::default();
    for container in items(&spec["containers"]) {
        running.add(&of(container));
    }
    let (mut sidecars, mut peak) = (Amounts::default(), Amounts::default());
    for container in items(&spec["initContainers"]) {
        let own = of(container);
        if is_sidecar(container) {
            running.add(&own);
            sidecars.add(&own);
            peak.raise(&sidecars);
        } else {
            let mut step = sidecars.clone();
            step.add(&own);
            peak.raise(&step);
        }
    }
    running.raise(&peak);
    override_with(&mut running, &spec["resources"]);
    running.add(&Amounts::read(&spec["overhead"]));
    running
}

/// A pod's own figures replace the sum of its containers'.
fn override_with(amounts: &mut Amounts, resources: &Value) {
    let own = container_requests(&serde_json::json!({"resources": resources}));
    if own.cpu > 0 {
        amounts.cpu = own.cpu;
    }
    if own.memory > 0 {
        amounts.memory = own.memory;
    }
    for (name, amount) in &own.others {
        *amounts.other(name) = *amount;
    }
}

/// A sidecar is an init container that is kept running.
pub(crate) fn is_sidecar(container: &Value) -> bool {
    container["restartPolicy"] == "Always"
}

/// Requests of a container; a limit stands in for a missing request.
fn container_requests(container: &Value) -> Amounts {
    let resources = &container["resources"];
    let Some(limits) = resources["limits"].as_object() else {
        return Amounts::read(&resources["requests"]);
    };
    let mut merged: Map<String, Value> = limits.clone();
    for (name, value) in resources["requests"].as_object().into_iter().flatten() {
        merged.insert(name.clone(), value.clone());
    }
    Amounts::read(&Value::Object(merged))
}

/// Millicores of an amount of CPU; zero when it is none.
pub(crate) fn millis(value: &Value) -> i64 {
    Quantity::of(value).map_or(0, Quantity::millis)
}

/// Whole units of an amount; zero when it is none.
pub(crate) fn units(value: &Value) -> i64 {
    Quantity::of(value).map_or(0, Quantity::units)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn init_containers_sidecars_and_overhead_count() {
        let ask = |cpu: &str| json!({"requests": {"cpu": cpu}});
        let spec = json!({
            "containers": [{"resources": ask("1")}, {"resources": {"limits": {"cpu": "500m"}}}],
            "initContainers": [
                {"resources": ask("200m"), "restartPolicy": "Always"},
                {"resources": ask("2")},
            ],
            "overhead": {"cpu": "50m"},
        });
        assert_eq!(pod_requests(&spec).cpu, 2250, "the init step is the peak");
        let whole = json!({"containers": [{"resources": ask("1")}], "resources": ask("3")});
        assert_eq!(pod_requests(&whole).cpu, 3000);
        assert_eq!(pod_weight(&json!({"containers": [{}]})), (100, 200 << 20));
    }
}
