//! Invitations and the secret links that accept them.

use std::time::Duration;

use cloakroom_crypto::{Sensitive, random_base58, secret_digest};
use cloakroom_platform::ids::TenantId;
use jiff::Timestamp;
use uuid::Uuid;

use super::{Email, Role};

/// How long an invitation can be accepted after it was last sent.
pub(super) const LIFETIME: Duration = Duration::from_secs(72 * 60 * 60);

/// Domain of the digest of a link.
const LINK_DOMAIN: &str = "invitation-link.v2";
const LINK_LENGTH: usize = 32;

/// Determined by the database's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    Pending,
    Expired,
}

impl Status {
    pub fn name(self) -> &'static str {
        match self {
            Self::Pending => "PENDING",
            Self::Expired => "EXPIRED",
        }
    }

    pub fn parse(name: &str) -> Result<Self, String> {
        [Self::Pending, Self::Expired]
            .into_iter()
            .find(|status| status.name() == name)
            .ok_or_else(|| "must be `PENDING` or `EXPIRED`".to_owned())
    }
}

#[derive(Clone, Debug)]
pub struct Invitation {
    pub id: Uuid,
    pub email: Email,
    pub role: Role,
    pub status: Status,
    pub expires_at: Timestamp,
    pub created_by: Option<Uuid>,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
}

/// A requested invitation.
#[derive(Clone, Debug)]
pub struct NewInvitation {
    pub email: Email,
    pub role: Role,
}

/// The secret of an invitation. It is shown once and stored only as a digest.
pub struct InvitationLink(Sensitive<String>);

impl InvitationLink {
    pub(super) fn generate() -> Self {
        Self(Sensitive::new(random_base58(LINK_LENGTH)))
    }

    /// The secret in plaintext, to be shown once.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    pub(super) fn digest(&self, tenant: TenantId) -> [u8; 32] {
        link_digest(tenant, self.expose())
    }
}

/// The digest under which a link is stored.
pub(super) fn link_digest(tenant: TenantId, text: &str) -> [u8; 32] {
    secret_digest(LINK_DOMAIN, &[tenant.uuid.as_bytes(), text.as_bytes()])
}
