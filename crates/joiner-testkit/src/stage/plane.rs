//! One real control plane for all stories: each finds it swept clean, and they take turns.

use std::path::Path;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Api, Client, Config};
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard};

use super::kinds::{
    BUDGETS, BUFFERS, CLAIMS, CLASSES, CONFIG_MAPS, DAEMON_SETS, DEPLOYMENTS, EC2_CLASSES, EVENTS,
    LEASES, NODES, OVERLAYS, PODS, POOLS, REPLICA_SETS, STATEFUL_SETS, STORAGE, TEMPLATES,
    VOLUME_CLAIMS, VOLUMES, What, resource_of,
};
use crate::control_plane::{ControlPlane, Error};

static PLANE: OnceLock<Option<ControlPlane>> = OnceLock::new();
static TURN: Mutex<()> = Mutex::const_new(());

/// What a story may leave behind, owners first.
const SWEPT: [What; 19] = [
    BUFFERS,
    OVERLAYS,
    POOLS,
    DEPLOYMENTS,
    STATEFUL_SETS,
    DAEMON_SETS,
    REPLICA_SETS,
    BUDGETS,
    CLAIMS,
    PODS,
    NODES,
    CLASSES,
    EC2_CLASSES,
    TEMPLATES,
    VOLUME_CLAIMS,
    VOLUMES,
    STORAGE,
    LEASES,
    EVENTS,
];
/// Sweeping is over long before.
const SWEEPS_MAX: usize = 600;
/// It is clean when nothing was found so often: the last story's requests, and those of controllers that
/// have not seen its end yet, may come late.
const CLEAN_MIN: usize = 5;
/// A kind that was defined is served long before.
const SERVED_MAX: Duration = Duration::from_secs(60);
const POLL: Duration = Duration::from_millis(100);

/// The right to use the control plane.
#[derive(Debug)]
pub struct Turn {
    /// The control plane.
    pub plane: &'static ControlPlane,
    _turn: MutexGuard<'static, ()>,
}

/// Waits for the turn of a test on the real control plane, with our kinds on it and nothing else; `None`
/// if there is none.
pub async fn real_plane() -> Option<(Client, Turn)> {
    let turn = TURN.lock().await;
    let Some(plane) = PLANE.get_or_init(start).as_ref() else {
        eprintln!("skipped: there is no control plane; cargo xtask control-plane build");
        return None;
    };
    let client = client_of(&plane.kubeconfig()).await;
    sweep(&client).await;
    Some((client, Turn { plane, _turn: turn }))
}

/// A client for a kubeconfig.
pub async fn client_of(kubeconfig: &Path) -> Client {
    let file = Kubeconfig::read_from(kubeconfig).unwrap();
    let options = KubeConfigOptions::default();
    let config = Config::from_custom_kubeconfig(file, &options);
    Client::try_from(config.await.unwrap()).unwrap()
}

fn start() -> Option<ControlPlane> {
    let plane = ControlPlane::shared().unwrap()?;
    install_kinds(&plane).unwrap();
    Some(plane)
}

/// Defines our kinds, and waits until they are served.
///
/// # Errors
/// When the API server refuses them.
pub fn install_kinds(plane: &ControlPlane) -> Result<(), Error> {
    let crds = joiner_api::crds();
    let names: Vec<&str> = crds
        .iter()
        .filter_map(|crd| crd["metadata"]["name"].as_str())
        .collect();
    let names = names.join(",");
    let get = ["get", "--all-namespaces", &names];
    if plane.kubectl(&get).is_ok() {
        return Ok(());
    }
    let all: Vec<String> = crds.iter().map(ToString::to_string).collect();
    let apply = ["apply", "--server-side", "-f", "-"];
    plane.kubectl_with_input(&apply, &all.join("\n---\n"))?;
    let established = "--for=condition=Established";
    plane.kubectl(&["wait", established, "crd", "--all", "--timeout=120s"])?;
    // Established is not yet served.
    let started = Instant::now();
    while let Err(error) = plane.kubectl(&get) {
        if started.elapsed() > SERVED_MAX {
            return Err(error);
        }
        std::thread::park_timeout(POLL);
    }
    Ok(())
}

fn api(client: &Client, what: What, namespace: Option<&str>) -> Api<DynamicObject> {
    let resource = resource_of(what);
    match namespace {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
        None => Api::all_with(client.clone(), &resource),
    }
}

/// Removes what the last story left.
async fn sweep(client: &Client) {
    let mut n_clean = 0;
    for _ in 0..SWEEPS_MAX {
        let mut n_left = 0;
        for what in SWEPT {
            n_left += sweep_kind(client, what, &ListParams::default()).await;
        }
        let machines = ListParams::default().labels(joiner_cloud_sim::INSTANCE_LABEL);
        n_left += sweep_kind(client, CONFIG_MAPS, &machines).await;
        n_clean = if n_left == 0 { n_clean + 1 } else { 0 };
        if n_clean == CLEAN_MIN {
            return;
        }
        tokio::time::sleep(POLL).await;
    }
    panic!("the control plane cannot be swept clean");
}

/// Asks for the end of all objects of a kind; returns how many there are. Events are no trouble.
async fn sweep_kind(client: &Client, what: What, which: &ListParams) -> usize {
    let Ok(all) = api(client, what, None).list(which).await else {
        return 1;
    };
    let all = all.items;
    let (namespaced, cluster): (Vec<_>, Vec<_>) =
        all.iter().partition(|own| own.metadata.namespace.is_some());
    let now = DeleteParams::default().grace_period(0);
    let mut namespaces: Vec<Option<String>> = Vec::new();
    namespaces.extend(namespaced.iter().map(|own| own.metadata.namespace.clone()));
    namespaces.extend(cluster.first().map(|_| None));
    namespaces.sort();
    namespaces.dedup();
    for namespace in namespaces {
        let api = api(client, what, namespace.as_deref());
        // Whatever is refused is tried again.
        let _ = api.delete_collection(&now, which).await;
    }
    for own in all.iter().filter(|own| own.metadata.finalizers.is_some()) {
        let api = api(client, what, own.metadata.namespace.as_deref());
        let name = own.metadata.name.as_deref().unwrap();
        let none = json!({"metadata": {"finalizers": null}});
        let _ = api
            .patch(name, &PatchParams::default(), &Patch::Merge(none))
            .await;
    }
    if what == EVENTS { 0 } else { all.len() }
}

/// Makes volumes for claims whose pod has a node, in the zone of that node: what a CSI driver does.
pub(super) async fn provision(client: Client) {
    loop {
        tokio::time::sleep(POLL).await;
        let Ok(claims) = api(&client, VOLUME_CLAIMS, None)
            .list(&ListParams::default())
            .await
        else {
            continue;
        };
        for claim in claims.items {
            let claim = serde_json::to_value(claim).unwrap();
            let node = &claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"];
            if let (Some(node), true) = (node.as_str(), claim["spec"]["volumeName"].is_null()) {
                provision_one(&client, &claim, node).await;
            }
        }
    }
}

async fn provision_one(client: &Client, claim: &Value, node: &str) {
    let Ok(node) = api(client, NODES, None).get(node).await else {
        return;
    };
    let zone = node.metadata.labels.unwrap_or_default();
    let zone = zone.get("topology.kubernetes.io/zone").cloned();
    let own = &claim["metadata"];
    let name = format!("pvc-{}", own["uid"].as_str().unwrap());
    let volume = json!({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name},
        "spec": {"capacity": claim["spec"]["resources"]["requests"],
            "accessModes": claim["spec"]["accessModes"], "hostPath": {"path": "/none"},
            "storageClassName": claim["spec"]["storageClassName"],
            "claimRef": {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "uid": own["uid"],
                "name": own["name"], "namespace": own["namespace"]},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [
                {"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]}]}}}});
    let volume: DynamicObject = serde_json::from_value(volume).unwrap();
    // It may be there already.
    let _ = api(client, VOLUMES, None)
        .create(&PostParams::default(), &volume)
        .await;
}
