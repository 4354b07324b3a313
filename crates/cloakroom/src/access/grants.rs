//! What an application is allowed: plain permissions and access rules, and how they decide.

use serde::{Deserialize, Serialize};

use super::{ApplicationKind, Container, Error, Permission, PermissionSet};

const RULE_PERMISSIONS_MAX: usize = 50;

/// What happens to a token's data before the caller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transform {
    Redact,
    Mask,
    Reveal,
}

/// Permissions in one container and below, with the transform that goes with them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessRule {
    pub description: String,
    pub priority: u32,
    pub container: Container,
    pub transform: Transform,
    pub permissions: PermissionSet,
}

/// Everything an application may do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    pub permissions: PermissionSet,
    pub rules: Vec<AccessRule>,
}

impl Grants {
    /// Checks grants for an application of this kind, and puts rules into order of priority.
    pub fn checked(mut self, kind: ApplicationKind) -> Result<Self, Error> {
        if self.permissions.is_empty() && self.rules.is_empty() {
            return Err(Error::invalid(
                "permissions",
                "must not be empty when there are no rules",
            ));
        }
        if let Some(foreign) = self
            .permissions
            .iter()
            .find(|permission| !permission.fits(kind))
        {
            let rule = format!("must not hold {foreign} for a {kind} application");
            return Err(Error::invalid("permissions", rule));
        }
        if kind == ApplicationKind::Management && !self.rules.is_empty() {
            return Err(Error::invalid(
                "rules",
                "must be empty for a management application",
            ));
        }
        for (index, rule) in self.rules.iter().enumerate() {
            rule.check(kind)
                .map_err(|(field, rule)| Error::invalid(format!("rules[{index}].{field}"), rule))?;
        }
        self.rules.sort_by_key(|rule| rule.priority);
        if self
            .rules
            .windows(2)
            .any(|pair| pair[0].priority == pair[1].priority)
        {
            return Err(Error::invalid("rules", "must have different priorities"));
        }
        Ok(self)
    }

    /// Decides whether `permission` is held in `container`, and how data then appears.
    ///
    /// The first rule that covers the container and names the permission wins; a rule that does not
    /// name it never stops the search. After the rules, plain permissions hold everywhere.
    pub fn decide(&self, permission: Permission, container: &Container) -> Option<Transform> {
        self.rules
            .iter()
            .find(|rule| rule.permissions.contains(permission) && rule.container.holds(container))
            .map(|rule| rule.transform)
            .or_else(|| {
                self.permissions
                    .contains(permission)
                    .then(|| implicit_transform(permission))
            })
    }

    /// The containers in which, and below which, `permission` is held, in descending order.
    ///
    /// No one of them lies in another, so that nothing is met twice.
    pub fn reach(&self, permission: Permission) -> Vec<Container> {
        if self.permissions.contains(permission) {
            return vec![Container::root()];
        }
        let mut reach: Vec<Container> = Vec::new();
        for rule in &self.rules {
            let container = &rule.container;
            if !rule.permissions.contains(permission)
                || reach.iter().any(|known| known.holds(container))
            {
                continue;
            }
            reach.retain(|known| !container.holds(known));
            reach.push(container.clone());
        }
        reach.sort_by(|a, b| b.cmp(a));
        reach
    }

    /// Whether `permission` is held anywhere at all.
    pub fn mention(&self, permission: Permission) -> bool {
        self.permissions.contains(permission)
            || self
                .rules
                .iter()
                .any(|rule| rule.permissions.contains(permission))
    }
}

impl AccessRule {
    fn check(&self, kind: ApplicationKind) -> Result<(), (&'static str, String)> {
        if self.priority == 0 {
            return Err(("priority", "must be 1 or more".into()));
        }
        if self.permissions.is_empty() || self.permissions.iter().count() > RULE_PERMISSIONS_MAX {
            return Err((
                "permissions",
                format!("must hold 1 to {RULE_PERMISSIONS_MAX} entries"),
            ));
        }
        for permission in self.permissions.iter() {
            if !permission.is_scoped() {
                return Err((
                    "permissions",
                    format!("must not hold {permission}: it has no scope"),
                ));
            }
            if !permission.fits(kind) {
                let rule = format!("must not hold {permission} for a {kind} application");
                return Err(("permissions", rule));
            }
        }
        Ok(())
    }
}

/// Plain permissions never reveal, except to proxies and reactors, which pass data on.
fn implicit_transform(permission: Permission) -> Transform {
    match permission {
        Permission::TokenUse | Permission::ProxyInvoke | Permission::ReactorInvoke => {
            Transform::Reveal
        }
        Permission::TokenDelete => Transform::Redact,
        _ => Transform::Mask,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Permission::{TokenCreate, TokenDelete, TokenRead, TokenUse};

    fn rule(
        priority: u32,
        container: &str,
        transform: Transform,
        permissions: &[Permission],
    ) -> AccessRule {
        AccessRule {
            description: "a rule".into(),
            priority,
            container: Container::known(container),
            transform,
            permissions: permissions.iter().copied().collect(),
        }
    }

    #[test]
    fn the_documented_example_decides_as_documented() {
        let grants = Grants {
            permissions: PermissionSet::default(),
            rules: vec![
                rule(4, "/users/", Transform::Mask, &[TokenRead]),
                rule(1, "/", Transform::Mask, &[TokenCreate]),
                rule(3, "/users/employees/", Transform::Reveal, &[TokenRead]),
                rule(2, "/users/government/", Transform::Redact, &[TokenRead]),
            ],
        };
        let grants = grants.checked(ApplicationKind::Private).unwrap();

        let cases = [
            (TokenRead, "/users/government/", Some(Transform::Redact)),
            (TokenRead, "/users/employees/hq/", Some(Transform::Reveal)),
            (TokenRead, "/users/", Some(Transform::Mask)),
            (TokenRead, "/bounty-hunters/", None),
            (TokenCreate, "/bounty-hunters/", Some(Transform::Mask)),
            (TokenDelete, "/users/", None),
        ];
        for (permission, container, expected) in cases {
            let decided = grants.decide(permission, &Container::known(container));
            assert_eq!(decided, expected, "{permission} {container}");
        }
    }

    #[test]
    fn plain_permissions_hold_everywhere_after_the_rules() {
        let grants = Grants {
            permissions: [TokenRead, TokenUse].into_iter().collect(),
            rules: vec![rule(1, "/pci/", Transform::Redact, &[TokenRead])],
        };

        let cases = [
            (TokenRead, "/pci/high/", Some(Transform::Redact)),
            (TokenRead, "/general/", Some(Transform::Mask)),
            (TokenUse, "/pci/high/", Some(Transform::Reveal)),
            (TokenCreate, "/pci/high/", None),
        ];
        for (permission, container, expected) in cases {
            let decided = grants.decide(permission, &Container::known(container));
            assert_eq!(decided, expected, "{permission} {container}");
        }
    }

    #[test]
    fn a_permission_reaches_each_container_once() {
        let ruled = |containers: &[&str]| Grants {
            permissions: [TokenUse].into_iter().collect(),
            rules: containers
                .iter()
                .zip(1..)
                .map(|(container, priority)| {
                    rule(priority, container, Transform::Mask, &[TokenRead])
                })
                .collect(),
        };
        let cases: [(&[&str], &[&str]); 5] = [
            (&[], &[]),
            (&["/a/", "/b/"], &["/b/", "/a/"]),
            (&["/a/b/", "/a/", "/a/c/"], &["/a/"]),
            (&["/a/", "/", "/b/"], &["/"]),
            (&["/a/", "/ab/", "/a/b/"], &["/ab/", "/a/"]),
        ];
        for (containers, expected) in cases {
            let reach = ruled(containers).reach(TokenRead);
            let paths: Vec<&str> = reach.iter().map(Container::as_str).collect();
            assert_eq!(paths, expected, "{containers:?}");
        }
        assert_eq!(ruled(&["/a/"]).reach(TokenUse), [Container::root()]);
    }

    #[test]
    fn grants_that_a_kind_may_not_have_are_refused() {
        use ApplicationKind::{Management, Private, Public};
        let plain = |permissions: &[Permission]| Grants {
            permissions: permissions.iter().copied().collect(),
            rules: vec![],
        };
        let ruled = |rules: Vec<AccessRule>| Grants {
            rules,
            ..Grants::default()
        };

        let cases = [
            (Public, plain(&[TokenCreate]), true),
            (Public, plain(&[TokenRead]), false),
            (Private, plain(&[TokenRead]), true),
            (Private, plain(&[Permission::ApplicationRead]), false),
            (Private, Grants::default(), false),
            (Management, plain(&[Permission::ApplicationRead]), true),
            (
                Management,
                ruled(vec![rule(1, "/", Transform::Mask, &[TokenRead])]),
                false,
            ),
            (
                Public,
                ruled(vec![rule(1, "/", Transform::Reveal, &[TokenRead])]),
                false,
            ),
            (
                Private,
                ruled(vec![rule(0, "/", Transform::Mask, &[TokenRead])]),
                false,
            ),
            (
                Private,
                ruled(vec![rule(1, "/", Transform::Mask, &[])]),
                false,
            ),
            (
                Private,
                ruled(vec![rule(1, "/", Transform::Mask, &[Permission::LogRead])]),
                false,
            ),
            (
                Private,
                ruled(vec![
                    rule(1, "/", Transform::Mask, &[TokenRead]),
                    rule(1, "/a/", Transform::Mask, &[TokenRead]),
                ]),
                false,
            ),
        ];
        for (kind, grants, expected) in cases {
            assert_eq!(
                grants.clone().checked(kind).is_ok(),
                expected,
                "{kind} {grants:?}"
            );
        }
    }
}
