//! Settings of deprecated endpoints.

use super::section::section;
use super::setting::choice;

section! {
    /// Deprecated endpoints.
    pub struct Deprecated in "deprecated" {
        /// Listing and searching with version 1, `GET /tokens` and `POST /tokens/search`: `serve` adds deprecation
        /// headers to responses, `gone` returns 410 and names the successor.
        pub v1_tokens: Deprecation = Deprecation::Serve,
    }
}

choice! {
    /// Handling of requests to a deprecated endpoint.
    pub enum Deprecation {
        Serve = "serve",
        Gone = "gone",
    }
}
