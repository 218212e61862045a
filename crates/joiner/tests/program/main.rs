//! The program as people and scripts run it, its charts, and `kubectl` against its sandbox.

mod chart;
mod cli;
mod kubectl;
mod run;
