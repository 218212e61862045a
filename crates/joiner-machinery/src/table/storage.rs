//! Rows of volumes, claims, and what provides them.

use serde_json::{Value, json};

use super::cell::{NONE, Shown, UNSET, items, plain, some, text, text_or};
use super::{AGE, BuiltIn, Column, NAME};
use crate::kinds::Kind;
use crate::meta;

/// The printer of a kind that is shown here.
pub(super) fn printer(kind: &Kind) -> Option<&'static BuiltIn> {
    let found = match (kind.group.as_str(), kind.kind.as_str()) {
        ("", "PersistentVolume") => &VOLUMES,
        ("", "PersistentVolumeClaim") => &CLAIMS,
        ("storage.k8s.io", "StorageClass") => &CLASSES,
        ("storage.k8s.io", "CSINode") => &CSI_NODES,
        ("storage.k8s.io", "CSIDriver") => &CSI_DRIVERS,
        ("storage.k8s.io", "VolumeAttachment") => &ATTACHMENTS,
        _ => return None,
    };
    Some(found)
}

const CAPACITY: Column = Column::text("Capacity", "Size of the volume.");
const ACCESS_MODES: Column = Column::text("Access Modes", "Who may use the volume at once.");
const CLASS: Column = Column::text("StorageClass", "Storage class of the volume.");
const ATTRIBUTES_CLASS: Column = Column::text(
    "VolumeAttributesClass",
    "Class of attributes that can change.",
);
const VOLUME_MODE: Column = Column::wide("VolumeMode", "File system or block device.");

static VOLUMES: BuiltIn = BuiltIn::new(
    &[
        NAME,
        CAPACITY,
        ACCESS_MODES,
        Column::text("Reclaim Policy", "What happens once its claim is gone."),
        Column::text("Status", "Whether the volume is bound."),
        Column::text("Claim", "The claim it is bound to."),
        CLASS,
        ATTRIBUTES_CLASS,
        Column::text("Reason", "Why the volume is in its state."),
        AGE,
        VOLUME_MODE,
    ],
    |shown| {
        let spec = shown.spec();
        let claim = match some(&spec["claimRef"]) {
            None => String::new(),
            Some(claim) => format!("{}/{}", text(&claim["namespace"]), text(&claim["name"])),
        };
        vec![
            shown.name(),
            json!(storage(&spec["capacity"])),
            json!(access_modes(&spec["accessModes"])),
            json!(text(&spec["persistentVolumeReclaimPolicy"])),
            json!(phase(shown)),
            json!(claim),
            json!(class(shown)),
            json!(spec["volumeAttributesClassName"].as_str().unwrap_or(UNSET)),
            json!(text(&shown.status()["reason"])),
            shown.age(),
            json!(spec["volumeMode"].as_str().unwrap_or(UNSET)),
        ]
    },
);

static CLAIMS: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Status", "Whether the claim has its volume."),
        Column::text("Volume", "The volume it is bound to."),
        CAPACITY,
        ACCESS_MODES,
        CLASS,
        ATTRIBUTES_CLASS,
        AGE,
        VOLUME_MODE,
    ],
    |shown| {
        let (spec, status) = (shown.spec(), shown.status());
        let volume = text(&spec["volumeName"]);
        let (capacity, modes) = match volume {
            "" => (String::new(), String::new()),
            _ => (
                storage(&status["capacity"]),
                access_modes(&status["accessModes"]),
            ),
        };
        vec![
            shown.name(),
            json!(phase(shown)),
            json!(volume),
            json!(capacity),
            json!(modes),
            json!(class(shown)),
            json!(spec["volumeAttributesClassName"].as_str().unwrap_or(UNSET)),
            shown.age(),
            json!(spec["volumeMode"].as_str().unwrap_or(UNSET)),
        ]
    },
);

fn phase<'o>(shown: &Shown<'o>) -> &'o str {
    if meta::is_deleting(shown.object) {
        "Terminating"
    } else {
        text(&shown.status()["phase"])
    }
}

/// An amount of storage; a missing one is printed as nothing would be: zero.
fn storage(amounts: &Value) -> String {
    plain(&amounts["storage"]).unwrap_or_else(|| "0".to_owned())
}

fn access_modes(modes: &Value) -> String {
    let modes = items(modes);
    let short: Vec<&str> = [
        ("ReadWriteOnce", "RWO"),
        ("ReadOnlyMany", "ROX"),
        ("ReadWriteMany", "RWX"),
        ("ReadWriteOncePod", "RWOP"),
    ]
    .into_iter()
    .filter(|(mode, _)| modes.iter().any(|m| m == mode))
    .map(|(_, short)| short)
    .collect();
    short.join(",")
}

fn class<'o>(shown: &Shown<'o>) -> &'o str {
    // Before there was a field, there was an annotation, and it still wins.
    let older = meta::annotation(shown.object, "volume.beta.kubernetes.io/storage-class");
    older.unwrap_or_else(|| text(&shown.spec()["storageClassName"]))
}

static CLASSES: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Provisioner", "Who makes the volumes."),
        Column::text("ReclaimPolicy", "What happens once a claim is gone."),
        Column::text("VolumeBindingMode", "When a claim gets its volume."),
        Column::text("AllowVolumeExpansion", "Whether claims may grow."),
        AGE,
    ],
    |shown| {
        let class = shown.object;
        let is_default = [
            "storageclass.kubernetes.io",
            "storageclass.beta.kubernetes.io",
        ]
        .into_iter()
        .any(|prefix| {
            let key = format!("{prefix}/is-default-class");
            meta::annotation(class, &key) == Some("true")
        });
        let name = if is_default {
            json!(format!("{} (default)", meta::name(class)))
        } else {
            shown.name()
        };
        vec![
            name,
            json!(text(&class["provisioner"])),
            json!(text_or(&class["reclaimPolicy"], "Delete")),
            json!(text_or(&class["volumeBindingMode"], "Immediate")),
            json!(flag(&class["allowVolumeExpansion"], false)),
            shown.age(),
        ]
    },
);

fn flag(value: &Value, otherwise: bool) -> bool {
    value.as_bool().unwrap_or(otherwise)
}

static CSI_NODES: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::integer("Drivers", "How many drivers the node has."),
        AGE,
    ],
    |shown| {
        let drivers = items(&shown.spec()["drivers"]).len();
        vec![shown.name(), json!(drivers), shown.age()]
    },
);

static CSI_DRIVERS: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::boolean("AttachRequired", "Whether volumes are attached before use."),
        Column::boolean(
            "PodInfoOnMount",
            "Whether the driver is told about the pod.",
        ),
        Column::boolean(
            "StorageCapacity",
            "Whether the driver reports what is left.",
        ),
        Column::text("TokenRequests", "Audiences of the tokens it gets."),
        Column::boolean(
            "RequiresRepublish",
            "Whether volumes are published again and again.",
        ),
        Column::text("Modes", "Lives that a volume may have."),
        AGE,
    ],
    |shown| {
        let spec = shown.spec();
        let joined = |list: Vec<&str>| list.join(",");
        let tokens = match spec["tokenRequests"].as_array() {
            Some(list) => joined(list.iter().map(|t| text(&t["audience"])).collect()),
            None => UNSET.to_owned(),
        };
        let modes = match items(&spec["volumeLifecycleModes"]) {
            [] => NONE.to_owned(),
            modes => joined(modes.iter().map(text).collect()),
        };
        vec![
            shown.name(),
            json!(flag(&spec["attachRequired"], true)),
            json!(flag(&spec["podInfoOnMount"], false)),
            json!(flag(&spec["storageCapacity"], false)),
            json!(tokens),
            json!(flag(&spec["requiresRepublish"], false)),
            json!(modes),
            shown.age(),
        ]
    },
);

static ATTACHMENTS: BuiltIn = BuiltIn::new(
    &[
        NAME,
        Column::text("Attacher", "The driver that attaches."),
        Column::text("PV", "The volume."),
        Column::text("Node", "The node."),
        Column::boolean("Attached", "Whether it is done."),
        AGE,
    ],
    |shown| {
        let spec = shown.spec();
        vec![
            shown.name(),
            json!(text(&spec["attacher"])),
            json!(text(&spec["source"]["persistentVolumeName"])),
            json!(text(&spec["nodeName"])),
            json!(flag(&shown.status()["attached"], false)),
            shown.age(),
        ]
    },
);
