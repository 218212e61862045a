//! Bottlerocket: settings in TOML. The user's are the base, ours overwrite.

use std::collections::BTreeMap;

use joiner_api::types::{AmiFamily, DurationText, Ec2NodeClassSpec, Ec2NodeClassStatus};
use toml::{Table, Value};

use super::toml_text::{Entry, Ordered, render};
use super::{Bootstrap, UserData, UserDataError, go};
use crate::family;

/// From this version on `bind` needs no list of directories.
const BINDS_BY_DEFAULT: [u32; 3] = [1, 46, 0];
/// The command that mounts local disks.
const MOUNT: &str = "000-mount-instance-storage";
/// What it binds in older versions.
const DIRECTORIES: [&str; 3] = ["/var/lib/containerd", "/var/lib/kubelet", "/var/log/pods"];

/// What a setting must be.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Flag,
    Texts,
    /// A table of texts.
    Map,
    /// A table of lists of texts.
    Lists,
    /// A table of tables whose keys are written in this order.
    Tables(&'static [&'static str]),
    /// One or the other, which versions differ in.
    Any,
}

/// The settings of `settings.kubernetes` that are kept, in the order in which they are written.
const KUBERNETES: [(&str, Kind); 49] = [
    ("api-server", Kind::Text),
    ("cloud-provider", Kind::Text),
    ("cluster-certificate", Kind::Text),
    ("cluster-name", Kind::Text),
    ("cluster-dns-ip", Kind::Any),
    (
        "credential-providers",
        Kind::Tables(&["enabled", "cache-duration", "image-patterns", "environment"]),
    ),
    ("node-labels", Kind::Map),
    ("node-taints", Kind::Lists),
    ("max-pods", Kind::Number),
    ("static-pods", Kind::Tables(&["enabled", "manifest"])),
    ("eviction-hard", Kind::Map),
    ("eviction-soft", Kind::Map),
    ("eviction-soft-grace-period", Kind::Map),
    ("eviction-max-pod-grace-period", Kind::Number),
    ("kube-reserved", Kind::Map),
    ("system-reserved", Kind::Map),
    ("allowed-unsafe-sysctls", Kind::Texts),
    ("server-tls-bootstrap", Kind::Flag),
    ("registry-qps", Kind::Number),
    ("registry-burst", Kind::Number),
    ("event-qps", Kind::Number),
    ("event-burst", Kind::Number),
    ("kube-api-qps", Kind::Number),
    ("kube-api-burst", Kind::Number),
    ("container-log-max-size", Kind::Text),
    ("container-log-max-files", Kind::Number),
    ("cpu-manager-policy", Kind::Text),
    ("cpu-manager-policy-options", Kind::Texts),
    ("cpu-manager-reconcile-period", Kind::Text),
    ("memory-manager-policy", Kind::Text),
    ("memory-manager-reserved-memory", Kind::Any),
    ("topology-manager-scope", Kind::Text),
    ("topology-manager-policy", Kind::Text),
    ("topology-manager-policy-options", Kind::Any),
    ("image-gc-high-threshold-percent", Kind::Any),
    ("image-gc-low-threshold-percent", Kind::Any),
    ("ids-per-pod", Kind::Number),
    ("cpu-cfs-quota-enforced", Kind::Flag),
    ("shutdown-grace-period", Kind::Text),
    ("shutdown-grace-period-for-critical-pods", Kind::Text),
    ("cluster-domain", Kind::Text),
    ("seccomp-default", Kind::Flag),
    ("pod-pids-limit", Kind::Number),
    ("device-ownership-from-security-context", Kind::Flag),
    ("single-process-oom-kill", Kind::Flag),
    ("container-log-max-workers", Kind::Number),
    ("container-log-monitor-interval", Kind::Text),
    ("hostname-override-source", Kind::Text),
    ("log-level", Kind::Number),
];

impl Kind {
    fn takes(self, value: &Value) -> bool {
        let texts = |value: &Value| {
            let items = value.as_array();
            items.is_some_and(|items| items.iter().all(Value::is_str))
        };
        let all = |value: &Value, fits: fn(&Value) -> bool| {
            let table = value.as_table();
            table.is_some_and(|table| table.values().all(fits))
        };
        match self {
            Self::Text => value.is_str(),
            Self::Number => value.is_integer(),
            Self::Flag => value.is_bool(),
            Self::Texts => texts(value),
            Self::Map => all(value, Value::is_str),
            Self::Lists => all(value, Value::is_array),
            Self::Tables(_) => all(value, Value::is_table),
            Self::Any => true,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Text => "a text",
            Self::Number => "a whole number",
            Self::Flag => "true or false",
            Self::Texts => "a list of texts",
            Self::Map => "a table of texts",
            Self::Lists => "a table of lists",
            Self::Tables(_) => "a table of tables",
            Self::Any => "a value",
        }
    }
}

/// The settings.
pub(super) fn user_data(bootstrap: &Bootstrap<'_>) -> Result<UserData, UserDataError> {
    let mut given: Table = match bootstrap.custom() {
        None => Table::new(),
        Some(text) => toml::from_str(text).map_err(|error: toml::de::Error| {
            let place = error.span().map_or(0, |span| span.start);
            let line = text[..place.min(text.len())].lines().count().max(1);
            bootstrap.wrong(format!(
                "is not TOML, which Bottlerocket needs: line {line}: {}",
                error.message()
            ))
        })?,
    };
    let mut settings = sub_table(bootstrap, &mut given, "settings", "settings")?;
    let mut ignored: Vec<String> = given.keys().cloned().collect();
    let mut kubernetes = sub_table(
        bootstrap,
        &mut settings,
        "kubernetes",
        "settings.kubernetes",
    )?;
    check(bootstrap, &mut kubernetes, &mut ignored)?;
    overwrite(bootstrap, &mut kubernetes);
    let path = "settings.bootstrap-commands";
    let mut commands = sub_table(bootstrap, &mut settings, "bootstrap-commands", path)?;
    if let Some((name, _)) = commands.iter().find(|(_, command)| !command.is_table()) {
        return Err(bootstrap.wrong(format!("has {path}.{name}, which must be a table")));
    }
    if bootstrap.raid0 {
        commands.insert(MOUNT.to_owned(), mount(bootstrap.binds_by_default));
    }
    let mut settings = Ordered::by_name(settings);
    settings
        .0
        .push(("kubernetes".to_owned(), Entry::Table(in_order(kubernetes))));
    if !commands.is_empty() {
        let commands = tables_in_order(commands, &["commands", "mode", "essential"]);
        settings
            .0
            .push(("bootstrap-commands".to_owned(), Entry::Table(commands)));
    }
    settings.0.sort_by(|(one, _), (other, _)| one.cmp(other));
    let root = Ordered(vec![("settings".to_owned(), Entry::Table(settings))]);
    Ok(UserData {
        text: render(&root),
        ignored,
    })
}

/// Takes a table out of another one; an empty one if there is none.
fn sub_table(
    bootstrap: &Bootstrap<'_>,
    table: &mut Table,
    key: &str,
    path: &str,
) -> Result<Table, UserDataError> {
    match table.remove(key) {
        None => Ok(Table::new()),
        Some(Value::Table(table)) => Ok(table),
        Some(_) => {
            Err(bootstrap.wrong(format!("has {path}, which must be a table: write [{path}]")))
        }
    }
}

/// Drops what nodes would not get, and refuses what is of the wrong kind.
fn check(
    bootstrap: &Bootstrap<'_>,
    kubernetes: &mut Table,
    ignored: &mut Vec<String>,
) -> Result<(), UserDataError> {
    let known: BTreeMap<&str, Kind> = KUBERNETES.into_iter().collect();
    let unknown: Vec<String> = (kubernetes.keys())
        .filter(|key| !known.contains_key(key.as_str()))
        .cloned()
        .collect();
    for key in unknown {
        kubernetes.remove(&key);
        ignored.push(format!("settings.kubernetes.{key}"));
    }
    for (key, value) in kubernetes.iter() {
        let kind = known.get(key.as_str()).copied().unwrap_or(Kind::Any);
        if !kind.takes(value) {
            let kind = kind.as_str();
            return Err(bootstrap.wrong(format!(
                "has settings.kubernetes.{key}, which must be {kind}"
            )));
        }
    }
    if kubernetes.remove("node-taints").is_some() {
        ignored.push("settings.kubernetes.node-taints".to_owned());
    }
    Ok(())
}

/// What the class and the claim say wins.
fn overwrite(bootstrap: &Bootstrap<'_>, kubernetes: &mut Table) {
    let cluster = bootstrap.cluster;
    let mut set = |key: &str, value: Option<Value>| {
        if let Some(value) = value {
            kubernetes.insert(key.to_owned(), value);
        }
    };
    let text = |text: &str| Value::String(text.to_owned());
    set("cluster-name", Some(text(&cluster.name)));
    set("api-server", Some(text(&cluster.endpoint)));
    set(
        "cluster-certificate",
        cluster.ca_bundle.as_deref().map(text),
    );
    set("max-pods", Some(i64::from(bootstrap.max_pods).into()));
    set(
        "cluster-dns-ip",
        bootstrap.cluster_dns().first().copied().map(text),
    );
    set("node-taints", taints(bootstrap));
    if let Some(kubelet) = bootstrap.kubelet {
        set("system-reserved", map(kubelet.system_reserved.as_ref()));
        set("kube-reserved", map(kubelet.kube_reserved.as_ref()));
        set("eviction-hard", map(kubelet.eviction_hard.as_ref()));
        set("eviction-soft", map(kubelet.eviction_soft.as_ref()));
        let grace = kubelet.eviction_soft_grace_period.as_ref();
        let grace = grace.map(|periods| periods.iter().map(grace_text).collect());
        set("eviction-soft-grace-period", map(grace.as_ref()));
        let number = |number: Option<i32>| number.map(|number| Value::from(i64::from(number)));
        set(
            "eviction-max-pod-grace-period",
            number(kubelet.eviction_max_pod_grace_period),
        );
        let as_text = |number: Option<i32>| number.map(|number| text(&number.to_string()));
        set(
            "image-gc-high-threshold-percent",
            as_text(kubelet.image_gc_high_threshold_percent),
        );
        set(
            "image-gc-low-threshold-percent",
            as_text(kubelet.image_gc_low_threshold_percent),
        );
        set(
            "cpu-cfs-quota-enforced",
            kubelet.cpu_cfs_quota.map(Value::Boolean),
        );
    }
    let labels = kubernetes
        .entry("node-labels")
        .or_insert_with(|| Table::new().into());
    if let Some(labels) = labels.as_table_mut() {
        let label = |(key, value): (&String, &String)| (key.clone(), text(value));
        labels.extend(bootstrap.labels.iter().map(label));
    }
}

fn grace_text((signal, notice): (&String, &DurationText)) -> (String, String) {
    (signal.clone(), go::duration(notice))
}

/// A table of texts; an empty one is none.
fn map(map: Option<&BTreeMap<String, String>>) -> Option<Value> {
    let map = map.filter(|map| !map.is_empty())?;
    let entry = |(key, value): (&String, &String)| (key.clone(), Value::String(value.clone()));
    Some(Value::Table(map.iter().map(entry).collect()))
}

/// Values and effects by key.
fn taints(bootstrap: &Bootstrap<'_>) -> Option<Value> {
    let mut table = Table::new();
    for taint in bootstrap.taints {
        let list = table
            .entry(taint.key.clone())
            .or_insert_with(|| Value::Array(Vec::new()));
        let value = taint.value.as_deref().unwrap_or_default();
        if let Some(list) = list.as_array_mut() {
            list.push(Value::String(format!("{value}:{}", taint.effect)));
        }
    }
    (!table.is_empty()).then_some(Value::Table(table))
}

fn mount(binds_by_default: bool) -> Value {
    let texts = |words: &[&str]| {
        let words = words.iter().map(|word| Value::String((*word).to_owned()));
        Value::Array(words.collect())
    };
    let mut bind = vec!["apiclient", "ephemeral-storage", "bind"];
    if !binds_by_default {
        bind.push("--dirs");
        bind.extend(DIRECTORIES);
    }
    let commands = vec![
        texts(&["apiclient", "ephemeral-storage", "init"]),
        texts(&bind),
    ];
    let mut table = Table::new();
    table.insert("commands".to_owned(), Value::Array(commands));
    table.insert("mode".to_owned(), Value::String("always".to_owned()));
    table.insert("essential".to_owned(), Value::Boolean(true));
    Value::Table(table)
}

fn in_order(mut kubernetes: Table) -> Ordered {
    let entries = KUBERNETES.iter().filter_map(|(key, kind)| {
        let value = kubernetes.remove(*key)?;
        let is_empty = value.as_table().is_some_and(Table::is_empty);
        let entry = match (kind, value) {
            (Kind::Tables(order), Value::Table(table)) => {
                Entry::Table(tables_in_order(table, order))
            }
            (_, value) => Entry::of(value),
        };
        (!is_empty).then(|| ((*key).to_owned(), entry))
    });
    Ordered(entries.collect())
}

/// Tables by name, with the keys of each in this order.
fn tables_in_order(tables: Table, order: &[&str]) -> Ordered {
    let Ordered(entries) = Ordered::by_name(tables);
    let entry = |(name, entry)| match entry {
        Entry::Table(table) => (name, Entry::Table(Ordered::with_first(table, order))),
        Entry::Value(value) => (name, Entry::Value(value)),
    };
    Ordered(entries.into_iter().map(entry).collect())
}

/// Whether the Bottlerocket that a class selects binds all directories without being told which. The version
/// is that of the alias, else of a name term, else of the image behind an id term, else of any image. A
/// version that cannot be read counts as old, `latest` as new.
#[must_use]
pub fn binds_by_default(spec: &Ec2NodeClassSpec, status: &Ec2NodeClassStatus) -> bool {
    if let Some((AmiFamily::Bottlerocket, version)) = family::alias(spec) {
        return version == "latest"
            || parse_version(version).is_some_and(|version| version >= BINDS_BY_DEFAULT);
    }
    let terms = &spec.ami_selector_terms;
    let amis = status.amis.as_deref().unwrap_or_default();
    let of_id = || {
        let id = terms.iter().find_map(|term| term.id.as_deref())?;
        amis.iter().find(|ami| ami.id == id)?.name.as_deref()
    };
    let name = terms.iter().find_map(|term| term.name.as_deref());
    let name = name.or_else(of_id);
    let name = name.or_else(|| amis.iter().find_map(|ami| ami.name.as_deref()));
    let version = name.and_then(|name| name.split('-').find_map(parse_version));
    version.is_some_and(|version| version >= BINDS_BY_DEFAULT)
}

/// Three numbers with dots between them.
fn parse_version(text: &str) -> Option<[u32; 3]> {
    let text = text.strip_prefix('v').unwrap_or(text);
    let parts: Option<Vec<u32>> = text.split('.').map(|part| part.parse().ok()).collect();
    parts?.try_into().ok()
}
