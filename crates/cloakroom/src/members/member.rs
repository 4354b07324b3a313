//! A member: one person in one tenant, with a role.

use jiff::Timestamp;
use uuid::Uuid;

use super::Email;

/// What a member is in the tenant. Of owners there is one at most.
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

    /// A role that can be given away; ownership is transferred instead.
    pub fn parse_giveable(name: &str) -> Result<Self, String> {
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
    /// The application that made the invitation; nothing when it was done by command.
    pub created_by: Option<Uuid>,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
}

/// The person behind a member.
#[derive(Clone, Debug)]
pub struct User {
    pub id: Uuid,
    pub email: Email,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
}

/// A member that is asked for.
#[derive(Clone, Debug)]
pub struct NewMember {
    pub email: Email,
    pub role: Role,
    pub first_name: Option<String>,
    pub last_name: Option<String>,
}
