//! An application: the holder of keys and grants.

use std::fmt;

use uuid::Uuid;

use super::{Error, Grants};

const NAME_LENGTH_MAX: usize = 200;

/// Where an application runs, and so what it may be trusted with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ApplicationKind {
    Private = 1,
    Public = 2,
    Management = 3,
}

impl ApplicationKind {
    pub const ALL: [Self; 3] = [Self::Private, Self::Public, Self::Management];

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as i16 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Public => "public",
            Self::Management => "management",
        }
    }

    /// How API keys spell it.
    pub(super) fn key_mark(self) -> &'static str {
        match self {
            Self::Private => "pvt",
            Self::Public => "pub",
            Self::Management => "mgt",
        }
    }
}

impl fmt::Display for ApplicationKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// An application that is asked for.
#[derive(Clone, Debug)]
pub struct NewApplication {
    pub name: String,
    pub kind: ApplicationKind,
    pub grants: Grants,
}

#[derive(Clone, Debug)]
pub struct Application {
    pub id: Uuid,
    pub name: String,
    pub kind: ApplicationKind,
    pub grants: Grants,
}

/// Names are one line of 1 to 200 characters.
pub(super) fn check_name(name: &str) -> Result<(), Error> {
    let length = name.chars().count();
    if length == 0 || length > NAME_LENGTH_MAX || name.chars().any(char::is_control) {
        let rule = format!("must be one line of 1 to {NAME_LENGTH_MAX} characters");
        return Err(Error::invalid("name", rule));
    }
    Ok(())
}
