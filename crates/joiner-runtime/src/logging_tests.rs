//! Lines as they come out.

use std::time::Duration;

use serde_json::Value;

use super::*;

/// What a file holds after `speak` with these settings.
fn logged(level: LogLevel, format: LogFormat, speak: impl FnOnce()) -> Vec<String> {
    use std::sync::atomic::{AtomicU32, Ordering};
    static N: AtomicU32 = AtomicU32::new(0);
    let n = N.fetch_add(1, Ordering::Relaxed);
    let path = std::env::temp_dir().join(format!("joiner-log-{}-{n}", std::process::id()));
    let clock = Clock::new(Timestamp::from_second(1_700_000_000).unwrap(), 1);
    let settings = LogSettings {
        level,
        format,
        outputs: vec![LogOutput::File(path.clone())],
        ..LogSettings::new(clock, "abc123".to_owned())
    };
    let (subscriber, sinks) = subscriber(&settings).unwrap();
    tracing::subscriber::with_default(subscriber, speak);
    drop(LogGuard { sinks });
    let text = std::fs::read_to_string(&path).unwrap();
    std::fs::remove_file(&path).unwrap();
    text.lines().map(str::to_owned).collect()
}

fn json(lines: &[String]) -> Vec<Value> {
    let lines = lines.iter();
    lines
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

#[tokio::test(start_paused = true)]
async fn json_has_upstreams_keys() {
    let lines = logged(LogLevel::Info, LogFormat::Json, || {
        let span = tracing::info_span!(
            "reconcile",
            controller = "nodeclaim.lifecycle",
            node_claim = "general-1",
            reconcile_id = "r1",
            node = tracing::field::Empty
        );
        let _entered = span.enter();
        span.record("node", "ip-1");
        let error = std::io::Error::other("no \"way\"\nat all");
        tracing::info!(pod = "web/api-0", n = 3, ok = true, "launched nodeclaim");
        tracing::error!(error = &error as &dyn std::error::Error, "failed");
        tracing::warn!("someone should look");
    });
    let order = ["level", "time", "logger", "message", "commit", "controller"];
    let places = order.map(|key| lines[0].find(&format!("\"{key}\":")).unwrap());
    assert!(places.is_sorted(), "{}", lines[0]);
    let lines = json(&lines);
    assert_eq!(lines.len(), 3);
    let expected = serde_json::json!({"level": "INFO", "time": "2023-11-14T22:13:20.000Z",
        "logger": "controller", "message": "launched nodeclaim", "commit": "abc123",
        "controller": "nodeclaim.lifecycle", "NodeClaim": {"name": "general-1"},
        "reconcileID": "r1", "Node": {"name": "ip-1"},
        "Pod": {"name": "api-0", "namespace": "web"}, "n": 3, "ok": true});
    assert_eq!(lines[0], expected);
    assert_eq!(lines[1]["level"], "ERROR");
    assert_eq!(lines[1]["error"], "no \"way\"\nat all");
    assert_eq!(lines[2]["level"], "WARN");
}

#[tokio::test(start_paused = true)]
async fn objects_are_objects_however_their_fields_are_spelled() {
    let lines = logged(LogLevel::Info, LogFormat::Json, || {
        tracing::info!(
            NodeClaim = "general-1",
            NodePool = "general",
            Node = "",
            Pod = "web/api-0",
            Deployment = "web/api",
            "provider-id" = "kwok://x",
            "launched nodeclaim"
        );
        tracing::info!(
            pool = "general",
            node_claim = "general-1",
            provider_id = "kwok://x",
            instance_type = "c-1x",
            capacity_type = "spot",
            command_id = "c1",
            "disrupted-nodes" = r#"[{"Node":{"name":"n1"}}]"#,
            pods = "not/an/object",
            "again"
        );
    });
    let lines = json(&lines);
    let named = |name: &str| serde_json::json!({"name": name});
    let api = serde_json::json!({"name": "api", "namespace": "web"});
    assert_eq!(lines[0]["NodeClaim"], named("general-1"));
    assert_eq!(lines[0]["NodePool"], named("general"));
    assert!(
        lines[0].get("Node").is_none(),
        "one without a name: {}",
        lines[0]
    );
    assert_eq!(lines[0]["Pod"]["namespace"], "web");
    assert_eq!(lines[0]["Deployment"], api);
    assert_eq!(lines[1]["NodeClaim"], named("general-1"));
    assert_eq!(lines[1]["NodePool"], named("general"));
    for line in &lines {
        assert_eq!(line["provider-id"], "kwok://x");
    }
    let rest = &lines[1];
    let kinds = ["instance-type", "capacity-type", "command-id", "pods"].map(|key| &rest[key]);
    assert_eq!(kinds, ["c-1x", "spot", "c1", "not/an/object"]);
    assert_eq!(rest["disrupted-nodes"][0]["Node"], named("n1"));
}

#[tokio::test(start_paused = true)]
async fn levels_let_through_what_they_say() {
    let speak = || {
        tracing::debug!("d");
        tracing::info!("i");
        tracing::warn!("w");
        tracing::error!("e");
        tracing::info!(target: "hyper::client", "a connection");
        tracing::warn!(target: "kube::client", "trouble");
    };
    for (level, expected) in [
        (LogLevel::Debug, vec!["d", "i", "w", "e", "trouble"]),
        (LogLevel::Info, vec!["i", "w", "e", "trouble"]),
        (LogLevel::Error, vec!["e"]),
    ] {
        let lines = json(&logged(level, LogFormat::Json, speak));
        let messages: Vec<_> = lines.iter().map(|line| line["message"].clone()).collect();
        assert_eq!(messages, expected, "{level:?}");
        let has_caller = lines.iter().all(|line| line.get("caller").is_some());
        assert_eq!(has_caller, level == LogLevel::Debug);
    }
}

#[tokio::test(start_paused = true)]
async fn people_get_one_line_each_too() {
    let lines = logged(LogLevel::Info, LogFormat::Human, || {
        let span = tracing::info_span!("reconcile", namespace = "", reconcile_id = "r1");
        let _entered = span.enter();
        tracing::info!(pool = "general", why = "no room", "two\nlines");
    });
    assert_eq!(
        lines,
        ["22:13:20.000 INFO  two\\nlines pool=general why=\"no room\""]
    );
}

#[tokio::test(start_paused = true)]
async fn identical_lines_are_sampled() {
    let lines = logged(LogLevel::Info, LogFormat::Human, || {
        for n in 0..1_000 {
            tracing::info!(n, "again");
        }
        tracing::info!("something else");
    });
    // A hundred, then the 200th, 300th and so on.
    assert_eq!(lines.len(), 100 + 9 + 1);
    assert!(lines[100].ends_with("n=199"), "{}", lines[100]);
}

#[test]
fn sampling_starts_anew_each_second() {
    let mut sampler = Sampler::new();
    let now = Timestamp::from_second(100).unwrap();
    let mut n_admitted = |now: Timestamp| {
        let admits = (0..150).map(|_| sampler.admits(Level::INFO, "again", now));
        admits.filter(|admits| *admits).count()
    };
    assert_eq!(n_admitted(now), 100);
    assert_eq!(n_admitted(now + Duration::from_secs(1)), 100);
}

#[test]
fn settings_are_read_as_upstream_reads_them() {
    assert_eq!("".parse::<LogLevel>().unwrap(), LogLevel::Info);
    let error = "loud".parse::<LogLevel>().unwrap_err().to_string();
    assert!(error.starts_with("invalid LOG_LEVEL \"loud\""), "{error}");
    assert_eq!(
        LogOutput::list("stdout, stderr,/tmp/x"),
        [
            LogOutput::Stdout,
            LogOutput::Stderr,
            LogOutput::File("/tmp/x".into())
        ]
    );
}

#[tokio::test(start_paused = true)]
async fn a_file_that_cannot_be_opened_is_named() {
    let clock = Clock::new(Timestamp::UNIX_EPOCH, 1);
    let settings = LogSettings {
        outputs: LogOutput::list("/no/such/folder/x.log"),
        ..LogSettings::new(clock, String::new())
    };
    let error = subscriber(&settings).err().unwrap().to_string();
    assert!(error.contains("/no/such/folder/x.log"), "{error}");
}
