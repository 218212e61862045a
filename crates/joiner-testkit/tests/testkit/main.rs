//! The real control plane that tests run on, and worlds that they build.

mod real_control_plane;
mod worlds;
