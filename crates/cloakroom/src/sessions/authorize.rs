//! Granting rights to a session, once.

use std::time::Duration;

use jiff::Timestamp;

use super::subset::check_subset;
use super::{Error, nonce_mac, require_kind, store};
use crate::access::{ApplicationKind, Authenticated as _, Grants, NewGrants, SessionRow};
use crate::api::{Broken, Expiry};
use crate::audit::{self, EntityKind, Entry, Operation};
use crate::caller::Caller;
use crate::idempotency::Reply;
use crate::storage::Transaction;
use crate::vault::Vault;

const LIFE_MAX: Duration = Duration::from_secs(24 * 60 * 60);
const NONCE_CHARS_MAX: usize = 100;

/// What a session is to be granted; nothing in it is checked yet.
#[derive(Default)]
pub struct NewAuthorization {
    pub nonce: Option<String>,
    pub expires_at: Option<String>,
    pub grants: NewGrants,
}

/// Grants rights to the session with this nonce. Of many that try at once, one does.
pub async fn authorize(
    vault: &Vault,
    caller: &Caller,
    new: NewAuthorization,
    reply: &Reply<'_, ()>,
) -> Result<(), Error> {
    require_kind(caller, ApplicationKind::Private)?;
    let now = vault.audit.now().await?;
    let (nonce, expires_at, grants) = checked(vault, caller, new, now)?;
    let nonce = nonce_mac(vault.keys.control(), caller, &nonce);
    let recorded = audit::begin(vault).await?;
    let granted = write(vault, &recorded, caller, (&nonce, expires_at, grants)).await;
    match granted {
        Ok(session) => {
            let id = session.id;
            let entry = Entry::of(caller, Operation::Authorize, EntityKind::Session, id);
            recorded.commit_with(&[entry], reply.keep(&())?).await?;
            vault.authenticator.forget_all();
            Ok(())
        }
        Err(error) => {
            recorded.roll_back().await;
            Err(error)
        }
    }
}

type Checked = (String, Option<Timestamp>, Grants);

fn checked(
    vault: &Vault,
    caller: &Caller,
    new: NewAuthorization,
    now: Timestamp,
) -> Result<Checked, Error> {
    let mut broken = Vec::new();
    let nonce = new.nonce.filter(|nonce| {
        (1..=NONCE_CHARS_MAX).contains(&nonce.chars().count()) && !nonce.contains('\0')
    });
    if nonce.is_none() {
        broken.push(Broken::new(
            "nonce",
            "is required, as it came with the session",
        ));
    }
    let expires_at = new.expires_at.map(|text| expiry(&text, now));
    let expires_at = expires_at.transpose().unwrap_or_else(|rule| {
        broken.push(Broken::new("expires_at", rule));
        None
    });
    let mut grants = new.grants.checked_for_session();
    if vault.config.sessions.require_subset {
        grants = grants.and_then(|grants| check_subset(grants, &caller.grants));
    }
    let grants = grants.map_err(|rules| broken.extend(rules)).ok();
    match (nonce, grants) {
        (Some(nonce), Some(grants)) if broken.is_empty() => Ok((nonce, expires_at, grants)),
        _ => Err(Error::Invalid(broken)),
    }
}

fn expiry(text: &str, now: Timestamp) -> Result<Timestamp, &'static str> {
    let rule = "must be a time in the next 24 hours";
    let at = Expiry::parse(text).ok_or(rule)?.at;
    let latest = now.checked_add(LIFE_MAX).unwrap_or(now);
    match now < at && at <= latest {
        true => Ok(at),
        false => Err(rule),
    }
}

/// The row is locked and must be genuine: nobody gets a digest for what SQL wrote.
async fn write(
    vault: &Vault,
    transaction: &Transaction,
    caller: &Caller,
    granted: (&[u8; 32], Option<Timestamp>, Grants),
) -> Result<SessionRow, Error> {
    let (nonce, expires_at, grants) = granted;
    let control = vault.keys.control();
    let locked = store::lock(transaction, caller.tenant, nonce).await?;
    let (mut row, row_mac) = locked.ok_or(Error::NotFound)?;
    if !row.is_genuine(control, &row_mac) {
        return Err(Error::Altered);
    }
    if row.grants.is_some() {
        return Err(Error::Used);
    }
    row.grants = Some(grants.to_text());
    row.expires_at = expires_at.unwrap_or(row.expires_at);
    let row_mac = row.row_mac(control);
    store::authorize(transaction, &row, caller.application, &row_mac).await?;
    Ok(row)
}
