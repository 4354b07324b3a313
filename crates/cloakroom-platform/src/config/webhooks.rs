//! Settings of webhooks.

use super::finding::Finding;
use super::section::section;

section! {
    /// Deliveries to webhooks. docs/operate/webhooks.md explains how to operate them.
    pub struct Webhooks in "webhooks" {
        /// Deliveries in flight at a time on this node. Half of them are reserved for webhooks whose last attempts
        /// succeeded.
        pub max_in_flight: usize = 512,
        /// Deliveries in flight at a time to one webhook, on this node. A tenant may have twice as many. A webhook that
        /// fails or does not respond in time has one at a time.
        pub max_in_flight_per_webhook: usize = 8,
    }
}

impl Webhooks {
    pub(super) fn check(&self, findings: &mut Vec<Finding>) {
        let per_webhook = self.max_in_flight_per_webhook;
        if per_webhook == 0 || per_webhook > self.max_in_flight / 4 {
            let message = "must be from 1 to a quarter of webhooks.max_in_flight";
            findings.push(Finding::error(
                "webhooks.max_in_flight_per_webhook",
                message,
            ));
        }
    }
}
