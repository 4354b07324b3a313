//! Finds the proxy of an invocation by its key.

use std::sync::Arc;
use std::time::Instant;

use cloakroom_core::access::{self, Bucket, Principal};
use cloakroom_core::authentication::keyless_principal;
use cloakroom_crypto::Sensitive;

use super::proxy::Proxy;
use super::row::key_digest;
use super::{Error, row, store};
use crate::definition::ProxyDefinition;
use crate::server::ProxyServer;
use crate::transforms::{self, Configuration, Direction, Transforms};

const KEY_CHARS_MAX: usize = 100;

/// Finds a proxy by the key in `BT-PROXY-KEY`. The result is at most five seconds old.
pub async fn find_by_key(
    server: &ProxyServer,
    key: &str,
) -> Result<Option<Arc<ProxyDefinition>>, Error> {
    let is_key = !key.is_empty()
        && key.len() <= KEY_CHARS_MAX
        && key.bytes().all(|byte| byte.is_ascii_alphanumeric());
    if !is_key {
        return Ok(None);
    }
    let cache = &server.definitions;
    let digest = key_digest(key);
    let principals = server.principals.generation();
    if let Some(found) = cache.find(&digest, principals).await {
        return Ok(found);
    }
    let lookup = cache.lookup(digest).await;
    let _guard = lookup.lock().await;
    let principals = server.principals.generation();
    if let Some(found) = cache.find(&digest, principals).await {
        return Ok(found);
    }
    let generations = cache.generations(principals);
    let started_at = Instant::now();
    // Boxed: most invocations hit the cache.
    let found = Box::pin(look_up(server, &digest)).await?;
    let found = found.map(Arc::new);
    cache
        .insert(digest, found.clone(), started_at, generations)
        .await;
    Ok(found)
}

async fn look_up(
    server: &ProxyServer,
    digest: &[u8; 32],
) -> Result<Option<ProxyDefinition>, Error> {
    let (states, control) = (&server.access_states, server.keys.control());
    let found = access::read_current(
        || store::find_by_key(&server.db, digest),
        |(stored, bucket)| {
            let place = Bucket::of_proxy(stored.row.id);
            states.verify(control, stored.row.tenant_number, place, bucket)
        },
    );
    let Some(((stored, _), current)) = found.await? else {
        return Ok(None);
    };
    let (tenant, id) = (stored.row.tenant_number, stored.row.id);
    let Some(anonymous) = keyless_principal(server, tenant, None, id).await? else {
        return Ok(None);
    };
    if current.is_err() {
        access::report_stale(anonymous.tenant);
        return Err(Error::Altered("proxy"));
    }
    let proxy = row::open(server, anonymous.tenant, stored).await?;
    let application = match proxy.application {
        Some(application) => keyless_principal(server, tenant, Some(application), id).await?,
        None => None,
    };
    define(proxy, anonymous, application).map(Some)
}

fn define(
    proxy: Proxy,
    anonymous: Principal,
    application: Option<Principal>,
) -> Result<ProxyDefinition, Error> {
    let sealed = &proxy.sealed;
    let configuration = sealed.configuration.iter();
    let configuration: Configuration = configuration
        .map(|(name, value)| (name.clone(), Sensitive::new(value.clone())))
        .collect();
    let configuration = Arc::new(configuration);
    let mut identifiers = Vec::new();
    let mut compile = |direction, bodies: &[_]| {
        // Validated when the proxy was saved.
        let compiled = transforms::compile(direction, bodies, &mut identifiers);
        compiled.map_err(|_| Error::NotBuilt)
    };
    Ok(ProxyDefinition {
        tenant: anonymous.tenant,
        id: proxy.id,
        require_auth: sealed.require_auth,
        disable_detokenization: sealed.disable_detokenization,
        allowed_requests: sealed.allowed_requests.clone(),
        transforms: Transforms {
            tenant: anonymous.tenant,
            application: application.map(Arc::new),
            configuration: Arc::clone(&configuration),
            request: compile(Direction::Request, &sealed.request.transforms)?,
            response: compile(Direction::Response, &sealed.response.transforms)?,
        },
        configuration,
        timeout: None,
        anonymous: Arc::new(anonymous),
        name: proxy.name,
        destination_url: proxy.destination_url,
    })
}
