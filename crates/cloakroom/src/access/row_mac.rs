//! Digests over the rows that grant rights: a row written or edited by SQL does not verify.

use jiff::Timestamp;
use uuid::Uuid;

use super::ApplicationKind;
use super::tenant::TenantKind;
use crate::ids::TenantId;
use crate::keys::ControlKey;

/// A row whose digest can be made and checked.
pub(crate) trait Authenticated {
    const DOMAIN: &'static str;
    fn parts(&self) -> Vec<Vec<u8>>;

    fn row_mac(&self, control: &ControlKey) -> [u8; 32] {
        let parts = self.parts();
        control.authenticate(Self::DOMAIN, &slices(&parts))
    }

    fn is_genuine(&self, control: &ControlKey, row_mac: &[u8]) -> bool {
        let parts = self.parts();
        control.verifies(Self::DOMAIN, &slices(&parts), row_mac)
    }
}

fn slices(parts: &[Vec<u8>]) -> Vec<&[u8]> {
    parts.iter().map(Vec::as_slice).collect()
}

pub(crate) struct TenantRow {
    pub id: TenantId,
    pub name: String,
    pub kind: TenantKind,
    pub settings: String,
    /// Quotas of its own as the JSON text that is kept; [`NO_QUOTAS`] when it has none.
    pub quotas: String,
    /// When it was deleted; its keys are refused from then on.
    pub deleted_at: Option<Timestamp>,
}

/// A tenant for which the deployment's quotas hold.
pub(crate) const NO_QUOTAS: &str = "{}";

impl Authenticated for TenantRow {
    const DOMAIN: &'static str = "row.tenant.v1";

    fn parts(&self) -> Vec<Vec<u8>> {
        let mut parts = vec![
            self.id.number.to_be_bytes().to_vec(),
            self.id.uuid.into_bytes().to_vec(),
            self.name.clone().into_bytes(),
            (self.kind as i16).to_be_bytes().to_vec(),
            self.settings.clone().into_bytes(),
        ];
        // Tenants that are older than quotas have a digest without them. A deleted one always names
        // them, so that its last part cannot be taken for quotas.
        if self.quotas != NO_QUOTAS || self.deleted_at.is_some() {
            parts.push(self.quotas.clone().into_bytes());
        }
        if self.deleted_at.is_some() {
            parts.push(time_part(self.deleted_at));
        }
        parts
    }
}

pub(crate) struct ApplicationRow {
    pub tenant_number: i32,
    pub id: Uuid,
    pub name: String,
    pub kind: ApplicationKind,
    /// The grants as the JSON text that is kept.
    pub grants: String,
    pub expires_at: Option<Timestamp>,
}

impl Authenticated for ApplicationRow {
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

pub(crate) struct KeyRow {
    pub lookup: String,
    pub tenant_number: i32,
    pub application: Uuid,
    pub id: Uuid,
    pub secret_mac: Vec<u8>,
    pub expires_at: Option<Timestamp>,
}

impl Authenticated for KeyRow {
    const DOMAIN: &'static str = "row.application_key.v1";

    fn parts(&self) -> Vec<Vec<u8>> {
        vec![
            self.lookup.clone().into_bytes(),
            self.tenant_number.to_be_bytes().to_vec(),
            self.application.into_bytes().to_vec(),
            self.id.into_bytes().to_vec(),
            self.secret_mac.clone(),
            time_part(self.expires_at),
        ]
    }
}

pub(crate) struct SessionRow {
    pub lookup: String,
    pub tenant_number: i32,
    pub application: Uuid,
    pub id: Uuid,
    pub secret_mac: Vec<u8>,
    pub nonce_mac: Vec<u8>,
    /// The grants as the JSON text that is kept; none before it is authorized.
    pub grants: Option<String>,
    pub expires_at: Timestamp,
}

impl Authenticated for SessionRow {
    const DOMAIN: &'static str = "row.session.v1";

    fn parts(&self) -> Vec<Vec<u8>> {
        let mut parts = vec![
            self.lookup.clone().into_bytes(),
            self.tenant_number.to_be_bytes().to_vec(),
            self.application.into_bytes().to_vec(),
            self.id.into_bytes().to_vec(),
            self.secret_mac.clone(),
            self.nonce_mac.clone(),
            time_part(Some(self.expires_at)),
        ];
        parts.extend(self.grants.clone().map(String::into_bytes));
        parts
    }
}

fn time_part(at: Option<Timestamp>) -> Vec<u8> {
    at.map_or_else(Vec::new, |at| at.as_microsecond().to_be_bytes().to_vec())
}
