//! What a caller loads data for, which determines the permission that it needs and the transform of the data.

use super::{Permission, PermissionDenied, Principal, Resource, Transform};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// Returning the data to the caller.
    Read,
    /// Sending the data to a destination.
    Use,
}

impl Purpose {
    /// Requires the permission in at least one container.
    pub fn require_anywhere(self, principal: &Principal) -> Result<(), PermissionDenied> {
        match self {
            Self::Read => principal.require_anywhere(Permission::TokenRead),
            Self::Use => principal.require_anywhere(Permission::ProxyInvoke),
        }
    }

    /// Requires the permission on a token; returns the transform for its data.
    ///
    /// Redacted data cannot be used.
    pub fn require_on(
        self,
        principal: &Principal,
        subject: Resource<'_>,
    ) -> Result<Transform, PermissionDenied> {
        match self {
            Self::Read => principal.require_on(Permission::TokenRead, subject),
            Self::Use => match principal.require_on(Permission::TokenUse, subject)? {
                Transform::Redact => Err(PermissionDenied(Permission::TokenUse)),
                transform => Ok(transform),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::access::{AccessRule, Container, Grants, Scope, test_principal};

    fn rule(permission: Permission, transform: Transform) -> AccessRule {
        AccessRule {
            description: "A rule".to_owned(),
            priority: 1,
            scope: Scope::Container(Container::root()),
            transform,
            permissions: [permission].into_iter().collect(),
        }
    }

    #[test]
    fn both_names_of_the_permission_are_one() {
        use Permission::{ProxyInvoke, TokenRead, TokenUse};
        use Transform::{Mask, Redact, Reveal};
        type Rules = &'static [(Permission, Transform)];
        let cases: [(Rules, Option<Transform>); 8] = [
            (&[], None),
            (&[(TokenRead, Reveal)], None),
            (&[(TokenUse, Reveal)], Some(Reveal)),
            (&[(ProxyInvoke, Mask)], Some(Mask)),
            (&[(TokenUse, Redact)], None),
            (&[(TokenUse, Reveal), (ProxyInvoke, Mask)], Some(Reveal)),
            (&[(TokenUse, Mask), (ProxyInvoke, Reveal)], Some(Mask)),
            (&[(TokenUse, Redact), (ProxyInvoke, Reveal)], None),
        ];
        for (rules, expected) in cases {
            let rules = rules
                .iter()
                .map(|(permission, transform)| rule(*permission, *transform));
            let mut principal = test_principal();
            principal.grants = Grants {
                permissions: [].into_iter().collect(),
                rules: rules.collect(),
            };
            let (container, id) = (&Container::root(), None);
            let subject = Resource { container, id };
            let decided = Purpose::Use.require_on(&principal, subject).ok();
            assert_eq!(decided, expected, "{:?}", principal.grants.rules);
        }
    }
}
