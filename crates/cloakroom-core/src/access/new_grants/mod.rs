//! Validation of requested grants.

use std::collections::HashSet;

use cloakroom_platform::api::FieldError;
use cloakroom_platform::card_numbers::{NO_CARD_NUMBER, contains_card_number};

use super::{
    AccessRule, ApplicationKind, Attribute, Condition, Container, Grants, Operator, Permission,
    PermissionSet, Scope, Transform,
};

const PERMISSIONS_MAX: usize = 50;
const CONDITIONS_MAX: usize = 10;
const VALUE_CHARS_MAX: usize = 400;
const RULES_MAX: usize = 100;
const DESCRIPTION_CHARS_MAX: usize = 1_000;
const PRIORITY_MAX: u32 = i32::MAX.cast_unsigned();

/// Requested grants, not yet validated.
#[derive(Clone, Debug, Default)]
pub struct NewGrants {
    pub permissions: Vec<String>,
    pub rules: Vec<NewRule>,
}

/// A requested access rule, not yet validated.
#[derive(Clone, Debug, Default)]
pub struct NewRule {
    pub description: Option<String>,
    pub priority: Option<i64>,
    pub container: Option<String>,
    /// Alternative to a container; sessions only.
    pub conditions: Option<Vec<NewCondition>>,
    pub transform: Option<String>,
    pub permissions: Vec<String>,
}

impl NewGrants {
    /// Whether a permission is one of the former permissions by classification, such as `token:pci:read`.
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

/// A requested condition, not yet validated.
#[derive(Clone, Debug, Default)]
pub struct NewCondition {
    pub attribute: Option<String>,
    pub operator: Option<String>,
    pub value: Option<String>,
}

/// The recipient of grants, as far as it is known.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Recipient {
    Application(Option<ApplicationKind>),
    Session,
}

impl Recipient {
    /// The validation error if this recipient must not hold `permission`.
    fn rejection(self, permission: Permission) -> Option<String> {
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
    /// Validates grants for an application of this type and sorts rules by priority.
    ///
    /// If the type itself is invalid, checks everything that does not depend on it.
    pub fn validate(self, kind: Option<ApplicationKind>) -> Result<Grants, Vec<FieldError>> {
        self.validate_for(Recipient::Application(kind))
    }

    /// Validates grants for a session, which may have conditions and every token permission.
    pub fn validate_for_session(self) -> Result<Grants, Vec<FieldError>> {
        self.validate_for(Recipient::Session)
    }

    fn validate_for(self, recipient: Recipient) -> Result<Grants, Vec<FieldError>> {
        let mut broken = Vec::new();
        if self.permissions.is_empty() && self.rules.is_empty() {
            let rule = "must not be empty when there are no rules";
            broken.push(FieldError::new("permissions", rule));
        }
        let permissions = permission_set(&self.permissions, recipient, &mut broken);
        let management = Recipient::Application(Some(ApplicationKind::Management));
        let is_management = recipient == management;
        if is_management && !self.rules.is_empty() {
            let rule = "must be empty for a management application";
            broken.push(FieldError::new("rules", rule));
        }
        if self.rules.len() > RULES_MAX {
            let rule = format!("must have at most {RULES_MAX} entries");
            broken.push(FieldError::new("rules", rule));
        }
        // A management application must not have rules. That is reported once, not again for each rule.
        let recipient = match is_management {
            true => Recipient::Application(None),
            false => recipient,
        };
        let rules = validate_rules(&self.rules, recipient, &mut broken);
        if broken.is_empty() {
            Ok(Grants { permissions, rules })
        } else {
            Err(broken)
        }
    }
}

fn validate_rules(
    rules: &[NewRule],
    recipient: Recipient,
    broken: &mut Vec<FieldError>,
) -> Vec<AccessRule> {
    let mut priorities = HashSet::new();
    let mut validated = Vec::with_capacity(rules.len());
    for (index, rule) in rules.iter().enumerate() {
        let mut found = Vec::new();
        validated.extend(rule.validate(recipient, &mut found));
        if rule.priority.is_some_and(|given| !priorities.insert(given)) {
            let rule = "must differ from the priorities of the other rules";
            found.push(FieldError::new("priority", rule));
        }
        let path = format!("rules[{index}]");
        broken.extend(found.into_iter().map(|found| found.within(&path)));
    }
    validated.sort_by_key(|rule| rule.priority);
    validated
}

impl NewRule {
    fn validate(&self, recipient: Recipient, broken: &mut Vec<FieldError>) -> Option<AccessRule> {
        let description = collect_error(
            "description",
            description(self.description.as_deref()),
            broken,
        );
        let priority = collect_error("priority", priority(self.priority), broken);
        let scope = self.scope(recipient, broken);
        let transform = collect_error("transform", transform(self.transform.as_deref()), broken);
        if self.permissions.is_empty() {
            broken.push(FieldError::new("permissions", "must not be empty"));
        }
        let permissions = permission_set(&self.permissions, recipient, broken);
        if let Some(unscoped) = permissions.iter().find(|held| !held.is_scoped()) {
            let rule = format!("must not hold {unscoped}: it cannot be restricted to containers");
            broken.push(FieldError::new("permissions", rule));
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
    fn scope(&self, recipient: Recipient, broken: &mut Vec<FieldError>) -> Option<Scope> {
        let Some(conditions) = &self.conditions else {
            let container = container(self.container.as_deref());
            return collect_error("container", container, broken).map(Scope::Container);
        };
        let mut reject = |path: &str, rule: &str| broken.push(FieldError::new(path, rule));
        if recipient != Recipient::Session {
            reject(
                "conditions",
                "must not be given: they are for sessions only",
            );
            return None;
        }
        if self.container.is_some() {
            reject("container", "must not be given together with conditions");
            return None;
        }
        if !(1..=CONDITIONS_MAX).contains(&conditions.len()) {
            reject("conditions", "must have 1 to 10 entries");
            return None;
        }
        let mut validated = Vec::with_capacity(conditions.len());
        for (index, condition) in conditions.iter().enumerate() {
            let mut found = Vec::new();
            validated.extend(condition.validate(&mut found));
            let path = format!("conditions[{index}]");
            broken.extend(found.into_iter().map(|found| found.within(&path)));
        }
        (validated.len() == conditions.len()).then_some(Scope::Conditions(validated))
    }
}

impl NewCondition {
    fn validate(&self, broken: &mut Vec<FieldError>) -> Option<Condition> {
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
            Some(value) if contains_card_number(value) => Err(NO_CARD_NUMBER.to_owned()),
            Some(value) if (1..=VALUE_CHARS_MAX).contains(&value.chars().count()) => {
                Ok(value.to_owned())
            }
            _ => Err(format!("must have 1 to {VALUE_CHARS_MAX} characters")),
        };
        let attribute = collect_error("attribute", attribute, broken);
        let operator = collect_error("operator", operator, broken);
        let value = collect_error("value", value, broken)?;
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

fn collect_error<T>(
    name: &str,
    result: Result<T, String>,
    broken: &mut Vec<FieldError>,
) -> Option<T> {
    let reject = |rule: String| broken.push(FieldError::new(name, rule));
    result.map_err(reject).ok()
}

fn permission_set(
    names: &[String],
    recipient: Recipient,
    broken: &mut Vec<FieldError>,
) -> PermissionSet {
    let mut reject = |rule: String| broken.push(FieldError::new("permissions", rule));
    if names.len() > PERMISSIONS_MAX {
        reject(format!("must have at most {PERMISSIONS_MAX} entries"));
    }
    let known: PermissionSet = names
        .iter()
        .filter_map(|name| Permission::parse(name))
        .collect();
    if names.iter().any(|name| Permission::parse(name).is_none()) {
        reject("must hold only permissions that GET /permissions lists".to_owned());
    }
    for rule in known.iter().filter_map(|held| recipient.rejection(held)) {
        reject(rule);
    }
    known
}

fn description(given: Option<&str>) -> Result<String, String> {
    let text = given.ok_or("is required")?;
    if !(1..=DESCRIPTION_CHARS_MAX).contains(&text.chars().count()) {
        return Err(format!("must have 1 to {DESCRIPTION_CHARS_MAX} characters"));
    }
    if contains_card_number(text) {
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
    if contains_card_number(path) {
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
mod tests;
