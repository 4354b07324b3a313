//! What every page needs to know of its request.

use std::convert::Infallible;
use std::sync::Arc;

use axum::extract::FromRequestParts;
use cloakroom_platform::api::HasHttpConfig;
use http::HeaderMap;
use http::request::Parts;

use super::escape;
use crate::language::Language;
use crate::message::Message;

/// The language of a page, and where its files are.
#[derive(Clone, Debug)]
pub struct PageContext {
    pub language: Language,
    /// Path prefix of the API.
    pub prefix: Arc<str>,
}

impl PageContext {
    /// The context of a request with these headers.
    pub fn new(prefix: &str, headers: &HeaderMap) -> Self {
        Self {
            language: Language::of_headers(headers),
            prefix: prefix.into(),
        }
    }

    /// The context with the language of a BCP 47 tag, if the pages have it.
    #[must_use]
    pub fn with_language(self, tag: Option<&str>) -> Self {
        let language = tag.and_then(Language::of_tag).unwrap_or(self.language);
        Self { language, ..self }
    }

    pub fn text(&self, message: Message) -> &'static str {
        message.text(self.language)
    }

    /// A message about the merchant, as markup.
    pub fn about(&self, message: Message, merchant: &str) -> String {
        escape(&message.fill(self.language, &[("merchant", merchant)]))
    }
}

impl<S: HasHttpConfig + Sync> FromRequestParts<S> for PageContext {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Infallible> {
        let prefix = state.http_config().prefix();
        Ok(Self::new(prefix, &parts.headers))
    }
}
