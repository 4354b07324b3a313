//! The hardening switch: nobody grants what they do not hold.

use crate::access::{
    AccessRule, Container, Grants, Permission, Scope, Transform, implicit_transform,
};
use crate::api::Broken;

/// Refuses grants that reach further, or show more, than those of whoever gives them.
pub(super) fn check_subset(grants: Grants, own: &Grants) -> Result<Grants, Vec<Broken>> {
    let mut broken = Vec::new();
    for permission in grants.permissions.iter() {
        let shown = implicit_transform(permission);
        if !holds(own, permission, &Container::root(), shown) {
            broken.push(Broken::new("permissions", refusal(permission)));
        }
    }
    for (index, rule) in grants.rules.iter().enumerate() {
        for permission in rule.permissions.iter() {
            if !holds(own, permission, &rule.scope.reach(), rule.transform) {
                let path = format!("rules[{index}].permissions");
                broken.push(Broken::new(path, refusal(permission)));
            }
        }
    }
    match broken.is_empty() {
        true => Ok(grants),
        false => Err(broken),
    }
}

fn refusal(permission: Permission) -> String {
    format!("must not hold {permission} there: the application that grants it does not")
}

/// Whether a permission is held in a container and everywhere below it, and shows at least as much.
///
/// Rules are asked in order, as they are when they decide. One about something below the container
/// may show less there, so it has to show enough, too.
fn holds(own: &Grants, permission: Permission, container: &Container, shown: Transform) -> bool {
    let about = |rule: &&AccessRule| rule.permissions.contains(permission);
    for rule in own.rules.iter().filter(about) {
        let Scope::Container(of_rule) = &rule.scope else {
            return false;
        };
        if of_rule.holds(container) {
            return rank(shown) <= rank(rule.transform);
        }
        if container.holds(of_rule) && rank(rule.transform) < rank(shown) {
            return false;
        }
    }
    own.permissions.contains(permission) && rank(shown) <= rank(implicit_transform(permission))
}

/// How much a transform shows.
fn rank(transform: Transform) -> u8 {
    match transform {
        Transform::Redact => 0,
        Transform::Mask => 1,
        Transform::Reveal => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Permission::{TokenCreate, TokenRead, TokenUse};

    fn grants(permissions: &[Permission], rules: &[(&str, Transform, &[Permission])]) -> Grants {
        let rule = |(place, priority): (&(&str, Transform, &[Permission]), u32)| AccessRule {
            description: "a rule".to_owned(),
            priority,
            scope: Scope::Container(Container::known(place.0)),
            transform: place.1,
            permissions: place.2.iter().copied().collect(),
        };
        Grants {
            permissions: permissions.iter().copied().collect(),
            rules: rules.iter().zip(1..).map(rule).collect(),
        }
    }

    #[test]
    fn only_what_is_held_can_be_granted() {
        use Transform::{Mask, Redact, Reveal};
        let read: &[Permission] = &[TokenRead];
        let cases = [
            (grants(read, &[]), grants(read, &[]), true),
            (grants(read, &[]), grants(&[TokenCreate], &[]), false),
            (grants(read, &[("/", Mask, read)]), grants(read, &[]), true),
            (grants(&[], &[("/a/", Mask, read)]), grants(read, &[]), true),
            (
                grants(&[], &[("/a/", Reveal, read)]),
                grants(read, &[]),
                false,
            ),
            (
                grants(&[], &[("/a/", Reveal, read)]),
                grants(&[], &[("/", Reveal, read)]),
                true,
            ),
            (
                grants(&[], &[("/", Mask, read)]),
                grants(&[], &[("/a/", Reveal, read)]),
                false,
            ),
            (
                grants(&[], &[("/a/", Reveal, read)]),
                grants(&[], &[("/a/b/", Mask, read), ("/", Reveal, read)]),
                false,
            ),
            (
                grants(&[], &[("/a/", Mask, read)]),
                grants(&[], &[("/a/b/", Mask, read), ("/", Reveal, read)]),
                true,
            ),
            (
                grants(&[], &[("/a/", Redact, read)]),
                grants(&[], &[("/a/", Mask, &[TokenUse])]),
                false,
            ),
            (grants(&[TokenUse], &[]), grants(&[TokenUse], &[]), true),
        ];
        for (asked, own, expected) in cases {
            let checked = check_subset(asked.clone(), &own);
            assert_eq!(checked.is_ok(), expected, "{asked:?} of {own:?}");
        }
    }
}
