//! Authenticates API keys against the database, through the cache of principals.

use std::sync::Arc;
use std::time::{Duration, Instant};

use cloakroom_crypto::equal_in_constant_time;
use cloakroom_platform::api::{ApiError, ClientAddr};
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{self, Db};
use cloakroom_platform::telemetry::TraceId;
use cloakroom_platform::telemetry::catalog;
use tokio::time::{sleep_until, timeout};
use uuid::Uuid;

use crate::access::{
    self, AnyKey, ApplicationKind, ApplicationRow, AuthenticatedRow as _, Bucket, CacheEntry,
    Credential, Error, Grants, KeyParts, LegacyKey, Principal, PrincipalKind, Stale, TenantQuotas,
    TenantRow, TenantSettings, key_digest, key_lookup,
};
use crate::caller::Caller;
use crate::keys::ControlKey;
use crate::vault::Vault;

/// Time limit for the lookup on the primary when a standby is configured.
const PRIMARY_TIMEOUT: Duration = Duration::from_millis(500);

/// Failed lookups are reported after a multiple of this duration, so that response times do not reveal what the lookup
/// found or how long it took.
const REJECTION_STEP: Duration = Duration::from_millis(10);

/// Why a key could not be authenticated.
#[derive(Clone, Debug)]
enum LookupError {
    Unknown,
    Failed(storage::Error),
}

impl LookupError {
    /// Converts to the error for a request that started at `started_at`; delays failed authentications.
    async fn into_error(self, started_at: Instant) -> Error {
        match self {
            Self::Unknown => {
                let steps = started_at.elapsed().div_duration_f64(REJECTION_STEP).ceil();
                sleep_until((started_at + REJECTION_STEP.mul_f64(steps.max(1.0))).into()).await;
                Error::Unauthorized
            }
            Self::Failed(error) => error.into(),
        }
    }
}

/// Authenticates an API key. Malformed keys are rejected without a database lookup.
pub async fn authenticate(vault: &Vault, text: &str) -> Result<Arc<Principal>, Error> {
    let key = ParsedKey::parse(text).ok_or(Error::Unauthorized)?;
    let digest = key_digest(text);
    let cache = &vault.principals.entries;
    let generation = vault.principals.generation();
    if let Some(entry) = cache.get(&digest).await
        && Instant::now() < entry.until
        && entry.generation == generation
    {
        return Ok(entry.principal);
    }
    // Boxed: most requests hit the cache.
    Box::pin(look_up_cached(vault, key, text, digest, generation)).await
}

/// Authenticates an API key without the cache. Used for requests that change access: their effect would outlast a key
/// that was just revoked through another node.
pub async fn authenticate_uncached(vault: &Vault, text: &str) -> Result<Arc<Principal>, Error> {
    let key = ParsedKey::parse(text).ok_or(Error::Unauthorized)?;
    let started_at = Instant::now();
    match look_up(vault, Source::Primary, &key, text).await {
        Ok(entry) => Ok(entry.principal),
        Err(error) => Err(error.into_error(started_at).await),
    }
}

/// Authenticates an API key for data that belongs to no tenant: falls back to a standby if the primary is unavailable.
/// A standby may lag behind a key's deletion, so its results are not cached.
pub async fn authenticate_with_fallback(
    vault: &Vault,
    text: &str,
) -> Result<Arc<Principal>, Error> {
    let Some(replica) = &vault.replica else {
        return authenticate(vault, text).await;
    };
    match timeout(PRIMARY_TIMEOUT, authenticate(vault, text)).await {
        Ok(Err(Error::Storage(_))) | Err(_) => {}
        Ok(result) => return result,
    }
    let key = ParsedKey::parse(text).ok_or(Error::Unauthorized)?;
    let started_at = Instant::now();
    match look_up(vault, Source::Standby(replica), &key, text).await {
        Ok(entry) => Ok(entry.principal),
        Err(error) => Err(error.into_error(started_at).await),
    }
}

/// Looks up a key that is not in the cache or whose entry is stale.
async fn look_up_cached(
    vault: &Vault,
    key: ParsedKey<'_>,
    text: &str,
    digest: [u8; 32],
    generation: u64,
) -> Result<Arc<Principal>, Error> {
    let cache = &vault.principals.entries;
    let started_at = Instant::now();
    loop {
        cache.invalidate(&digest).await;
        // Concurrent lookups of one key share one statement and its result. A lookup that started before the last
        // invalidation is awaited and then repeated.
        match cache
            .try_get_with(digest, look_up(vault, Source::Primary, &key, text))
            .await
        {
            Ok(entry) if entry.generation < generation => {}
            Ok(entry) => return Ok(entry.principal),
            Err(error) => return Err(LookupError::clone(&error).into_error(started_at).await),
        }
    }
}

/// A well-formed API key, not yet authenticated.
enum ParsedKey<'a> {
    Key(KeyParts<'a>),
    Legacy(LegacyKey<'a>),
}

impl<'a> ParsedKey<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let parts = KeyParts::parse(text).map(Self::Key);
        parts.or_else(|| LegacyKey::parse(text).map(Self::Legacy))
    }

    async fn find(&self, db: &Db, text: &str) -> Result<Option<Credential>, storage::Error> {
        match self {
            Self::Key(parts) if parts.is_session => {
                access::find_session(db, &key_lookup(text)).await
            }
            Self::Key(_) => access::find_credential(db, &key_lookup(text)).await,
            Self::Legacy(key) => access::find_credential(db, &key.lookup()).await,
        }
    }

    /// Test keys authenticate for test tenants only, and a key's type must match its application. Legacy keys encode
    /// neither.
    fn matches_kinds(&self, credential: &Credential) -> bool {
        match self {
            Self::Key(parts) => {
                parts.tenant_kind == credential.tenant.kind
                    && parts.application_kind == credential.application.kind
            }
            Self::Legacy(_) => true,
        }
    }
}

/// The server that a key is looked up on.
#[derive(Clone, Copy)]
enum Source<'a> {
    Primary,
    /// May lag behind the primary, so that the generations which this node has seen do not apply.
    Standby(&'a Db),
}

impl<'a> Source<'a> {
    fn db(self, vault: &'a Vault) -> &'a Db {
        match self {
            Self::Primary => &vault.db,
            Self::Standby(db) => db,
        }
    }

    fn verify(self, vault: &Vault, credential: &Credential) -> Result<(), Stale> {
        let (states, control) = (&vault.access_states, vault.keys.control());
        credential.verify_current(|tenant, bucket, stored| match self {
            Self::Primary => states.verify(control, tenant, bucket, stored),
            Self::Standby(_) => stored.verify(control, tenant, bucket),
        })
    }
}

/// A credential as one statement read it, and what its verification found.
struct Found {
    credential: Credential,
    is_known: bool,
    matches: bool,
    genuine: bool,
    current: Result<(), Stale>,
}

/// Runs one statement, then computes the same digests whether or not the key exists, and compares in constant time.
/// Whether the rows are current is compared for known keys only: `REJECTION_STEP` hides the difference.
async fn find_verified(
    vault: &Vault,
    source: Source<'_>,
    key: &ParsedKey<'_>,
    text: &str,
) -> Result<Found, LookupError> {
    let found = access::read_current(
        || key.find(source.db(vault), text),
        |credential| source.verify(vault, credential),
    );
    let found = found.await.map_err(LookupError::Failed)?;
    let is_known = found.is_some();
    let (credential, current) = found.unwrap_or_else(|| (Credential::placeholder(), Ok(())));
    Ok(Found {
        is_known,
        matches: equal_in_constant_time(&key_digest(text), credential.key.digest()),
        genuine: is_genuine(vault.keys.control(), &credential),
        current,
        credential,
    })
}

async fn look_up(
    vault: &Vault,
    source: Source<'_>,
    key: &ParsedKey<'_>,
    text: &str,
) -> Result<CacheEntry, LookupError> {
    let (started_at, generation) = (Instant::now(), vault.principals.generation());
    // A standby is read when the primary is unavailable, which would not answer this either.
    let is_primary = matches!(source, Source::Primary);
    if is_primary {
        vault.keys.refresh_if_stale().await;
    }
    let mut found = find_verified(vault, source, key, text).await?;
    let is_current = found.genuine && found.current.is_ok();
    if is_primary && found.is_known && found.matches && !is_current {
        // The rows may be current: this node has missed a rotation of the control key, or they were read before its end.
        vault.keys.catch_up().await;
        found = find_verified(vault, source, key, text).await?;
    }
    let credential = found.credential;
    if !found.is_known || !found.matches || !key.matches_kinds(&credential) {
        return Err(LookupError::Unknown);
    }
    if !found.genuine {
        report_altered(&credential);
        return Err(LookupError::Unknown);
    }
    if found.current.is_err() {
        access::report_stale(credential.tenant.id);
        return Err(LookupError::Unknown);
    }
    // The cache entry expires no later than the key or the application.
    let ttl = vault.principals.ttl;
    let mut until = started_at
        + credential
            .expires_in
            .map_or(ttl, |expires_in| expires_in.min(ttl));
    let principal = principal(vault, credential).ok_or(LookupError::Unknown)?;
    // A pending session may be authorized at any moment, through any node.
    if principal.kind == PrincipalKind::Unauthorized {
        until = started_at;
    }
    Ok(CacheEntry {
        principal: Arc::new(principal),
        until,
        generation,
    })
}

/// Verifies all three rows, even if one fails, so that the time is constant.
fn is_genuine(control: &ControlKey, credential: &Credential) -> bool {
    let verdicts = [
        credential.key.is_genuine(control, &credential.key_mac),
        credential
            .application
            .is_genuine(control, &credential.application_mac),
        credential
            .tenant
            .is_genuine(control, &credential.tenant_mac),
    ];
    verdicts.into_iter().all(|genuine| genuine)
}

fn report_altered(credential: &Credential) {
    catalog::ACCESS_ALTERED_ROWS.increment(1);
    tracing::error!(
        error.kind = "altered_row",
        tenant.id = %credential.tenant.id.uuid,
        application.id = %credential.application.id,
        key.id = %credential.key.id(),
        "a key, its application or its tenant was changed outside the vault; the key is rejected"
    );
}

fn principal(vault: &Vault, credential: Credential) -> Option<Principal> {
    let Credential {
        key,
        application,
        tenant,
        ..
    } = credential;
    let (grants, kind) = match &key {
        AnyKey::Key(_) => (
            Grants::parse(&application.grants),
            PrincipalKind::Application,
        ),
        AnyKey::Session(session) => match &session.grants {
            Some(grants) => (Grants::parse(grants), PrincipalKind::Session),
            None => (Some(Grants::default()), PrincipalKind::Unauthorized),
        },
    };
    let settings = TenantSettings::parse(&tenant.settings);
    let quotas = TenantQuotas::parse(&tenant.quotas);
    let (Some(grants), Some(settings), Some(quotas)) = (grants, settings, quotas) else {
        tracing::error!(
            error.kind = "unreadable_grants",
            application.id = %application.id,
            "grants, settings or quotas cannot be read by this version; the application's keys are rejected"
        );
        return None;
    };
    Some(Principal {
        tenant: tenant.id,
        tenant_kind: tenant.kind,
        settings,
        quotas: quotas.or_default(&vault.config),
        application: application.id,
        application_kind: application.kind,
        key: key.id(),
        is_legacy: key.is_legacy(),
        kind,
        grants,
    })
}

/// Finds an application of a tenant whose row is authentic and current; `None` if it does not exist or has expired.
pub async fn find_application(
    vault: &Vault,
    tenant: TenantId,
    id: Uuid,
) -> Result<Option<ApplicationRow>, Error> {
    let (control, states) = (vault.keys.control(), &vault.access_states);
    let found = access::read_current(
        || access::find_application(&vault.db, tenant, id),
        |found| found.verify_current(states, control),
    );
    let Some((found, current)) = found.await? else {
        return Ok(None);
    };
    if current.is_err() {
        access::report_stale(tenant);
    }
    match found.row.is_genuine(control, &found.row_mac) && current.is_ok() {
        true => Ok(Some(found.row)),
        false => Err(Error::Altered("application")),
    }
}

/// The same for a tenant that is not deleted, by its number.
async fn find_tenant(vault: &Vault, number: i32) -> Result<Option<TenantRow>, Error> {
    let (control, states) = (vault.keys.control(), &vault.access_states);
    let found = access::read_current(
        || access::find_tenant(&vault.db, number),
        |found| states.verify(control, number, Bucket::TENANT, &found.bucket),
    );
    let Some((found, current)) = found.await? else {
        return Ok(None);
    };
    if current.is_err() {
        access::report_stale(found.row.id);
    }
    match found.row.is_genuine(control, &found.row_mac) && current.is_ok() {
        true => Ok(Some(found.row)),
        false => Err(Error::Altered("tenant")),
    }
}

/// A row that is altered or not current grants as little as none.
fn ignore_altered<T>(found: Result<Option<T>, Error>) -> Result<Option<T>, storage::Error> {
    match found {
        Ok(found) => Ok(found),
        Err(Error::Storage(error)) => Err(error),
        Err(_) => Ok(None),
    }
}

/// A principal that acts for a pre-configured proxy, without an API key: with the grants of `application`, or with none.
///
/// `id` is recorded in the audit log in place of the key. `None` if the tenant or the application is deleted, expired,
/// altered or not current.
pub async fn keyless_principal(
    vault: &Vault,
    tenant: i32,
    application: Option<Uuid>,
    id: Uuid,
) -> Result<Option<Principal>, storage::Error> {
    vault.keys.refresh_if_stale().await;
    let Some(tenant) = ignore_altered(find_tenant(vault, tenant).await)? else {
        return Ok(None);
    };
    let (application, kind, grants) = match application {
        None => (id, ApplicationKind::Public, Some(Grants::default())),
        Some(application) => {
            let found = find_application(vault, tenant.id, application).await;
            let Some(row) = ignore_altered(found)? else {
                return Ok(None);
            };
            (row.id, row.kind, Grants::parse(&row.grants))
        }
    };
    let settings = TenantSettings::parse(&tenant.settings);
    let quotas = TenantQuotas::parse(&tenant.quotas);
    let (Some(grants), Some(settings), Some(quotas)) = (grants, settings, quotas) else {
        return Ok(None);
    };
    Ok(Some(Principal {
        tenant: tenant.id,
        tenant_kind: tenant.kind,
        settings,
        quotas: quotas.or_default(&vault.config),
        application,
        application_kind: kind,
        key: id,
        is_legacy: false,
        kind: PrincipalKind::Application,
        grants,
    }))
}

/// Builds the caller of a request from its authenticated principal.
pub fn caller(
    principal: Arc<Principal>,
    trace_id: Option<&TraceId>,
    client: Option<&ClientAddr>,
) -> Result<Caller, ApiError> {
    if principal.kind == PrincipalKind::Unauthorized {
        return Err(ApiError::forbidden("The session is not authorized yet."));
    }
    let trace_id = trace_id.map_or_else(|| "".into(), |id| id.0.clone());
    Ok(Caller::new(
        principal,
        trace_id,
        client.map(|client| client.0),
    ))
}

/// Authenticates a key that was not sent as a header, and builds its caller.
pub async fn authenticate_caller(
    vault: &Vault,
    key: &str,
    trace_id: Option<&TraceId>,
    client: Option<&ClientAddr>,
) -> Result<Caller, ApiError> {
    caller(authenticate(vault, key).await?, trace_id, client)
}
