//! The embedded control plane: its server, and the differences to a real one.

mod differential;
mod server;
