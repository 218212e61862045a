//! How long does it take to read a file of manifests, and what is in it?
//!
//! `cargo run --release -p joiner-state --example read -- objects.json [instance-types.json] [pods]`
//!
//! With `pods` as the third word, one line per pod: name, requests, node or reason.

use std::io::Write as _;
use std::time::Instant;

use joiner_state::{Catalog, Objects, Source, parse_instance_types};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("which file?")?;
    let source = Source::new(path.as_str(), std::fs::read_to_string(&path)?);
    let bytes = source.text.len();
    let started = Instant::now();
    let types = match arguments.next() {
        Some(path) => parse_instance_types(&path, &std::fs::read_to_string(&path)?)?,
        None => Vec::new(),
    };
    let catalog_read = started.elapsed();
    let started = Instant::now();
    let objects = Objects::read([source])?;
    let read = started.elapsed();
    let input = objects.problem(Catalog::shared(types))?;
    let done = started.elapsed();
    let problem = &input.problem;
    let mut out = std::io::stdout().lock();
    writeln!(
        out,
        "text {bytes} bytes, catalog {catalog_read:?}, objects {read:?}, all {done:?}"
    )?;
    writeln!(
        out,
        "{} pods of {} shapes, {} nodes, {} pools, {} types, {} daemons",
        problem.pods.len(),
        problem.shapes.len(),
        problem.nodes.len(),
        problem.pools.len(),
        problem.types.len(),
        problem.daemons.len(),
    )?;
    if arguments.next().as_deref() == Some("pods") {
        for pod in &problem.pods {
            let requests = &problem[pod.shape].requests;
            let node = pod.node.map(|ix| &*problem[ix].name);
            let place = node.or(pod.ignored.as_deref()).unwrap_or("to place");
            writeln!(out, "{}: {requests}: {place}", pod.name)?;
        }
    }
    for warning in &input.warnings {
        writeln!(out, "warning: {warning}")?;
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    for line in status.lines().filter(|line| line.starts_with("VmHWM")) {
        writeln!(out, "{line}")?;
    }
    Ok(())
}
