//! The story: an `inflate` Deployment of 1 GiB pods, up and down, on a pool of four instance types;
//! then spot capacity that is taken back, and a change of the pool that all nodes have to follow.

use std::io::Write;
use std::time::Duration;

use anyhow::bail;
use jiff::Timestamp;

use super::scene::{Picture, Scene};
use super::stage::{Stage, TYPES, Wanted};
use super::view::Screen;
use crate::table::count;
use crate::terminal;

/// A chapter that takes more looks than this has gone wrong: a minute of the viewer's time, so that
/// a busy machine may take it slowly.
const LOOKS_MAX: u32 = 600;
/// A chapter ends when what it is about has happened and nothing has changed for this long: by then
/// no node is spoken for any more, and all of them can be judged.
const QUIET: Duration = Duration::from_secs(21);

/// What happens in a chapter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Act {
    /// The Deployment is scaled up, or down to what runs on fewer or smaller nodes.
    Scale(usize),
    /// The pool may buy spot capacity, too.
    AllowSpot,
    /// EC2 takes a spot node back.
    Interrupt,
    /// The pool's template changes.
    Change,
}

/// All of them, in order.
const ACTS: [Act; 10] = [
    Act::Scale(0),
    Act::Scale(5),
    Act::Scale(12),
    Act::Scale(5),
    Act::Scale(1),
    Act::AllowSpot,
    Act::Scale(12),
    Act::Interrupt,
    Act::Change,
    Act::Scale(0),
];

/// How a chapter went.
pub(super) struct Told {
    /// What happened.
    pub(super) what: String,
    /// The same in a few words.
    pub(super) brief: String,
    /// Dollars an hour before.
    pub(super) price_before: f64,
    /// How it was in the end.
    pub(super) picture: Picture,
    /// Seconds of the cluster's time until it was so.
    pub(super) took: Duration,
}

/// Something that a picture may show.
type Holds = Box<dyn Fn(&Picture) -> bool + Send>;

/// What is to be true in the end.
struct Goal {
    replicas: usize,
    holds: Holds,
}

/// Where the story is.
struct Teller<'a> {
    stage: &'a Stage,
    wanted: Wanted,
    replicas: usize,
}

impl Teller<'_> {
    /// Does it. Returns what it was, in words, and what is to come of it.
    async fn act(&mut self, act: Act, before: &Picture) -> anyhow::Result<(Words, Goal)> {
        let price = before.price();
        let (what, brief, holds): (String, String, Holds) = match act {
            Act::Scale(replicas) => {
                let from = self.replicas;
                self.replicas = replicas;
                self.stage.scale(replicas).await?;
                let (what, brief) = scaled(from, replicas);
                let down = replicas < from;
                let cheaper = move |now: &Picture| !down || now.price() < price - 1e-9;
                let empty = move |now: &Picture| replicas > 0 || now.nodes.is_empty();
                (what, brief, Box::new(move |now| cheaper(now) && empty(now)))
            }
            Act::AllowSpot => {
                self.wanted.spot = true;
                self.stage.pool(self.wanted).await?;
                let all_spot = |now: &Picture| now.nodes.iter().all(super::scene::NodeRow::is_spot);
                (
                    "NodePool default may buy spot capacity, too".to_owned(),
                    "spot is allowed".to_owned(),
                    Box::new(all_spot),
                )
            }
            Act::Interrupt => {
                let node = self.stage.interrupt(before).await?;
                let what = format!("EC2 takes spot node {node} back in two minutes");
                let brief = "a spot node is taken".to_owned();
                let gone = move |now: &Picture| !now.nodes.iter().any(|own| own.name == node);
                (what, brief, Box::new(gone))
            }
            Act::Change => {
                self.wanted.version += 1;
                self.stage.pool(self.wanted).await?;
                let version = format!("v{}", self.wanted.version + 1);
                let what = "NodePool default gets a new label: its nodes have drifted".to_owned();
                let new = move |now: &Picture| now.nodes.iter().all(|own| own.version == version);
                (what, "nodes have drifted".to_owned(), Box::new(new))
            }
        };
        let goal = Goal {
            replicas: self.replicas,
            holds,
        };
        Ok((Words { what, brief }, goal))
    }
}

/// What happens, at length and in short.
struct Words {
    what: String,
    brief: String,
}

fn scaled(from: usize, to: usize) -> (String, String) {
    let replicas = if to == 1 { "replica" } else { "replicas" };
    match (from, to) {
        (0, 0) => (
            "inflate has no replicas".to_owned(),
            "no replicas".to_owned(),
        ),
        (from, to) => (
            format!("inflate goes from {from} to {to} {replicas}"),
            format!("{from} → {to} {replicas}"),
        ),
    }
}

/// Plays all chapters.
pub(super) async fn play(
    stage: &Stage,
    scene: &Scene,
    screen: &mut Screen,
    out: &mut dyn Write,
    frame: Duration,
) -> anyhow::Result<Vec<Told>> {
    let mut teller = Teller {
        stage,
        wanted: Wanted::default(),
        replicas: 0,
    };
    stage.set_up().await?;
    let types = TYPES.join(", ");
    let pool = format!("NodePool default buys on demand: {types}");
    screen.remark(out, scene.now(), &pool)?;
    let mut told = Vec::new();
    for act in ACTS {
        let before = scene.picture().await?;
        let begun = before.at;
        let (Words { what, brief }, goal) = teller.act(act, &before).await?;
        screen.chapter(out, begun, &what)?;
        let (reached, picture) = wait(scene, screen, out, (&goal, frame)).await?;
        let own = Told {
            what,
            brief,
            price_before: before.price(),
            took: Duration::try_from(reached.duration_since(begun)).unwrap_or_default(),
            picture,
        };
        screen.end(out, &own)?;
        told.push(own);
    }
    Ok(told)
}

/// Shows how things go until the goal is reached. Returns when it was, and what is to be seen.
async fn wait(
    scene: &Scene,
    screen: &mut Screen,
    out: &mut dyn Write,
    (goal, frame): (&Goal, Duration),
) -> anyhow::Result<(Timestamp, Picture)> {
    let (mut reached, mut last): (Option<Timestamp>, Picture) = Default::default();
    for _ in 0..LOOKS_MAX {
        let picture = scene.picture().await?;
        screen.resize(terminal::size());
        screen.show(out, &picture)?;
        let now = picture.at;
        let holds = picture.is_settled(goal.replicas) && (goal.holds)(&picture);
        let since = match (holds, reached) {
            (true, since) => Some(since.unwrap_or(now)),
            (false, _) => None,
        };
        reached = since;
        // Where there is nothing, nothing will change.
        let calm = |since: Timestamp| now >= since + QUIET || picture.nodes.is_empty();
        if let Some(since) = since.filter(|since| calm(*since)) {
            return Ok((since, picture));
        }
        last = picture;
        // The viewer's time, not the cluster's.
        tokio::time::sleep(frame).await;
    }
    bail!(
        "{} of {} run on {} ({}), and more was to come: it takes too long",
        last.n_running,
        count(goal.replicas, "pod"),
        count(last.nodes.len(), "node"),
        last.types(),
    );
}
