//! A tenant: whose tokens these are.

use jiff::Timestamp;

use crate::ids::TenantId;

/// Whether a tenant's data is real. Keys of one kind never reach tenants of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TenantKind {
    Test = 1,
    Production = 2,
}

impl TenantKind {
    pub fn from_number(number: i16) -> Option<Self> {
        match number {
            1 => Some(Self::Test),
            2 => Some(Self::Production),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Production => "production",
        }
    }

    /// How API keys spell it.
    pub(super) fn key_mark(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Production => "prod",
        }
    }
}

/// A tenant that is asked for.
#[derive(Clone, Debug)]
pub struct NewTenant {
    pub name: String,
    pub kind: TenantKind,
}

#[derive(Clone, Debug)]
pub struct Tenant {
    pub id: TenantId,
    pub name: String,
    pub kind: TenantKind,
    /// Setting name to text, as JSON.
    pub settings: String,
    pub created_at: Timestamp,
}
