//! Who is asking, and whether they may.

use uuid::Uuid;

use crate::access::{
    ApplicationKind, Container, Grants, Permission, TenantKind, TenantSettings, Transform,
};
use crate::ids::TenantId;

/// The application behind a request. Every verb takes one.
#[derive(Debug)]
pub struct Caller {
    pub tenant: TenantId,
    pub tenant_kind: TenantKind,
    pub settings: TenantSettings,
    pub application: Uuid,
    pub application_kind: ApplicationKind,
    pub key: Uuid,
    pub grants: Grants,
}

/// The caller lacks a permission.
#[derive(Debug, thiserror::Error)]
#[error("the application lacks {0} here")]
pub struct Denied(pub Permission);

impl Caller {
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
