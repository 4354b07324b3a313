//! What an application is allowed: plain permissions and access rules, and how they decide.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Container, Permission, PermissionSet, Scope, Subject};

/// What happens to a token's data before the caller sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum Transform {
    Redact,
    Mask,
    Reveal,
}

impl Transform {
    const ALL: [Self; 3] = [Self::Redact, Self::Mask, Self::Reveal];

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL
            .into_iter()
            .find(|transform| transform.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Redact => "redact",
            Self::Mask => "mask",
            Self::Reveal => "reveal",
        }
    }
}

/// Permissions about some tokens, with the transform that goes with them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AccessRule {
    pub description: String,
    pub priority: u32,
    #[serde(flatten)]
    pub scope: Scope,
    pub transform: Transform,
    pub permissions: PermissionSet,
}

/// Everything an application may do. Rules are in order of priority.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Grants {
    pub permissions: PermissionSet,
    pub rules: Vec<AccessRule>,
}

impl Grants {
    /// Reads what was kept.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub(crate) fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Decides whether `permission` is held on a token, and how data then appears.
    ///
    /// The first rule that covers the token and names the permission wins; a rule that does not
    /// name it never stops the search. After the rules, plain permissions hold everywhere.
    pub fn decide(&self, permission: Permission, subject: Subject<'_>) -> Option<Transform> {
        self.rules
            .iter()
            .find(|rule| rule.permissions.contains(permission) && rule.scope.covers(subject))
            .map(|rule| rule.transform)
            .or_else(|| {
                self.permissions
                    .contains(permission)
                    .then(|| implicit_transform(permission))
            })
    }

    /// The containers in which, and below which, `permission` is held, in descending order.
    ///
    /// No one of them lies in another, so that nothing is met twice. Where a rule has conditions, not
    /// everything in them is covered: [`Grants::decide`] has the last word on each token.
    pub fn reach(&self, permission: Permission) -> Vec<Container> {
        if self.permissions.contains(permission) {
            return vec![Container::root()];
        }
        let mut reach: Vec<Container> = Vec::new();
        for rule in &self.rules {
            let container = rule.scope.reach();
            if !rule.permissions.contains(permission)
                || reach.iter().any(|known| known.holds(&container))
            {
                continue;
            }
            reach.retain(|known| !container.holds(known));
            reach.push(container);
        }
        reach.sort_by(|a, b| b.cmp(a));
        reach
    }

    /// Whether `permission` is held on everything in its reach. Where rules have conditions, it is not.
    pub fn fill_reach(&self, permission: Permission) -> bool {
        let is_exact = |rule: &AccessRule| {
            !rule.permissions.contains(permission) || matches!(rule.scope, Scope::Container(_))
        };
        self.permissions.contains(permission) || self.rules.iter().all(is_exact)
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

/// Plain permissions never reveal, except to proxies and reactors, which pass data on.
pub(crate) fn implicit_transform(permission: Permission) -> Transform {
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
    use super::super::{ApplicationKind, NewGrants};
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
            scope: Scope::Container(Container::known(container)),
            transform,
            permissions: permissions.iter().copied().collect(),
        }
    }

    fn decided(grants: &Grants, permission: Permission, container: &str) -> Option<Transform> {
        let container = &Container::known(container);
        let subject = Subject {
            container,
            id: None,
        };
        grants.decide(permission, subject)
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
        let private = Some(ApplicationKind::Private);
        let grants = NewGrants::from(grants).checked(private).unwrap();

        let cases = [
            (TokenRead, "/users/government/", Some(Transform::Redact)),
            (TokenRead, "/users/employees/hq/", Some(Transform::Reveal)),
            (TokenRead, "/users/", Some(Transform::Mask)),
            (TokenRead, "/bounty-hunters/", None),
            (TokenCreate, "/bounty-hunters/", Some(Transform::Mask)),
            (TokenDelete, "/users/", None),
        ];
        for (permission, container, expected) in cases {
            let decided = decided(&grants, permission, container);
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
            let decided = decided(&grants, permission, container);
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
}
