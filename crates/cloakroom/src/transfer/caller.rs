//! The caller on whose behalf an operator's command reads and writes tokens.

use std::sync::Arc;

use cloakroom_core::access::{ApplicationKind, Grants, Principal, PrincipalKind, Tenant};
use cloakroom_core::caller::Caller;
use cloakroom_core::vault::Vault;
use uuid::Uuid;

/// A caller without grants: operations of this module check none. Tokens name `application` as their author.
pub fn operator_caller(vault: &Vault, tenant: &Tenant, application: Uuid) -> Caller {
    let principal = Principal {
        tenant: tenant.id,
        tenant_kind: tenant.kind,
        settings: tenant.settings.clone(),
        quotas: tenant.quotas.or_default(&vault.config),
        application,
        application_kind: ApplicationKind::Private,
        key: Uuid::nil(),
        is_legacy: false,
        kind: PrincipalKind::Application,
        grants: Grants::default(),
    };
    Caller::new(Arc::new(principal), "".into(), None)
}
