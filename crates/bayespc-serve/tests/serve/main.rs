//! The server as its clients see it: most over the router alone, some over a socket.

mod explore;
mod guard;
mod hostile;
mod mlflow;
mod oip;
mod openapi;
mod sockets;
mod support;
