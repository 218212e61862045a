//! `joiner sandbox`: a cluster on this machine, left running.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, bail};
use clap::Args;
use joiner_runtime::{Clock, LogFormat, LogLevel, LogOutput, LogSettings, install};
use joiner_sandbox::certificates::Certificates;
use joiner_sandbox::{Sandbox, Settings, kubeconfig, serve};

use crate::embedded::Embedded;
use crate::signals::Stop;
use crate::{region, terminal};

/// Most nodes that a sandbox starts with.
const NODES_MAX: u32 = 5_000;

/// How long another sandbox may take to answer before it counts as gone.
const ANSWER_MAX: Duration = Duration::from_millis(500);
/// Bytes that no kubeconfig of a sandbox has.
const KUBECONFIG_MAX: u64 = 1 << 20;
/// What only the kubeconfigs of sandboxes say.
const MARK: &str = "current-context: joiner-sandbox";

/// Flags of `joiner sandbox`.
#[derive(Args)]
#[command(after_help = "Example:
  joiner sandbox &
  export KUBECONFIG=./joiner-kubeconfig
  kubectl get nodes
  kubectl create deployment web --image=nginx --replicas=3
  kubectl get pods -w
  joiner why pod NAME

It is a simulation: pods are scheduled and become ready, but nothing runs. Everything is gone when it
ends, the kubeconfig too.

With --speed the cluster's time runs ahead of yours. `kubectl get` shows true ages all the same; where
kubectl reckons with your clock (`kubectl describe`, `kubectl events`) it prints <invalid>.")]
pub(crate) struct SandboxArgs {
    /// Nodes that are there from the beginning
    #[arg(long, default_value_t = 2, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(0..=i64::from(NODES_MAX)))]
    nodes: u32,
    /// Where the kubeconfig is written; only that of an ended sandbox is overwritten
    #[arg(long, default_value = "./joiner-kubeconfig", value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Port on the loopback address; 0 takes any free one
    #[arg(
        long,
        default_value_t = 0,
        value_name = "PORT",
        allow_negative_numbers = true
    )]
    port: u16,
    /// Port of the autoscaler's metrics and of `joiner why`; by default 8080, or any if that is taken
    #[arg(long, value_name = "PORT", allow_negative_numbers = true)]
    metrics_port: Option<u16>,
    /// How many times faster than real time the cluster's clock runs
    #[arg(long, default_value_t = 1, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    speed: u32,
    /// Run the autoscaler on it, with a simulated cloud
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, value_name = "BOOL")]
    autoscaler: bool,
    /// Region of EC2 that the autoscaler buys in, for EC2NodeClasses; `joiner catalog --help` lists all
    #[arg(long, default_value = "us-east-1")]
    region: String,
    /// Seed of names and uids
    #[arg(
        long,
        default_value_t = 0,
        value_name = "N",
        allow_negative_numbers = true
    )]
    seed: u64,
}

/// Runs a sandbox until it is told to stop.
pub(crate) fn run(args: &SandboxArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    for warning in region::known(&args.region)? {
        terminal::warn(&warning)?;
    }
    make_way(&args.kubeconfig)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let ended = runtime.block_on(serve_until_stopped(args, out));
    // Whoever still watches is not waited for.
    runtime.shutdown_background();
    ended
}

async fn serve_until_stopped(args: &SandboxArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let certificates = Certificates::make()?;
    let settings = Settings {
        n_nodes: args.nodes as usize,
        seed: args.seed,
        ca_pem: certificates.ca_pem.clone(),
        ..Settings::default()
    };
    let clock = Clock::system(args.speed);
    let _guard = install(&warnings(&clock))?;
    let sandbox = Sandbox::start(clock.clone(), &settings)
        .context("the sandbox refuses its own first objects")?;
    let mut opened = open(&sandbox, &certificates, args.port, &args.kubeconfig).await?;
    let autoscaler = args
        .autoscaler
        .then(|| Embedded::start(sandbox.client(), clock, &args.region));
    let mut answers = None;
    if let Some(autoscaler) = &autoscaler {
        let servers = autoscaler.listen(args.metrics_port).await?;
        opened.name_controller(servers.metrics_address)?;
        answers = Some(servers);
    }
    // Whoever reads the greeting may want to end it at once.
    let mut stop = Stop::listen()?;
    greet(args, opened.door.address, out)?;
    stop.told().await;
    drop(answers);
    drop(autoscaler);
    drop(opened);
    writeln!(out, "The sandbox has ended.")?;
    Ok(())
}

/// A door for kubectl; the kubeconfig goes with it.
pub(crate) struct Opened {
    door: serve::Door,
    kubeconfig: PathBuf,
    text: String,
}

impl Opened {
    /// Writes down where the autoscaler answers `joiner why`.
    pub(crate) fn name_controller(&mut self, address: SocketAddr) -> anyhow::Result<()> {
        self.text = kubeconfig::with_controller(&self.text, &format!("http://{address}"));
        write_private(&self.kubeconfig, &self.text)
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // Somebody may have put something else there.
        if written(&self.kubeconfig).is_ok_and(|found| found == self.text) {
            let _ = std::fs::remove_file(&self.kubeconfig);
        }
    }
}

/// Lets kubectl in, and writes the kubeconfig for it.
pub(crate) async fn open(
    sandbox: &Sandbox,
    certificates: &Certificates,
    port: u16,
    kubeconfig: &Path,
) -> anyhow::Result<Opened> {
    let token = token()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let server = sandbox.server().clone();
    let door = serve::listen(server, address, certificates, token.clone()).await?;
    let text = kubeconfig::render(door.address, &certificates.ca_pem, &token);
    write_private(kubeconfig, &text)?;
    Ok(Opened {
        door,
        kubeconfig: kubeconfig.to_owned(),
        text,
    })
}

/// Only what somebody has to put right is logged; the rest is asked for.
fn warnings(clock: &Clock) -> LogSettings {
    let mut settings = LogSettings::new(clock.clone(), crate::build().commit);
    settings.level = LogLevel::Warn;
    settings.format = LogFormat::Human;
    settings.outputs = vec![LogOutput::Stderr];
    settings
}

/// Says what there is and what to type next.
fn greet(args: &SandboxArgs, address: SocketAddr, out: &mut dyn Write) -> anyhow::Result<()> {
    let nodes = match args.nodes {
        1 => "1 node".to_owned(),
        nodes => format!("{nodes} nodes"),
    };
    writeln!(
        out,
        "A sandbox cluster (Kubernetes 1.36 API, {nodes}) listens on https://{address}."
    )?;
    writeln!(
        out,
        "Pods are scheduled and become ready; nothing really runs."
    )?;
    if args.autoscaler {
        writeln!(
            out,
            "The autoscaler runs in it: apply a NodePool, and pending pods get simulated machines."
        )?;
    }
    if args.speed > 1 {
        writeln!(out, "Its clock runs {} times as fast as yours.", args.speed)?;
    }
    // The next words are typed in another terminal, perhaps in another folder.
    let path = std::path::absolute(&args.kubeconfig).unwrap_or_else(|_| args.kubeconfig.clone());
    writeln!(out)?;
    writeln!(out, "  export KUBECONFIG={}", quoted(&path))?;
    writeln!(out, "  kubectl get nodes")?;
    writeln!(
        out,
        "  kubectl create deployment web --image=nginx --replicas=3"
    )?;
    if args.autoscaler {
        writeln!(out, "  joiner why pod NAME")?;
    }
    writeln!(out)?;
    writeln!(out, "Ctrl-C ends it, and everything in it.")?;
    out.flush()?;
    Ok(())
}

/// A path as a shell takes it.
pub(crate) fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+@%=:,".contains(c);
    match text.chars().all(is_plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// Sees to it that nothing of value is overwritten: neither a kubeconfig of real clusters nor that
/// of a sandbox that still runs.
pub(crate) fn make_way(path: &Path) -> anyhow::Result<()> {
    // What cannot be read is met again when it is written, with words for it.
    let Ok(text) = written(path) else {
        return Ok(());
    };
    let shown = path.display();
    if !text.trim().is_empty() && !text.contains(MARK) {
        bail!(
            "{shown} is there already and no sandbox wrote it: choose another place for the \
             kubeconfig with --kubeconfig"
        );
    }
    let server = text.lines().find_map(|line| {
        let address = line.trim().strip_prefix("server: https://")?;
        address.parse::<SocketAddr>().ok()
    });
    if let Some(server) = server.filter(|one| TcpStream::connect_timeout(one, ANSWER_MAX).is_ok()) {
        bail!(
            "{shown} belongs to a sandbox that still runs, on https://{server}: end that one, or \
             choose another place for the kubeconfig with --kubeconfig"
        );
    }
    Ok(())
}

/// What is in a file; no more of it than a kubeconfig of ours can have.
fn written(path: &Path) -> std::io::Result<String> {
    use std::io::Read;
    let mut text = String::new();
    let file = std::fs::File::open(path)?;
    file.take(KUBECONFIG_MAX).read_to_string(&mut text)?;
    Ok(text)
}

/// A secret that only the kubeconfig knows.
fn token() -> anyhow::Result<String> {
    use std::io::Read;
    let mut bytes = [0u8; 24];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .context("cannot make a token: /dev/urandom cannot be read")?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Writes a file that only its owner can read.
fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
    let mut file = std::fs::OpenOptions::new()
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(path)
        .with_context(|| {
            format!(
                "cannot write the kubeconfig {}: choose another place with --kubeconfig",
                path.display()
            )
        })?;
    // A file that was there has the mode that somebody gave it.
    if file.metadata().is_ok_and(|found| found.is_file()) {
        let _ = file.set_permissions(std::fs::Permissions::from_mode(0o600));
    }
    file.write_all(text.as_bytes())
        .with_context(|| format!("cannot write the kubeconfig {}", path.display()))
}
