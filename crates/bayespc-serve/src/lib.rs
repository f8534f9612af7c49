//! Models over HTTP: others can call them, look at them and ask why.
//!
//! ```text
//! /v2/…                 Open Inference Protocol v2            oip.rs
//! /invocations, /ping   MLflow's scoring protocol             mlflow.rs
//! /, /page/…            a page for people                     page.rs
//! /api/…                what the page asks                    explore/
//! /openapi.json         all of this, for machines             openapi.rs
//! ```
//!
//! A request's way: `entrance` (who may ask) ─▶ `work` (is there room) ─▶ body, at most so long ─▶ `cells` (JSON or CSV as
//! columns) ─▶ `served` (columns as inputs) ─▶ `answer` (predictions by name). Computations run beside the sockets, as
//! many at once as there are cores. `watch` replaces a model when its file has changed; whoever computes with the old
//! one finishes with it.
//!
//! The library prints nothing: what happens is told to [`Options::listener`] as [`Event`]s.

mod answer;
mod app;
mod cells;
mod columns;
mod digest;
mod entrance;
mod error;
mod event;
mod explore;
mod file;
mod guard;
mod metrics;
mod mlflow;
mod nearest;
mod oip;
mod openapi;
mod options;
mod output;
mod page;
mod problem;
mod registry;
mod request;
mod router;
mod served;
mod server;
mod watch;
mod work;

pub use app::App;
pub use error::Error;
pub use event::Event;
pub use file::ModelFile;
pub use options::{Listener, Options};
pub use router::router;
pub use server::{Shutdown, serve};
