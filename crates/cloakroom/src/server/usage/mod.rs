//! Resources held by clients of a node: connections, and response bytes that are not sent yet.
//!
//! Unsent bytes are limited per connection, per client address, and per node. A client that does
//! not read its responses reaches its own limits long before that of the node.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use cloakroom_platform::api::network_address;
use cloakroom_platform::config::Http;
use tokio::sync::Notify;
use tokio::time::{Instant, sleep_until, timeout};

/// Limits of one listener.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    connections_per_address: usize,
    unsent_per_connection: usize,
    unsent_per_address: usize,
    unsent: usize,
}

impl Limits {
    pub(super) fn of(settings: &Http) -> Self {
        Self {
            connections_per_address: settings.connections_per_address(),
            unsent_per_connection: settings.max_unsent_bytes_per_connection,
            unsent_per_address: settings.max_unsent_bytes_per_address,
            unsent: settings.max_unsent_bytes,
        }
    }
}

/// Resources held by all clients of a listener.
pub(super) struct Usage {
    limits: Limits,
    unsent: AtomicUsize,
    addresses: Mutex<HashMap<IpAddr, Weak<AddressUsage>>>,
}

impl Usage {
    pub(super) fn new(limits: Limits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            unsent: AtomicUsize::new(0),
            addresses: Mutex::default(),
        })
    }

    /// The usage of an address; IPv6 addresses of one /64 network share theirs.
    pub(super) fn of(self: &Arc<Self>, address: IpAddr) -> Arc<AddressUsage> {
        let network = network_address(address);
        let mut addresses = self.lock();
        if let Some(known) = addresses.get(&network).and_then(Weak::upgrade) {
            return known;
        }
        let usage = Arc::new(AddressUsage {
            network,
            connections: AtomicUsize::new(0),
            unsent: AtomicUsize::new(0),
            total: Arc::clone(self),
        });
        addresses.insert(network, Arc::downgrade(&usage));
        usage
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<IpAddr, Weak<AddressUsage>>> {
        // No code under this lock panics halfway through an update.
        self.addresses
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

/// Resources held by the clients of one address.
pub(super) struct AddressUsage {
    network: IpAddr,
    connections: AtomicUsize,
    unsent: AtomicUsize,
    total: Arc<Usage>,
}

impl AddressUsage {
    /// A slot for one more connection; `None` if the address has reached its limit.
    ///
    /// Trusted proxies are exempt: they carry the connections of all of their clients.
    pub(super) fn connect(self: Arc<Self>, is_exempt: bool) -> Option<ConnectionSlot> {
        let max = self.total.limits.connections_per_address;
        let before = self.connections.fetch_add(1, Ordering::Relaxed);
        let slot = ConnectionSlot(self);
        (is_exempt || before < max).then_some(slot)
    }
}

impl Drop for AddressUsage {
    fn drop(&mut self) {
        let mut addresses = self.total.lock();
        // The address may have reconnected meanwhile, with a new entry.
        let entry = addresses.get(&self.network);
        if entry.is_some_and(|entry| entry.strong_count() == 0) {
            addresses.remove(&self.network);
        }
    }
}

/// One connection, counted for its address until it is dropped.
pub(super) struct ConnectionSlot(Arc<AddressUsage>);

impl ConnectionSlot {
    pub(super) fn address(&self) -> Arc<AddressUsage> {
        Arc::clone(&self.0)
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.0.connections.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Activity and unsent bytes of one connection.
pub(super) struct ConnectionUsage {
    started_at: Instant,
    unsent: AtomicUsize,
    /// Wakes requests that wait on this connection until bytes are sent.
    sent: Notify,
    has_request: AtomicBool,
    is_http2: AtomicBool,
    activity: Mutex<Activity>,
}

struct Activity {
    streams: usize,
    last: Instant,
}

impl ConnectionUsage {
    pub(super) fn new() -> Arc<Self> {
        let started_at = Instant::now();
        Arc::new(Self {
            started_at,
            unsent: AtomicUsize::new(0),
            sent: Notify::new(),
            has_request: AtomicBool::new(false),
            is_http2: AtomicBool::new(false),
            activity: Mutex::new(Activity {
                streams: 0,
                last: started_at,
            }),
        })
    }

    pub(super) fn record_request(&self, is_http2: bool) {
        self.is_http2.store(is_http2, Ordering::Relaxed);
        self.has_request.store(true, Ordering::Relaxed);
    }

    pub(super) fn has_request(&self) -> bool {
        self.has_request.load(Ordering::Relaxed)
    }

    pub(super) fn is_older_than(&self, age: Duration) -> bool {
        self.started_at.elapsed() >= age
    }

    /// Counts an HTTP/2 stream until the guard is dropped.
    pub(super) fn open_stream(self: &Arc<Self>) -> OpenStream {
        self.activity().streams += 1;
        OpenStream(Arc::clone(self))
    }

    /// Completes when an HTTP/2 connection has had no streams for `idle`, or has existed for `age`.
    ///
    /// Never completes for HTTP/1.1: its parser bounds the time between requests, and its last
    /// response has `Connection: close`.
    pub(super) async fn expired(&self, idle: Duration, age: Duration) {
        if !self.is_http2.load(Ordering::Relaxed) {
            return std::future::pending().await;
        }
        loop {
            let now = Instant::now();
            let idle_since = {
                let activity = self.activity();
                match activity.streams {
                    0 => activity.last,
                    _ => now,
                }
            };
            let end = (idle_since + idle).min(self.started_at + age);
            if end <= now {
                return;
            }
            sleep_until(end).await;
        }
    }

    fn activity(&self) -> MutexGuard<'_, Activity> {
        self.activity.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A stream that is being served.
pub(super) struct OpenStream(Arc<ConnectionUsage>);

impl Drop for OpenStream {
    fn drop(&mut self) {
        let mut activity = self.0.activity();
        activity.streams -= 1;
        activity.last = Instant::now();
    }
}

/// The scopes that the responses to one client count toward.
pub(super) struct Client {
    pub(super) connection: Arc<ConnectionUsage>,
    pub(super) address: Arc<AddressUsage>,
}

impl Client {
    /// Whether a request may run: false while its client or the node has too many unsent bytes.
    ///
    /// A request on a connection that is read slowly waits for up to `write_timeout`.
    pub(super) async fn admit(&self, write_timeout: Duration) -> bool {
        let total = &self.address.total;
        let limits = &total.limits;
        if limits.unsent <= total.unsent.load(Ordering::Relaxed)
            || limits.unsent_per_address <= self.address.unsent.load(Ordering::Relaxed)
        {
            return false;
        }
        let has_capacity =
            || self.connection.unsent.load(Ordering::Relaxed) < limits.unsent_per_connection;
        if has_capacity() {
            return true;
        }
        let sent = async {
            loop {
                let sent = self.connection.sent.notified();
                if has_capacity() {
                    return;
                }
                sent.await;
            }
        };
        timeout(write_timeout, sent).await.is_ok()
    }

    /// Counts bytes as unsent until the charge is dropped.
    pub(super) fn charge(self: &Arc<Self>, bytes: usize) -> Charge {
        self.connection.unsent.fetch_add(bytes, Ordering::Relaxed);
        self.address.unsent.fetch_add(bytes, Ordering::Relaxed);
        self.address
            .total
            .unsent
            .fetch_add(bytes, Ordering::Relaxed);
        Charge {
            client: Arc::clone(self),
            bytes,
        }
    }
}

/// Bytes that count as unsent.
pub(super) struct Charge {
    client: Arc<Client>,
    bytes: usize,
}

impl Charge {
    /// Splits off a part; bytes beyond the charge are counted now.
    pub(super) fn split(&mut self, bytes: usize) -> Self {
        let known = bytes.min(self.bytes);
        self.bytes -= known;
        let mut part = self.client.charge(bytes - known);
        part.bytes = bytes;
        part
    }
}

impl Drop for Charge {
    fn drop(&mut self) {
        let Client {
            connection,
            address,
        } = &*self.client;
        connection.unsent.fetch_sub(self.bytes, Ordering::Relaxed);
        address.unsent.fetch_sub(self.bytes, Ordering::Relaxed);
        address
            .total
            .unsent
            .fetch_sub(self.bytes, Ordering::Relaxed);
        connection.sent.notify_waiters();
    }
}

#[cfg(test)]
mod tests;
