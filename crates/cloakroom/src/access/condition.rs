//! Which tokens an access rule is about.

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Container;

/// A token that something is to be done with: where it lies, and its id if it has one already.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    pub container: &'a Container,
    pub id: Option<&'a str>,
}

/// The tokens that a rule is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Those in a container and below it.
    Container(Container),
    /// Those that meet all conditions. Only sessions have such rules.
    Conditions(Vec<Condition>),
}

/// What an attribute of a token has to be.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Condition {
    pub attribute: Attribute,
    pub operator: Operator,
    /// Containers are compared in lower case, as they are kept.
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
    pub fn covers(&self, subject: Subject<'_>) -> bool {
        match self {
            Self::Container(container) => container.holds(subject.container),
            Self::Conditions(conditions) => conditions.iter().all(|one| one.holds(subject)),
        }
    }

    /// A container that holds everything this is about, and perhaps more.
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
    /// A token that has no id yet meets no condition about it.
    fn holds(&self, subject: Subject<'_>) -> bool {
        let actual = match self.attribute {
            Attribute::Id => subject.id,
            Attribute::Container => Some(subject.container.as_str()),
        };
        actual.is_some_and(|actual| match self.operator {
            Operator::Equals => actual == self.value,
            Operator::StartsWith => actual.starts_with(&self.value),
        })
    }

    /// The last whole path in what a container has to be, or to start with.
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
    fn all_conditions_have_to_hold() {
        use Attribute::{Container as Path, Id};
        use Operator::{Equals, StartsWith};
        let container = Container::known("/users/eu/");
        let subject = |id| Subject {
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
            // Whatever it covers lies in its reach.
            assert!(!expected || scope.reach().holds(&container), "{scope:?}");
        }
    }

    #[test]
    fn the_reach_is_the_deepest_container_that_a_condition_names() {
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
