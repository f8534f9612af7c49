//! What can keep a server from starting.

use std::net::SocketAddr;
use std::path::PathBuf;

/// Why there is no server, or why a model file cannot be served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// No model to serve.
    #[error("no model to serve: give at least one model file")]
    NoModels,
    /// Two models of one name.
    #[error("two models are called `{name}`: give one of them another name, as in {name}2={}", .path.display())]
    SameName {
        /// The name.
        name: String,
        /// The second file.
        path: PathBuf,
    },
    /// A name that no address can have.
    #[error(
        "`{name}` cannot be part of an address: use letters, digits, `-`, `_` and `.` (NAME=FILE gives a name)"
    )]
    Name {
        /// The name.
        name: String,
    },
    /// A file that cannot be read.
    #[error("cannot read model {}: {source}", .path.display())]
    Read {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// A file that is no model.
    #[error("{} is not a model that can be used ({source}); fit it again", .path.display())]
    Model {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: bayespc::Error,
    },
    /// Notes of a model that do not fit it.
    #[error("{}: {problem}; fit it again", .path.display())]
    Notes {
        /// Which file.
        path: PathBuf,
        /// What is wrong.
        problem: String,
    },
    /// An address that others can reach, and no token.
    #[error(
        "{address} can be reached from other machines: give a token (--token-file), or let anyone in (--allow-anyone)"
    )]
    Open {
        /// The address.
        address: SocketAddr,
    },
    /// An address that cannot be listened on.
    #[error("cannot listen on {address}: {source}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// The runtime does not start.
    #[error("cannot start the server's threads: {0}")]
    Threads(std::io::Error),
}
