//! Settings of session permissions.

use super::section::section;

section! {
    /// Sessions: short-lived keys for browsers, authorized by a server.
    pub struct Sessions in "sessions" {
        /// Whether an application can grant a session only permissions that it has itself, with a transform that
        /// reveals no more. If `false`, any private key of the tenant can grant any token permission, as in the hosted
        /// service; `doctor` reports it.
        pub require_subset: bool = true,
    }
}
