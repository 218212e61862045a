//! Pods, and the workloads that make them.

use joiner_model::keys;
use serde_json::{Value, json};

use super::text::{expression, merge, push, toleration};

const REQUIRED: &str = "requiredDuringSchedulingIgnoredDuringExecution";
const PREFERRED: &str = "preferredDuringSchedulingIgnoredDuringExecution";

/// What a builder makes of its pod.
#[derive(Clone, Copy, Debug)]
enum Form {
    Pod,
    Pods(usize),
    DaemonSet,
    Deployment(usize),
    StatefulSet(usize),
}

/// A pod, several of them, or a workload with such pods.
#[derive(Clone, Debug)]
#[must_use]
pub struct PodBuilder {
    name: String,
    form: Form,
    /// `metadata`, `spec` and `status` of the pod.
    pod: Value,
}

/// A pod to place, in namespace `default`, with the label `app` set to its name and without
/// requests.
pub fn pod(name: &str) -> PodBuilder {
    builder(name, Form::Pod)
}

/// A DaemonSet: its pod is described with the same words as any other.
pub fn daemon(name: &str) -> PodBuilder {
    builder(name, Form::DaemonSet)
}

/// A Deployment that has none of its pods yet.
pub fn deployment(name: &str, replicas: usize) -> PodBuilder {
    builder(name, Form::Deployment(replicas))
}

/// A StatefulSet that has none of its pods yet.
pub fn stateful_set(name: &str, replicas: usize) -> PodBuilder {
    builder(name, Form::StatefulSet(replicas))
}

fn builder(name: &str, form: Form) -> PodBuilder {
    let pod = json!({
        "metadata": {"namespace": "default", "labels": {"app": name}},
        "spec": {"containers": [{"name": "main", "image": "registry.example/app:1"}]},
    });
    PodBuilder {
        name: name.to_owned(),
        form,
        pod,
    }
}

impl PodBuilder {
    /// So many pods of this kind, called `name-0`, `name-1` and so on.
    pub fn replicas(mut self, count: usize) -> Self {
        self.form = Form::Pods(count);
        self
    }

    /// Puts it into a namespace.
    pub fn namespace(mut self, namespace: &str) -> Self {
        self.pod["metadata"]["namespace"] = json!(namespace);
        self
    }

    /// Sets a label.
    pub fn label(mut self, key: &str, value: &str) -> Self {
        self.pod["metadata"]["labels"][key] = json!(value);
        self
    }

    /// Takes all labels away, `app` included.
    pub fn without_labels(mut self) -> Self {
        self.pod["metadata"]["labels"] = json!({});
        self
    }

    /// Requests CPU.
    pub fn cpu(self, amount: &str) -> Self {
        self.request("cpu", amount)
    }

    /// Requests memory.
    pub fn memory(self, amount: &str) -> Self {
        self.request("memory", amount)
    }

    /// Requests any resource.
    pub fn request(mut self, resource: &str, amount: &str) -> Self {
        self.pod["spec"]["containers"][0]["resources"]["requests"][resource] = json!(amount);
        self
    }

    /// Limits a resource; without a request, the limit is the request.
    pub fn limit(mut self, resource: &str, amount: &str) -> Self {
        self.pod["spec"]["containers"][0]["resources"]["limits"][resource] = json!(amount);
        self
    }

    /// Adds an init container that runs before the others.
    pub fn init_container(self, cpu: &str, memory: &str) -> Self {
        let requests = json!({"cpu": cpu, "memory": memory});
        self.init(json!({"resources": {"requests": requests}}))
    }

    /// Adds an init container that stays.
    pub fn sidecar(self, cpu: &str, memory: &str) -> Self {
        let requests = json!({"cpu": cpu, "memory": memory});
        self.init(json!({"restartPolicy": "Always", "resources": {"requests": requests}}))
    }

    fn init(mut self, mut container: Value) -> Self {
        let containers = &mut self.pod["spec"]["initContainers"];
        let count = containers.as_array().map_or(0, Vec::len);
        container["name"] = json!(format!("init-{count}"));
        push(containers, container);
        self
    }

    /// Takes a TCP port of the node.
    pub fn host_port(mut self, port: u16) -> Self {
        let port = json!({"containerPort": port, "hostPort": port, "protocol": "TCP"});
        push(&mut self.pod["spec"]["containers"][0]["ports"], port);
        self
    }

    /// Sets the priority.
    pub fn priority(mut self, priority: i32) -> Self {
        self.pod["spec"]["priority"] = json!(priority);
        self
    }

    /// Adds to the node selector.
    pub fn node_selector(mut self, key: &str, value: &str) -> Self {
        self.pod["spec"]["nodeSelector"][key] = json!(value);
        self
    }

    /// Selects a zone.
    pub fn zone(self, zone: &str) -> Self {
        self.node_selector(keys::ZONE, zone)
    }

    /// Selects an architecture.
    pub fn arch(self, arch: &str) -> Self {
        self.node_selector(keys::ARCH, arch)
    }

    /// Selects a capacity type.
    pub fn capacity_type(self, capacity_type: &str) -> Self {
        self.node_selector(keys::CAPACITY_TYPE, capacity_type)
    }

    /// Adds an expression to the last term of required node affinity:
    /// `node_affinity(ZONE, "In", "a b")`.
    pub fn node_affinity(mut self, key: &str, operator: &str, values: &str) -> Self {
        let terms = self.node_terms();
        let expression = expression(key, operator, values);
        match terms.as_array_mut().and_then(|terms| terms.last_mut()) {
            Some(term) => push(&mut term["matchExpressions"], expression),
            None => push(terms, json!({"matchExpressions": [expression]})),
        }
        self
    }

    /// Starts another term of required node affinity: one of them must hold.
    pub fn or_node_affinity(mut self, key: &str, operator: &str, values: &str) -> Self {
        let term = json!({"matchExpressions": [expression(key, operator, values)]});
        push(self.node_terms(), term);
        self
    }

    /// Adds a preferred term of node affinity.
    pub fn prefer_node(mut self, weight: u8, key: &str, operator: &str, values: &str) -> Self {
        let term = json!({"matchExpressions": [expression(key, operator, values)]});
        let wish = json!({"weight": weight, "preference": term});
        let affinity = &mut self.pod["spec"]["affinity"];
        push(&mut affinity["nodeAffinity"][PREFERRED], wish);
        self
    }

    fn node_terms(&mut self) -> &mut Value {
        let affinity = &mut self.pod["spec"]["affinity"];
        &mut affinity["nodeAffinity"][REQUIRED]["nodeSelectorTerms"]
    }

    /// Adds a toleration, `key=value:Effect` with any part missing; `""` tolerates everything.
    pub fn tolerate(mut self, text: &str) -> Self {
        push(&mut self.pod["spec"]["tolerations"], toleration(text));
        self
    }

    /// A hard spread over zones, counting the pods with this pod's `app`.
    pub fn spread_over_zones(self, max_skew: u32) -> Self {
        self.spread_over(keys::ZONE, max_skew)
    }

    /// A hard spread over nodes, counting the pods with this pod's `app`.
    pub fn spread_over_hosts(self, max_skew: u32) -> Self {
        self.spread_over(keys::HOSTNAME, max_skew)
    }

    /// A hard spread over any key, counting the pods with this pod's `app`.
    pub fn spread_over(self, key: &str, max_skew: u32) -> Self {
        self.spread_with(key, max_skew, json!({}))
    }

    /// The same as a wish.
    pub fn prefer_spread_over(self, key: &str, max_skew: u32) -> Self {
        self.spread_with(
            key,
            max_skew,
            json!({"whenUnsatisfiable": "ScheduleAnyway"}),
        )
    }

    /// A hard spread with further fields, such as `minDomains`, laid over it.
    pub fn spread_with(mut self, key: &str, max_skew: u32, fields: Value) -> Self {
        let mut spread = json!({
            "maxSkew": max_skew,
            "topologyKey": key,
            "whenUnsatisfiable": "DoNotSchedule",
        });
        if fields["labelSelector"].is_null() {
            spread["labelSelector"] = app_selector(&self.app());
        }
        merge(&mut spread, fields);
        push(&mut self.pod["spec"]["topologySpreadConstraints"], spread);
        self
    }

    /// Requires a domain with a pod of this `app`; its own app counts too.
    pub fn affinity_to(self, key: &str, app: &str) -> Self {
        let term = term(key, app);
        self.pod_term("podAffinity", REQUIRED, term)
    }

    /// Requires a domain without a pod of this `app`, its own included.
    pub fn anti_affinity_to(self, key: &str, app: &str) -> Self {
        let term = term(key, app);
        self.pod_term("podAntiAffinity", REQUIRED, term)
    }

    /// Prefers a domain with a pod of this `app`.
    pub fn prefer_affinity_to(self, weight: u8, key: &str, app: &str) -> Self {
        let wish = json!({"weight": weight, "podAffinityTerm": term(key, app)});
        self.pod_term("podAffinity", PREFERRED, wish)
    }

    /// Prefers a domain without a pod of this `app`.
    pub fn prefer_anti_affinity_to(self, weight: u8, key: &str, app: &str) -> Self {
        let wish = json!({"weight": weight, "podAffinityTerm": term(key, app)});
        self.pod_term("podAntiAffinity", PREFERRED, wish)
    }

    fn pod_term(mut self, kind: &str, strength: &str, term: Value) -> Self {
        push(&mut self.pod["spec"]["affinity"][kind][strength], term);
        self
    }

    /// Mounts a PersistentVolumeClaim.
    pub fn volume_claim(mut self, claim: &str) -> Self {
        let volume = json!({"name": claim, "persistentVolumeClaim": {"claimName": claim}});
        push(&mut self.pod["spec"]["volumes"], volume);
        self
    }

    /// Runs on this node.
    pub fn on(mut self, node: &str) -> Self {
        self.pod["spec"]["nodeName"] = json!(node);
        self.phase("Running")
    }

    /// Sets the phase.
    pub fn phase(mut self, phase: &str) -> Self {
        self.pod["status"]["phase"] = json!(phase);
        self
    }

    /// Somebody asked for its deletion.
    pub fn deleting(mut self) -> Self {
        self.pod["metadata"]["deletionTimestamp"] = json!("2026-01-01T00:00:00Z");
        self
    }

    /// Belongs to a controller, for example `owned_by("DaemonSet", "agent")`.
    pub fn owned_by(mut self, kind: &str, name: &str) -> Self {
        let owner = json!({"apiVersion": "apps/v1", "kind": kind, "name": name,
            "uid": format!("{kind}-{name}"), "controller": true});
        push(&mut self.pod["metadata"]["ownerReferences"], owner);
        self
    }

    /// Lays wire JSON with `metadata`, `spec` or `status` of the pod over what is there.
    pub fn patch(mut self, patch: Value) -> Self {
        merge(&mut self.pod, patch);
        self
    }

    fn app(&self) -> String {
        let app = self.pod["metadata"]["labels"]["app"].as_str();
        app.unwrap_or_default().to_owned()
    }

    /// The objects, as they would be on the wire.
    #[must_use]
    pub fn wire(mut self) -> Vec<Value> {
        match self.form {
            Form::Pod => vec![named(self.pod, &self.name)],
            Form::Pods(count) => (0..count)
                .map(|ix| named(self.pod.clone(), &format!("{}-{ix}", self.name)))
                .collect(),
            Form::DaemonSet => vec![self.workload("DaemonSet", json!({}))],
            Form::Deployment(count) => {
                vec![self.workload("Deployment", json!({"replicas": count}))]
            }
            Form::StatefulSet(count) => {
                vec![self.workload("StatefulSet", json!({"replicas": count}))]
            }
        }
    }

    fn workload(&mut self, kind: &str, mut spec: Value) -> Value {
        let metadata = &mut self.pod["metadata"];
        let namespace = metadata["namespace"].take();
        let labels = metadata["labels"].clone();
        spec["selector"]["matchLabels"] = labels.clone();
        spec["template"] = json!({
            "metadata": {"labels": labels},
            "spec": self.pod["spec"].take(),
        });
        json!({
            "apiVersion": "apps/v1",
            "kind": kind,
            "metadata": {"name": self.name, "namespace": namespace},
            "spec": spec,
        })
    }
}

fn named(mut pod: Value, name: &str) -> Value {
    pod["apiVersion"] = json!("v1");
    pod["kind"] = json!("Pod");
    pod["metadata"]["name"] = json!(name);
    pod
}

fn app_selector(app: &str) -> Value {
    json!({"matchLabels": {"app": app}})
}

fn term(key: &str, app: &str) -> Value {
    json!({"topologyKey": key, "labelSelector": app_selector(app)})
}
