//! MACs over the rows that grant access. A row inserted or modified by SQL does not verify.

use cloakroom_platform::ids::TenantId;
use jiff::Timestamp;
use uuid::Uuid;

use super::ApplicationKind;
use super::tenant::TenantKind;
use crate::keys::{ControlKey, Renewal, StoredMac};

/// A row that is protected by a MAC.
pub trait AuthenticatedRow {
    const DOMAIN: &'static str;
    fn parts(&self) -> Vec<Vec<u8>>;

    fn row_mac(&self, control: &ControlKey) -> StoredMac {
        let parts = self.parts();
        control.authenticate(Self::DOMAIN, &slices(&parts))
    }

    fn is_genuine(&self, control: &ControlKey, row_mac: &[u8]) -> bool {
        let parts = self.parts();
        control.verifies(Self::DOMAIN, &slices(&parts), row_mac)
    }

    /// Verifies the row, and computes its MAC again if a former version of the control key made it.
    fn renew(&self, control: &ControlKey, row_mac: &[u8]) -> Renewal {
        let parts = self.parts();
        control.renew(Self::DOMAIN, &slices(&parts), row_mac)
    }
}

/// A part that may be NULL. Its first byte encodes presence, so that NULL differs from every value, including the empty one.
pub fn optional_part(value: Option<&[u8]>) -> Vec<u8> {
    match value {
        Some(value) => [&[1], value].concat(),
        None => vec![0],
    }
}

fn slices(parts: &[Vec<u8>]) -> Vec<&[u8]> {
    parts.iter().map(Vec::as_slice).collect()
}

pub struct TenantRow {
    pub id: TenantId,
    pub name: String,
    pub kind: TenantKind,
    pub settings: String,
    /// The tenant's own quotas as stored JSON text; [`NO_QUOTAS`] if it has none.
    pub quotas: String,
    /// When the tenant was deleted; its keys are rejected from then on.
    pub deleted_at: Option<Timestamp>,
}

/// Stored quotas of a tenant to which the deployment's apply.
pub const NO_QUOTAS: &str = "{}";

impl AuthenticatedRow for TenantRow {
    const DOMAIN: &'static str = "row.tenant.v1";

    fn parts(&self) -> Vec<Vec<u8>> {
        let mut parts = vec![
            self.id.number.to_be_bytes().to_vec(),
            self.id.uuid.into_bytes().to_vec(),
            self.name.clone().into_bytes(),
            (self.kind as i16).to_be_bytes().to_vec(),
            self.settings.clone().into_bytes(),
        ];
        // MACs of tenants created before quotas existed do not cover them. A deleted tenant always includes
        // quotas, so that its last part cannot be taken for them.
        if self.quotas != NO_QUOTAS || self.deleted_at.is_some() {
            parts.push(self.quotas.clone().into_bytes());
        }
        if self.deleted_at.is_some() {
            parts.push(time_part(self.deleted_at));
        }
        parts
    }
}

pub struct ApplicationRow {
    pub tenant_number: i32,
    pub id: Uuid,
    pub name: String,
    pub kind: ApplicationKind,
    /// The grants as stored JSON text.
    pub grants: String,
    pub expires_at: Option<Timestamp>,
}

impl AuthenticatedRow for ApplicationRow {
    const DOMAIN: &'static str = "row.application.v1";

    fn parts(&self) -> Vec<Vec<u8>> {
        vec![
            self.tenant_number.to_be_bytes().to_vec(),
            self.id.into_bytes().to_vec(),
            self.name.clone().into_bytes(),
            (self.kind as i16).to_be_bytes().to_vec(),
            self.grants.clone().into_bytes(),
            time_part(self.expires_at),
        ]
    }
}

pub struct KeyRow {
    pub lookup: String,
    pub tenant_number: i32,
    pub application: Uuid,
    pub id: Uuid,
    pub key_digest: Vec<u8>,
    pub expires_at: Option<Timestamp>,
}

impl AuthenticatedRow for KeyRow {
    const DOMAIN: &'static str = "row.application_key.v1";

    fn parts(&self) -> Vec<Vec<u8>> {
        vec![
            self.lookup.clone().into_bytes(),
            self.tenant_number.to_be_bytes().to_vec(),
            self.application.into_bytes().to_vec(),
            self.id.into_bytes().to_vec(),
            self.key_digest.clone(),
            time_part(self.expires_at),
        ]
    }
}

pub struct SessionRow {
    pub lookup: String,
    pub tenant_number: i32,
    pub application: Uuid,
    pub id: Uuid,
    pub key_digest: Vec<u8>,
    pub nonce_digest: Vec<u8>,
    /// The grants as stored JSON text; `None` until the session is authorized.
    pub grants: Option<String>,
    pub expires_at: Timestamp,
}

impl AuthenticatedRow for SessionRow {
    const DOMAIN: &'static str = "row.session.v1";

    fn parts(&self) -> Vec<Vec<u8>> {
        let mut parts = vec![
            self.lookup.clone().into_bytes(),
            self.tenant_number.to_be_bytes().to_vec(),
            self.application.into_bytes().to_vec(),
            self.id.into_bytes().to_vec(),
            self.key_digest.clone(),
            self.nonce_digest.clone(),
            time_part(Some(self.expires_at)),
        ];
        parts.extend(self.grants.clone().map(String::into_bytes));
        parts
    }
}

fn time_part(at: Option<Timestamp>) -> Vec<u8> {
    at.map_or_else(Vec::new, |at| at.as_microsecond().to_be_bytes().to_vec())
}
