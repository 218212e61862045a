//! For every rule a legal plan, and the same plan with one thing wrong.

mod affinity;
mod apart;
mod census;
mod existing;
mod fit;
mod large;
mod launch;
mod order;
mod pools;
mod replays;
mod scale;
mod selection;
mod spread;
mod support;
