//! A large cluster on the embedded control plane: what `joiner run` needs to know it all, and how
//! fast it answers one more pod.

use std::io::{Read as _, Write as _};
use std::net::{Ipv4Addr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::Context;
use joiner_testkit::control_plane::{Program as Part, Programs};

use super::program::{Joiner, Program, Usage};
use super::seen::Watch;
use super::{machine, story, thousands, until};
use crate::control_plane::tell;

/// No part of it takes longer.
const PART_MAX: Duration = Duration::from_secs(30 * 60);
/// How long a cluster is left alone before memory counts as steady.
const STEADY: Duration = Duration::from_secs(30);
/// Pods that come one by one.
const NEWCOMERS: usize = 11;

/// What came of it.
struct Figures {
    grown: Usage,
    fresh: Usage,
    idle_cpu: f64,
    sync_secs: f64,
    /// From a new pod to its claim, in order.
    answers_secs: Vec<f64>,
}

/// A cluster and those who work on it.
struct Place<'a> {
    joiner: &'a Joiner,
    folder: PathBuf,
    kubectl: PathBuf,
    _sandbox: Program,
}

/// Builds the cluster up and measures.
pub(super) fn run(
    joiner: &Joiner,
    programs: &Programs,
    logs: &Path,
    (nodes, pods): (usize, usize),
) -> anyhow::Result<String> {
    let place = Place::open(joiner, programs, logs)?;
    let mut program = place.start()?;
    place.apply(&story::list(&story::crowd_pools(nodes)))?;
    let watch = Watch::begin(&|| place.kubectl());
    until("the nodes", PART_MAX, || {
        program.usage()?;
        Ok(watch.seen().nodes_up() >= nodes)
    })?;
    tell(&format!(
        "{nodes} nodes after {:.0} s",
        watch.began.elapsed().as_secs_f64()
    ));
    place.apply(&story::list(&story::crowd(pods)))?;
    until("the pods", PART_MAX, || {
        program.usage()?;
        Ok(watch.seen().pods_up() >= pods)
    })?;
    tell(&format!(
        "{pods} pods after {:.0} s",
        watch.began.elapsed().as_secs_f64()
    ));
    std::thread::park_timeout(STEADY);
    let grown = program.usage()?;
    tell(&format!("grown: {grown:?}"));
    drop(program);
    let began = Instant::now();
    let mut program = place.start()?;
    let log = place.folder.join("run.log");
    until("the lists", PART_MAX, || {
        program.usage()?;
        Ok(is_ready(&std::fs::read_to_string(&log)?))
    })?;
    let sync_secs = began.elapsed().as_secs_f64();
    std::thread::park_timeout(STEADY);
    let before = program.usage()?;
    std::thread::park_timeout(STEADY);
    let fresh = program.usage()?;
    tell(&format!("fresh: {fresh:?} after {sync_secs:.1} s"));
    let figures = Figures {
        grown,
        fresh,
        idle_cpu: (fresh.cpu_secs - before.cpu_secs) / STEADY.as_secs_f64(),
        sync_secs,
        answers_secs: newcomers(&place, &mut program, &watch)?,
    };
    Ok(figures.section(nodes, pods))
}

/// Asks the health endpoint, whose address is in the log, whether everything is listed.
fn is_ready(log: &str) -> bool {
    let port = log.split("\"health\":\"").nth(1);
    let port = port.and_then(|rest| rest.split('"').next()?.rsplit(':').next()?.parse().ok());
    let Some(port) = port else {
        return false;
    };
    let ask = || {
        let mut stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.write_all(b"GET /readyz HTTP/1.0\r\nHost: localhost\r\n\r\n")?;
        let mut answer = String::new();
        stream.read_to_string(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    };
    ask().is_ok_and(|answer| answer.contains(" 200 "))
}

/// Lets pods come one by one; from each to its claim, in order.
fn newcomers(place: &Place<'_>, program: &mut Program, watch: &Watch) -> anyhow::Result<Vec<f64>> {
    let mut answers = Vec::new();
    for ix in 0..NEWCOMERS {
        let before = watch.seen().claims().len();
        place.apply(&story::newcomer(ix).to_string())?;
        let came = format!("newcomer{ix}");
        until("a claim", Duration::from_secs(60), || {
            program.usage()?;
            Ok(watch.seen().claims().len() > before)
        })?;
        let seen = watch.seen();
        let pod = seen.pod_there(&came).context("the pod was not seen")?;
        let claim = seen.claims().last().copied().unwrap_or_default();
        answers.push(claim - pod);
        drop(seen);
        // The next one is to find a quiet cluster.
        std::thread::park_timeout(Duration::from_secs(3));
    }
    answers.sort_by(f64::total_cmp);
    tell(&format!("from pod to claim: {answers:.3?}"));
    Ok(answers)
}

impl<'a> Place<'a> {
    fn open(joiner: &'a Joiner, programs: &Programs, folder: &Path) -> anyhow::Result<Self> {
        let kubeconfig = folder.join("kubeconfig");
        // What an earlier run has left.
        let _ = std::fs::remove_file(&kubeconfig);
        let mut command = joiner.call();
        command.args(["sandbox", "--nodes=0", "--autoscaler=false", "--kubeconfig"]);
        command.arg(&kubeconfig);
        let place = Self {
            _sandbox: Program::start(&mut command, &folder.join("sandbox.log"))?,
            joiner,
            kubectl: programs
                .path(Part::Kubectl)
                .context("there is no kubectl")?,
            folder: folder.to_owned(),
        };
        until("the sandbox", Duration::from_secs(30), || {
            Ok(kubeconfig.is_file())
        })?;
        Ok(place)
    }

    fn start(&self) -> anyhow::Result<Program> {
        let mut command = self.joiner.call();
        command.args(["run", "--cloud", "simulated", "--metrics-port=0"]);
        command.args([
            "--health-probe-port=0",
            "--feature-gates=StaticCapacity=true",
        ]);
        // The cluster is to be built up soon; its steady state has no writes to hold back.
        command.args(["--kube-client-qps=2000", "--kube-client-burst=4000"]);
        command
            .arg("--kubeconfig")
            .arg(self.folder.join("kubeconfig"));
        // One after the other: nobody waits for a lease to run out.
        command.arg("--disable-leader-election");
        Program::start(&mut command, &self.folder.join("run.log"))
    }

    fn kubectl(&self) -> Command {
        let mut command = Command::new(&self.kubectl);
        command
            .arg("--kubeconfig")
            .arg(self.folder.join("kubeconfig"));
        command
    }

    fn apply(&self, objects: &str) -> anyhow::Result<()> {
        let path = self.folder.join("objects.json");
        std::fs::write(&path, objects).context("cannot write objects")?;
        let mut command = self.kubectl();
        command.args(["apply", "--server-side", "-f"]).arg(&path);
        let output = command.stdin(Stdio::null()).output();
        let output = output.context("cannot run kubectl")?;
        let errors = String::from_utf8_lossy(&output.stderr);
        anyhow::ensure!(output.status.success(), "kubectl: {}", errors.trim());
        Ok(())
    }
}

impl Figures {
    fn section(&self, nodes: usize, pods: usize) -> String {
        let answers = &self.answers_secs;
        let ms = |ix: usize| answers.get(ix).map_or(0.0, |secs| secs * 1e3);
        let lines = [
            format!(
                "| resident memory, a minute after everything is listed, MiB | {} |",
                self.fresh.rss_kib / 1024
            ),
            format!(
                "| most memory until then, MiB | {} |",
                self.fresh.peak_kib / 1024
            ),
            format!(
                "| resident memory of the process that saw it all grow, MiB | {} |",
                self.grown.rss_kib / 1024
            ),
            format!(
                "| most memory of that process, MiB | {} |",
                self.grown.peak_kib / 1024
            ),
            format!(
                "| from its start until everything is listed, seconds | {:.1} |",
                self.sync_secs
            ),
            format!(
                "| CPU when nothing happens, share of a core | {:.3} |",
                self.idle_cpu
            ),
            format!(
                "| from a new pod to its NodeClaim, median, ms | {:.0} |",
                ms(answers.len() / 2)
            ),
            format!(
                "| the same, worst of {}, ms | {:.0} |",
                answers.len(),
                ms(answers.len().saturating_sub(1))
            ),
        ];
        format!(
            "## A large cluster\n\n\
             {} nodes with a NodeClaim each and {} pods that run on them, on the embedded control \
             plane; figures are those of the `joiner run` process alone. Measured on {} for \
             everything with `cargo xtask bench --live --embedded`, one run. The target is under 300 \
             MB.\n\n\
             | figure | value |\n|---|--:|\n{}",
            thousands(nodes),
            thousands(pods),
            machine(),
            lines.join("\n")
        )
    }
}
