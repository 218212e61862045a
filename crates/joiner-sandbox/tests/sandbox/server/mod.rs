//! The embedded API server's tests, in one program.

#![expect(clippy::unwrap_used, reason = "helpers of tests may fail as tests do")]

mod api_server;
mod kube_clients;
mod rights;
mod robustness;
mod virtual_time;
