//! Application types, and validation of names.

use std::fmt;

use cloakroom_platform::api::FieldError;
use cloakroom_platform::card_numbers::{NO_CARD_NUMBER, contains_card_number};
use utoipa::ToSchema;

const NAME_LENGTH_MAX: usize = 200;

/// Where an application runs, and therefore which permissions it may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, ToSchema)]
#[schema(as = ApplicationType, rename_all = "lowercase")]
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

    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Private => "private",
            Self::Public => "public",
            Self::Management => "management",
        }
    }

    /// Type segment in API keys.
    pub(super) fn key_segment(self) -> &'static str {
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

/// Names are one line of 1 to 200 characters. They are stored in plaintext.
pub fn check_name(name: &str) -> Result<(), FieldError> {
    let length = name.chars().count();
    if length == 0 || length > NAME_LENGTH_MAX || name.chars().any(char::is_control) {
        let rule = format!("must be one line of 1 to {NAME_LENGTH_MAX} characters");
        return Err(FieldError::new("name", rule));
    }
    if contains_card_number(name) {
        return Err(FieldError::new("name", NO_CARD_NUMBER));
    }
    Ok(())
}
