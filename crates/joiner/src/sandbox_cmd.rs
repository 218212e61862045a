//! `joiner sandbox`: a cluster on this machine, left running.

use std::io::Write;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use joiner_runtime::Clock;
use joiner_sandbox::certificates::Certificates;
use joiner_sandbox::{Sandbox, Settings, kubeconfig, serve};

/// Most nodes that a sandbox starts with.
const NODES_MAX: u32 = 5_000;

/// Flags of `joiner sandbox`.
#[derive(Args)]
#[command(after_help = "Example:
  joiner sandbox &
  export KUBECONFIG=./joiner-kubeconfig
  kubectl get nodes
  kubectl create deployment web --image=nginx --replicas=3
  kubectl get pods -w

It is a simulation: pods are scheduled and become ready, but nothing runs. Everything is gone when it ends.")]
pub(crate) struct SandboxArgs {
    /// Nodes that are there from the beginning
    #[arg(long, default_value_t = 2, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=i64::from(NODES_MAX)))]
    nodes: u32,
    /// Where the kubeconfig is written
    #[arg(long, default_value = "./joiner-kubeconfig", value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Port on the loopback address; 0 takes any free one
    #[arg(long, default_value_t = 0, value_name = "PORT")]
    port: u16,
    /// How many times faster than real time the cluster's clock runs
    #[arg(long, default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    speed: u32,
    /// Run joiner's own controllers too; there are none yet, so nothing changes
    #[arg(long, default_value_t = true, action = clap::ArgAction::Set, value_name = "BOOL")]
    autoscaler: bool,
    /// Seed of names and uids
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
}

/// Runs a sandbox until it is told to stop.
pub(crate) fn run(args: &SandboxArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    runtime.block_on(serve_until_stopped(args, out))
}

async fn serve_until_stopped(args: &SandboxArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let certificates = Certificates::make()?;
    let settings = Settings {
        n_nodes: args.nodes as usize,
        seed: args.seed,
        ca_pem: certificates.ca_pem.clone(),
        ..Settings::default()
    };
    let sandbox = Sandbox::start(Clock::system(args.speed), &settings)
        .context("the sandbox refuses its own first objects")?;
    let token = token()?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, args.port));
    let server = sandbox.server().clone();
    let door = serve::listen(server, address, &certificates, token.clone()).await?;
    let text = kubeconfig::render(door.address, &certificates.ca_pem, &token);
    write_private(&args.kubeconfig, &text)?;
    let file = args.kubeconfig.display();
    writeln!(
        out,
        "A sandbox cluster (Kubernetes 1.36 API, {} nodes) listens on https://{}.",
        args.nodes, door.address
    )?;
    writeln!(
        out,
        "Pods are scheduled and become ready; nothing really runs."
    )?;
    writeln!(out)?;
    writeln!(out, "  export KUBECONFIG={file}")?;
    writeln!(out, "  kubectl get nodes")?;
    writeln!(
        out,
        "  kubectl create deployment web --image=nginx --replicas=3"
    )?;
    writeln!(out)?;
    writeln!(out, "Ctrl-C ends it, and everything in it.")?;
    out.flush()?;
    stopped().await?;
    writeln!(out, "The sandbox has ended.")?;
    drop(door);
    let _ = std::fs::remove_file(&args.kubeconfig);
    Ok(())
}

/// Waits for Ctrl-C or a polite kill.
async fn stopped() -> anyhow::Result<()> {
    let mut terminated = tokio::signal::unix::signal(tokio::signal::unix::SignalKind::terminate())
        .context("cannot listen for signals")?;
    tokio::select! {
        pressed = tokio::signal::ctrl_c() => pressed.context("cannot listen for Ctrl-C")?,
        _ = terminated.recv() => {}
    }
    Ok(())
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
    use std::os::unix::fs::OpenOptionsExt;
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
    file.write_all(text.as_bytes())
        .with_context(|| format!("cannot write the kubeconfig {}", path.display()))
}
