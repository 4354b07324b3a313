//! Pending deletions of tenants: requested by one application, confirmed by another, executed after a delay.

use std::time::Duration;

use cloakroom_core::access::AuthenticatedRow;
use cloakroom_core::audit::Operation;
use cloakroom_platform::ids::TenantId;
use jiff::Timestamp;
use uuid::Uuid;

use super::Error;

/// A request that is not confirmed within this time expires.
const CONFIRMATION_TIMEOUT: Duration = Duration::from_secs(7 * 24 * 60 * 60);

/// A requested deletion.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Deletion {
    pub tenant: TenantId,
    /// The application whose key requested it.
    pub requested_by: Uuid,
    pub requested_at: Timestamp,
    /// The other application whose key confirmed it.
    pub confirmed_by: Option<Uuid>,
    /// When it is executed; set by the confirmation.
    pub due_at: Option<Timestamp>,
}

impl Deletion {
    /// Whether it can still be confirmed, or is confirmed and not yet executed.
    pub(super) fn is_pending(&self, now: Timestamp) -> bool {
        let expires_at = add(self.requested_at, CONFIRMATION_TIMEOUT);
        self.due_at.is_some() || now < expires_at
    }

    pub(super) fn is_due(&self, now: Timestamp) -> bool {
        self.due_at.is_some_and(|due_at| due_at <= now)
    }

    /// The deletion after a request by `application`, and the operation for the audit log.
    ///
    /// `None` if it is already confirmed.
    pub(super) fn advance(
        self,
        application: Uuid,
        now: Timestamp,
        delay: Duration,
    ) -> Result<Option<(Self, Operation)>, Error> {
        if !self.is_pending(now) {
            return Ok(Some(Self::request(self.tenant, application, now)));
        }
        if self.due_at.is_some() {
            return Ok(None);
        }
        if self.requested_by == application {
            return Err(Error::NotConfirmed);
        }
        let confirmed = Self {
            confirmed_by: Some(application),
            due_at: Some(add(now, delay)),
            ..self
        };
        Ok(Some((confirmed, Operation::ConfirmDeletion)))
    }

    pub(super) fn request(
        tenant: TenantId,
        application: Uuid,
        now: Timestamp,
    ) -> (Self, Operation) {
        let requested = Self {
            tenant,
            requested_by: application,
            requested_at: now,
            confirmed_by: None,
            due_at: None,
        };
        (requested, Operation::RequestDeletion)
    }
}

fn add(at: Timestamp, time: Duration) -> Timestamp {
    at.checked_add(time).unwrap_or(Timestamp::MAX)
}

impl AuthenticatedRow for Deletion {
    const DOMAIN: &'static str = "row.tenant_deletion.v1";

    fn parts(&self) -> Vec<Vec<u8>> {
        let time = |at: Timestamp| at.as_microsecond().to_be_bytes().to_vec();
        vec![
            self.tenant.number.to_be_bytes().to_vec(),
            self.tenant.uuid.into_bytes().to_vec(),
            self.requested_by.into_bytes().to_vec(),
            time(self.requested_at),
            self.confirmed_by
                .map_or_else(Vec::new, |by| by.into_bytes().to_vec()),
            self.due_at.map_or_else(Vec::new, time),
        ]
    }
}

#[cfg(test)]
mod tests {
    use cloakroom_platform::ids;

    use super::*;

    #[test]
    fn a_second_application_confirms_within_a_week_and_starts_the_delay() {
        let [first, second] = [ids::new_uuid(), ids::new_uuid()];
        let tenant = TenantId {
            number: 1,
            uuid: ids::new_uuid(),
        };
        let start = Timestamp::UNIX_EPOCH;
        let after = |hours: u64| add(start, Duration::from_secs(hours * 3_600));
        let delay = Duration::from_secs(3_600);
        let (requested, operation) = Deletion::request(tenant, first, start);
        assert_eq!(operation, Operation::RequestDeletion);

        let again = requested.clone().advance(first, after(1), delay);
        assert!(matches!(again, Err(Error::NotConfirmed)));
        let confirmed = requested.clone().advance(second, after(1), delay);
        let (confirmed, operation) = confirmed.unwrap().unwrap();
        assert_eq!(operation, Operation::ConfirmDeletion);
        assert_eq!(confirmed.confirmed_by, Some(second));
        assert_eq!(confirmed.due_at, Some(after(2)));
        assert!(!confirmed.is_due(start) && confirmed.is_due(after(2)));
        for application in [first, second] {
            let more = confirmed.clone().advance(application, after(1), delay);
            assert_eq!(more.unwrap(), None, "the delay does not begin again");
        }

        let week = 7 * 24;
        assert!(requested.is_pending(after(week - 1)) && !requested.is_pending(after(week)));
        assert!(confirmed.is_pending(after(week)));
        let late = requested.advance(second, after(week), delay);
        let (late, operation) = late.unwrap().unwrap();
        assert_eq!(operation, Operation::RequestDeletion, "a void request");
        assert_eq!((late.requested_by, late.due_at), (second, None));
    }
}
