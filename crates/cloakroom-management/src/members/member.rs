//! Members: users of one tenant, with a role.

use jiff::Timestamp;
use uuid::Uuid;

use super::Email;

/// Role of a member. A tenant has at most one owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Owner = 1,
    Admin = 2,
    ReadOnly = 3,
}

impl Role {
    pub const ALL: [Self; 3] = [Self::Owner, Self::Admin, Self::ReadOnly];

    pub fn from_number(number: i16) -> Option<Self> {
        Self::ALL.into_iter().find(|role| *role as i16 == number)
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Owner => "OWNER",
            Self::Admin => "ADMIN",
            Self::ReadOnly => "READ_ONLY",
        }
    }

    /// Parses a role that can be assigned; ownership is transferred instead.
    pub fn parse_assignable(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|role| *role != Self::Owner && role.name() == name)
            .ok_or_else(|| "must be `ADMIN` or `READ_ONLY`".to_owned())
    }
}

#[derive(Clone, Debug)]
pub struct Member {
    pub id: Uuid,
    pub role: Role,
    pub user: User,
    /// The application that created the invitation; `None` if it was created with the CLI.
    pub created_by: Option<Uuid>,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
}

/// The user behind a member.
#[derive(Clone, Debug)]
pub struct User {
    pub id: Uuid,
    pub email: Email,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
}

/// A requested member.
#[derive(Clone, Debug)]
pub struct NewMember {
    pub email: Email,
    pub role: Role,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
}
