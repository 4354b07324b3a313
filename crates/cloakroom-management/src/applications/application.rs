//! Applications and their keys: validation of requests, and verification of stored rows.

use cloakroom_core::access::{
    ApplicationKind, ApplicationRow, AuthenticatedRow as _, Grants, KeyRow, NewGrants, check_name,
    is_legacy_lookup,
};
use cloakroom_core::caller::Caller;
use cloakroom_core::deprecations::DeprecatedFeature;
use cloakroom_core::keys::ControlKey;
use cloakroom_platform::api::{EXPIRY_RULE, Expiry, FieldError};
use cloakroom_platform::ids::TenantId;
use jiff::Timestamp;
use uuid::Uuid;

use super::Error;
use super::store::{StoredApplication, StoredKey};

/// A requested application, not yet validated.
#[derive(Clone, Debug, Default)]
pub struct NewApplication {
    pub name: Option<String>,
    pub kind: Option<String>,
    pub grants: NewGrants,
    /// Whether to create a key for it.
    pub create_key: bool,
    pub expires_at: Option<String>,
}

/// A validated [`NewApplication`].
pub(super) struct ValidatedApplication {
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
    /// Oldest first.
    pub keys: Vec<ApplicationKey>,
    pub created_by: Option<Uuid>,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
    pub expires_at: Option<Timestamp>,
}

/// A key of an application. Its secret is shown once; only a digest is stored.
#[derive(Clone, Debug)]
pub struct ApplicationKey {
    pub id: Uuid,
    /// Whether it is an imported key in the legacy format.
    pub is_legacy: bool,
    pub created_by: Option<Uuid>,
    pub created_at: Timestamp,
}

impl NewApplication {
    pub(super) fn validate(self) -> Result<ValidatedApplication, Error> {
        let mut broken = Vec::new();
        let name = collect_errors(name(self.name), &mut broken);
        let kind = collect_errors(kind(self.kind.as_deref()), &mut broken);
        let grants = collect_errors(self.grants.validate(kind), &mut broken);
        let expires_at = self.expires_at.as_deref().map(expiry).transpose();
        let expires_at = collect_errors(expires_at, &mut broken);
        let (Some(name), Some(kind), Some(grants), Some(expires_at)) =
            (name, kind, grants, expires_at)
        else {
            return Err(Error::Invalid(broken));
        };
        Ok(ValidatedApplication {
            name,
            kind,
            grants,
            create_key: self.create_key,
            expires_at,
        })
    }
}

/// Collects validation errors, so that one response reports all of them.
pub(super) fn collect_errors<T>(
    result: Result<T, Vec<FieldError>>,
    broken: &mut Vec<FieldError>,
) -> Option<T> {
    result.map_err(|rules| broken.extend(rules)).ok()
}

pub(super) fn name(given: Option<String>) -> Result<String, Vec<FieldError>> {
    let name = given.ok_or_else(|| vec![FieldError::new("name", "is required")])?;
    check_name(&name).map_err(|broken| vec![broken])?;
    Ok(name)
}

/// An application type that was removed from the API.
const EXPIRING_KIND: &str = "expiring";

/// Marks features that were removed from the API but are used by this request.
pub(super) fn mark_removed_features(caller: &Caller, kind: Option<&str>, grants: &NewGrants) {
    if kind == Some(EXPIRING_KIND) {
        caller
            .deprecated_features
            .mark(DeprecatedFeature::ExpiringApplications);
    }
    if grants.are_by_classification() {
        caller
            .deprecated_features
            .mark(DeprecatedFeature::ClassificationPermissions);
    }
}

fn kind(given: Option<&str>) -> Result<ApplicationKind, Vec<FieldError>> {
    let reject = |rule: String| vec![FieldError::new("type", rule)];
    let name = given.ok_or_else(|| reject("is required".to_owned()))?;
    if name == EXPIRING_KIND {
        return Err(reject(DeprecatedFeature::ExpiringApplications.row().rule()));
    }
    parse_kind(name).map_err(reject)
}

pub(super) fn parse_kind(name: &str) -> Result<ApplicationKind, String> {
    let rule = || "must be `private`, `public` or `management`".to_owned();
    ApplicationKind::parse(name).ok_or_else(rule)
}

/// The database compares the expiry with its own clock.
fn expiry(text: &str) -> Result<Timestamp, Vec<FieldError>> {
    let expiry = Expiry::parse(text).ok_or_else(expired)?;
    Ok(expiry.at)
}

pub(super) fn expired() -> Vec<FieldError> {
    vec![FieldError::new("expires_at", EXPIRY_RULE)]
}

/// Verifies the MAC of a stored application and converts it to a row.
pub(super) fn verified_row(
    control: &ControlKey,
    tenant: TenantId,
    stored: &StoredApplication,
) -> Result<ApplicationRow, Error> {
    let row = ApplicationRow {
        tenant_number: tenant.number,
        id: stored.id,
        name: stored.name.clone(),
        kind: ApplicationKind::from_number(stored.kind).ok_or(Error::Altered("application"))?,
        grants: stored.grants.clone(),
        expires_at: stored.expires_at,
    };
    if row.is_genuine(control, &stored.row_mac) {
        Ok(row)
    } else {
        Err(Error::Altered("application"))
    }
}

impl Application {
    pub(super) fn of(
        control: &ControlKey,
        tenant: TenantId,
        stored: &StoredApplication,
        keys: Vec<ApplicationKey>,
    ) -> Result<Self, Error> {
        let row = verified_row(control, tenant, stored)?;
        let grants = Grants::parse(&row.grants);
        Ok(Self {
            id: row.id,
            name: row.name,
            kind: row.kind,
            grants: grants.ok_or(Error::Altered("application"))?,
            keys,
            created_by: stored.created_by,
            created_at: stored.created_at,
            modified_by: stored.modified_by,
            modified_at: stored.modified_at,
            expires_at: row.expires_at,
        })
    }
}

/// Versions of the current key format and of the legacy one. Clients expect a string.
const KEY_VERSION: &str = "2";
const LEGACY_KEY_VERSION: &str = "1";

impl ApplicationKey {
    pub(super) fn version(&self) -> &'static str {
        match self.is_legacy {
            true => LEGACY_KEY_VERSION,
            false => KEY_VERSION,
        }
    }

    pub(super) fn of(
        control: &ControlKey,
        tenant: TenantId,
        stored: &StoredKey,
    ) -> Result<Self, Error> {
        let row = KeyRow {
            lookup: stored.lookup.clone(),
            tenant_number: tenant.number,
            application: stored.application,
            id: stored.id,
            key_digest: stored.key_digest.clone(),
            expires_at: stored.expires_at,
        };
        if !row.is_genuine(control, &stored.row_mac) {
            return Err(Error::Altered("application key"));
        }
        Ok(Self {
            id: stored.id,
            is_legacy: is_legacy_lookup(&stored.lookup),
            created_by: stored.created_by,
            created_at: stored.created_at,
        })
    }
}
