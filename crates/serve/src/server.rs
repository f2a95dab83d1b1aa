//! Connections, from the first to the last.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use http_body_util::BodyExt;
use hyper::server::conn::http1;
use hyper::service::{Service, service_fn};
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use nearprint_fault::{Fault, Result, key, words};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio::time::{MissedTickBehavior, interval, timeout};
use tokio_io_timeout::TimeoutStream;

use crate::answers::Answers;
use crate::app::App;
use crate::options::{ServeOptions, Timeouts};
use crate::places::{Place, Places};
use crate::routes::router;
use crate::token::kind_of;

/// A server that listens.
#[derive(Debug)]
pub struct Server {
    listener: TcpListener,
    listen: SocketAddr,
    options: ServeOptions,
}

/// The work of a server until it stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Served {
    /// The connections.
    pub n_connections: u64,
    /// The requests that were cut off because they did not end in time.
    pub n_cut_off: u64,
}

/// The connections beyond the requests that may be under way, for idle clients and for those that are refused.
const SPARE_CONNECTIONS: usize = 256;

/// The bytes of the head of a request after which no more of it is read. The buffer may have up to twice as many by then.
const HEAD_BYTES: usize = 64 << 10;

impl Server {
    /// Listens on the address.
    ///
    /// # Errors
    /// [`ErrorKind::Usage`](nearprint_fault::ErrorKind::Usage) if others can reach the address and there is no token;
    /// [`ErrorKind::LocalIo`](nearprint_fault::ErrorKind::LocalIo) if the address cannot be had.
    pub async fn listen(options: ServeOptions) -> Result<Self> {
        options.refuse_open_address()?;
        let failed = |source: std::io::Error| {
            let reason = words![key("listen"), format!(" {}: {source}", options.listen)];
            Fault::new(kind_of(&source), reason).remedy("choose another address or port").because(source)
        };
        let listener = TcpListener::bind(options.listen).await.map_err(failed)?;
        let listen = listener.local_addr().map_err(failed)?;
        Ok(Self { listener, listen, options })
    }

    /// Returns the address, with the port that the system chose if the options had 0.
    #[must_use]
    pub fn address(&self) -> SocketAddr {
        self.listen
    }

    /// Answers requests until `stop` ends. Then the server takes no new connection, waits for the open requests as long
    /// as its options allow, and cuts off those that are left.
    pub async fn run(self, answers: Arc<dyn Answers>, stop: impl Future<Output = ()>) -> Served {
        let app = Arc::new(App::new(answers, self.options));
        let mut connections = Connections::new(&app);
        tokio::select! {
            () = connections.accept(self.listener) => {}
            () = follow(&app) => {}
            () = stop => {}
        }
        connections.end().await
    }
}

/// Looks for new commits for ever.
async fn follow(app: &App) {
    let mut ticks = interval(app.options.refresh_every);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        app.follow().await;
    }
}

struct Connections {
    app: Arc<App>,
    routes: Router,
    tasks: JoinSet<()>,
    graceful: GracefulShutdown,
    n_accepted: u64,
}

impl Connections {
    fn new(app: &Arc<App>) -> Self {
        let graceful = GracefulShutdown::new();
        Self { app: Arc::clone(app), routes: router(Arc::clone(app)), tasks: JoinSet::new(), graceful, n_accepted: 0 }
    }

    /// Takes connections for ever. Beyond the bound, an idle one makes place for a new one.
    async fn accept(&mut self, listener: TcpListener) {
        let places = Places::new(self.app.options.max_requests + SPARE_CONNECTIONS);
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    self.n_accepted += 1;
                    let place = places.take(self.n_accepted).await;
                    self.take(stream, place);
                }
                Err(error) => {
                    tracing::warn!("cannot take a connection: {error}");
                    tokio::time::sleep(RETRY).await;
                }
            }
            self.count_ended();
        }
    }

    fn take(&mut self, stream: TcpStream, place: Place) {
        // Answers are small, and none waits for more of itself.
        let _ = stream.set_nodelay(true);
        let Timeouts { head, write, stream: longest, .. } = self.app.options.timeouts;
        let mut stream = TimeoutStream::new(stream);
        stream.set_write_timeout(Some(write));
        let (routes, used) = (TowerToHyperService::new(self.routes.clone()), place.used());
        let respond = move |request| {
            let (routes, used) = (routes.clone(), Arc::clone(&used));
            async move {
                let Some(busy) = used.begin() else { return std::future::pending().await };
                let response = routes.call(request).await?;
                // The request lasts until its answer has left.
                Ok::<_, Infallible>(response.map(|body: Body| {
                    body.map_frame(move |frame| {
                        let _ = &busy;
                        frame
                    })
                }))
            }
        };
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(head)
            .max_buf_size(HEAD_BYTES)
            .serve_connection(TokioIo::new(Box::pin(stream)), service_fn(respond));
        let connection = self.graceful.watch(connection);
        let used = place.used();
        let open = self.app.metrics.connections.clone();
        open.inc();
        self.tasks.spawn(async move {
            tokio::select! {
                // A connection fails because of its client, who is not there to be told.
                _ = connection => {}
                // A stream says that its time is over. It ends here if its client does not take that.
                () = used.over(longest + write) => {}
            }
            open.dec();
            drop(place);
        });
    }

    /// Forgets the connections that ended, and counts those that a defect ended.
    fn count_ended(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            if ended.is_err_and(|error| error.is_panic()) {
                tracing::error!("a connection ended by a defect of nearprint");
                self.app.metrics.panics.inc();
            }
        }
    }

    async fn end(mut self) -> Served {
        let _ = timeout(self.app.options.timeouts.stop, self.graceful.shutdown()).await;
        let n_cut_off = self.app.n_open() as u64;
        self.tasks.shutdown().await;
        Served { n_connections: self.n_accepted, n_cut_off }
    }
}

/// The pause after the system refused a connection, such as for want of file descriptors.
const RETRY: std::time::Duration = std::time::Duration::from_millis(100);
