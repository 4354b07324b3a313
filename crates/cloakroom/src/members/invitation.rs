//! An invitation: who may become a member, until when, and the secret that proves it.

use std::time::Duration;

use cloakroom_crypto::{Sensitive, random_base58};
use jiff::Timestamp;
use uuid::Uuid;

use super::{Email, Role};
use crate::ids::TenantId;
use crate::keys::ControlKey;

/// How long an invitation can be accepted, counted from when it was last sent.
pub(super) const LIFETIME: Duration = Duration::from_secs(72 * 60 * 60);

/// What the digest of a link is for.
const LINK: &str = "invitation-link.v1";
const LINK_LENGTH: usize = 32;

/// By the database's clock.
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

/// An invitation that is asked for.
#[derive(Clone, Debug)]
pub struct NewInvitation {
    pub email: Email,
    pub role: Role,
}

/// The secret that an invited person is given. It is shown once and kept only as a keyed digest.
pub struct InvitationLink(Sensitive<String>);

impl InvitationLink {
    pub(super) fn generate() -> Self {
        Self(Sensitive::new(random_base58(LINK_LENGTH)))
    }

    /// The text, for the one time that it is shown.
    pub fn expose(&self) -> &str {
        self.0.expose()
    }

    pub(super) fn mac(&self, control: &ControlKey, tenant: TenantId) -> [u8; 32] {
        link_mac(control, tenant, self.expose())
    }
}

/// The digest under which a link is kept.
pub(super) fn link_mac(control: &ControlKey, tenant: TenantId, text: &str) -> [u8; 32] {
    control.authenticate(LINK, &[tenant.uuid.as_bytes(), text.as_bytes()])
}
