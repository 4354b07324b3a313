//! Grants as they are asked for: names and texts, checked all together.

use std::collections::HashSet;

use super::{
    AccessRule, ApplicationKind, Attribute, Condition, Container, Grants, Operator, Permission,
    PermissionSet, Scope, Transform,
};
use crate::api::Broken;
use crate::card_numbers::{NO_CARD_NUMBER, holds_card_number};

const PERMISSIONS_MAX: usize = 50;
const CONDITIONS_MAX: usize = 10;
const VALUE_CHARS_MAX: usize = 400;
const RULES_MAX: usize = 100;
const DESCRIPTION_CHARS_MAX: usize = 1_000;
const PRIORITY_MAX: u32 = i32::MAX.cast_unsigned();

/// Grants that someone asks for.
#[derive(Clone, Debug, Default)]
pub struct NewGrants {
    pub permissions: Vec<String>,
    pub rules: Vec<NewRule>,
}

/// An access rule that someone asks for.
#[derive(Clone, Debug, Default)]
pub struct NewRule {
    pub description: Option<String>,
    pub priority: Option<i64>,
    pub container: Option<String>,
    /// Instead of a container, for sessions only.
    pub conditions: Option<Vec<NewCondition>>,
    pub transform: Option<String>,
    pub permissions: Vec<String>,
}

impl NewGrants {
    /// Whether a permission is one of those by classification, which there once were: `token:pci:read`.
    pub fn are_by_classification(&self) -> bool {
        let ruled = self.rules.iter().flat_map(|rule| &rule.permissions);
        let mut names = self.permissions.iter().chain(ruled);
        names.any(|name| {
            let mut parts = name.split(':').take(2);
            let classifications = ["general", "bank", "pci", "pii"];
            parts.next() == Some("token") && parts.any(|it| classifications.contains(&it))
        })
    }
}

/// A condition that someone asks for.
#[derive(Clone, Debug, Default)]
pub struct NewCondition {
    pub attribute: Option<String>,
    pub operator: Option<String>,
    pub value: Option<String>,
}

/// Who is to hold grants, as far as that is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Receiver {
    Application(Option<ApplicationKind>),
    Session,
}

impl Receiver {
    /// Why a permission is nothing for this one.
    fn refuses(self, permission: Permission) -> Option<String> {
        match self {
            Self::Application(Some(kind)) if !permission.fits(kind) => Some(format!(
                "must not hold {permission} for a {kind} application"
            )),
            Self::Session if !permission.fits_session() => {
                Some(format!("must not hold {permission} for a session"))
            }
            Self::Application(_) | Self::Session => None,
        }
    }
}

impl NewGrants {
    /// Checks grants for an application of this kind, and puts rules into order of priority.
    ///
    /// Without a kind, because it is wrong itself, everything is checked that does not depend on it.
    pub fn checked(self, kind: Option<ApplicationKind>) -> Result<Grants, Vec<Broken>> {
        self.checked_for(Receiver::Application(kind))
    }

    /// Checks grants for a session, which may have conditions and every permission about tokens.
    pub fn checked_for_session(self) -> Result<Grants, Vec<Broken>> {
        self.checked_for(Receiver::Session)
    }

    fn checked_for(self, receiver: Receiver) -> Result<Grants, Vec<Broken>> {
        let mut broken = Vec::new();
        if self.permissions.is_empty() && self.rules.is_empty() {
            let rule = "must not be empty when there are no rules";
            broken.push(Broken::new("permissions", rule));
        }
        let permissions = permission_set(&self.permissions, receiver, &mut broken);
        let management = Receiver::Application(Some(ApplicationKind::Management));
        let is_management = receiver == management;
        if is_management && !self.rules.is_empty() {
            let rule = "must be empty for a management application";
            broken.push(Broken::new("rules", rule));
        }
        if self.rules.len() > RULES_MAX {
            let rule = format!("must have at most {RULES_MAX} entries");
            broken.push(Broken::new("rules", rule));
        }
        // A management application is told once that it has no rules, not again for each.
        let receiver = match is_management {
            true => Receiver::Application(None),
            false => receiver,
        };
        let rules = checked_rules(&self.rules, receiver, &mut broken);
        if broken.is_empty() {
            Ok(Grants { permissions, rules })
        } else {
            Err(broken)
        }
    }
}

fn checked_rules(
    rules: &[NewRule],
    receiver: Receiver,
    broken: &mut Vec<Broken>,
) -> Vec<AccessRule> {
    let mut priorities = HashSet::new();
    let mut checked = Vec::with_capacity(rules.len());
    for (index, rule) in rules.iter().enumerate() {
        let mut found = Vec::new();
        checked.extend(rule.checked(receiver, &mut found));
        if rule.priority.is_some_and(|given| !priorities.insert(given)) {
            let rule = "must differ from the priorities of the other rules";
            found.push(Broken::new("priority", rule));
        }
        let place = format!("rules[{index}]");
        broken.extend(found.into_iter().map(|found| found.within(&place)));
    }
    checked.sort_by_key(|rule| rule.priority);
    checked
}

impl NewRule {
    fn checked(&self, receiver: Receiver, broken: &mut Vec<Broken>) -> Option<AccessRule> {
        let description = keep(
            "description",
            description(self.description.as_deref()),
            broken,
        );
        let priority = keep("priority", priority(self.priority), broken);
        let scope = self.scope(receiver, broken);
        let transform = keep("transform", transform(self.transform.as_deref()), broken);
        if self.permissions.is_empty() {
            broken.push(Broken::new("permissions", "must not be empty"));
        }
        let permissions = permission_set(&self.permissions, receiver, broken);
        if let Some(unscoped) = permissions.iter().find(|held| !held.is_scoped()) {
            let rule = format!("must not hold {unscoped}: it is not about containers");
            broken.push(Broken::new("permissions", rule));
        }
        Some(AccessRule {
            description: description?,
            priority: priority?,
            scope: scope?,
            transform: transform?,
            permissions,
        })
    }

    /// A container, or conditions where they are allowed; never both.
    fn scope(&self, receiver: Receiver, broken: &mut Vec<Broken>) -> Option<Scope> {
        let Some(conditions) = &self.conditions else {
            let container = container(self.container.as_deref());
            return keep("container", container, broken).map(Scope::Container);
        };
        let mut refuse = |path: &str, rule: &str| broken.push(Broken::new(path, rule));
        if receiver != Receiver::Session {
            refuse(
                "conditions",
                "must not be given: they are for sessions only",
            );
            return None;
        }
        if self.container.is_some() {
            refuse("container", "must not be given together with conditions");
            return None;
        }
        if !(1..=CONDITIONS_MAX).contains(&conditions.len()) {
            refuse("conditions", "must have 1 to 10 entries");
            return None;
        }
        let mut checked = Vec::with_capacity(conditions.len());
        for (index, condition) in conditions.iter().enumerate() {
            let mut found = Vec::new();
            checked.extend(condition.checked(&mut found));
            let place = format!("conditions[{index}]");
            broken.extend(found.into_iter().map(|found| found.within(&place)));
        }
        (checked.len() == conditions.len()).then_some(Scope::Conditions(checked))
    }
}

impl NewCondition {
    fn checked(&self, broken: &mut Vec<Broken>) -> Option<Condition> {
        let attribute = match self.attribute.as_deref() {
            Some("id") => Ok(Attribute::Id),
            Some("container") => Ok(Attribute::Container),
            _ => Err("must be `id` or `container`".to_owned()),
        };
        let operator = match self.operator.as_deref() {
            Some("equals") => Ok(Operator::Equals),
            Some("starts_with") => Ok(Operator::StartsWith),
            _ => Err("must be `equals` or `starts_with`".to_owned()),
        };
        let value = match self.value.as_deref() {
            Some(value) if (1..=VALUE_CHARS_MAX).contains(&value.chars().count()) => {
                Ok(value.to_owned())
            }
            _ => Err(format!("must have 1 to {VALUE_CHARS_MAX} characters")),
        };
        let attribute = keep("attribute", attribute, broken);
        let operator = keep("operator", operator, broken);
        let value = keep("value", value, broken)?;
        let attribute = attribute?;
        Some(Condition {
            attribute,
            operator: operator?,
            value: match attribute {
                Attribute::Container => value.to_ascii_lowercase(),
                Attribute::Id => value,
            },
        })
    }
}

fn keep<T>(name: &str, result: Result<T, String>, broken: &mut Vec<Broken>) -> Option<T> {
    let refuse = |rule: String| broken.push(Broken::new(name, rule));
    result.map_err(refuse).ok()
}

fn permission_set(names: &[String], receiver: Receiver, broken: &mut Vec<Broken>) -> PermissionSet {
    let mut refuse = |rule: String| broken.push(Broken::new("permissions", rule));
    if names.len() > PERMISSIONS_MAX {
        refuse(format!("must have at most {PERMISSIONS_MAX} entries"));
    }
    let known: PermissionSet = names
        .iter()
        .filter_map(|name| Permission::parse(name))
        .collect();
    if names.iter().any(|name| Permission::parse(name).is_none()) {
        refuse("must hold only permissions that GET /permissions lists".to_owned());
    }
    for rule in known.iter().filter_map(|held| receiver.refuses(held)) {
        refuse(rule);
    }
    known
}

fn description(given: Option<&str>) -> Result<String, String> {
    let text = given.ok_or("is required")?;
    if !(1..=DESCRIPTION_CHARS_MAX).contains(&text.chars().count()) {
        return Err(format!("must have 1 to {DESCRIPTION_CHARS_MAX} characters"));
    }
    if holds_card_number(text) {
        return Err(NO_CARD_NUMBER.to_owned());
    }
    Ok(text.to_owned())
}

fn priority(given: Option<i64>) -> Result<u32, String> {
    u32::try_from(given.ok_or("is required")?)
        .ok()
        .filter(|priority| (1..=PRIORITY_MAX).contains(priority))
        .ok_or_else(|| format!("must be a whole number from 1 to {PRIORITY_MAX}"))
}

fn container(given: Option<&str>) -> Result<Container, String> {
    let path = given.ok_or("is required")?;
    if holds_card_number(path) {
        return Err(NO_CARD_NUMBER.to_owned());
    }
    Container::parse(path).map_err(|rule| rule.to_string())
}

fn transform(given: Option<&str>) -> Result<Transform, String> {
    let name = given.ok_or("is required")?;
    Transform::parse(name).ok_or_else(|| "must be `redact`, `mask` or `reveal`".to_owned())
}

impl From<Grants> for NewGrants {
    fn from(grants: Grants) -> Self {
        Self {
            permissions: names(grants.permissions),
            rules: grants.rules.into_iter().map(NewRule::from).collect(),
        }
    }
}

impl From<AccessRule> for NewRule {
    fn from(rule: AccessRule) -> Self {
        Self {
            description: Some(rule.description),
            priority: Some(rule.priority.into()),
            container: match &rule.scope {
                Scope::Container(container) => Some(container.as_str().to_owned()),
                Scope::Conditions(_) => None,
            },
            conditions: None,
            transform: Some(rule.transform.name().to_owned()),
            permissions: names(rule.permissions),
        }
    }
}

fn names(permissions: PermissionSet) -> Vec<String> {
    let names = permissions.iter().map(|permission| permission.name());
    names.map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ApplicationKind::{Management, Private, Public};

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

    /// The attributes that are refused, each as often as it breaks a rule.
    fn refused(grants: NewGrants, kind: impl Into<Option<ApplicationKind>>) -> String {
        let broken = grants.checked(kind.into()).err().unwrap_or_default();
        let paths: Vec<&str> = broken.iter().map(|broken| broken.path.as_str()).collect();
        paths.join(" ")
    }

    #[test]
    fn grants_that_a_kind_may_not_have_are_refused() {
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
            assert_eq!(refused(grants.clone(), kind), expected, "{kind} {grants:?}");
        }
    }

    #[test]
    fn names_are_known_permissions() {
        for unknown in ["", "token", "token:pci:read", "Token:read", "token:read "] {
            assert_eq!(refused(plain(&[unknown]), Private), "permissions");
            let ruled = ruled(&[rule(1, &["token:read", unknown])]);
            assert_eq!(refused(ruled, Private), "rules[0].permissions");
        }
        assert_eq!(refused(plain(&["token:read"; 50]), Private), "");
        assert_eq!(refused(plain(&["token:read"; 51]), Private), "permissions");
        let many = ruled(&[rule(1, &["token:read"; 51])]);
        assert_eq!(refused(many, Private), "rules[0].permissions");
    }

    #[test]
    fn every_attribute_of_a_rule_is_checked() {
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
            assert_eq!(refused(grants.clone(), Private), expected, "{grants:?}");
        }
        assert_eq!(
            refused(
                changed(|rule| rule.description = Some("d".repeat(1_000))),
                Private
            ),
            ""
        );
        assert_eq!(
            refused(
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
    fn rules_are_put_into_order_and_never_share_a_priority() {
        let grants = ruled(&[
            rule(7, &["token:read"]),
            rule(1, &["token:create"]),
            rule(3, &["token:use"]),
        ]);
        let ordered = grants.checked(Some(Private)).unwrap().rules;
        let priorities: Vec<u32> = ordered.iter().map(|rule| rule.priority).collect();
        assert_eq!(priorities, [1, 3, 7]);
        assert_eq!(ordered[0].scope.reach().as_str(), "/pci/");

        let same = [rule(1, &["token:read"]), rule(1, &["token:use"])];
        assert_eq!(refused(ruled(&same), Private), "rules[1].priority");
        let rules: Vec<NewRule> = (1..=101).map(|n| rule(n, &["token:read"])).collect();
        assert_eq!(refused(ruled(&rules[..100]), Private), "");
        assert_eq!(refused(ruled(&rules), Private), "rules");
    }

    #[test]
    fn grants_that_are_held_can_be_asked_for_again() {
        let grants = NewGrants {
            permissions: owned(&["token:create"]),
            rules: vec![rule(2, &["token:read"]), rule(1, &["token:use"])],
        };
        let grants = grants.checked(Some(Private)).unwrap();

        let again = NewGrants::from(grants.clone()).checked(Some(Private));

        assert_eq!(again, Ok(grants));
    }
}
