//! Sends one request.

use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use cloakroom_platform::certificates::Certificate;
use cloakroom_platform::config::{Config, Secret};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::telemetry::catalog;
use http::{Method, Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use tokio::time::timeout_at;

use crate::breaker::Breakers;
use crate::connect::Connector;
use crate::connect_proxy::ConnectProxy;
use crate::connection::Connection;
use crate::destination_key::DestinationKey;
use crate::in_flight::{InFlight, Share};
use crate::policy::Policy;
use crate::pool::Pool;
use crate::request::{BoxError, Progress, RequestBody, prepare};
use crate::resolve::{Names, Resolver};
use crate::response::{self, BodyLimits};
use crate::tls::TlsProfiles;
use crate::{Denied, DestinationUrl, Error, HostList, NotSent, ResponseBody, SendError};

/// Interval in which idle connections are closed and gauges are updated.
const SWEEP_INTERVAL: Duration = Duration::from_secs(1);
/// Wait for one of the lookups that this node runs at a time. Shorter than the time to connect: a wait for this node is
/// reported as overload, and is no failure of the destination.
const LOOKUP_TIMEOUT: Duration = Duration::from_secs(2);

/// Sends requests to hosts that tenants choose. Clones share connections and limits.
#[derive(Clone)]
pub struct Egress(Arc<Shared>);

struct Shared {
    connector: Connector,
    pool: Arc<Pool>,
    in_flight: InFlight,
    breakers: Breakers,
}

/// Where a request goes, and for whom.
#[derive(Clone, Copy)]
pub struct Destination<'a> {
    pub url: &'a DestinationUrl,
    pub tenant: TenantId,
    /// The tenant setting `egress_hosts`, if it is set.
    pub hosts: Option<&'a HostList>,
    /// Whether URL or headers contain values of tokens. The connection is then not reused, so that the buffer of the
    /// request head is freed with the request.
    pub has_sensitive_head: bool,
}

/// Time limits of one request.
#[derive(Clone, Copy, Debug)]
pub struct Timeouts {
    /// For name resolution, TCP and TLS.
    pub connect: Duration,
    /// Until the response head. Time counts from the last part of the request body that the destination accepted.
    pub head: Duration,
    /// Between two parts of the response body.
    pub idle: Duration,
    /// For everything, until the end of the response body.
    pub total: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(5),
            head: Duration::from_secs(25),
            idle: Duration::from_secs(25),
            total: Duration::from_secs(120),
        }
    }
}

/// Where one request goes, how it is counted, and its time limits.
#[derive(Clone, Copy)]
struct Route<'a> {
    destination: Destination<'a>,
    key: &'a DestinationKey,
    timeouts: &'a Timeouts,
}

impl Egress {
    /// Loads certificates and prepares limits. Opens no connection.
    ///
    /// Must be called within a Tokio runtime: a task closes idle connections until the last clone is dropped.
    pub fn open(config: &Config) -> Result<Self, Error> {
        let names = Names::System(config.egress.static_addresses.clone());
        Self::with_names(config, names)
    }

    /// The client certificates, which change with their files.
    pub fn certificates(&self) -> Vec<Arc<Certificate>> {
        self.0.connector.tls.certificates()
    }

    pub(crate) fn with_names(config: &Config, names: Names) -> Result<Self, Error> {
        let settings = &config.egress;
        let proxy = settings.connect_proxy.as_ref().map(Secret::reveal);
        let egress = Self(Arc::new(Shared {
            connector: Connector {
                policy: Policy::new(config),
                resolver: Resolver::new(names, LOOKUP_TIMEOUT),
                tls: TlsProfiles::load(settings)?,
                proxy: proxy.map(ConnectProxy::parse).transpose()?,
            },
            pool: Arc::new(Pool::new(
                settings.max_idle_per_destination,
                settings.max_in_flight,
            )),
            in_flight: InFlight::new(
                settings.max_in_flight,
                settings.max_in_flight_per_destination,
            ),
            breakers: Breakers::default(),
        }));
        egress.sweep_periodically();
        Ok(egress)
    }

    /// Whether a destination is allowed, by host and port. Addresses are checked when a connection is opened.
    pub fn check(
        &self,
        url: &DestinationUrl,
        tenant_hosts: Option<&HostList>,
    ) -> Result<(), Denied> {
        self.0.connector.policy.check(url, tenant_hosts)
    }

    /// Sends a request and returns the response, whose body is streamed.
    ///
    /// The URI and the `Host` header of `request` are replaced by those of the destination, and its length is that of
    /// the body. All other headers are sent as they are. Redirects are returned, not followed.
    ///
    /// No request is sent twice: another connection is used only if the pooled one was closed before a byte of the
    /// request was written.
    pub async fn send<B>(
        &self,
        destination: Destination<'_>,
        request: Request<B>,
        timeouts: &Timeouts,
    ) -> Result<Response<ResponseBody>, SendError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let share = Share::Tenant;
        self.send_within(share, destination, request, timeouts)
            .await
    }

    /// The same for a request of a caller without a key, of which a tenant has fewer in flight: such callers cannot use up
    /// what those with a key need.
    pub async fn send_anonymous<B>(
        &self,
        destination: Destination<'_>,
        request: Request<B>,
        timeouts: &Timeouts,
    ) -> Result<Response<ResponseBody>, SendError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let share = Share::Anonymous;
        self.send_within(share, destination, request, timeouts)
            .await
    }

    async fn send_within<B>(
        &self,
        share: Share,
        destination: Destination<'_>,
        request: Request<B>,
        timeouts: &Timeouts,
    ) -> Result<Response<ResponseBody>, SendError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let response = self.0.send(share, destination, request, timeouts).await;
        let outcome = match &response {
            Ok(_) => "response",
            Err(error) => error.kind(),
        };
        catalog::EGRESS_REQUESTS.with([outcome]).increment(1);
        if let Err(SendError::Denied(denied)) = response {
            let (host, tenant) = (destination.url.host(), destination.tenant.uuid);
            tracing::warn!(
                destination.host = host, tenant.id = %tenant, error.kind = denied.kind(),
                "an outbound request was denied"
            );
        }
        response
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the task ends with the last clone of its Egress"
    )]
    fn sweep_periodically(&self) {
        let shared = Arc::downgrade(&self.0);
        tokio::spawn(async move {
            loop {
                tokio::time::sleep(SWEEP_INTERVAL).await;
                let Some(shared) = shared.upgrade() else {
                    return;
                };
                shared.sweep();
            }
        });
    }
}

impl Shared {
    async fn send<B>(
        &self,
        share: Share,
        destination: Destination<'_>,
        request: Request<B>,
        timeouts: &Timeouts,
    ) -> Result<Response<ResponseBody>, SendError>
    where
        B: Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        if request.method() == Method::CONNECT {
            return Err(Denied::Method.into());
        }
        let url = destination.url;
        self.connector.policy.check(url, destination.hosts)?;
        let key = DestinationKey::new(destination.tenant, url);
        let permit = self.in_flight.acquire(&key, share);
        let permit = permit.ok_or(SendError::Overloaded)?;
        let deadline = tokio::time::Instant::now() + timeouts.total;
        let (request, progress) = prepare(request, url);

        let route = Route {
            destination,
            key: &key,
            timeouts,
        };
        let exchange = self.exchange(route, request, &progress);
        let (response, connection) = timeout_at(deadline, exchange)
            .await
            .unwrap_or(Err(SendError::Timeout))?;
        if !response::is_valid(&response) {
            return Err(SendError::BadResponse);
        }

        let limits = BodyLimits {
            idle: timeouts.idle,
            deadline,
        };
        let pool = (!destination.has_sensitive_head).then(|| Arc::clone(&self.pool));
        let finish = Box::new(move || {
            // A connection whose upload continues is closed: it would outlive the permit.
            match pool.filter(|_| progress.has_ended()) {
                Some(pool) => pool.put(key, connection),
                None => drop(connection),
            }
            drop(permit);
        });
        Ok(ResponseBody::wrap(response, limits, finish))
    }

    /// Sends the request on a pooled connection, or on a new one if there is none.
    async fn exchange(
        &self,
        route: Route<'_>,
        mut request: Request<RequestBody>,
        progress: &Progress,
    ) -> Result<(Response<Incoming>, Connection), SendError> {
        loop {
            let (mut connection, is_reused) = match self.pool.take(route.key).await {
                Some(connection) => (connection, true),
                None => (self.connect(route).await?, false),
            };
            let sent = tokio::select! {
                sent = connection.send(request) => sent,
                () = progress.stall(route.timeouts.head) => return Err(SendError::Timeout),
            };
            let mut error = match sent {
                Ok(response) => return Ok((response, connection)),
                Err(error) => error,
            };
            match error.take_message() {
                Some(unsent) if is_reused => request = unsent,
                Some(_) => return Err(NotSent::Connect.into()),
                None if progress.has_failed() => return Err(SendError::RequestBody),
                None => return Err(SendError::from_http(error.error())),
            }
        }
    }

    async fn connect(&self, route: Route<'_>) -> Result<Connection, SendError> {
        let Route {
            destination,
            key,
            timeouts,
        } = route;
        let admission = self.breakers.admit(key, Instant::now());
        admission.map_err(|_| SendError::CircuitOpen)?;
        let (url, tenant) = (destination.url, destination.tenant);
        let connection = self.connector.connect(url, tenant, timeouts.connect).await;
        match connection {
            Ok(_) => self.breakers.record_success(key),
            Err(error @ (SendError::NotSent(_) | SendError::Tls)) => {
                if self.breakers.record_failure(key, Instant::now()) {
                    tracing::warn!(
                        destination.host = url.host(), tenant.id = %tenant.uuid,
                        error.kind = error.kind(),
                        "connections to a destination failed repeatedly; its circuit is open"
                    );
                }
            }
            Err(_) => {}
        }
        connection
    }

    fn sweep(&self) {
        let idle = self.pool.sweep();
        let open = self.breakers.sweep(Instant::now());
        catalog::EGRESS_CONNECTIONS_IDLE.set(idle as f64);
        catalog::EGRESS_CIRCUITS_OPEN.set(open as f64);
        catalog::EGRESS_REQUESTS_IN_FLIGHT.set(self.in_flight.count() as f64);
    }
}
