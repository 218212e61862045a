//! `joiner demo`: the main job on a bare machine, in under a minute.
//!
//! An embedded control plane, a simulated EC2 with the real catalog and prices, and the production
//! controllers, on a clock that runs faster than the real one. [`story`] is what happens, [`stage`]
//! makes it happen, [`scene`] sees what comes of it, [`view`] shows it, [`summary`] counts it.

mod scene;
mod stage;
mod story;
mod summary;
mod view;

use std::io::Write;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use joiner_runtime::Clock;
use joiner_sandbox::certificates::Certificates;
use joiner_sandbox::{Sandbox, Settings};

use self::scene::Scene;
use self::stage::Stage;
use self::view::Screen;
use crate::embedded::Embedded;
use crate::region;
use crate::sandbox_cmd;
use crate::signals::Stop;
use crate::terminal;

/// How many times faster than real time the demo runs.
const SPEED: u32 = 20;
/// How often it is looked what is new, and the live view is drawn.
const FRAME: Duration = Duration::from_millis(100);

/// Flags of `joiner demo`.
#[derive(Args, Clone, Debug)]
#[command(after_help = "Examples:
  joiner demo
  joiner demo --plain      the same as a log
  joiner demo --keep       and then, in another terminal: kubectl --kubeconfig joiner-kubeconfig get nodes")]
pub(crate) struct DemoArgs {
    /// Leave the world running for kubectl when the story is over
    #[arg(long)]
    keep: bool,
    /// Where the kubeconfig is written with --keep
    #[arg(long, default_value = "./joiner-kubeconfig", value_name = "FILE")]
    kubeconfig: PathBuf,
    /// How many times faster than real time the clock runs
    #[arg(long, default_value_t = SPEED, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=60))]
    speed: u32,
    /// Region of EC2 that is bought in; `joiner catalog --help` lists all
    #[arg(long, default_value = "us-east-1")]
    region: String,
    /// Print a plain log, also in a terminal
    #[arg(long)]
    plain: bool,
}

/// Plays the story.
pub(crate) fn run(args: &DemoArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    for warning in region::known(&args.region)? {
        terminal::warn(&warning)?;
    }
    if args.keep {
        sandbox_cmd::make_way(&args.kubeconfig)?;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let result = runtime.block_on(play(args, out));
    runtime.shutdown_timeout(Duration::from_millis(200));
    result
}

async fn play(args: &DemoArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let clock = Clock::system(args.speed);
    let certificates = Certificates::make()?;
    let settings = Settings {
        n_nodes: 0,
        ca_pem: certificates.ca_pem.clone(),
        ..Settings::default()
    };
    let sandbox = Sandbox::start(clock.clone(), &settings)
        .context("the embedded control plane refuses its own first objects")?;
    let mut door = match args.keep {
        true => Some(sandbox_cmd::open(&sandbox, &certificates, 0, &args.kubeconfig).await?),
        false => None,
    };
    let world = Embedded::start_patient(sandbox.client(), clock.clone(), &args.region);
    let mut answers = None;
    if let Some(door) = &mut door {
        let servers = world.listen(None).await?;
        door.name_controller(servers.metrics_address)?;
        answers = Some(servers);
    }
    let mut screen = Screen::new(terminal::size(), may_draw(args));
    screen.title(out, args.speed)?;
    let stage = Stage::new(sandbox.client(), world.cloud());
    let scene = Scene::new(sandbox.client(), clock.clone(), world.decisions());
    let told = story::play(&stage, &scene, &mut screen, out, FRAME).await;
    // Also when it went wrong: the terminal is as it was.
    screen.leave(out)?;
    let columns = terminal::size().map(|own| own.columns);
    summary::print(&told?, &scene.picture().await?, columns, out)?;
    if let Some(door) = door {
        let mut stop = Stop::listen()?;
        writeln!(out)?;
        writeln!(out, "The world keeps running. In another terminal:")?;
        writeln!(out)?;
        writeln!(out, "  export KUBECONFIG={}", args.kubeconfig.display())?;
        writeln!(out, "  kubectl get nodepools,nodeclaims,nodes")?;
        writeln!(out, "  kubectl scale deployment inflate --replicas 20")?;
        writeln!(out, "  joiner why node NAME")?;
        writeln!(out)?;
        writeln!(out, "Ctrl-C ends it.")?;
        out.flush()?;
        stop.told().await;
        drop(door);
    }
    drop(answers);
    drop(world);
    Ok(())
}

/// True for a terminal that can be drawn on, unless plain lines are asked for.
fn may_draw(args: &DemoArgs) -> bool {
    let says = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let dumb = says("TERM").is_none_or(|term| term == "dumb");
    !args.plain && !dumb && says("NO_COLOR").is_none()
}
