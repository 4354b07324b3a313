//! A model of what callers may see and change, independent of and simpler than the implementation.

use cloakroom::access::{ApplicationKind, Grants, Permission, Transform};
use cloakroom_testkit::{SeededRng, grants, rule};

use super::world::{Plant, Planted};

/// Containers used in rules and calls.
pub(super) const CONTAINERS: [&str; 6] = ["/", "/pci/", "/pci/high/", "/vault/", "/vault/a/", OWN];

/// A container without planted values, which rules may reveal.
pub(super) const OWN: &str = "/mine/";

/// Containers of planted values, and default containers of converted intents.
const PLANTED_IN: [&str; 5] = [
    "/pci/",
    "/pci/high/",
    "/vault/",
    "/vault/a/",
    "/general/high/",
];

const USE: [Permission; 2] = [Permission::TokenUse, Permission::ProxyInvoke];

const TOKEN_PERMISSIONS: [Permission; 7] = [
    Permission::TokenCreate,
    Permission::TokenUpdate,
    Permission::TokenRead,
    Permission::TokenSearch,
    Permission::TokenDelete,
    Permission::TokenUse,
    Permission::ProxyInvoke,
];

/// An application: a kind, and plain permissions or rules, in order of priority.
#[derive(Clone, Debug)]
pub(super) struct Spec {
    pub(super) kind: ApplicationKind,
    plain: Vec<Permission>,
    rules: Vec<(&'static str, Transform, Vec<Permission>)>,
    /// The rule of a session that the application tries to authorize.
    pub(super) session: (&'static str, Transform, Permission),
}

impl Spec {
    /// A random application that does not reveal containers of planted values.
    pub(super) fn random(chance: &mut SeededRng) -> Self {
        loop {
            let spec = Self::any(chance);
            if !PLANTED_IN.iter().any(|container| spec.reveals(container)) {
                return spec;
            }
        }
    }

    fn any(chance: &mut SeededRng) -> Self {
        let is_public = chance.one_in(3);
        let kind = match is_public {
            true => ApplicationKind::Public,
            false => ApplicationKind::Private,
        };
        let some = |chance: &mut SeededRng, out_of: &[Permission]| -> Vec<Permission> {
            let fits = out_of.iter().filter(|permission| permission.fits(kind));
            let chosen = fits.filter(|_| !chance.one_in(3));
            chosen.copied().collect()
        };
        let intents = [
            Permission::TokenIntentCreate,
            Permission::TokenIntentRead,
            Permission::TokenIntentDelete,
        ];
        let mut plain = some(chance, &intents);
        let mut rules = Vec::new();
        if chance.one_in(3) {
            plain.extend(some(chance, &TOKEN_PERMISSIONS));
        } else {
            for _ in 0..=chance.below(3) {
                let permissions = some(chance, &TOKEN_PERMISSIONS);
                // Weighted toward less access, because callers that may see the value are not tested.
                let transforms = [
                    Transform::Redact,
                    Transform::Redact,
                    Transform::Mask,
                    Transform::Mask,
                    Transform::Reveal,
                ];
                if !permissions.is_empty() {
                    let container = *chance.pick(&CONTAINERS);
                    rules.push((container, *chance.pick(&transforms), permissions));
                }
            }
            if !is_public && !chance.one_in(3) {
                let container = *chance.pick(&["/", "/", "/pci/", "/pci/high/", "/vault/"]);
                let name = *chance.pick(&USE);
                let at = chance.below(rules.len() + 1);
                rules.insert(at, (container, Transform::Reveal, vec![name]));
            }
            // The caller's own container, into which it could try to move hidden data.
            if !is_public && chance.one_in(3) {
                rules.push((OWN, Transform::Reveal, TOKEN_PERMISSIONS.to_vec()));
            }
        }
        if plain.is_empty() && rules.is_empty() {
            plain.push(Permission::TokenCreate);
        }
        let transform = *chance.pick(&[Transform::Mask, Transform::Reveal]);
        let session = (*chance.pick(&CONTAINERS), transform, *chance.pick(&USE));
        Self {
            kind,
            plain,
            rules,
            session,
        }
    }

    pub(super) fn grants(&self) -> Grants {
        let rules = self.rules.iter().zip(1..);
        let rules = rules.map(|((container, transform, permissions), priority)| {
            rule(priority, container, *transform, permissions)
        });
        Grants {
            rules: rules.collect(),
            ..grants(&self.plain)
        }
    }

    /// The transform of a permission in a container, if it is held there.
    fn level(&self, permission: Permission, container: &str) -> Option<Transform> {
        let by_rule = self.rules.iter().find(|(covered, _, permissions)| {
            container.starts_with(covered) && permissions.contains(&permission)
        });
        match by_rule {
            Some((_, transform, _)) => Some(*transform),
            None => self.plain.contains(&permission).then_some(Transform::Mask),
        }
    }

    fn reveals(&self, container: &str) -> bool {
        use Permission::{TokenRead, TokenSearch, TokenUpdate};
        let shown = [TokenRead, TokenUpdate, TokenSearch];
        let mut shown = shown.into_iter();
        shown.any(|permission| self.level(permission, container) == Some(Transform::Reveal))
    }

    /// Whether this application may see the planted value. An intent counts as being in the default container of its
    /// type, and an encrypted value as being in any container.
    pub(super) fn may_see(&self, plant: &Plant) -> bool {
        match plant.planted {
            Planted::Token => self.reveals(plant.container),
            Planted::Intent if plant.kind == "token" => self.reveals("/general/high/"),
            Planted::Intent => self.reveals("/pci/high/"),
            Planted::Encrypted => self.reveals_somewhere(),
        }
    }

    pub(super) fn reveals_somewhere(&self) -> bool {
        CONTAINERS
            .into_iter()
            .any(|container| self.reveals(container))
    }

    /// Whether this application may send the planted value to a destination.
    pub(super) fn may_send(&self, plant: &Plant) -> bool {
        let sends = |container: &str| {
            let mut rules = self.rules.iter();
            let by_rule = rules.find(|(covered, _, permissions)| {
                container.starts_with(covered) && USE.iter().any(|it| permissions.contains(it))
            });
            match by_rule {
                Some((_, transform, _)) => *transform == Transform::Reveal,
                None => USE.iter().any(|it| self.plain.contains(it)),
            }
        };
        match plant.planted {
            Planted::Token => sends(plant.container),
            Planted::Intent | Planted::Encrypted if plant.kind == "token" => {
                sends("/general/high/")
            }
            Planted::Intent | Planted::Encrypted => sends("/pci/high/"),
        }
    }

    pub(super) fn is_public(&self) -> bool {
        self.kind == ApplicationKind::Public
    }

    /// Whether this application may update or delete tokens in a container.
    pub(super) fn may_change(&self, container: &str) -> bool {
        let changes = [Permission::TokenUpdate, Permission::TokenDelete];
        let mut changes = changes.into_iter();
        changes.any(|permission| self.level(permission, container).is_some())
    }
}
