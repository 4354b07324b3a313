//! Authorizes a session, once.

use std::time::Duration;

use cloakroom_core::access::{
    ApplicationKind, AuthenticatedRow as _, Grants, NewGrants, SessionRow, check_subset,
};
use cloakroom_core::audit::{self, EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::events::{Event, EventKind};
use cloakroom_core::idempotency::ResponseTemplate;
use cloakroom_core::vault::Vault;
use cloakroom_platform::api::{Expiry, FieldError};
use cloakroom_platform::storage::Transaction;
use jiff::Timestamp;
use serde_json::json;

use super::{Error, event_object, nonce_digest, require_kind, store};

const LIFETIME_MAX: Duration = Duration::from_secs(24 * 60 * 60);
const NONCE_CHARS_MAX: usize = 100;

/// Requested grants for a session, not yet validated.
#[derive(Default)]
pub struct NewAuthorization {
    pub nonce: Option<String>,
    pub expires_at: Option<String>,
    pub grants: NewGrants,
}

/// Grants permissions to the session with this nonce. Of several concurrent requests, one succeeds.
pub async fn authorize(
    vault: &Vault,
    caller: &Caller,
    new: NewAuthorization,
    template: &ResponseTemplate<'_, ()>,
) -> Result<(), Error> {
    require_kind(caller, ApplicationKind::Private)?;
    vault.keys.refresh_if_stale().await;
    let now = vault.clock.now().await?;
    let authorization = validate(vault, caller, new, now)?;
    let transaction = audit::begin(&vault.audit).await?;
    match write(vault, &transaction, caller, authorization).await {
        Ok(session) => {
            let id = session.id;
            let entry = Entry::new(caller, Operation::Authorize, EntityKind::Session, id)
                .with_event(authorized_event(&session));
            transaction
                .commit_with(&[entry], template.render_pending(&())?)
                .await?;
            vault.principals.invalidate_all();
            Ok(())
        }
        Err(error) => {
            transaction.roll_back().await;
            Err(error)
        }
    }
}

fn authorized_event(session: &SessionRow) -> Event {
    let mut object = event_object(session);
    if let Some(grants) = session.grants.as_deref().and_then(Grants::parse) {
        object["permissions"] = json!(grants.permissions);
        object["rules"] = json!(grants.rules);
    }
    Event::new(
        EventKind::SessionAuthorized,
        session.id,
        json!({ "session": object }),
    )
}

struct ValidatedAuthorization {
    nonce: String,
    expires_at: Option<Timestamp>,
    grants: Grants,
}

fn validate(
    vault: &Vault,
    caller: &Caller,
    new: NewAuthorization,
    now: Timestamp,
) -> Result<ValidatedAuthorization, Error> {
    let mut broken = Vec::new();
    let nonce = new.nonce.filter(|nonce| {
        (1..=NONCE_CHARS_MAX).contains(&nonce.chars().count()) && !nonce.contains('\0')
    });
    if nonce.is_none() {
        broken.push(FieldError::new(
            "nonce",
            "is required: send the nonce of the session",
        ));
    }
    let expires_at = new.expires_at.map(|text| expiry(&text, now));
    let expires_at = expires_at.transpose().unwrap_or_else(|rule| {
        broken.push(FieldError::new("expires_at", rule));
        None
    });
    let mut grants = new.grants.validate_for_session();
    if vault.config.sessions.require_subset {
        grants = grants.and_then(|grants| check_subset(&grants, &caller.grants).map(|()| grants));
    }
    let grants = grants.map_err(|rules| broken.extend(rules)).ok();
    match (nonce, grants) {
        (Some(nonce), Some(grants)) if broken.is_empty() => Ok(ValidatedAuthorization {
            nonce,
            expires_at,
            grants,
        }),
        _ => Err(Error::Invalid(broken)),
    }
}

fn expiry(text: &str, now: Timestamp) -> Result<Timestamp, &'static str> {
    let rule = "must be a time in the next 24 hours";
    let at = Expiry::parse(text).ok_or(rule)?.at;
    let latest = now.checked_add(LIFETIME_MAX).unwrap_or(now);
    match now < at && at <= latest {
        true => Ok(at),
        false => Err(rule),
    }
}

/// Locks the row and verifies its MAC first, so that a row written by SQL never gets a valid MAC.
async fn write(
    vault: &Vault,
    transaction: &Transaction,
    caller: &Caller,
    authorization: ValidatedAuthorization,
) -> Result<SessionRow, Error> {
    let control = vault.keys.control();
    let nonce = nonce_digest(caller, &authorization.nonce);
    let locked = store::lock(transaction, caller.tenant, &nonce).await?;
    let (mut row, row_mac) = locked.ok_or(Error::NotFound)?;
    if !row.is_genuine(control, &row_mac) {
        return Err(Error::Altered);
    }
    if row.grants.is_some() {
        return Err(Error::AlreadyAuthorized);
    }
    row.grants = Some(authorization.grants.to_text());
    row.expires_at = authorization.expires_at.unwrap_or(row.expires_at);
    let row_mac = row.row_mac(control);
    store::authorize(transaction, &row, caller.application, &row_mac).await?;
    Ok(row)
}
