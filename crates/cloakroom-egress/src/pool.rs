//! Idle connections, by tenant, host and port.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use crate::connection::Connection;
use crate::destination_key::DestinationKey;

/// The addresses of a host were checked when the connection was opened; they are checked again at this age.
const AGE_MAX: Duration = Duration::from_secs(300);
/// Shorter than most servers keep idle connections open. A request that crosses the server's close has no response.
const IDLE_MAX: Duration = Duration::from_secs(20);

/// Connections are not shared between tenants: whatever a tenant does to the framing of a connection, no other tenant
/// gets its responses.
pub(crate) struct Pool {
    idle: Mutex<Idle>,
    max_per_key: usize,
    max: usize,
}

#[derive(Default)]
struct Idle {
    by_key: HashMap<DestinationKey, Vec<IdleConnection>>,
    by_tenant: HashMap<i32, usize>,
    count: usize,
}

struct IdleConnection {
    connection: Connection,
    since: Instant,
}

impl Pool {
    pub(crate) fn new(max_per_key: usize, max: usize) -> Self {
        Self {
            idle: Mutex::default(),
            max_per_key,
            max,
        }
    }

    /// Takes the connection that was used last.
    pub(crate) async fn take(&self, key: &DestinationKey) -> Option<Connection> {
        while let Some(idle) = self.pop(key) {
            let mut connection = idle.connection;
            if idle.since.elapsed() < IDLE_MAX
                && connection.age() < AGE_MAX
                && connection.is_ready().await
            {
                return Some(connection);
            }
        }
        None
    }

    fn pop(&self, key: &DestinationKey) -> Option<IdleConnection> {
        let mut idle = self.lock();
        let connections = idle.by_key.get_mut(key)?;
        let connection = connections.pop();
        if connections.is_empty() {
            idle.by_key.remove(key);
        }
        if connection.is_some() {
            idle.count -= 1;
            let of_tenant = idle.by_tenant.entry(key.tenant).or_default();
            *of_tenant = of_tenant.saturating_sub(1);
        }
        connection
    }

    /// Keeps a connection for the next request. Closes it if it is old or there are enough.
    pub(crate) fn put(&self, key: DestinationKey, connection: Connection) {
        if connection.is_closed() || connection.age() >= AGE_MAX {
            return;
        }
        let mut idle = self.lock();
        let tenant = key.tenant;
        let of_tenant = idle.by_tenant.get(&tenant).copied().unwrap_or_default();
        // A tenant chooses the number of its destinations. It leaves room for others.
        if idle.count >= self.max || of_tenant >= (self.max / 4).max(1) {
            return;
        }
        let connections = idle.by_key.entry(key).or_default();
        if connections.len() < self.max_per_key {
            connections.push(IdleConnection {
                connection,
                since: Instant::now(),
            });
            idle.count += 1;
            *idle.by_tenant.entry(tenant).or_default() += 1;
        }
    }

    /// Closes connections that were idle for too long. Returns how many are left.
    pub(crate) fn sweep(&self) -> usize {
        let mut idle = self.lock();
        idle.by_key.retain(|_, connections| {
            connections.retain(|idle| {
                idle.since.elapsed() < IDLE_MAX
                    && idle.connection.age() < AGE_MAX
                    && !idle.connection.is_closed()
            });
            !connections.is_empty()
        });
        let mut by_tenant = HashMap::new();
        for (key, connections) in &idle.by_key {
            *by_tenant.entry(key.tenant).or_default() += connections.len();
        }
        idle.by_tenant = by_tenant;
        idle.count = idle.by_tenant.values().sum();
        idle.count
    }

    fn lock(&self) -> MutexGuard<'_, Idle> {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
