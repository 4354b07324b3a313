//! Tests of grants.

use Permission::{TokenCreate, TokenDelete, TokenRead, TokenUse};

use super::super::{ApplicationKind, NewGrants};
use super::*;

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

fn transform_of(grants: &Grants, permission: Permission, container: &str) -> Option<Transform> {
    let container = &Container::known(container);
    let subject = Resource {
        container,
        id: None,
    };
    grants.decide(permission, subject)
}

#[test]
fn the_documented_example_is_evaluated_as_documented() {
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
    let grants = NewGrants::from(grants).validate(private).unwrap();

    let cases = [
        (TokenRead, "/users/government/", Some(Transform::Redact)),
        (TokenRead, "/users/employees/hq/", Some(Transform::Reveal)),
        (TokenRead, "/users/", Some(Transform::Mask)),
        (TokenRead, "/bounty-hunters/", None),
        (TokenCreate, "/bounty-hunters/", Some(Transform::Mask)),
        (TokenDelete, "/users/", None),
    ];
    for (permission, container, expected) in cases {
        let transform = transform_of(&grants, permission, container);
        assert_eq!(transform, expected, "{permission} {container}");
    }
}

#[test]
fn plain_permissions_apply_everywhere_after_the_rules() {
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
        let transform = transform_of(&grants, permission, container);
        assert_eq!(transform, expected, "{permission} {container}");
    }
}

#[test]
fn a_permission_reaches_each_container_once() {
    let ruled = |containers: &[&str]| Grants {
        permissions: [TokenUse].into_iter().collect(),
        rules: containers
            .iter()
            .zip(1..)
            .map(|(container, priority)| rule(priority, container, Transform::Mask, &[TokenRead]))
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

fn grants(permissions: &[Permission], rules: &[(&str, Transform, &[Permission])]) -> Grants {
    let rule = |(spec, priority): (&(&str, Transform, &[Permission]), u32)| AccessRule {
        description: "a rule".to_owned(),
        priority,
        scope: Scope::Container(Container::known(spec.0)),
        transform: spec.1,
        permissions: spec.2.iter().copied().collect(),
    };
    Grants {
        permissions: permissions.iter().copied().collect(),
        rules: rules.iter().zip(1..).map(rule).collect(),
    }
}

#[test]
fn grants_cannot_exceed_the_granting_application() {
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
    for (requested, own, expected) in cases {
        let validated = check_subset(&requested, &own);
        assert_eq!(validated.is_ok(), expected, "{requested:?} of {own:?}");
    }
}
