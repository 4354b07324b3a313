//! Grants of an application: plain permissions, access rules, and how they are evaluated.

use cloakroom_platform::api::FieldError;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Container, Permission, PermissionSet, Resource, Scope};

/// How a token's data is transformed before it is returned.
///
/// Ordered by how much it reveals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
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

/// Grants permissions on the tokens in a scope, and the transform for their data.
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
    /// Parses the stored text.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Returns the transform for a token's data if `permission` is granted on it.
    ///
    /// The first rule that covers the token and lists the permission wins; rules that do not list it are skipped. Plain
    /// permissions are evaluated last and apply everywhere.
    pub fn decide(&self, permission: Permission, subject: Resource<'_>) -> Option<Transform> {
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

    /// The containers in and below which `permission` is granted, in descending order.
    ///
    /// They do not overlap, so a list contains each token once. A rule with conditions may cover only part of its
    /// container: [`Grants::decide`] decides about each token.
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

    /// Whether `permission` is granted on everything in its reach. Not so if a rule for it has conditions.
    pub fn cover_reach(&self, permission: Permission) -> bool {
        let is_exact = |rule: &AccessRule| {
            !rule.permissions.contains(permission) || matches!(rule.scope, Scope::Container(_))
        };
        self.permissions.contains(permission) || self.rules.iter().all(is_exact)
    }

    /// Whether `permission` is granted in any container.
    pub fn grant_anywhere(&self, permission: Permission) -> bool {
        self.permissions.contains(permission)
            || self
                .rules
                .iter()
                .any(|rule| rule.permissions.contains(permission))
    }
}

/// Plain permissions never reveal data, except to proxies and reactors, which forward it.
fn implicit_transform(permission: Permission) -> Transform {
    match permission {
        Permission::TokenUse | Permission::ProxyInvoke | Permission::ReactorInvoke => {
            Transform::Reveal
        }
        Permission::TokenDelete => Transform::Redact,
        _ => Transform::Mask,
    }
}

/// Rejects grants that reach further or reveal more than `own`, with one error for each.
///
/// Each rule is compared by itself. Exactly one rule decides about a token, so the order of priorities cannot make the
/// whole reveal more than its parts.
pub fn check_subset(grants: &Grants, own: &Grants) -> Result<(), Vec<FieldError>> {
    let mut broken = Vec::new();
    for permission in grants.permissions.iter() {
        let transform = implicit_transform(permission);
        if !holds(own, permission, &Container::root(), transform) {
            broken.push(FieldError::new("permissions", rejection(permission)));
        }
    }
    for (index, rule) in grants.rules.iter().enumerate() {
        for permission in rule.permissions.iter() {
            if !holds(own, permission, &rule.scope.reach(), rule.transform) {
                let path = format!("rules[{index}].permissions");
                broken.push(FieldError::new(path, rejection(permission)));
            }
        }
    }
    match broken.is_empty() {
        true => Ok(()),
        false => Err(broken),
    }
}

fn rejection(permission: Permission) -> String {
    format!(
        "must not hold {permission} there: the granting application does not hold it or sees less of the data"
    )
}

/// Whether `own` grants a permission in a container and everywhere below it, with a transform that reveals at least as
/// much as `transform`.
///
/// Rules are evaluated in order of priority. A rule for a container below this one decides there, so its transform must
/// reveal enough as well.
fn holds(
    own: &Grants,
    permission: Permission,
    container: &Container,
    transform: Transform,
) -> bool {
    let about = |rule: &&AccessRule| rule.permissions.contains(permission);
    for rule in own.rules.iter().filter(about) {
        let Scope::Container(of_rule) = &rule.scope else {
            return false;
        };
        if of_rule.holds(container) {
            return rank(transform) <= rank(rule.transform);
        }
        if container.holds(of_rule) && rank(rule.transform) < rank(transform) {
            return false;
        }
    }
    own.permissions.contains(permission) && rank(transform) <= rank(implicit_transform(permission))
}

/// How much a transform reveals.
fn rank(transform: Transform) -> u8 {
    match transform {
        Transform::Redact => 0,
        Transform::Mask => 1,
        Transform::Reveal => 2,
    }
}

#[cfg(test)]
mod tests;
