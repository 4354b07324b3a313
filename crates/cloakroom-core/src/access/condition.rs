//! Scopes of access rules.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Container;

/// The token that an operation is about: its container, and its id unless it is being created.
#[derive(Clone, Copy, Debug)]
pub struct Resource<'a> {
    pub container: &'a Container,
    pub id: Option<&'a str>,
}

/// The tokens that an access rule covers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Tokens in this container and below it.
    Container(Container),
    /// Tokens that meet all conditions. Sessions only.
    Conditions(Vec<Condition>),
}

/// A predicate on one attribute of a token.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    pub attribute: Attribute,
    pub operator: Operator,
    /// Container paths are stored and compared in lower case.
    pub value: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Attribute {
    Id,
    Container,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Operator {
    Equals,
    StartsWith,
}

impl Scope {
    pub fn covers(&self, subject: Resource<'_>) -> bool {
        match self {
            Self::Container(container) => container.holds(subject.container),
            Self::Conditions(conditions) => conditions.iter().all(|one| one.holds(subject)),
        }
    }

    /// A container that holds every token this scope can cover, and possibly others.
    pub fn reach(&self) -> Container {
        match self {
            Self::Container(container) => container.clone(),
            Self::Conditions(conditions) => {
                let about_containers = |one: &&Condition| one.attribute == Attribute::Container;
                let deepest = conditions.iter().filter(about_containers);
                let deepest = deepest.map(Condition::container);
                deepest
                    .max_by_key(|container| container.as_str().len())
                    .unwrap_or_else(Container::root)
            }
        }
    }
}

impl Condition {
    /// A token without an id meets no condition on `id`.
    fn holds(&self, subject: Resource<'_>) -> bool {
        let actual = match self.attribute {
            Attribute::Id => subject.id,
            Attribute::Container => Some(subject.container.as_str()),
        };
        actual.is_some_and(|actual| match self.operator {
            Operator::Equals => actual == self.value,
            Operator::StartsWith => actual.starts_with(&self.value),
        })
    }

    /// The deepest complete path that the condition's value contains.
    fn container(&self) -> Container {
        let whole = self.value.rfind('/').map_or("/", |end| &self.value[..=end]);
        Container::parse(whole).unwrap_or_else(|_| Container::root())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn condition(attribute: Attribute, operator: Operator, value: &str) -> Condition {
        Condition {
            attribute,
            operator,
            value: value.to_owned(),
        }
    }

    #[test]
    fn all_conditions_must_hold() {
        use Attribute::{Container as Path, Id};
        use Operator::{Equals, StartsWith};
        let container = Container::known("/users/eu/");
        let subject = |id| Resource {
            container: &container,
            id,
        };
        let cases: [(&[Condition], Option<&str>, bool); 12] = [
            (&[condition(Id, Equals, "card-1")], Some("card-1"), true),
            (&[condition(Id, Equals, "card-1")], Some("card-12"), false),
            (&[condition(Id, StartsWith, "card-")], Some("card-12"), true),
            (&[condition(Id, StartsWith, "ard-")], Some("card-12"), false),
            (&[condition(Id, StartsWith, "card-")], None, false),
            (&[condition(Path, Equals, "/users/eu/")], None, true),
            (&[condition(Path, Equals, "/users/")], None, false),
            (&[condition(Path, StartsWith, "/users/e")], None, true),
            (&[condition(Path, StartsWith, "/users/us")], None, false),
            (&[condition(Path, StartsWith, "/eu/")], None, false),
            (
                &[
                    condition(Path, StartsWith, "/users/"),
                    condition(Id, Equals, "a"),
                ],
                Some("a"),
                true,
            ),
            (
                &[
                    condition(Path, StartsWith, "/users/"),
                    condition(Id, Equals, "a"),
                ],
                Some("b"),
                false,
            ),
        ];
        for (conditions, id, expected) in cases {
            let scope = Scope::Conditions(conditions.to_vec());
            assert_eq!(scope.covers(subject(id)), expected, "{scope:?} {id:?}");
            // Every covered token is within the reach.
            assert!(!expected || scope.reach().holds(&container), "{scope:?}");
        }
    }

    #[test]
    fn the_reach_is_the_deepest_container_in_any_condition() {
        use Operator::{Equals, StartsWith};
        let cases = [
            (StartsWith, "/users/eu/", "/users/eu/"),
            (StartsWith, "/users/eu", "/users/"),
            (StartsWith, "/us", "/"),
            (StartsWith, "us", "/"),
            (StartsWith, "", "/"),
            (Equals, "/users/", "/users/"),
            (Equals, "//", "/"),
        ];
        for (operator, value, expected) in cases {
            let conditions = vec![condition(Attribute::Container, operator, value)];
            let reach = Scope::Conditions(conditions).reach();
            assert_eq!(reach.as_str(), expected, "{operator:?} {value}");
        }
        let by_id = vec![condition(Attribute::Id, Equals, "a")];
        assert_eq!(Scope::Conditions(by_id).reach(), Container::root());
    }
}
