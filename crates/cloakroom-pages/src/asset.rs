//! The stylesheet and the scripts of all pages, compiled in.

use axum::extract::RawQuery;
use axum::response::{IntoResponse, Response};
use cloakroom_platform::api::{ApiError, PathId, Problem};
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

/// The URL contains the version of the content.
pub(crate) const IMMUTABLE: &str = "public, max-age=31536000, immutable";
const SHORT: &str = "public, max-age=300";
const CSS: &str = "text/css; charset=utf-8";
const JAVASCRIPT: &str = "text/javascript; charset=utf-8";

/// A file that pages load.
#[derive(Clone, Copy, Debug)]
pub struct Asset {
    name: &'static str,
    media_type: &'static str,
    text: &'static str,
    version: u64,
}

impl Asset {
    const fn new(name: &'static str, media_type: &'static str, text: &'static str) -> Self {
        Self {
            name,
            media_type,
            text,
            version: version(text.as_bytes()),
        }
    }

    /// The URL below the prefix of the API. It changes with the content.
    pub(crate) fn path(&self) -> String {
        format!("/pages/assets/{}?v={:016x}", self.name, self.version)
    }
}

pub const STYLE: Asset = Asset::new("page.css", CSS, include_str!("../assets/page.css"));
pub const FRAME: Asset = Asset::new("frame.js", JAVASCRIPT, include_str!("../assets/frame.js"));
pub const RELAY: Asset = Asset::new("relay.js", JAVASCRIPT, include_str!("../assets/relay.js"));
pub const METHOD: Asset = Asset::new("method.js", JAVASCRIPT, include_str!("../assets/method.js"));
pub const CHALLENGE: Asset = Asset::new(
    "challenge.js",
    JAVASCRIPT,
    include_str!("../assets/challenge.js"),
);
pub const NOTIFICATION: Asset = Asset::new(
    "notification.js",
    JAVASCRIPT,
    include_str!("../assets/notification.js"),
);
pub const HOSTED: Asset = Asset::new("hosted.js", JAVASCRIPT, include_str!("../assets/hosted.js"));
/// Built from `web/elements/src/checkout`, which shares formats and brands with web elements.
pub const CHECKOUT: Asset = Asset::new(
    "checkout.js",
    JAVASCRIPT,
    include_str!("../../../web/elements/dist/checkout.js"),
);

const ALL: [Asset; 8] = [
    STYLE,
    FRAME,
    RELAY,
    METHOD,
    CHALLENGE,
    NOTIFICATION,
    HOSTED,
    CHECKOUT,
];

/// FNV-1a, to distinguish versions of a file in caches; not for security.
const fn version(bytes: &[u8]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    let mut at = 0;
    while at < bytes.len() {
        hash = (hash ^ bytes[at] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        at += 1;
    }
    hash
}

pub(crate) fn routes<S: Clone + Send + Sync + 'static>() -> OpenApiRouter<S> {
    OpenApiRouter::new().routes(routes!(show_asset))
}

/// Return a stylesheet or script of the hosted pages.
#[utoipa::path(
    get, path = "/pages/assets/{name}", tag = "Hosted pages",
    params(("name" = String, Path, description = "The name of the file.")),
    responses(
        (status = 200, description = "The file.", content((String = "text/css"), (String = "text/javascript"))),
        (status = 404, description = "The file does not exist.", body = Problem),
    ),
)]
async fn show_asset(PathId(name): PathId, RawQuery(query): RawQuery) -> Result<Response, ApiError> {
    let asset = ALL.iter().find(|asset| asset.name == name);
    let asset = asset.ok_or_else(|| ApiError::not_found("There is no such file."))?;
    let is_exact = query.as_deref() == Some(&format!("v={:016x}", asset.version));
    let headers = [
        (CONTENT_TYPE, asset.media_type),
        (CACHE_CONTROL, if is_exact { IMMUTABLE } else { SHORT }),
        (X_CONTENT_TYPE_OPTIONS, "nosniff"),
    ];
    Ok((headers, asset.text).into_response())
}

#[cfg(test)]
mod tests {
    use cloakroom_management::branding::{DARK_SURFACE, LIGHT_SURFACE};

    use super::*;

    /// Branding is checked against these backgrounds.
    #[test]
    fn the_stylesheet_has_the_backgrounds_that_contrast_is_checked_against() {
        let (light, dark) = STYLE.text.split_once("prefers-color-scheme: dark").unwrap();
        assert!(light.contains(&format!("--surface: {LIGHT_SURFACE};")));
        assert!(dark.contains(&format!("--surface: {DARK_SURFACE};")));
    }

    #[test]
    fn files_load_nothing_from_elsewhere() {
        for asset in ALL {
            for forbidden in [
                "url(",
                "@import",
                "//fonts",
                "eval(",
                "innerHTML",
                "localStorage",
            ] {
                assert!(
                    !asset.text.contains(forbidden),
                    "{}: {forbidden}",
                    asset.name
                );
            }
        }
    }
}
