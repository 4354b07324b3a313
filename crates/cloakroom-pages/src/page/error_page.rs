//! Errors as pages, for people who opened a URL in a browser.

use axum::response::{IntoResponse, Response};
use cloakroom_platform::telemetry::TraceId;
use http::header::{ACCEPT, RETRY_AFTER};
use http::{HeaderMap, StatusCode};

use super::{Page, PageContext, escape};
use crate::message::Message;

/// Turns errors of a request into pages.
pub struct ErrorPages {
    context: PageContext,
    is_framed: bool,
}

impl ErrorPages {
    /// `None` unless a browser navigates to this route, so that its errors are read by people.
    pub fn of_request(route: &str, prefix: &str, headers: &HeaderMap) -> Option<Self> {
        let is_framed = match route {
            "/checkout/{key}" | "/3ds/redirect/{id}" => false,
            // Issuers' pages lead here, in a frame of the merchant.
            "/3ds/sessions/{id}/method-notification"
            | "/3ds/sessions/{id}/challenge-notification" => true,
            _ => return None,
        };
        let accepted = headers.get_all(ACCEPT).iter();
        let mut accepted = accepted.filter_map(|value| value.to_str().ok());
        accepted
            .any(|value| value.contains("text/html"))
            .then(|| Self {
                context: PageContext::new(prefix, headers),
                is_framed,
            })
    }

    /// Replaces the body of an error by a page that shows the trace id. Keeps the status, `Retry-After`, and what the log
    /// records.
    pub fn replace(&self, response: Response, trace_id: Option<&TraceId>) -> Response {
        let status = response.status();
        // A page of a handler, such as that of an expired session, is one already.
        let is_problem = response
            .headers()
            .get(http::header::CONTENT_TYPE)
            .is_some_and(|media| media.as_bytes().starts_with(b"application/problem+json"));
        if !is_problem {
            return response;
        }
        let reference = trace_id.map_or("", TraceId::as_str);
        let page = self.page(status, reference);
        let (mut parts, body) = page.into_response().into_parts();
        let (old, _) = response.into_parts();
        if let Some(retry_after) = old.headers.get(RETRY_AFTER) {
            parts.headers.insert(RETRY_AFTER, retry_after.clone());
        }
        parts.extensions = old.extensions;
        Response::from_parts(parts, body)
    }

    fn page(&self, status: StatusCode, reference: &str) -> Page {
        let context = &self.context;
        let text = match status {
            StatusCode::TOO_MANY_REQUESTS => Message::ErrorLimit,
            status if status.is_server_error() => Message::ErrorServer,
            _ => Message::ErrorNotFound,
        };
        let title = context.text(Message::ErrorTitle);
        let (text, label) = (context.text(text), context.text(Message::Reference));
        let reference = escape(reference);
        let body = format!(
            "<main><div class=\"panel\"><h1>{title}</h1><p>{text}</p>\
             <p class=\"trace\">{label}: <code>{reference}</code></p></div></main>"
        );
        let page = match self.is_framed {
            true => Page::framed(context, title, &body),
            false => Page::new(context, title, body),
        };
        page.with_status(status)
    }
}
