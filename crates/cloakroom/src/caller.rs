//! Who is asking, and whether they may.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use uuid::Uuid;

use crate::access::{
    ApplicationKind, Container, Grants, Permission, Quotas, TenantKind, TenantSettings, Transform,
};
use crate::ids::TenantId;

/// The application behind a key, as it is remembered between requests.
#[derive(Debug)]
pub struct Holder {
    pub tenant: TenantId,
    pub tenant_kind: TenantKind,
    pub settings: TenantSettings,
    pub quotas: Quotas,
    pub application: Uuid,
    pub application_kind: ApplicationKind,
    pub key: Uuid,
    pub grants: Grants,
}

/// One request of a holder. Every verb takes one.
#[derive(Clone, Debug)]
pub struct Caller {
    holder: Arc<Holder>,
    /// What names the request in logs.
    pub trace_id: Arc<str>,
    /// Where it came from, if that is known.
    pub origin: Option<IpAddr>,
}

impl Deref for Caller {
    type Target = Holder;

    fn deref(&self) -> &Holder {
        &self.holder
    }
}

/// The caller lacks a permission.
#[derive(Debug, thiserror::Error)]
#[error("the application lacks {0} here")]
pub struct Denied(pub Permission);

impl Caller {
    pub fn new(holder: Arc<Holder>, trace_id: Arc<str>, origin: Option<IpAddr>) -> Self {
        Self {
            holder,
            trace_id,
            origin,
        }
    }
}

impl Holder {
    /// Requires a permission in a container, and tells how data may then appear.
    pub fn require(
        &self,
        permission: Permission,
        container: &Container,
    ) -> Result<Transform, Denied> {
        self.fitting(permission)?
            .decide(permission, container)
            .ok_or(Denied(permission))
    }

    /// Requires a permission in some container at least.
    ///
    /// Asked before anything about the request is checked, so that a key without the permission
    /// learns nothing from the answers.
    pub fn require_somewhere(&self, permission: Permission) -> Result<(), Denied> {
        if self.fitting(permission)?.mention(permission) {
            return Ok(());
        }
        Err(Denied(permission))
    }

    /// Where a permission is held: containers that do not overlap, in descending order.
    pub fn reach(&self, permission: Permission) -> Result<Vec<Container>, Denied> {
        let reach = self.fitting(permission)?.reach(permission);
        if reach.is_empty() {
            return Err(Denied(permission));
        }
        Ok(reach)
    }

    /// Grants were checked when they were given; a kind that may never hold this is refused again.
    fn fitting(&self, permission: Permission) -> Result<&Grants, Denied> {
        if permission.fits(self.application_kind) {
            Ok(&self.grants)
        } else {
            Err(Denied(permission))
        }
    }
}
