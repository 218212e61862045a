//! Asks a running controller, through its metrics port.

use std::collections::BTreeSet;
use std::io::{self, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::time::Duration;

use anyhow::{Context, anyhow, bail};
use joiner_receipts::near;
use joiner_receipts::why::NoAnswer;
use joiner_sandbox::kubeconfig::CONTROLLER;
use kube::config::Kubeconfig;
use serde::de::DeserializeOwned;

use super::Whom;
use crate::kubeconfig;

/// Where `joiner run` answers when nobody says otherwise.
const USUAL: &str = "http://127.0.0.1:8080";
/// How long an answer may take: it comes from memory.
const ANSWER_MAX: Duration = Duration::from_secs(10);
/// The longest answer that is read.
const BYTES_MAX: u64 = 64 << 20;

/// The answer to `/debug/why/..`.
pub(super) fn ask<T: DeserializeOwned>(whom: &Whom, about: &str) -> anyhow::Result<T> {
    let (url, said_by) = address(whom)?;
    let path = format!("/debug/why/{}", encoded(about));
    let (code, body) = get(&url, &path).map_err(|error| {
        anyhow!(
            "cannot reach the controller at {url} ({said_by}): {error}; start joiner run or joiner \
             sandbox, forward its metrics port with kubectl port-forward, name another address with \
             --controller URL, or read what it wrote with --decision-log FILE"
        )
    })?;
    match code {
        200 => serde_json::from_str(&body)
            .with_context(|| format!("the controller at {url} gives an answer of another version")),
        404 | 409 => match serde_json::from_str::<NoAnswer>(&body) {
            Ok(no) => Err(anyhow!(no)),
            Err(_) => bail!(
                "what answers at {url} ({said_by}) is no controller of ours, or an older one; name \
                 the address of another with --controller URL"
            ),
        },
        code => bail!(
            "the controller at {url} answers with status {code}: {}",
            body.trim()
        ),
    }
}

/// Where the controller is, and who says so.
fn address(whom: &Whom) -> anyhow::Result<(String, &'static str)> {
    if let Some(url) = &whom.controller {
        if !url.starts_with("http://") {
            bail!("--controller {url:?} is no address: give one such as {USUAL}");
        }
        return Ok((url.trim_end_matches('/').to_owned(), "from --controller"));
    }
    let file = match &whom.kubeconfig {
        Some(path) => Some(kubeconfig::read(path, &mut whom.input.reader())?),
        None => Kubeconfig::read().ok(),
    };
    let context = whom.context.as_deref();
    if let (Some(file), Some(context)) = (&file, context)
        && !file.contexts.iter().any(|own| own.name == context)
    {
        let all: BTreeSet<String> = file.contexts.iter().map(|own| own.name.clone()).collect();
        let near = match near(context, &all).as_slice() {
            [] => String::new(),
            near => format!("; did you mean {}?", near.join(", ")),
        };
        bail!("the kubeconfig has no context {context:?}{near}");
    }
    Ok(match file.as_ref().and_then(|file| named(file, context)) {
        Some(url) => (url, "from the kubeconfig"),
        None => (USUAL.to_owned(), "the default"),
    })
}

/// The address that a kubeconfig has for the cluster of a context, or of its current one.
fn named(file: &Kubeconfig, context: Option<&str>) -> Option<String> {
    let current = context.or(file.current_context.as_deref())?;
    let context = file.contexts.iter().find(|own| own.name == current)?;
    let cluster = &context.context.as_ref()?.cluster;
    let cluster = file.clusters.iter().find(|own| own.name == *cluster)?;
    let extensions = cluster.cluster.as_ref()?.extensions.as_ref()?;
    let own = extensions.iter().find(|own| own.name == CONTROLLER)?;
    Some(own.extension["url"].as_str()?.to_owned())
}

/// A path whose parts are names of Kubernetes objects; whatever else was typed is spelled out.
fn encoded(about: &str) -> String {
    let mut text = String::with_capacity(about.len());
    for byte in about.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'/' => {
                text.push(char::from(byte));
            }
            other => text.push_str(&format!("%{other:02X}")),
        }
    }
    text
}

/// One request, one answer: HTTP/1.0, so that the answer ends with the connection.
fn get(url: &str, path: &str) -> io::Result<(u16, String)> {
    let host = url.strip_prefix("http://").unwrap_or(url);
    let bad = |words: &str| io::Error::new(io::ErrorKind::InvalidData, words.to_owned());
    let with_port = match host.rsplit_once(':') {
        Some((_, port)) if port.parse::<u16>().is_ok() => host.to_owned(),
        _ => format!("{host}:80"),
    };
    let mut last = bad("the name has no address");
    for address in with_port.to_socket_addrs()? {
        match TcpStream::connect_timeout(&address, ANSWER_MAX) {
            Ok(mut stream) => {
                stream.set_read_timeout(Some(ANSWER_MAX))?;
                stream.set_write_timeout(Some(ANSWER_MAX))?;
                let request = format!("GET {path} HTTP/1.0\r\nhost: {host}\r\n\r\n");
                stream.write_all(request.as_bytes())?;
                let mut bytes = Vec::new();
                stream.take(BYTES_MAX).read_to_end(&mut bytes)?;
                let text = String::from_utf8_lossy(&bytes);
                let (head, body) = text
                    .split_once("\r\n\r\n")
                    .ok_or_else(|| bad("what answers does not speak HTTP"))?;
                let code = head.split(' ').nth(1).and_then(|code| code.parse().ok());
                let code = code.ok_or_else(|| bad("what answers does not speak HTTP"))?;
                return Ok((code, body.to_owned()));
            }
            Err(error) => last = error,
        }
    }
    Err(last)
}
