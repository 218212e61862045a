//! The solver's tests, in one program: linking twenty would take most of the build's time and disk.

mod absent;
mod behaviors_combined;
mod behaviors_daemons;
mod behaviors_instance_types;
mod behaviors_limits;
mod behaviors_min_values;
mod behaviors_nodes;
mod behaviors_packing;
mod behaviors_pools;
mod behaviors_preferences;
mod behaviors_scheduling;
mod overlays;
mod remedies;
mod reserved;
mod topology_affinity;
mod topology_anti_affinity;
mod topology_brute_force;
mod topology_left_over;
mod topology_random;
mod topology_regressions;
mod topology_spread;
mod topology_spread_more;
mod volumes;
