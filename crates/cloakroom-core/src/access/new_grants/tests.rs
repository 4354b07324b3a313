//! Tests of new grants.

use ApplicationKind::{Management, Private, Public};

use super::*;

fn plain(permissions: &[&str]) -> NewGrants {
    NewGrants {
        permissions: owned(permissions),
        rules: Vec::new(),
    }
}

fn ruled(rules: &[NewRule]) -> NewGrants {
    NewGrants {
        rules: rules.to_vec(),
        ..NewGrants::default()
    }
}

fn rule(priority: i64, permissions: &[&str]) -> NewRule {
    NewRule {
        description: Some("A rule".to_owned()),
        priority: Some(priority),
        container: Some("/PCI/".to_owned()),
        conditions: None,
        transform: Some("mask".to_owned()),
        permissions: owned(permissions),
    }
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(|name| (*name).to_owned()).collect()
}

/// Paths of the validation errors, one for each error.
fn rejected(grants: NewGrants, kind: impl Into<Option<ApplicationKind>>) -> String {
    let broken = grants.validate(kind.into()).err().unwrap_or_default();
    let paths: Vec<&str> = broken.iter().map(|broken| broken.path.as_str()).collect();
    paths.join(" ")
}

#[test]
fn permissions_that_an_application_type_must_not_hold_are_rejected() {
    let cases = [
        (plain(&["token:create"]), Public, ""),
        (plain(&["token:read"]), Public, "permissions"),
        (
            plain(&["token:read", "token:use"]),
            Public,
            "permissions permissions",
        ),
        (plain(&["token:read"]), Private, ""),
        (plain(&["application:read"]), Private, "permissions"),
        (plain(&["application:read"]), Management, ""),
        (plain(&["webhooks:read"]), Management, ""),
        (plain(&["token:read"]), Management, "permissions"),
        (plain(&[]), Private, "permissions"),
        (ruled(&[rule(1, &["token:read"])]), Private, ""),
        (
            ruled(&[rule(1, &["proxy:invoke", "reactor:invoke"])]),
            Private,
            "",
        ),
        (
            ruled(&[rule(1, &["token:read"])]),
            Public,
            "rules[0].permissions",
        ),
        (ruled(&[rule(1, &["token:read"])]), Management, "rules"),
        (
            ruled(&[rule(1, &["documents:read"])]),
            Private,
            "rules[0].permissions",
        ),
    ];
    for (grants, kind, expected) in cases {
        assert_eq!(
            rejected(grants.clone(), kind),
            expected,
            "{kind} {grants:?}"
        );
    }
}

#[test]
fn unknown_permissions_are_rejected() {
    for unknown in ["", "token", "token:pci:read", "Token:read", "token:read "] {
        assert_eq!(rejected(plain(&[unknown]), Private), "permissions");
        let ruled = ruled(&[rule(1, &["token:read", unknown])]);
        assert_eq!(rejected(ruled, Private), "rules[0].permissions");
    }
    assert_eq!(rejected(plain(&["token:read"; 50]), Private), "");
    assert_eq!(rejected(plain(&["token:read"; 51]), Private), "permissions");
    let many = ruled(&[rule(1, &["token:read"; 51])]);
    assert_eq!(rejected(many, Private), "rules[0].permissions");
}

#[test]
fn every_attribute_of_a_rule_is_validated() {
    let changed = |change: fn(&mut NewRule)| {
        let mut rule = rule(1, &["token:read"]);
        change(&mut rule);
        ruled(&[rule])
    };
    let text = |text: &str| Some(text.to_owned());
    let cases = [
        (changed(|rule| rule.description = None), "description"),
        (
            changed(|rule| rule.description = Some(String::new())),
            "description",
        ),
        (
            changed(|rule| rule.description = Some("d".repeat(1_001))),
            "description",
        ),
        (
            changed(|rule| rule.description = Some("4242 4242 4242 4242".to_owned())),
            "description",
        ),
        (changed(|rule| rule.priority = None), "priority"),
        (changed(|rule| rule.priority = Some(0)), "priority"),
        (changed(|rule| rule.priority = Some(-1)), "priority"),
        (changed(|rule| rule.priority = Some(1 << 31)), "priority"),
        (changed(|rule| rule.container = None), "container"),
        (
            changed(|rule| rule.container = Some("pci".to_owned())),
            "container",
        ),
        (
            changed(|rule| rule.container = Some("/4242424242424242/".to_owned())),
            "container",
        ),
        (changed(|rule| rule.transform = None), "transform"),
        (
            changed(|rule| rule.transform = Some("show".to_owned())),
            "transform",
        ),
        (changed(|rule| rule.permissions.clear()), "permissions"),
    ];
    for (grants, expected) in cases {
        let expected = format!("rules[0].{expected}");
        assert_eq!(rejected(grants.clone(), Private), expected, "{grants:?}");
    }
    assert_eq!(
        rejected(
            changed(|rule| rule.description = Some("d".repeat(1_000))),
            Private
        ),
        ""
    );
    assert_eq!(
        rejected(
            NewGrants {
                permissions: owned(&["nothing"]),
                rules: vec![
                    NewRule::default(),
                    NewRule {
                        transform: text("show"),
                        ..rule(1, &["log:read"])
                    }
                ],
            },
            None
        ),
        "permissions rules[0].description rules[0].priority rules[0].container \
         rules[0].transform rules[0].permissions rules[1].transform rules[1].permissions"
    );
}

#[test]
fn rules_are_sorted_and_have_distinct_priorities() {
    let grants = ruled(&[
        rule(7, &["token:read"]),
        rule(1, &["token:create"]),
        rule(3, &["token:use"]),
    ]);
    let ordered = grants.validate(Some(Private)).unwrap().rules;
    let priorities: Vec<u32> = ordered.iter().map(|rule| rule.priority).collect();
    assert_eq!(priorities, [1, 3, 7]);
    assert_eq!(ordered[0].scope.reach().as_str(), "/pci/");

    let same = [rule(1, &["token:read"]), rule(1, &["token:use"])];
    assert_eq!(rejected(ruled(&same), Private), "rules[1].priority");
    let rules: Vec<NewRule> = (1..=101).map(|n| rule(n, &["token:read"])).collect();
    assert_eq!(rejected(ruled(&rules[..100]), Private), "");
    assert_eq!(rejected(ruled(&rules), Private), "rules");
}

#[test]
fn validated_grants_can_be_requested_again() {
    let grants = NewGrants {
        permissions: owned(&["token:create"]),
        rules: vec![rule(2, &["token:read"]), rule(1, &["token:use"])],
    };
    let grants = grants.validate(Some(Private)).unwrap();

    let again = NewGrants::from(grants.clone()).validate(Some(Private));

    assert_eq!(again, Ok(grants));
}
