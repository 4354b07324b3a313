//! Turning the text of an API key into a caller.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use moka::future::Cache;
use tokio::time::{sleep_until, timeout};

use super::row_mac::Authenticated as _;
use super::store::{self, Credential, HeldKey};
use super::{Error, Grants, KeyParts, LegacyKey, TenantQuotas, TenantSettings};
use crate::caller::{Holder, Standing};
use crate::config;
use crate::keys::ControlKey;
use crate::storage::{self, Db};
use crate::vault::Vault;

/// What the digest of a key is for.
const SECRET: &str = "api-key.v1";

/// How long the primary may take to tell who has a key, where a standby may tell it instead.
const PRIMARY_PATIENCE: Duration = Duration::from_millis(500);

/// Whoever is refused after a look-up is told so when a whole number of these has passed since the question. What the
/// look-up found, and how long that took, is not in the time of the answer.
const REFUSAL_STEP: Duration = Duration::from_millis(10);

/// Holders seen in the last seconds, by the digest of their key.
///
/// Found by the whole key and not by its look-up part: a wrong secret is then as slow as an unknown
/// key, and its time tells nothing. How long a holder is remembered bounds how long a deleted key
/// still works on this node.
pub struct Authenticator {
    known: Cache<[u8; 32], Known>,
    ttl: Duration,
    /// How often everything was forgotten; what was learned before the last time does not count.
    age: AtomicU64,
}

#[derive(Clone)]
struct Known {
    holder: Arc<Holder>,
    /// Counted from before the look-up: the row may have changed while it was on its way.
    until: Instant,
    age: u64,
}

/// Why nobody is known under a key.
#[derive(Clone, Debug)]
enum Nobody {
    Unknown,
    Failed(storage::Error),
}

impl Nobody {
    /// What whoever asked at that moment is told.
    async fn told(self, asked_at: Instant) -> Error {
        match self {
            Self::Unknown => {
                let steps = asked_at.elapsed().div_duration_f64(REFUSAL_STEP).ceil();
                sleep_until((asked_at + REFUSAL_STEP.mul_f64(steps.max(1.0))).into()).await;
                Error::Unauthorized
            }
            Self::Failed(error) => error.into(),
        }
    }
}

impl Authenticator {
    pub fn new(config: &config::Access) -> Self {
        let known = Cache::builder()
            .max_capacity(config.key_cache_size as u64)
            .time_to_live(config.key_cache_ttl)
            .build();
        Self {
            known,
            ttl: config.key_cache_ttl,
            age: AtomicU64::new(0),
        }
    }

    /// Forgets everyone, when a key or an application was changed or deleted through this node. A
    /// look-up that is on its way, and may have seen the rows as they were, counts no more either.
    pub fn forget_all(&self) {
        self.age.fetch_add(1, Ordering::SeqCst);
    }

    fn age(&self) -> u64 {
        self.age.load(Ordering::SeqCst)
    }
}

/// Finds out who is asking. Malformed text costs no look-up.
pub async fn authenticate(vault: &Vault, text: &str) -> Result<Arc<Holder>, Error> {
    let offered = Offered::parse(text).ok_or(Error::Unauthorized)?;
    let digest = secret_mac(vault.keys.control(), text);
    let known = &vault.authenticator.known;
    let age = vault.authenticator.age();
    if let Some(known) = known.get(&digest).await
        && Instant::now() < known.until
        && known.age == age
    {
        return Ok(known.holder);
    }
    // Boxed, because almost nobody needs it.
    Box::pin(learn(vault, offered, text, (digest, age))).await
}

/// The same for whoever asks for what is no tenant's own: if the primary is away, a standby is asked. It may not
/// know yet that a key was deleted a moment ago, so nothing of what it says is remembered.
pub async fn authenticate_at_any(vault: &Vault, text: &str) -> Result<Arc<Holder>, Error> {
    let Some(replica) = &vault.replica else {
        return authenticate(vault, text).await;
    };
    match timeout(PRIMARY_PATIENCE, authenticate(vault, text)).await {
        Ok(Err(Error::Storage(_))) | Err(_) => {}
        Ok(settled) => return settled,
    }
    let offered = Offered::parse(text).ok_or(Error::Unauthorized)?;
    let asked_at = Instant::now();
    match look_up(vault, replica, &offered, text).await {
        Ok(known) => Ok(known.holder),
        Err(nobody) => Err(nobody.told(asked_at).await),
    }
}

/// Finds out who has a key that is not remembered, or no longer.
async fn learn(
    vault: &Vault,
    offered: Offered<'_>,
    text: &str,
    (digest, age): ([u8; 32], u64),
) -> Result<Arc<Holder>, Error> {
    let known = &vault.authenticator.known;
    let asked_at = Instant::now();
    loop {
        known.invalidate(&digest).await;
        // Equal look-ups at one moment share one statement and its outcome. One that had begun before
        // everything was forgotten is waited for and then made again.
        match known
            .try_get_with(digest, look_up(vault, &vault.db, &offered, text))
            .await
        {
            Ok(known) if known.age < age => {}
            Ok(known) => return Ok(known.holder),
            Err(nobody) => return Err(Nobody::clone(&nobody).told(asked_at).await),
        }
    }
}

/// The digest under which a key's secret is kept.
pub(crate) fn secret_mac(control: &ControlKey, text: &str) -> [u8; 32] {
    control.authenticate(SECRET, &[text.as_bytes()])
}

/// A key that someone sent, before anyone knows whether it is a real one.
enum Offered<'a> {
    Key(KeyParts<'a>),
    Legacy(LegacyKey<'a>),
}

impl<'a> Offered<'a> {
    fn parse(text: &'a str) -> Option<Self> {
        let parts = KeyParts::parse(text).map(Self::Key);
        parts.or_else(|| LegacyKey::parse(text).map(Self::Legacy))
    }

    async fn find(
        &self,
        db: &Db,
        control: &ControlKey,
    ) -> Result<Option<Credential>, storage::Error> {
        match self {
            Self::Key(parts) if parts.is_session => store::find_session(db, parts.lookup).await,
            Self::Key(parts) => store::find_credential(db, &[parts.lookup.to_owned()]).await,
            Self::Legacy(key) => store::find_credential(db, &key.lookups(control)).await,
        }
    }

    /// Test keys reach test tenants only, and a key never serves another kind of application. Older
    /// ones say neither.
    fn says_what_it_is(&self, credential: &Credential) -> bool {
        match self {
            Self::Key(parts) => {
                parts.tenant_kind == credential.tenant.kind
                    && parts.application_kind == credential.application.kind
            }
            Self::Legacy(_) => true,
        }
    }
}

/// One statement, then the same digests whether the key exists or not, compared in constant time.
async fn look_up(
    vault: &Vault,
    db: &Db,
    offered: &Offered<'_>,
    text: &str,
) -> Result<Known, Nobody> {
    let (asked_at, age) = (Instant::now(), vault.authenticator.age());
    let control = vault.keys.control();
    let found = offered.find(db, control).await.map_err(Nobody::Failed)?;
    let is_known = found.is_some();
    let credential = found.unwrap_or_else(Credential::nobody);

    let matches = control.verifies(SECRET, &[text.as_bytes()], credential.key.secret_mac());
    let genuine = is_genuine(control, &credential);
    if !is_known || !matches || !offered.says_what_it_is(&credential) {
        return Err(Nobody::Unknown);
    }
    if !genuine {
        report_altered(&credential);
        return Err(Nobody::Unknown);
    }
    // What expires is not remembered for longer than it has left.
    let ttl = vault.authenticator.ttl;
    let mut until = asked_at + credential.left.map_or(ttl, |left| left.min(ttl));
    let holder = holder(vault, credential).ok_or(Nobody::Unknown)?;
    // A session that waits to be authorized may be so at any moment, through any node.
    if holder.standing == Standing::Unauthorized {
        until = asked_at;
    }
    Ok(Known {
        holder: Arc::new(holder),
        until,
        age,
    })
}

/// Checks all three rows, whatever the first ones say, so that the time is always the same.
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
    metrics::counter!("access_altered_rows_total").increment(1);
    tracing::error!(
        error.kind = "altered_row",
        tenant.id = %credential.tenant.id.uuid,
        application.id = %credential.application.id,
        key.id = %credential.key.id(),
        "a key, its application or its tenant was changed outside the vault; the key is refused"
    );
}

fn holder(vault: &Vault, credential: Credential) -> Option<Holder> {
    let Credential {
        key,
        application,
        tenant,
        ..
    } = credential;
    let (grants, standing) = match &key {
        HeldKey::Key(_) => (Grants::parse(&application.grants), Standing::Application),
        HeldKey::Session(session) => match &session.grants {
            Some(grants) => (Grants::parse(grants), Standing::Session),
            None => (Some(Grants::default()), Standing::Unauthorized),
        },
    };
    let settings = TenantSettings::parse(&tenant.settings);
    let quotas = TenantQuotas::parse(&tenant.quotas);
    let (Some(grants), Some(settings), Some(quotas)) = (grants, settings, quotas) else {
        tracing::error!(
            error.kind = "unreadable_grants",
            application.id = %application.id,
            "grants, settings or quotas cannot be read by this version; the application's keys are refused"
        );
        return None;
    };
    Some(Holder {
        tenant: tenant.id,
        tenant_kind: tenant.kind,
        settings,
        quotas: quotas.or_default(&vault.config),
        application: application.id,
        application_kind: application.kind,
        key: key.id(),
        is_legacy: key.is_legacy(),
        standing,
        grants,
    })
}
