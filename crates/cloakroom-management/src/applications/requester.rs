//! The requester of an operation on a tenant's applications.

use cloakroom_core::access::{
    ApplicationKind, Grants, Permission, PermissionDenied, Tenant, TenantKind, check_subset,
};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_platform::config;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::Error;

/// An application over HTTP, which needs permissions, or an operator with the CLI.
#[derive(Clone, Copy)]
pub enum Requester<'a> {
    Application(&'a Caller),
    Operator(&'a Tenant),
}

impl Requester<'_> {
    pub(super) fn tenant(&self) -> TenantId {
        match self {
            Self::Application(caller) => caller.tenant,
            Self::Operator(tenant) => tenant.id,
        }
    }

    pub(super) fn tenant_kind(&self) -> TenantKind {
        match self {
            Self::Application(caller) => caller.tenant_kind,
            Self::Operator(tenant) => tenant.kind,
        }
    }

    /// Id for `created_by` and `modified_by`; operators have none.
    pub(super) fn id(&self) -> Option<Uuid> {
        match self {
            Self::Application(caller) => Some(caller.application),
            Self::Operator(_) => None,
        }
    }

    /// Builds the audit log entry of an operation; an operator acts as the system.
    pub(super) fn entry(&self, operation: Operation, entity: EntityKind, id: Uuid) -> Entry {
        match self {
            Self::Application(caller) => Entry::new(caller, operation, entity, id),
            Self::Operator(tenant) => Entry::by_system(tenant.id.number, operation, entity, id),
        }
    }

    /// Requires that the grants of an application of this type are within those of the requester, or that the requester
    /// may grant more than it holds: creating keys must not lead to privilege escalation.
    ///
    /// Only administrators can grant `tenant:delete`: a deletion needs two applications, and one must not be able to
    /// create the other.
    pub(super) fn require_grantable(
        &self,
        config: &config::Tenants,
        kind: ApplicationKind,
        grants: &Grants,
    ) -> Result<(), Error> {
        let Self::Application(caller) = self else {
            return Ok(());
        };
        let is_administrator = || caller.require_plain(Permission::ApplicationGrant).is_ok();
        let is_held = || {
            kind == caller.application_kind
                && !grants.grant_anywhere(Permission::TenantDelete)
                && check_subset(grants, &caller.grants).is_ok()
        };
        match config.unrestricted_grants || is_administrator() || is_held() {
            true => Ok(()),
            false => Err(Error::GrantExceeded),
        }
    }

    pub(super) fn require(&self, permission: Permission) -> Result<(), PermissionDenied> {
        match self {
            Self::Application(caller) => caller.require_plain(permission),
            Self::Operator(_) => Ok(()),
        }
    }
}

impl<'a> From<&'a Caller> for Requester<'a> {
    fn from(caller: &'a Caller) -> Self {
        Self::Application(caller)
    }
}

impl<'a> From<&'a Tenant> for Requester<'a> {
    fn from(tenant: &'a Tenant) -> Self {
        Self::Operator(tenant)
    }
}
