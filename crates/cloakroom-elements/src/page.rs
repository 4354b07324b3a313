//! The two pages that run in frames, and the policy that browsers enforce for them.

use axum::response::{IntoResponse, Response};
use cloakroom_core::access::{Principal, TenantKind};
use cloakroom_platform::callback_hosts::CallbackHosts;
use http::HeaderName;
use http::header::{CACHE_CONTROL, CONTENT_SECURITY_POLICY, CONTENT_TYPE, REFERRER_POLICY};

const COORDINATOR: &str = include_str!("../../../web/elements/dist/coordinator.html");
const FIELD: &str = include_str!("../../../web/elements/dist/field.html");
const PERMISSIONS_POLICY: HeaderName = HeaderName::from_static("permissions-policy");

/// Nothing but the clipboard, which copy buttons write to.
const PERMISSIONS: &str = "accelerometer=(), browsing-topics=(), camera=(), clipboard-read=(), clipboard-write=(self), \
    display-capture=(), fullscreen=(), geolocation=(), gyroscope=(), hid=(), identity-credentials-get=(), \
    local-fonts=(), magnetometer=(), microphone=(), midi=(), otp-credentials=(), payment=(), \
    publickey-credentials-get=(), screen-wake-lock=(), serial=(), storage-access=(), usb=()";

/// Sites of a test tenant without a list: any. It has no real cards.
const ANY_SITE: &str = "https: http://localhost:* http://127.0.0.1:*";
const LOCAL_SITES: &str = " http://localhost:* http://127.0.0.1:*";

/// A frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Page {
    /// Holds values and sends requests.
    Coordinator,
    /// Shows an input.
    Field,
}

impl Page {
    /// Renders the page for the tenant of a public key.
    pub(crate) fn respond(self, principal: &Principal) -> Response {
        let hosts = &principal.settings.elements_hosts;
        let html = match self {
            // Hosts are DNS names, so nothing needs to be escaped.
            Self::Coordinator => COORDINATOR.replace("{hosts}", &hosts.to_string()),
            Self::Field => FIELD.to_owned(),
        };
        let sites = sites(principal.tenant_kind, &principal.settings.elements_sites);
        let headers = [
            (CONTENT_TYPE, "text/html; charset=utf-8".to_owned()),
            // A site that the tenant removes keeps the page for this long at most.
            (CACHE_CONTROL, "private, max-age=300".to_owned()),
            (REFERRER_POLICY, "no-referrer".to_owned()),
            (CONTENT_SECURITY_POLICY, self.policy(&sites, hosts)),
            (PERMISSIONS_POLICY, PERMISSIONS.to_owned()),
            (
                HeaderName::from_static("cross-origin-resource-policy"),
                "cross-origin".to_owned(),
            ),
            (
                HeaderName::from_static("cross-origin-embedder-policy"),
                "require-corp".to_owned(),
            ),
        ];
        (headers, html).into_response()
    }

    /// No inline code, no `eval`, no images, fonts, styles or frames. A field sends no requests at all.
    fn policy(self, sites: &str, hosts: &CallbackHosts) -> String {
        let connect = match self {
            Self::Coordinator => {
                let others = hosts.names().map(|host| format!(" https://{host}"));
                format!("'self'{}", others.collect::<String>())
            }
            Self::Field => "'none'".to_owned(),
        };
        format!(
            "default-src 'none'; script-src 'self'; connect-src {connect}; frame-ancestors {sites}; base-uri 'none'; \
             form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
        )
    }
}

/// The sites that may embed the frames. Without a list, no site may embed those of a production tenant.
fn sites(kind: TenantKind, listed: &CallbackHosts) -> String {
    let names = listed.names().map(|host| format!("https://{host}"));
    let names: Vec<String> = names.collect();
    match (kind, names.is_empty()) {
        (TenantKind::Test, true) => ANY_SITE.to_owned(),
        (TenantKind::Test, false) => names.join(" ") + LOCAL_SITES,
        (TenantKind::Production, true) => "'none'".to_owned(),
        (TenantKind::Production, false) => names.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hosts(text: &str) -> CallbackHosts {
        text.parse().unwrap()
    }

    #[test]
    fn production_tenants_must_list_their_sites() {
        let listed = "https://shop.example https://www.shop.example";
        let cases = [
            (TenantKind::Production, "", "'none'".to_owned()),
            (
                TenantKind::Production,
                "www.shop.example,shop.example",
                listed.to_owned(),
            ),
            (TenantKind::Test, "", ANY_SITE.to_owned()),
            (
                TenantKind::Test,
                "www.shop.example,shop.example",
                listed.to_owned() + LOCAL_SITES,
            ),
        ];
        for (kind, list, expected) in cases {
            assert_eq!(sites(kind, &hosts(list)), expected, "{kind:?} {list}");
        }
    }

    #[test]
    fn only_the_coordinator_sends_requests_and_only_to_listed_hosts() {
        let listed = hosts("api.shop.example");

        let field = Page::Field.policy("'none'", &listed);
        let coordinator = Page::Coordinator.policy("'none'", &listed);

        assert!(field.contains("connect-src 'none';"), "{field}");
        let expected = "connect-src 'self' https://api.shop.example;";
        assert!(coordinator.contains(expected), "{coordinator}");
        for policy in [field, coordinator] {
            assert!(!policy.contains("unsafe"), "{policy}");
        }
    }
}
