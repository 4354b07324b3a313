//! Settings of tenant management over HTTP.

use std::ops::RangeInclusive;
use std::time::Duration;

use super::finding::Finding;
use super::section::section;

const HOUR: Duration = Duration::from_secs(60 * 60);
const DAY: Duration = Duration::from_secs(24 * 60 * 60);
const DELETION_DELAY: RangeInclusive<Duration> = HOUR..=Duration::from_secs(90 * 24 * 60 * 60);

section! {
    /// Tenant management over HTTP.
    pub struct Tenants in "tenants" {
        /// Delay between the confirmation and the execution of a tenant deletion, in which it can be canceled: from
        /// 1 hour to 2160 hours (90 days).
        pub deletion_delay: Duration = 7 * DAY,
        /// Whether one `DELETE /tenants/self` deletes the tenant immediately, without a second key and without a delay,
        /// as in the hosted service; `doctor` reports it.
        pub immediate_deletion: bool = false,
        /// Whether `application:create` and `application:update` are sufficient to grant any permission and any access
        /// rule, as in the hosted service; `doctor` reports it. If `false`, a key can grant the permissions of its
        /// own application, and others only with `application:grant`.
        pub unrestricted_grants: bool = false,
    }
}

impl Tenants {
    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        if !DELETION_DELAY.contains(&self.deletion_delay) {
            let message = "must be from 1h to 2160h (90 days)";
            findings.push(Finding::error("tenants.deletion_delay", message));
        }
    }
}
