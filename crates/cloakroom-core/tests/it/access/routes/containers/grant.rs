//! Grants of a scoped permission.

use cloakroom::access::{ApplicationKind, Grants, Permission, Transform};
use cloakroom_testkit::{grants, held_by, rule};
use serde_json::{Value, json};

use super::{MASKED, SECRET};

/// How an application holds a scoped permission.
#[derive(Clone, Copy, Debug)]
pub(super) enum Grant {
    Plain,
    /// By a rule for `/a/`, alone or with all other scoped permissions, which apply everywhere and reveal.
    Ruled(Transform, OtherGrants),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum OtherGrants {
    None,
    All,
}

impl Grant {
    pub(super) fn all() -> Vec<Self> {
        let mut all = vec![Self::Plain];
        for transform in [Transform::Redact, Transform::Mask, Transform::Reveal] {
            all.push(Self::Ruled(transform, OtherGrants::None));
            all.push(Self::Ruled(transform, OtherGrants::All));
        }
        all
    }

    pub(super) fn of(self, held: Permission, kind: ApplicationKind) -> Grants {
        let Self::Ruled(transform, other_grants) = self else {
            return grants(&[held]);
        };
        let others = held_by(kind).filter(|other| other.is_scoped() && *other != held);
        let others: Vec<Permission> = others.collect();
        let mut rules = vec![rule(2, "/a/", transform, &[held])];
        if let OtherGrants::All = other_grants {
            rules.push(rule(1, "/", Transform::Reveal, &others));
        }
        Grants {
            rules,
            ..grants(&[])
        }
    }

    pub(super) fn holds_in(self, container: &str) -> bool {
        match self {
            Self::Plain => true,
            Self::Ruled(..) => container.starts_with("/a/"),
        }
    }

    /// Whether some permission of the application reveals the data.
    pub(super) fn reveals(self, kind: ApplicationKind) -> bool {
        match self {
            Self::Plain => false,
            Self::Ruled(Transform::Reveal, _) => true,
            // Public applications cannot hold `token:read`.
            Self::Ruled(_, others) => {
                matches!(others, OtherGrants::All) && kind == ApplicationKind::Private
            }
        }
    }

    /// The data of a token as transformed by this grant.
    pub(super) fn shown(self) -> Option<Value> {
        match self {
            Self::Ruled(Transform::Redact, _) => None,
            Self::Plain | Self::Ruled(Transform::Mask, _) => Some(json!(MASKED)),
            Self::Ruled(Transform::Reveal, _) => Some(json!(SECRET)),
        }
    }
}
