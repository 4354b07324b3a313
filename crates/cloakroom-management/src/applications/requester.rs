//! The requester of an operation on a tenant's applications.

use cloakroom_core::access::{
    ApplicationKind, GrantExceeded, Grants, Permission, PermissionDenied, Tenant, TenantKind,
};
use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_platform::config;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

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

    /// Requires that the requester may grant these permissions; an operator may grant all.
    pub(super) fn require_grantable(
        &self,
        config: &config::Tenants,
        kind: ApplicationKind,
        grants: &Grants,
    ) -> Result<(), GrantExceeded> {
        match self {
            Self::Application(caller) => caller.require_grantable(config, kind, grants),
            Self::Operator(_) => Ok(()),
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
