//! Who is asking, and whether they may.

use std::net::IpAddr;
use std::ops::Deref;
use std::sync::Arc;

use uuid::Uuid;

use crate::access::{
    ApplicationKind, Container, Grants, Permission, Quotas, Subject, TenantKind, TenantSettings,
    Transform,
};
use crate::deprecations::Uses;
use crate::idempotency::Lease;
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
    /// The API key, or the session.
    pub key: Uuid,
    /// Whether the key is an imported one of the older format, which has limits of its own.
    pub is_legacy: bool,
    pub standing: Standing,
    pub grants: Grants,
}

/// What a key makes of its holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// An application with its own grants.
    Application,
    /// A session of a public application, with grants of its own.
    Session,
    /// A session that nobody has authorized yet. It may ask for nothing.
    Unauthorized,
}

/// One request of a holder. Every verb takes one.
#[derive(Clone, Debug)]
pub struct Caller {
    holder: Arc<Holder>,
    /// What names the request in logs.
    pub trace_id: Arc<str>,
    /// Where it came from, if that is known.
    pub origin: Option<IpAddr>,
    /// Held by a request with an idempotency key.
    pub lease: Option<Arc<Lease>>,
    /// What it uses although that is deprecated.
    pub uses: Uses,
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
            lease: None,
            uses: Uses::default(),
        }
    }

    /// The same request, which nobody else does meanwhile.
    pub fn with_lease(&self, lease: Arc<Lease>) -> Self {
        Self {
            lease: Some(lease),
            ..self.clone()
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
        let id = None;
        self.require_on(permission, Subject { container, id })
    }

    /// Requires a permission on a token that exists, and tells how data may then appear.
    pub fn require_on(
        &self,
        permission: Permission,
        subject: Subject<'_>,
    ) -> Result<Transform, Denied> {
        self.fitting(permission)?
            .decide(permission, subject)
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

    /// Requires a permission that has nothing to do with containers.
    pub fn require_plain(&self, permission: Permission) -> Result<(), Denied> {
        if self.fitting(permission)?.permissions.contains(permission) {
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

    /// Requires that a permission may be held in a container, for lists that decide about each token.
    pub fn require_within(
        &self,
        permission: Permission,
        container: &Container,
    ) -> Result<(), Denied> {
        let reach = self.reach(permission)?;
        match reach.iter().any(|held| held.holds(container)) {
            true => Ok(()),
            false => Err(Denied(permission)),
        }
    }

    /// Whether each token in the reach of a permission is covered by it.
    pub fn fills_reach(&self, permission: Permission) -> bool {
        self.grants.fill_reach(permission)
    }

    /// Grants were checked when they were given; a kind that may never hold this is refused again.
    fn fitting(&self, permission: Permission) -> Result<&Grants, Denied> {
        let fits = match self.standing {
            Standing::Application => permission.fits(self.application_kind),
            Standing::Session => permission.fits_session(),
            Standing::Unauthorized => false,
        };
        if fits {
            Ok(&self.grants)
        } else {
            Err(Denied(permission))
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::time::Duration;

    use super::*;
    use crate::access::{ALL_PERMISSIONS, AccessRule, RateLimit, Scope};
    use crate::ids;

    /// Someone with every permission there is, plainly and by a rule, whatever their kind may hold.
    fn all_powerful(kind: ApplicationKind) -> Holder {
        let all = ALL_PERMISSIONS.iter().copied();
        let hour = Duration::from_secs(3_600);
        Holder {
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
            standing: Standing::Application,
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

    /// Somebody who asks for something.
    pub(crate) fn someone() -> Caller {
        let holder = all_powerful(ApplicationKind::Private);
        Caller::new(Arc::new(holder), "".into(), None)
    }

    #[test]
    fn grants_that_a_kind_may_not_hold_are_refused_when_they_are_used() {
        for kind in ApplicationKind::ALL {
            let holder = all_powerful(kind);
            for permission in ALL_PERMISSIONS.iter().copied() {
                let passes = [
                    holder.require(permission, &Container::root()).is_ok(),
                    holder.require_somewhere(permission).is_ok(),
                    holder.require_plain(permission).is_ok(),
                    holder.reach(permission).is_ok(),
                ];
                assert_eq!(passes, [permission.fits(kind); 4], "{kind} {permission}");
            }
        }
    }
}
