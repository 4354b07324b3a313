//! Settings of what is still served although it is deprecated.

use super::section::section;
use super::setting::choice;

section! {
    /// Whether deprecated parts of the interface still answer.
    pub struct Deprecated in "deprecated" {
        /// List and search of the first version, `GET /tokens` and `POST /tokens/search`: `serve`
        /// answers with deprecation headers, `gone` answers 410 and names the successor.
        pub v1_tokens: Deprecation = Deprecation::Serve,
    }
}

choice! {
    /// What happens to a deprecated part of the interface.
    pub enum Deprecation {
        Serve = "serve",
        Gone = "gone",
    }
}
