//! Sockets: listen, answer, and stop without breaking off what was begun.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::app::App;
use crate::error::Error;
use crate::event::Event;
use crate::file::ModelFile;
use crate::options::Options;
use crate::router::{metrics_router, router};
use crate::watch::watch;

/// How long the head of a request may take; connections that say nothing are closed after it.
const HEAD: Duration = Duration::from_secs(60);

/// How long to wait when the system has no more sockets.
const PAUSE: Duration = Duration::from_millis(50);

/// How often to ask whether to stop.
const ASK: Duration = Duration::from_millis(50);

/// Whether the server is to shut down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shutdown {
    /// It is not.
    No,
    /// After the drain delay.
    AfterDelay,
    /// At once; this ends a drain delay too.
    Now,
}

/// Serve models until `shutdown` says so; then finish what was begun.
pub fn serve(models: &[ModelFile], options: Options, shutdown: impl Fn() -> Shutdown) -> Result<(), Error> {
    let address = SocketAddr::new(options.host, options.port);
    if !options.host.is_loopback() && options.token.is_none() && !options.allow_anyone {
        return Err(Error::Open { address });
    }
    let app = App::new(models, options)?;
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        // Those that compute, and those that look after files.
        .max_blocking_threads(app.options().computations + 4)
        .enable_all()
        .build()
        .map_err(Error::Threads)?;
    let result = runtime.block_on(run(app, address, shutdown));
    // A computation that outlives its time must not keep the process.
    runtime.shutdown_timeout(Duration::from_millis(100));
    result
}

async fn run(app: App, address: SocketAddr, shutdown: impl Fn() -> Shutdown) -> Result<(), Error> {
    let (listener, address) = listen(address).await?;
    let metrics = match app.options().metrics_port {
        Some(port) => Some(listen(SocketAddr::new(address.ip(), port)).await?),
        None => None,
    };
    let metrics_address = metrics.as_ref().map(|(_, address)| *address);
    let watching = tokio::spawn(watch(app.clone()));
    let metrics = metrics.map(|(listener, _)| {
        let router = metrics_router(app.clone());
        tokio::spawn(async move { accept(&listener, &router, 64, &GracefulShutdown::new()).await })
    });
    app.options().tell(&Event::Listening {
        address,
        metrics: metrics_address,
        models: app.registry().names(),
    });
    let graceful = GracefulShutdown::new();
    let router = router(app.clone());
    tokio::select! {
        () = accept(&listener, &router, app.options().connections, &graceful) => {}
        () = drained(&app, shutdown) => {}
    }
    drop(listener);
    app.options().tell(&Event::Stopping { open: graceful.count() });
    // Who has not finished in time is cut off.
    let _ = tokio::time::timeout(app.options().grace, graceful.shutdown()).await;
    watching.abort();
    if let Some(metrics) = metrics {
        metrics.abort();
    }
    Ok(())
}

/// Return when the listener may be closed: readiness has been denied for the drain delay.
async fn drained(app: &App, shutdown: impl Fn() -> Shutdown) {
    while shutdown() == Shutdown::No {
        tokio::time::sleep(ASK).await;
    }
    app.stop();
    let delay = app.options().drain_delay;
    if !delay.is_zero() && shutdown() == Shutdown::AfterDelay {
        app.options().tell(&Event::Draining { seconds: delay.as_secs_f64() });
    }
    let start = Instant::now();
    while start.elapsed() < delay && shutdown() == Shutdown::AfterDelay {
        tokio::time::sleep(ASK.min(delay)).await;
    }
}

async fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), Error> {
    let failed = |source| Error::Listen { address, source };
    let listener = TcpListener::bind(address).await.map_err(failed)?;
    // With port 0 the system chooses.
    let address = listener.local_addr().map_err(failed)?;
    Ok((listener, address))
}

/// Take connections for ever, at most so many at a time.
async fn accept(listener: &TcpListener, router: &Router, most: usize, graceful: &GracefulShutdown) {
    let room = Arc::new(Semaphore::new(most.max(1)));
    loop {
        // The semaphore is never closed.
        let Ok(place) = room.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        // Answers are small and whole: waiting to fill a packet would only delay them.
        let _ = stream.set_nodelay(true);
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(HEAD)
            .serve_connection(TokioIo::new(stream), TowerToHyperService::new(router.clone()));
        let watched = graceful.watch(connection);
        tokio::spawn(async move {
            // A client that goes away is no news.
            let _ = watched.await;
            drop(place);
        });
    }
}
