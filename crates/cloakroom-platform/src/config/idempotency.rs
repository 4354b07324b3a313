//! Settings of idempotent requests.

use std::time::Duration;

use super::section::section;

section! {
    /// Requests with an idempotency key: executed once, with the same response for 24 hours.
    pub struct Idempotency in "idempotency" {
        /// How long a retry is rejected with 409 after the node that processed the first request has failed. It must be
        /// longer than the longest request.
        pub lease: Duration = Duration::from_secs(60),
        /// Whether a key that is reused with a different body is rejected with 422. If `false`, the first response is
        /// returned again, as the API specifies, and the reuse is logged. With a public key, such a request is always
        /// rejected.
        pub refuse_other_bodies: bool = false,
    }
}
