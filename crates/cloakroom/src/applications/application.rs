//! An application and its keys: what may be asked for, and what is believed of the rows that are kept.

use jiff::Timestamp;
use uuid::Uuid;

use super::Error;
use super::store::{KeptApplication, KeptKey};
use crate::access::{
    ApplicationKind, ApplicationRow, Authenticated as _, Grants, KeyRow, NewGrants, check_name,
    is_legacy_lookup,
};
use crate::api::{Broken, EXPIRY_RULE, Expiry};
use crate::caller::Caller;
use crate::deprecations::Deprecated;
use crate::ids::TenantId;
use crate::keys::ControlKey;

/// An application that is asked for.
#[derive(Clone, Debug, Default)]
pub struct NewApplication {
    pub name: Option<String>,
    pub kind: Option<String>,
    pub grants: NewGrants,
    /// Whether it gets a key at once.
    pub create_key: bool,
    pub expires_at: Option<String>,
}

/// What was asked for, checked.
pub(super) struct Checked {
    pub name: String,
    pub kind: ApplicationKind,
    pub grants: Grants,
    pub create_key: bool,
    pub expires_at: Option<Timestamp>,
}

#[derive(Clone, Debug)]
pub struct Application {
    pub id: Uuid,
    pub name: String,
    pub kind: ApplicationKind,
    pub grants: Grants,
    /// The oldest first.
    pub keys: Vec<ApplicationKey>,
    pub created_by: Option<Uuid>,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
}

/// A key of an application. Its text is shown once and known to nobody afterwards.
#[derive(Clone, Debug)]
pub struct ApplicationKey {
    pub id: Uuid,
    /// Whether it is an imported one of the older format.
    pub is_legacy: bool,
    pub created_by: Option<Uuid>,
    pub created_at: Timestamp,
}

impl NewApplication {
    pub(super) fn checked(self) -> Result<Checked, Error> {
        let mut broken = Vec::new();
        let name = keep(name(self.name), &mut broken);
        let kind = keep(kind(self.kind.as_deref()), &mut broken);
        let grants = keep(self.grants.checked(kind), &mut broken);
        let expires_at = self.expires_at.as_deref().map(expiry).transpose();
        let expires_at = keep(expires_at, &mut broken);
        let (Some(name), Some(kind), Some(grants), Some(expires_at)) =
            (name, kind, grants, expires_at)
        else {
            return Err(Error::Invalid(broken));
        };
        Ok(Checked {
            name,
            kind,
            grants,
            create_key: self.create_key,
            expires_at,
        })
    }
}

/// Keeps what is right and collects what is not, so that clients learn of all broken rules at once.
pub(super) fn keep<T>(result: Result<T, Vec<Broken>>, broken: &mut Vec<Broken>) -> Option<T> {
    result.map_err(|rules| broken.extend(rules)).ok()
}

pub(super) fn name(given: Option<String>) -> Result<String, Vec<Broken>> {
    let name = given.ok_or_else(|| vec![Broken::new("name", "is required")])?;
    check_name(&name).map_err(|broken| vec![broken])?;
    Ok(name)
}

/// A kind that there once was.
const EXPIRING: &str = "expiring";

/// Notes what was removed from the interface, and is asked for all the same.
pub(super) fn note_removed(caller: &Caller, kind: Option<&str>, grants: &NewGrants) {
    if kind == Some(EXPIRING) {
        caller.uses.note(Deprecated::ExpiringApplications);
    }
    if grants.are_by_classification() {
        caller.uses.note(Deprecated::ClassificationPermissions);
    }
}

fn kind(given: Option<&str>) -> Result<ApplicationKind, Vec<Broken>> {
    let refuse = |rule: String| vec![Broken::new("type", rule)];
    let name = given.ok_or_else(|| refuse("is required".to_owned()))?;
    if name == EXPIRING {
        return Err(refuse(Deprecated::ExpiringApplications.row().rule()));
    }
    parse_kind(name).map_err(refuse)
}

pub(super) fn parse_kind(name: &str) -> Result<ApplicationKind, String> {
    let rule = || "must be `private`, `public` or `management`".to_owned();
    ApplicationKind::parse(name).ok_or_else(rule)
}

/// Whether it lies ahead is for the database to say.
fn expiry(text: &str) -> Result<Timestamp, Vec<Broken>> {
    let expiry = Expiry::parse(text).ok_or_else(expired)?;
    Ok(expiry.at)
}

pub(super) fn expired() -> Vec<Broken> {
    vec![Broken::new("expires_at", EXPIRY_RULE)]
}

/// The row that a kept application is, unless it was changed by SQL.
pub(super) fn genuine_row(
    control: &ControlKey,
    tenant: TenantId,
    kept: &KeptApplication,
) -> Result<ApplicationRow, Error> {
    let row = ApplicationRow {
        tenant_number: tenant.number,
        id: kept.id,
        name: kept.name.clone(),
        kind: ApplicationKind::from_number(kept.kind).ok_or(Error::Altered("application"))?,
        grants: kept.grants.clone(),
        expires_at: kept.expires_at,
    };
    if row.is_genuine(control, &kept.row_mac) {
        Ok(row)
    } else {
        Err(Error::Altered("application"))
    }
}

impl Application {
    pub(super) fn of(
        control: &ControlKey,
        tenant: TenantId,
        kept: &KeptApplication,
        keys: Vec<ApplicationKey>,
    ) -> Result<Self, Error> {
        let row = genuine_row(control, tenant, kept)?;
        let grants = Grants::parse(&row.grants);
        Ok(Self {
            id: row.id,
            name: row.name,
            kind: row.kind,
            grants: grants.ok_or(Error::Altered("application"))?,
            keys,
            created_by: kept.created_by,
            created_at: kept.created_at,
            modified_by: kept.modified_by,
            modified_at: kept.modified_at,
            expires_at: row.expires_at,
        })
    }
}

impl ApplicationKey {
    pub(super) fn of(
        control: &ControlKey,
        tenant: TenantId,
        kept: &KeptKey,
    ) -> Result<Self, Error> {
        let row = KeyRow {
            lookup: kept.lookup.clone(),
            tenant_number: tenant.number,
            application: kept.application,
            id: kept.id,
            secret_mac: kept.secret_mac.clone(),
            expires_at: kept.expires_at,
        };
        if !row.is_genuine(control, &kept.row_mac) {
            return Err(Error::Altered("application key"));
        }
        Ok(Self {
            id: kept.id,
            is_legacy: is_legacy_lookup(&kept.lookup),
            created_by: kept.created_by,
            created_at: kept.created_at,
        })
    }
}
