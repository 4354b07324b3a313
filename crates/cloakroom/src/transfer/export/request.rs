//! A requested export.

use std::time::Duration;

use cloakroom_core::access::{AuthenticatedRow, optional_part};
use cloakroom_core::audit::Operator;
use cloakroom_platform::card_numbers::contains_card_number;
use cloakroom_platform::ids::TenantId;
use cloakroom_tokens::tokens::ExportFilter;
use cloakroom_tokens::types::TokenKind;
use jiff::Timestamp;
use uuid::Uuid;

use super::Error;
use crate::transfer::PublicKey;

const REASON_CHARS_MAX: usize = 500;
/// A request is executed within this time or not at all.
const LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// What is requested.
pub struct NewExport {
    pub filter: ExportFilter,
    pub receiver: PublicKey,
    pub reason: String,
}

/// A request, approved or not. Its MAC covers all of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportRequest {
    pub tenant: TenantId,
    pub id: Uuid,
    pub filter: ExportFilter,
    pub receiver: PublicKey,
    pub reason: String,
    /// User and host of the operators, with their names if given.
    pub requested_by: String,
    pub requested_at: Timestamp,
    pub approved_by: Option<String>,
    pub approved_at: Option<Timestamp>,
}

impl NewExport {
    pub(super) fn check(&self) -> Result<(), Error> {
        let length = self.reason.chars().count();
        let is_plain = !self.reason.chars().any(char::is_control);
        let is_reason = (1..=REASON_CHARS_MAX).contains(&length) && is_plain;
        match is_reason && !contains_card_number(&self.reason) {
            true => Ok(()),
            false => Err(Error::Reason),
        }
    }
}

impl ExportRequest {
    pub fn is_expired(&self, now: Timestamp) -> bool {
        let end = self.requested_at.checked_add(LIFETIME);
        end.is_ok_and(|end| end <= now)
    }

    /// Requires that the receiver's key has this fingerprint.
    pub(super) fn require_receiver(&self, fingerprint: &str) -> Result<(), Error> {
        match self.receiver.fingerprint() == fingerprint {
            true => Ok(()),
            false => Err(Error::OtherReceiver(self.id)),
        }
    }

    /// The request in the audit log: its id, the receiver's key and the filter.
    pub(super) fn summary(&self) -> String {
        let filter = &self.filter;
        let container = filter.container.as_ref();
        format!(
            "{}: to {}, {} in {}",
            self.id,
            self.receiver.fingerprint(),
            filter.kind.map_or("all types", TokenKind::name),
            container.map_or("all containers", |container| container.as_str()),
        )
    }

    /// The request after its approval by another person: another user account, on whatever host.
    pub(super) fn approve(mut self, by: &Operator, now: Timestamp) -> Result<Self, Error> {
        if self.is_expired(now) {
            return Err(Error::Expired(self.id));
        }
        if self.approved_by.is_some() {
            return Err(Error::AlreadyApproved(self.id));
        }
        self.require_other_person(by)?;
        self.approved_by = Some(by.as_str().to_owned());
        self.approved_at = Some(now);
        Ok(self)
    }

    /// Requires that it may be executed now. Returns who approved it.
    pub(super) fn require_approval(&self, now: Timestamp) -> Result<&str, Error> {
        if self.is_expired(now) {
            return Err(Error::Expired(self.id));
        }
        let (Some(approved_by), Some(_)) = (&self.approved_by, self.approved_at) else {
            return Err(Error::NotApproved(self.id));
        };
        let approver = Operator::parse(approved_by).ok_or(Error::Altered(self.id))?;
        self.require_other_person(&approver)?;
        Ok(approved_by)
    }

    /// Requires another user account than that of the requester.
    fn require_other_person(&self, approver: &Operator) -> Result<(), Error> {
        let requester = Operator::parse(&self.requested_by).ok_or(Error::Altered(self.id))?;
        match requester.user() {
            user if user == approver.user() => Err(Error::SamePerson {
                id: self.id,
                user: user.to_owned(),
            }),
            _ => Ok(()),
        }
    }
}

impl AuthenticatedRow for ExportRequest {
    const DOMAIN: &'static str = "row.export_request.v1";

    fn parts(&self) -> Vec<Vec<u8>> {
        let time = |at: Timestamp| at.as_microsecond().to_be_bytes();
        let text = |text: Option<&str>| optional_part(text.map(str::as_bytes));
        let container = self.filter.container.as_ref();
        let approved_at = self.approved_at.map(time);
        vec![
            self.tenant.number.to_be_bytes().to_vec(),
            self.tenant.uuid.into_bytes().to_vec(),
            self.id.into_bytes().to_vec(),
            text(container.map(|container| container.as_str())),
            text(self.filter.kind.map(|kind| kind.name())),
            self.receiver.0.to_vec(),
            self.reason.clone().into_bytes(),
            self.requested_by.clone().into_bytes(),
            time(self.requested_at).to_vec(),
            text(self.approved_by.as_deref()),
            optional_part(approved_at.as_ref().map(<[u8; 8]>::as_slice)),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_user_approves_within_seven_days() {
        let operator = |name, user, host| Operator::new(name, user, host).unwrap();
        let start = Timestamp::UNIX_EPOCH;
        let after = |days: u64| start + Duration::from_secs(days * 24 * 60 * 60);
        let request = ExportRequest {
            tenant: TenantId {
                number: 1,
                uuid: Uuid::nil(),
            },
            id: Uuid::nil(),
            filter: ExportFilter::default(),
            receiver: PublicKey([1; 32]),
            reason: "Move".to_owned(),
            requested_by: operator(None, "ada", "vault1").as_str().to_owned(),
            requested_at: start,
            approved_by: None,
            approved_at: None,
        };

        for same in [
            operator(None, "ada", "vault1"),
            operator(Some("Grace, grace@vault1"), "ada", "vault2"),
        ] {
            let denied = request.clone().approve(&same, after(1));
            assert!(matches!(denied, Err(Error::SamePerson { .. })), "{same:?}");
        }
        let denied = request.require_approval(after(1));
        assert!(matches!(denied, Err(Error::NotApproved(_))));
        let grace = operator(None, "grace", "vault1");
        let late = request.clone().approve(&grace, after(7));
        assert!(matches!(late, Err(Error::Expired(_))));
        let approved = request.clone().approve(&grace, after(6)).unwrap();
        assert_eq!(approved.require_approval(after(6)).unwrap(), "grace@vault1");
        assert!(matches!(
            approved.require_approval(after(7)),
            Err(Error::Expired(_))
        ));
        let again = approved.approve(&grace, after(6));
        assert!(matches!(again, Err(Error::AlreadyApproved(_))));
        // Not written by Cloakroom, even if the MAC is valid.
        let stored = |by: &str, at| {
            let mut stored = request.clone();
            (stored.approved_by, stored.approved_at) = (Some(by.to_owned()), at);
            stored.require_approval(after(1)).err()
        };
        assert!(matches!(
            stored("grace@vault1", None),
            Some(Error::NotApproved(_))
        ));
        assert!(matches!(stored("", Some(start)), Some(Error::Altered(_))));
        let same = stored("Grace, ada@vault2", Some(start));
        assert!(matches!(same, Some(Error::SamePerson { .. })));
    }
}
