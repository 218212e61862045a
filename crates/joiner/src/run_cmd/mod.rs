//! `joiner run`: the controllers on a cluster.

mod clouds;
mod cluster;
pub(crate) mod flags;

use std::io::Write;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use joiner_controllers::assembly::{Autoscaler, Parts, while_leading};
use joiner_runtime::{
    Clock, DecisionSettings, Decisions, Election, ElectionSettings, Events, LogOutput, LogSettings,
    Metrics, identity, install,
};

use crate::signals::Stop;

use self::cluster::Away;
use self::flags::{CloudName, RunFlags};

const NO_CLOUD: &str = "\
This would run the autoscaler on the cluster of the current kubeconfig context (or of the pod it
runs in): buy nodes for pending pods, and give nodes back. It does nothing before it is told from
whom to buy:

  joiner run --cloud simulated     machines that do not exist, for tests and for trying things out

Add --dry-run to decide and log without changing anything.";

const EXAMPLES: &str = "\
Examples:
  # On the cluster of the current context, with machines that do not exist
  joiner run --cloud simulated

  # Beside another autoscaler: decide and log, change nothing
  joiner run --cloud simulated --dry-run

  # On a sandbox in another terminal
  joiner sandbox --autoscaler=false &
  joiner run --cloud simulated --kubeconfig ./joiner-kubeconfig --log-format text";

/// Flags of `joiner run`.
#[derive(Args, Clone, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct RunArgs {
    #[command(flatten)]
    flags: RunFlags,
}

/// Runs until it is told to stop.
pub(crate) fn run(args: &RunArgs, out: &mut dyn Write) -> anyhow::Result<()> {
    let Some(cloud) = args.flags.cloud else {
        writeln!(out, "{NO_CLOUD}")?;
        anyhow::bail!("no cloud is named; choose one with --cloud");
    };
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
        .context("cannot start the runtime")?;
    let result = runtime.block_on(serve(&args.flags, cloud));
    runtime.shutdown_timeout(Duration::from_secs(1));
    result
}

async fn serve(flags: &RunFlags, cloud: CloudName) -> anyhow::Result<()> {
    let mut reader = flags.input.reader();
    let settings = flags.settings(&mut reader)?;
    let mut stop = Stop::listen()?;
    let clock = Clock::system(1);
    let _guard = install(&log_settings(flags, &clock)?)?;
    let client = cluster::client(flags, &mut reader).await?;
    let provider = clouds::open(cloud, flags, (&client, &clock), &mut reader)?;
    let metrics = Arc::new(Metrics::new(clock.clone(), &crate::build()));
    let recorded = DecisionSettings {
        file: flags.decision_log.clone(),
        ..DecisionSettings::default()
    };
    let decisions = Decisions::new(&recorded, Arc::clone(&metrics));
    let (events, writer) = Events::new(
        client.clone(),
        clock.clone(),
        Arc::clone(&metrics),
        flags.dry_run,
    );
    let writer = tokio::spawn(writer.run());
    let autoscaler = Arc::new(Autoscaler::start(Parts {
        client: client.clone(),
        cloud: Arc::clone(&provider.cloud),
        provided: provider.controllers.clone(),
        clock: clock.clone(),
        settings,
        pace: (flags.kube_client_qps, flags.kube_client_burst),
        dry_run: flags.dry_run,
        metrics: Arc::clone(&metrics),
        events,
        decisions,
    }));
    let away = Away::default();
    let servers = cluster::listen(flags, &autoscaler, &metrics, &away).await?;
    let mut has_failed = false;
    let election = tokio::select! {
        () = stop.told() => None,
        about = cluster::about(&client, &clock, &away) => {
            tracing::info!(
                cloud = provider.cloud.name(),
                server = about.version,
                dry_run = flags.dry_run,
                "starting"
            );
            let election = elect(flags, &client, &clock);
            tokio::select! {
                () = stop.told() => {}
                () = provider.plays(&about, election.as_ref().map(Election::leading)) => {}
                () = while_leading(election.as_ref().map(Election::leading), || autoscaler.lead()) => {
                    has_failed = true;
                }
            }
            election
        }
    };
    tracing::info!("stopping");
    if let Some(election) = election {
        election.release().await;
    }
    writer.abort();
    servers.stop().await;
    anyhow::ensure!(
        !has_failed,
        "a controller has ended, see the log: start again"
    );
    Ok(())
}

fn log_settings(flags: &RunFlags, clock: &Clock) -> anyhow::Result<LogSettings> {
    let mut settings = LogSettings::new(clock.clone(), crate::build().commit);
    settings.level = flags.log_level.parse().map_err(|_| {
        anyhow::anyhow!(
            "validating cli flags / env vars, invalid LOG_LEVEL {:?}: it is debug, info or error",
            flags.log_level
        )
    })?;
    settings.format = match flags.log_format {
        flags::LogFormat::Json => joiner_runtime::LogFormat::Json,
        flags::LogFormat::Text => joiner_runtime::LogFormat::Human,
    };
    settings.outputs = LogOutput::list(&flags.log_output_paths);
    Ok(settings)
}

fn elect(flags: &RunFlags, client: &kube::Client, clock: &Clock) -> Option<Election> {
    if flags.disable_leader_election {
        return None;
    }
    let namespace = match flags.leader_election_namespace.as_str() {
        "" => cluster::own_namespace(),
        namespace => namespace.to_owned(),
    };
    let mut settings = ElectionSettings::new(&namespace, identity(&cluster::own_name()));
    settings.name.clone_from(&flags.leader_election_name);
    if flags.dry_run {
        settings = settings.dry_run();
    }
    Some(Election::start(client.clone(), clock.clone(), settings))
}
