//! Resolves host names, with a short cache and a fair limit between tenants.

use std::net::{IpAddr, ToSocketAddrs as _};
use std::sync::Arc;
use std::time::Duration;

use cloakroom_platform::admission::FairSemaphore;
use cloakroom_platform::config::StaticAddresses;
use cloakroom_platform::ids::TenantId;
use moka::future::Cache;

use crate::{NotSent, SendError};

/// How long an answer is used for new connections.
const CACHE_TTL: Duration = match cfg!(test) {
    true => Duration::from_millis(20),
    false => Duration::from_secs(5),
};
const CACHED_HOSTS_MAX: u64 = 10_000;
/// Lookups at a time. Each blocks a thread, for as long as name servers of a tenant's choice take to answer.
const LOOKUPS_MAX: usize = 64;

pub(crate) type Addresses = Arc<[IpAddr]>;

pub(crate) struct Resolver {
    names: Names,
    /// Finished lookups, shared by all tenants.
    cache: Cache<Box<str>, Addresses>,
    /// Lookups in progress, by tenant: no tenant waits for the permit of another one.
    in_progress: Cache<(i32, Box<str>), Addresses>,
    lookups: FairSemaphore,
}

/// Where addresses come from.
pub(crate) enum Names {
    System(StaticAddresses),
    #[cfg(test)]
    Scripted(Script),
}

/// Answers of a test.
#[cfg(test)]
pub(crate) type Script = Box<dyn Fn(&str) -> Vec<IpAddr> + Send + Sync>;

impl Resolver {
    /// `lookup_timeout` limits the wait for a free lookup.
    pub(crate) fn new(names: Names, lookup_timeout: Duration) -> Self {
        Self {
            names,
            cache: Cache::builder()
                .max_capacity(CACHED_HOSTS_MAX)
                .time_to_live(CACHE_TTL)
                .build(),
            in_progress: Cache::builder()
                .max_capacity(CACHED_HOSTS_MAX)
                .time_to_live(CACHE_TTL)
                .build(),
            lookups: FairSemaphore::new(LOOKUPS_MAX, lookup_timeout),
        }
    }

    /// The addresses of a host, at least one. Concurrent callers of a tenant share one lookup.
    pub(crate) async fn resolve(
        &self,
        host: &str,
        tenant: TenantId,
    ) -> Result<Addresses, SendError> {
        if let Some(addresses) = self.cache.get(host).await {
            return Ok(addresses);
        }
        let lookup = async {
            let addresses = self.look_up(host, tenant).await?;
            let shared = Arc::clone(&addresses);
            self.cache.insert(host.into(), shared).await;
            Ok(addresses)
        };
        let key = (tenant.number, host.into());
        let addresses = self.in_progress.try_get_with(key, lookup).await;
        addresses.map_err(|error: Arc<SendError>| *error)
    }

    async fn look_up(&self, host: &str, tenant: TenantId) -> Result<Addresses, SendError> {
        let found = match &self.names {
            Names::System(addresses) => match addresses.of(host) {
                fixed if !fixed.is_empty() => fixed,
                _ => self.look_up_in_dns(host, tenant).await?,
            },
            #[cfg(test)]
            Names::Scripted(answer) => answer(host),
        };
        match found.is_empty() {
            true => Err(NotSent::Dns.into()),
            false => Ok(found.into()),
        }
    }

    async fn look_up_in_dns(&self, host: &str, tenant: TenantId) -> Result<Vec<IpAddr>, SendError> {
        let permit = self.lookups.acquire(tenant.number).await;
        let permit = permit.map_err(|_| SendError::Overloaded)?;
        // The final dot makes the name absolute: no search domain of this machine is appended.
        let name = format!("{host}.");
        let lookup = tokio::task::spawn_blocking(move || {
            // Held by the thread, which keeps running if the request is cancelled.
            let _permit = permit;
            let found = (name.as_str(), 0).to_socket_addrs().ok()?;
            Some(found.map(|found| found.ip()).collect())
        });
        let found: Option<Vec<IpAddr>> = lookup.await.ok().flatten();
        found.ok_or(NotSent::Dns.into())
    }
}
