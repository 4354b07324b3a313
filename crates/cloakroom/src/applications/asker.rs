//! Who asks for something to be done with a tenant's applications.

use uuid::Uuid;

use crate::access::{Permission, Tenant, TenantKind};
use crate::audit::{EntityKind, Entry, Operation};
use crate::caller::{Caller, Denied};
use crate::ids::TenantId;

/// An application over HTTP, which needs permissions, or an operator at the command line.
#[derive(Clone, Copy)]
pub enum Asker<'a> {
    Application(&'a Caller),
    Operator(&'a Tenant),
}

impl Asker<'_> {
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

    /// What `created_by` and `modified_by` say; operators have no id.
    pub(super) fn id(&self) -> Option<Uuid> {
        match self {
            Self::Application(caller) => Some(caller.application),
            Self::Operator(_) => None,
        }
    }

    /// The record of what they do; operators are the vault itself.
    pub(super) fn entry(&self, operation: Operation, entity: EntityKind, id: Uuid) -> Entry {
        match self {
            Self::Application(caller) => Entry::of(caller, operation, entity, id),
            Self::Operator(tenant) => Entry::by_system(tenant.id.number, operation, entity, id),
        }
    }

    pub(super) fn require(&self, permission: Permission) -> Result<(), Denied> {
        match self {
            Self::Application(caller) => caller.require_plain(permission),
            Self::Operator(_) => Ok(()),
        }
    }
}

impl<'a> From<&'a Caller> for Asker<'a> {
    fn from(caller: &'a Caller) -> Self {
        Self::Application(caller)
    }
}

impl<'a> From<&'a Tenant> for Asker<'a> {
    fn from(tenant: &'a Tenant) -> Self {
        Self::Operator(tenant)
    }
}
