//! Pages for developers: the start page of a node, and the catalog of errors.

use std::fmt::Write as _;

use cloakroom_platform::api::{CATALOG_PATH, ERROR_TYPES};
use cloakroom_tokens::TokenVault;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::page::{Page, PageContext, escape};

pub(crate) fn routes() -> OpenApiRouter<TokenVault> {
    OpenApiRouter::new()
        .routes(routes!(show_start_page))
        .routes(routes!(show_error_catalog))
}

/// Show what this is, with links to the descriptions of the API.
#[utoipa::path(
    get, path = "/", tag = "Service",
    responses((status = 200, description = "A page for people.", content_type = "text/html")),
)]
async fn show_start_page(context: PageContext) -> Page {
    let prefix = escape(&context.prefix);
    let body = format!(
        "<main><div class=\"panel\"><h1>Cloakroom</h1>\
         <p>A token vault that implements the Basis Theory API. Requests need an API key in the header \
         <code>BT-API-KEY</code>.</p>\
         <ul><li><a href=\"{prefix}/openapi.json\">OpenAPI description</a></li>\
         <li><a href=\"{prefix}{CATALOG_PATH}\">Errors</a></li></ul></div></main>"
    );
    english_page(context, "Cloakroom", body)
}

/// Show what each error code means, and what to do about it.
///
/// The `type` of every error leads here.
#[utoipa::path(
    get, path = "/errors", tag = "Service",
    responses((status = 200, description = "A page for people.", content_type = "text/html")),
)]
async fn show_error_catalog(context: PageContext) -> Page {
    let mut body = "<main><div class=\"panel\"><h1>Errors</h1>".to_owned();
    for known in ERROR_TYPES {
        let (meaning, remedy) = (with_code(known.meaning), with_code(known.remedy));
        // Writing to a string cannot fail.
        let _ = write!(
            body,
            "<h2 id=\"{code}\">{code}</h2><p>{status}: {meaning} {remedy}</p>",
            code = known.code,
            status = known.status,
        );
    }
    body.push_str("</div></main>");
    english_page(context, "Errors", body)
}

fn english_page(context: PageContext, title: &str, body: String) -> Page {
    Page::new(&context.with_language(Some("en")), title, body)
}

/// Escapes text and marks what is between backticks as code.
fn with_code(text: &str) -> String {
    let mut markup = String::new();
    for (index, part) in text.split('`').enumerate() {
        let part = escape(part);
        match index % 2 {
            0 => markup.push_str(&part),
            _ => {
                let _ = write!(markup, "<code>{part}</code>");
            }
        }
    }
    markup
}
