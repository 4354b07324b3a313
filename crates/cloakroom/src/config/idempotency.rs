//! Settings of requests that are done once.

use std::time::Duration;

use super::section::section;

section! {
    /// Requests with an idempotency key: done once, and answered the same way for a day.
    pub struct Idempotency in "idempotency" {
        /// How long the same request is refused with 409 when the node that works on the first one
        /// dies. Longer than a request may take.
        pub lease: Duration = Duration::from_secs(60),
        /// Whether a key that comes again with another body is refused with 422. Without it, the
        /// first answer is given again, as the interface has it, and the log says so.
        pub refuse_other_bodies: bool = false,
    }
}
