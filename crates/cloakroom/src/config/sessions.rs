//! Settings of what sessions may be granted.

use super::section::section;

section! {
    /// Sessions: keys of browsers that a server grants rights to.
    pub struct Sessions in "sessions" {
        /// Whether a session may be granted only what the application that authorizes it holds
        /// itself, and no more of the data. Without it, any private key of the tenant may grant any
        /// permission about tokens, as the interface has it.
        pub require_subset: bool = false,
    }
}
