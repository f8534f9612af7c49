//! The server as its clients see it: most over the router alone, some over a socket.

#![allow(clippy::unwrap_used, reason = "a test may panic")]

mod explore;
mod guard;
mod hostile;
mod mlflow;
mod oip;
mod openapi;
mod sockets;
mod support;
