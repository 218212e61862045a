//! Logs of pods: the simulated containers say what happened to them and then count the minutes.

use bytes::Bytes;
use http::StatusCode;
use jiff::{SignedDuration, Timestamp};
use joiner_machinery::{ApiError, meta};
use serde_json::Value;
use tokio::sync::mpsc;

use crate::exchange::{Reply, Request};
use crate::server::Server;
use crate::verbs::About;

/// A line of a log and when it was written.
type Line = (Timestamp, String);

/// How often a running container writes a line.
const EVERY: SignedDuration = SignedDuration::from_secs(60);
/// Most lines that one answer holds.
const LINES_MAX: usize = 10_000;

/// GET of a pod's log.
pub(crate) fn read(server: &Server, about: &About, request: &Request) -> Result<Reply, ApiError> {
    let key = about.key();
    let resource = about.served.resource();
    let found = server.store.with(|s| s.get(&resource, &key).cloned());
    let pod = found.ok_or_else(|| ApiError::not_found(&about.served.kind, &key.1))?;
    let container = container(&pod, request.param("container"))?;
    let Some(started) = started(&pod, &container) else {
        return Err(ApiError::bad_request(format!(
            "container \"{container}\" in pod \"{}\" is waiting to start: ContainerCreating",
            key.1
        )));
    };
    let now = server.clock.now();
    let stamps = request.flag("timestamps");
    let render = move |(at, text): &Line| {
        if stamps {
            format!("{} {text}\n", meta::micro_time(*at))
        } else {
            format!("{text}\n")
        }
    };
    let end = ended(&pod, &container).unwrap_or(now);
    let mut lines = lines(&container, started, end.min(now));
    if let Some(n) = request
        .param("tailLines")
        .and_then(|n| n.parse::<usize>().ok())
    {
        lines.drain(..lines.len().saturating_sub(n));
    }
    if let Some(secs) = request
        .param("sinceSeconds")
        .and_then(|n| n.parse::<i64>().ok())
    {
        let from = now.saturating_sub(SignedDuration::from_secs(secs));
        lines.retain(|(at, _)| from.as_ref().is_ok_and(|from| at >= from));
    }
    let text: String = lines.iter().map(&render).collect();
    let running = pod["status"]["phase"] == "Running" && !meta::is_deleting(&pod);
    if !request.flag("follow") || !running {
        return Ok(Reply::text(StatusCode::OK, &text));
    }
    let (sender, receiver) = mpsc::channel::<Bytes>(16);
    let clock = server.clock.clone();
    let store = std::sync::Arc::clone(&server.store);
    tokio::spawn(async move {
        if sender.send(text.into()).await.is_err() {
            return;
        }
        let mut last = now;
        loop {
            tokio::select! {
                biased;
                () = sender.closed() => return,
                () = clock.sleep(std::time::Duration::from_secs(1)) => {}
            }
            let now = clock.now();
            let mut fresh = self::lines(&container, started, now);
            fresh.retain(|(at, _)| *at > last);
            last = now;
            let text: String = fresh.iter().map(&render).collect();
            let gone = store.with(|s| {
                s.get(&resource, &key)
                    .is_none_or(|pod| pod["status"]["phase"] != "Running")
            });
            if (!text.is_empty() && sender.send(text.into()).await.is_err()) || gone {
                return;
            }
        }
    });
    Ok(Reply::stream("text/plain; charset=utf-8", receiver))
}

/// The container that is asked for, or the only one.
fn container(pod: &Value, asked: Option<&str>) -> Result<String, ApiError> {
    let all = pod["spec"]["containers"].as_array();
    let names = all.into_iter().flatten().filter_map(|c| c["name"].as_str());
    let names: Vec<&str> = names.collect();
    let pod_name = meta::name(pod);
    match asked.filter(|name| !name.is_empty()) {
        Some(name) if names.contains(&name) => Ok(name.to_owned()),
        Some(name) => Err(ApiError::bad_request(format!(
            "container {name} is not valid for pod {pod_name}"
        ))),
        None if names.len() == 1 => Ok(names[0].to_owned()),
        None => Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {pod_name}, choose one of: [{}]",
            names.join(" ")
        ))),
    }
}

fn started(pod: &Value, container: &str) -> Option<Timestamp> {
    let statuses = pod["status"]["containerStatuses"].as_array()?;
    let own = statuses.iter().find(|s| s["name"] == container)?;
    let states = [&own["state"]["running"], &own["state"]["terminated"]];
    let at = states.iter().find_map(|s| s["startedAt"].as_str())?;
    meta::parse_time(at)
}

/// When a container ended that runs no more.
fn ended(pod: &Value, container: &str) -> Option<Timestamp> {
    let statuses = pod["status"]["containerStatuses"].as_array()?;
    let own = statuses.iter().find(|s| s["name"] == container)?;
    meta::parse_time(own["state"]["terminated"]["finishedAt"].as_str()?)
}

fn lines(container: &str, started: Timestamp, now: Timestamp) -> Vec<Line> {
    let mut lines = vec![(
        started,
        format!("{container}: started in the sandbox, nothing runs"),
    )];
    let mut at = started;
    for minute in 1..LINES_MAX {
        let Ok(next) = at.checked_add(EVERY) else {
            break;
        };
        if next > now {
            break;
        }
        at = next;
        lines.push((at, format!("{container}: up for {minute} min")));
    }
    lines
}
