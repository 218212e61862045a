//! Amazon Linux 2023: a NodeConfig for nodeadm, as the last part of a MIME archive: later ones win.

use joiner_api::types::Taint;
use serde_json::{Map, Value, json};

use super::flags::node_labels;
use super::mime::{self, Part};
use super::{Bootstrap, UserDataError, go};
use crate::yaml_text;

/// The user's parts, then ours.
pub(super) fn user_data(bootstrap: &Bootstrap<'_>) -> Result<String, UserDataError> {
    let mut parts = custom(bootstrap)?;
    let config = yaml_text::render(&node_config(bootstrap)?);
    parts.push(Part::new(
        mime::NODE_CONFIG,
        format!("# Karpenter Generated NodeConfig\n{config}"),
    ));
    Ok(mime::render(&parts))
}

/// An archive is taken part by part, a YAML mapping is a NodeConfig, anything else a script.
fn custom(bootstrap: &Bootstrap<'_>) -> Result<Vec<Part>, UserDataError> {
    let Some(text) = bootstrap.custom() else {
        return Ok(Vec::new());
    };
    if mime::is_archive(text) {
        let parts = mime::parse(text).map_err(|problem| bootstrap.wrong(problem))?;
        let parts = parts.into_iter().map(Part::with_content_headers_only);
        return Ok(parts.collect());
    }
    let is_mapping = serde_saphyr::from_str::<Value>(text).is_ok_and(|value| value.is_object());
    let kind = match is_mapping {
        true => mime::NODE_CONFIG,
        false => mime::SHELL_SCRIPT,
    };
    Ok(vec![Part::new(kind, text)])
}

fn node_config(bootstrap: &Bootstrap<'_>) -> Result<Value, UserDataError> {
    let cluster = bootstrap.cluster;
    let cidr = cluster.cidr.as_ref().ok_or_else(|| UserDataError::NoCidr {
        class: bootstrap.class.to_owned(),
    })?;
    let mut details = json!({
        "apiServerEndpoint": cluster.endpoint,
        "cidr": cidr,
        "name": cluster.name,
    });
    if let Some(bundle) = cluster
        .ca_bundle
        .as_ref()
        .filter(|bundle| !bundle.is_empty())
    {
        details["certificateAuthority"] = json!(bundle);
    }
    let storage = match bootstrap.raid0 {
        true => json!({"strategy": "RAID0"}),
        false => json!({}),
    };
    let mut kubelet = json!({"config": kubelet_config(bootstrap)});
    if let Some(flag) = node_labels(bootstrap.labels) {
        kubelet["flags"] = json!([flag]);
    }
    Ok(json!({
        "apiVersion": "node.eks.aws/v1alpha1",
        "kind": "NodeConfig",
        "metadata": {},
        "spec": {
            "cluster": details,
            "containerd": {},
            "instance": {"localStorage": storage},
            "kubelet": kubelet,
        },
    }))
}

/// The kubelet's settings as it reads them from a file: those of the class, and ours.
fn kubelet_config(bootstrap: &Bootstrap<'_>) -> Map<String, Value> {
    let given = bootstrap.kubelet.map(serde_json::to_value);
    let mut config = match given {
        Some(Ok(Value::Object(fields))) => fields,
        _ => Map::new(),
    };
    let says_nothing = |value: &Value| {
        let object = value.as_object().is_some_and(Map::is_empty);
        object || value.as_array().is_some_and(Vec::is_empty)
    };
    config.retain(|_, value| !says_nothing(value));
    let grace = bootstrap
        .kubelet
        .and_then(|kubelet| kubelet.eviction_soft_grace_period.as_ref());
    if let Some(grace) = grace.filter(|grace| !grace.is_empty()) {
        let text = |(signal, notice)| (String::clone(signal), json!(go::duration(notice)));
        let texts: Map<String, Value> = grace.iter().map(text).collect();
        config.insert("evictionSoftGracePeriod".to_owned(), texts.into());
    }
    config.insert("maxPods".to_owned(), json!(bootstrap.max_pods));
    let dns = bootstrap.cluster_dns();
    if !dns.is_empty() {
        config.insert("clusterDNS".to_owned(), json!(dns));
    }
    if !bootstrap.taints.is_empty() {
        let taints: Vec<Value> = bootstrap.taints.iter().map(taint).collect();
        config.insert("registerWithTaints".to_owned(), taints.into());
    }
    config
}

fn taint(taint: &Taint) -> Value {
    let mut entry = json!({"effect": taint.effect, "key": taint.key});
    if let Some(value) = taint.value.as_ref().filter(|value| !value.is_empty()) {
        entry["value"] = json!(value);
    }
    entry
}
