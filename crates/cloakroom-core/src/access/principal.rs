//! The principal behind an API key, and its authorization.

use cloakroom_platform::config;
use cloakroom_platform::ids::TenantId;
use uuid::Uuid;

use super::{
    ApplicationKind, Container, Grants, Permission, Quotas, Resource, TenantKind, TenantSettings,
    Transform, check_subset,
};

/// The authenticated principal behind an API key, cached between requests.
#[derive(Debug)]
pub struct Principal {
    pub tenant: TenantId,
    pub tenant_kind: TenantKind,
    pub settings: TenantSettings,
    pub quotas: Quotas,
    pub application: Uuid,
    pub application_kind: ApplicationKind,
    /// Id of the API key or session.
    pub key: Uuid,
    /// Whether the key is an imported key in the legacy format, which has rate limits of its own.
    pub is_legacy: bool,
    pub kind: PrincipalKind,
    pub grants: Grants,
}

/// Kind of principal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrincipalKind {
    /// An application with its own grants.
    Application,
    /// A session of a public application, with grants of its own.
    Session,
    /// A session that is not yet authorized. All its requests are rejected.
    Unauthorized,
}

/// The caller lacks a permission, or has it in other containers only.
#[derive(Debug, thiserror::Error)]
#[error("{0}{place}", place = if .0.is_scoped() { " for this container" } else { "" })]
pub struct PermissionDenied(pub Permission);

/// The caller must not pass on these grants.
#[derive(Debug, thiserror::Error)]
#[error("An application grants only what it holds itself; granting more needs application:grant")]
pub struct GrantExceeded;

impl Principal {
    /// Whether the key is one that ships in web pages and apps, and is therefore public knowledge.
    pub fn is_public_key(&self) -> bool {
        let is_key = self.kind == PrincipalKind::Application;
        is_key && self.application_kind == ApplicationKind::Public
    }

    /// Requires a permission in a container; returns the transform for the data.
    pub fn require(
        &self,
        permission: Permission,
        container: &Container,
    ) -> Result<Transform, PermissionDenied> {
        let id = None;
        self.require_on(permission, Resource { container, id })
    }

    /// Requires a permission on an existing token; returns the transform for its data.
    pub fn require_on(
        &self,
        permission: Permission,
        subject: Resource<'_>,
    ) -> Result<Transform, PermissionDenied> {
        self.grants_for(permission)?
            .decide(permission, subject)
            .ok_or(PermissionDenied(permission))
    }

    /// Requires a permission in at least one container.
    ///
    /// Checked before the request is validated, so that a key without the permission learns nothing from validation
    /// errors.
    pub fn require_anywhere(&self, permission: Permission) -> Result<(), PermissionDenied> {
        if self.grants_for(permission)?.grant_anywhere(permission) {
            return Ok(());
        }
        Err(PermissionDenied(permission))
    }

    /// Requires a permission that is not scoped to containers.
    pub fn require_plain(&self, permission: Permission) -> Result<(), PermissionDenied> {
        if self
            .grants_for(permission)?
            .permissions
            .contains(permission)
        {
            return Ok(());
        }
        Err(PermissionDenied(permission))
    }

    /// Requires that the grants of an application of this type are within those of this principal, or that it may grant
    /// more than it holds. Creating a key for an application, or a proxy that acts with its permissions, must not lead to
    /// privilege escalation.
    ///
    /// Only administrators can grant `tenant:delete`: a deletion needs two applications, and one must not be able to
    /// create the other.
    pub fn require_grantable(
        &self,
        config: &config::Tenants,
        kind: ApplicationKind,
        grants: &Grants,
    ) -> Result<(), GrantExceeded> {
        let is_administrator = || self.require_plain(Permission::ApplicationGrant).is_ok();
        let is_held = || {
            kind == self.application_kind
                && !grants.grant_anywhere(Permission::TenantDelete)
                && check_subset(grants, &self.grants).is_ok()
        };
        match config.unrestricted_grants || is_administrator() || is_held() {
            true => Ok(()),
            false => Err(GrantExceeded),
        }
    }

    /// Where a permission is granted: containers that do not overlap, in descending order.
    pub fn reach(&self, permission: Permission) -> Result<Vec<Container>, PermissionDenied> {
        let reach = self.grants_for(permission)?.reach(permission);
        if reach.is_empty() {
            return Err(PermissionDenied(permission));
        }
        Ok(reach)
    }

    /// Requires that a permission may be granted in a container, for lists that decide about each token.
    pub fn require_within(
        &self,
        permission: Permission,
        container: &Container,
    ) -> Result<(), PermissionDenied> {
        let reach = self.reach(permission)?;
        match reach.iter().any(|held| held.holds(container)) {
            true => Ok(()),
            false => Err(PermissionDenied(permission)),
        }
    }

    /// Whether a permission covers every token in its reach.
    pub fn covers_reach(&self, permission: Permission) -> bool {
        self.grants.cover_reach(permission)
    }

    /// Grants are validated when they are set; those that the application type must not hold are denied again here.
    fn grants_for(&self, permission: Permission) -> Result<&Grants, PermissionDenied> {
        let fits = match self.kind {
            PrincipalKind::Application => permission.fits(self.application_kind),
            PrincipalKind::Session => permission.fits_session(),
            PrincipalKind::Unauthorized => false,
        };
        if fits {
            Ok(&self.grants)
        } else {
            Err(PermissionDenied(permission))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use cloakroom_platform::ids;

    use super::*;
    use crate::access::{ALL_PERMISSIONS, AccessRule, RateLimit, Scope};

    /// A principal with every permission, plainly and by a rule, even those that its application type must not hold.
    fn with_all_permissions(kind: ApplicationKind) -> Principal {
        let all = ALL_PERMISSIONS.iter().copied();
        let hour = Duration::from_secs(3_600);
        Principal {
            tenant: TenantId {
                number: 1,
                uuid: ids::new_uuid(),
            },
            tenant_kind: TenantKind::Test,
            settings: TenantSettings::default(),
            quotas: Quotas {
                rate_limit: RateLimit::Default,
                log_retention: hour,
                tokenize_limit: 1,
                detokenize_limit: 1,
                cvc_retention: hour,
                token_intent_retention: hour,
                card_velocity_limit: 1,
                threeds: true,
            },
            application: ids::new_uuid(),
            application_kind: kind,
            key: ids::new_uuid(),
            is_legacy: false,
            kind: PrincipalKind::Application,
            grants: Grants {
                permissions: all.clone().collect(),
                rules: vec![AccessRule {
                    description: "All of it".to_owned(),
                    priority: 1,
                    scope: Scope::Container(Container::root()),
                    transform: Transform::Reveal,
                    permissions: all.collect(),
                }],
            },
        }
    }

    pub fn test_principal() -> Principal {
        with_all_permissions(ApplicationKind::Private)
    }

    #[test]
    fn permissions_that_an_application_type_must_not_hold_are_denied() {
        for kind in ApplicationKind::ALL {
            let principal = with_all_permissions(kind);
            for permission in ALL_PERMISSIONS.iter().copied() {
                let passes = [
                    principal.require(permission, &Container::root()).is_ok(),
                    principal.require_anywhere(permission).is_ok(),
                    principal.require_plain(permission).is_ok(),
                    principal.reach(permission).is_ok(),
                ];
                assert_eq!(passes, [permission.fits(kind); 4], "{kind} {permission}");
            }
        }
    }
}
