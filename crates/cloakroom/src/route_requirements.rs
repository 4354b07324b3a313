//! All routes with their requirements; the table is the reference for tests and documentation.
//!
//! Handlers enforce the requirements. Tests call every route with every permission and compare with
//! this table.

use std::fmt::{self, Write as _};

use Requirement::{AnyOf, Key, KeyInUrl, Kinds, Nothing, Permissions, PrivateKey};
use cloakroom_core::access::ApplicationKind::{self, Private, Public};
use cloakroom_core::access::Permission::{self, *};
use cloakroom_core::access::{ALL_PERMISSIONS, USE_PERMISSIONS};
use http::Method;

/// The requirement of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Requirement {
    Nothing,
    /// Any valid key.
    Key,
    /// A public key as `apiKey` in the URL, because browsers are redirected there.
    KeyInUrl,
    /// Any key of an application of one of these kinds.
    Kinds(&'static [ApplicationKind]),
    /// At least one of these. Scoped permissions are required in the containers of the affected tokens.
    AnyOf(&'static [Permission]),
    /// All of these. Scoped permissions are required in the containers of the affected tokens.
    Permissions(&'static [Permission]),
    /// All of these, with a key of a private application.
    PrivateKey(&'static [Permission]),
}

impl Requirement {
    pub fn permissions(self) -> &'static [Permission] {
        match self {
            Self::Permissions(required) | Self::AnyOf(required) | Self::PrivateKey(required) => {
                required
            }
            Self::Nothing | Self::Key | Self::KeyInUrl | Self::Kinds(_) => &[],
        }
    }

    /// Whether keys of applications of this kind can meet it.
    pub fn admits(self, kind: ApplicationKind) -> bool {
        match self {
            Self::Kinds(kinds) => kinds.contains(&kind),
            Self::PrivateKey(_) => kind == Private,
            _ => true,
        }
    }
}

impl fmt::Display for Requirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Key => f.write_str("any key"),
            Self::KeyInUrl => f.write_str("a public key in the URL, as `apiKey`"),
            Self::Kinds(kinds) => {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                write!(f, "a key of a {} application", names.join(" or "))
            }
            Self::AnyOf(required) => {
                let names: Vec<String> = required.iter().map(|name| format!("`{name}`")).collect();
                f.write_str(&names.join(" or "))
            }
            Self::Permissions(required) => {
                let names: Vec<String> = required.iter().map(|name| format!("`{name}`")).collect();
                f.write_str(&names.join(" and "))
            }
            Self::PrivateKey(required) => {
                write!(f, "{}, with a private key", Self::Permissions(required))
            }
        }
    }
}

/// A route and its requirement.
#[derive(Debug)]
pub struct RouteRequirement {
    pub method: Method,
    pub path: &'static str,
    pub needs: Requirement,
}

impl fmt::Display for RouteRequirement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

macro_rules! route_requirements {
    ($($method:ident $path:literal $needs:expr;)+) => {
        /// All routes of the service, in the order of the documentation.
        pub static ROUTES: &[RouteRequirement] = &[$(RouteRequirement {
            method: Method::$method,
            path: $path,
            needs: $needs,
        }),+];
    };
}

route_requirements! {
    GET "/" Nothing;
    GET "/errors" Nothing;
    GET "/ping" Nothing;
    GET "/openapi.json" Nothing;
    GET "/pages/method.html" Nothing;
    GET "/pages/challenge.html" Nothing;
    GET "/pages/assets/{name}" Nothing;
    GET "/pages/branding/{id}/logo" Nothing;
    GET "/pages/branding/{id}/colors.css" Nothing;
    GET "/checkout/{key}" Nothing;
    POST "/checkout/{key}/card" Nothing;
    GET "/web-elements/{version}/assets.json" Nothing;
    GET "/web-elements/{version}/client/index.js" Nothing;
    GET "/web-elements/{version}/hosted-elements/coordinator.js" Nothing;
    GET "/web-elements/{version}/hosted-elements/field.js" Nothing;
    GET "/web-elements/{version}/hosted-elements/coordinator.html" KeyInUrl;
    GET "/web-elements/{version}/hosted-elements/field.html" KeyInUrl;
    GET "/web-elements/{version}/hosted-elements/keys/{id}" KeyInUrl;

    POST "/tokens" Permissions(&[TokenCreate]);
    GET "/tokens/{id}" Permissions(&[TokenRead]);
    PATCH "/tokens/{id}" Permissions(&[TokenUpdate]);
    DELETE "/tokens/{id}" Permissions(&[TokenDelete]);
    GET "/v2/tokens" Permissions(&[TokenRead]);
    POST "/v2/tokens/search" Permissions(&[TokenSearch]);
    GET "/tokens" Permissions(&[TokenRead]);
    POST "/tokens/search" Permissions(&[TokenSearch]);
    POST "/tokenize" Permissions(&[TokenCreate]);
    POST "/detokenize" Permissions(&[TokenRead]);

    POST "/token-intents" Permissions(&[TokenIntentCreate]);
    GET "/token-intents/{id}" Permissions(&[TokenIntentRead]);
    DELETE "/token-intents/{id}" Permissions(&[TokenIntentDelete]);

    POST "/checkout/sessions" PrivateKey(&[TokenIntentCreate]);
    GET "/checkout/sessions/{id}" PrivateKey(&[TokenIntentRead]);

    POST "/3ds/sessions" Permissions(&[ThreedsSessionCreate]);
    GET "/3ds/sessions/{id}" Permissions(&[ThreedsSessionRead]);
    PUT "/3ds/sessions/{id}" Permissions(&[ThreedsSessionCreate]);
    POST "/3ds/sessions/{id}/authenticate" Permissions(&[ThreedsSessionAuthenticate]);
    GET "/3ds/sessions/{id}/challenge-result" Permissions(&[ThreedsSessionAuthenticate]);
    GET "/3ds/sessions/{id}/method-notification" Nothing;
    POST "/3ds/sessions/{id}/method-notification" Nothing;
    GET "/3ds/sessions/{id}/challenge-notification" Nothing;
    POST "/3ds/sessions/{id}/challenge-notification" Nothing;
    GET "/3ds/redirect/{id}" KeyInUrl;
    POST "/3ds/redirect/{id}/device" KeyInUrl;
    POST "/3ds/redirect/{id}/authenticate" KeyInUrl;
    POST "/3ds/redirect/{id}/finish" KeyInUrl;
    POST "/3ds/redirect/{id}/cancel" KeyInUrl;

    POST "/applications" Permissions(&[ApplicationCreate]);
    GET "/applications" Permissions(&[ApplicationRead]);
    GET "/applications/key" Key;
    GET "/applications/{id}" Permissions(&[ApplicationRead]);
    PUT "/applications/{id}" Permissions(&[ApplicationUpdate]);
    DELETE "/applications/{id}" Permissions(&[ApplicationDelete]);
    POST "/applications/{id}/regenerate" Key;
    POST "/applications/{id}/keys" Permissions(&[ApplicationCreate]);
    GET "/applications/{id}/keys" Permissions(&[ApplicationRead]);
    GET "/applications/{id}/keys/{key_id}" Permissions(&[ApplicationRead]);
    DELETE "/applications/{id}/keys/{key_id}" Permissions(&[ApplicationDelete]);
    GET "/permissions" Key;
    GET "/application-templates" Key;
    GET "/application-templates/{id}" Key;

    POST "/sessions" Kinds(&[Public]);
    POST "/sessions/authorize" Kinds(&[Private]);

    POST "/enrichments/bank-account-verify" AnyOf(USE_PERMISSIONS);
    GET "/enrichments/card-details" Kinds(&[Private, Public]);

    GET "/orchestration/connection_formulas" Permissions(&[ConnectionFormulas]);
    POST "/orchestration/connection_formulas" Permissions(&[ConnectionFormulas]);
    GET "/orchestration/connection_formulas/{id}" Permissions(&[ConnectionFormulas]);
    GET "/orchestration/connection/formulas" Permissions(&[ConnectionFormulas]);
    POST "/orchestration/connection/formulas" Permissions(&[ConnectionFormulas]);
    GET "/orchestration/connection/formulas/{id}" Permissions(&[ConnectionFormulas]);

    POST "/keys" Permissions(&[KeysCreate]);
    GET "/keys" Permissions(&[KeysRead]);
    GET "/keys/{id}" Permissions(&[KeysRead]);
    DELETE "/keys/{id}" Permissions(&[KeysDelete]);

    POST "/proxies" Permissions(&[ProxyCreate]);
    GET "/proxies" Permissions(&[ProxyRead]);
    GET "/proxies/{id}" Permissions(&[ProxyRead]);
    PUT "/proxies/{id}" Permissions(&[ProxyUpdate]);
    PATCH "/proxies/{id}" Permissions(&[ProxyUpdate]);
    DELETE "/proxies/{id}" Permissions(&[ProxyDelete]);
    POST "/proxies/{id}/rotate-key" Permissions(&[ProxyUpdate]);
    POST "/webhooks" Permissions(&[WebhookCreate]);
    GET "/webhooks" Permissions(&[WebhookRead]);
    GET "/webhooks/event-types" Permissions(&[WebhookRead]);
    GET "/webhooks/{id}" Permissions(&[WebhookRead]);
    PUT "/webhooks/{id}" Permissions(&[WebhookUpdate]);
    DELETE "/webhooks/{id}" Permissions(&[WebhookDelete]);
    GET "/webhooks/{id}/deliveries" Permissions(&[WebhookRead]);
    POST "/webhooks/{id}/replay" Permissions(&[WebhookUpdate]);
    GET "/keys/webhooks.v1.key" Nothing;

    GET "/logs" Permissions(&[LogRead]);
    GET "/logs/entity-types" Permissions(&[LogRead]);

    GET "/tenants/self" Permissions(&[TenantRead]);
    PUT "/tenants/self" Permissions(&[TenantUpdate]);
    DELETE "/tenants/self" Permissions(&[TenantDelete]);
    DELETE "/tenants/self/deletion" Permissions(&[TenantUpdate]);
    GET "/tenants/self/quotas" Permissions(&[TenantRead]);
    PUT "/tenants/self/quotas" Permissions(&[TenantUpdate]);
    PUT "/tenants/self/branding" Permissions(&[TenantUpdate]);
    GET "/tenants/self/branding" Permissions(&[TenantRead]);
    DELETE "/tenants/self/branding" Permissions(&[TenantUpdate]);
    GET "/tenants/self/security-contact" Permissions(&[TenantRead]);
    PUT "/tenants/self/security-contact" Permissions(&[TenantUpdate]);
    POST "/tenants/self/connections" Key;
    DELETE "/tenants/self/connections" Key;
    GET "/tenants/self/reports/usage" Permissions(&[ReportRead]);
    GET "/tenants/self/owner" Permissions(&[TenantRead]);
    PUT "/tenants/self/owner" Permissions(&[TenantUpdate]);
    GET "/tenants/self/members" Permissions(&[TenantMemberRead]);
    PUT "/tenants/self/members/{id}" Permissions(&[TenantMemberUpdate]);
    DELETE "/tenants/self/members/{id}" Permissions(&[TenantMemberDelete]);
    POST "/tenants/self/invitations" Permissions(&[TenantInvitationCreate]);
    GET "/tenants/self/invitations" Permissions(&[TenantInvitationRead]);
    GET "/tenants/self/invitations/{id}" Permissions(&[TenantInvitationRead]);
    DELETE "/tenants/self/invitations/{id}" Permissions(&[TenantInvitationDelete]);
    POST "/tenants/self/invitations/{id}/resend"
        Permissions(&[TenantInvitationCreate, TenantInvitationUpdate]);
    GET "/roles" Key;

    GET "/proxy" AnyOf(USE_PERMISSIONS);
    POST "/proxy" AnyOf(USE_PERMISSIONS);
    PUT "/proxy" AnyOf(USE_PERMISSIONS);
    PATCH "/proxy" AnyOf(USE_PERMISSIONS);
    DELETE "/proxy" AnyOf(USE_PERMISSIONS);
    GET "/proxy/{suffix}" AnyOf(USE_PERMISSIONS);
    POST "/proxy/{suffix}" AnyOf(USE_PERMISSIONS);
    PUT "/proxy/{suffix}" AnyOf(USE_PERMISSIONS);
    PATCH "/proxy/{suffix}" AnyOf(USE_PERMISSIONS);
    DELETE "/proxy/{suffix}" AnyOf(USE_PERMISSIONS);

    GET "/reactor-formulas" Key;
    POST "/reactor-formulas" Key;
    GET "/reactor-formulas/{id}" Key;
    PUT "/reactor-formulas/{id}" Key;
    DELETE "/reactor-formulas/{id}" Key;
    GET "/reactors" Key;
    POST "/reactors" Key;
    GET "/reactors/{id}" Key;
    DELETE "/reactors/{id}" Key;
    PUT "/reactors/{id}" Key;
    PATCH "/reactors/{id}" Key;
    POST "/reactors/{id}/react" Key;
    POST "/reactors/{id}/react-async" Key;
    GET "/reactors/{id}/results/{request_id}" Key;
}

const INTRODUCTION: &str = "# Permissions and routes

Every key belongs to an application, and the permissions of the application apply. There are three types of
application: private ones run on servers, public ones in browsers and apps, and management ones administer the tenant.
An application may have only the permissions that are listed for its type below.

A permission in `permissions` of an application applies everywhere. A *scoped* permission can be granted by an
access rule instead, for one container and everything below it; the token's container then decides.

A request without a valid key is a 401. A key that has the required permission in no container gets a 403 before
anything else of the request is validated; a key that has it in other containers gets a 403 for the token, or a list
without it.

`application:grant` makes an application an administrator. Without it, a key creates and changes only management
applications with no more permissions than its own application, and creates keys only for those. `application:create`
and `application:update` alone grant nothing that the key does not have. The same holds for the application of a proxy,
whose permissions its transforms have.

This page is generated by `cargo xtask generate` from the table that the tests check every route against.
";

/// The documentation of the table, as Markdown.
pub fn reference() -> String {
    let mut page = INTRODUCTION.to_owned();
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "\n## Requirements of each route\n\n| Route | Requires |\n| --- | --- |\n"
    );
    for route in ROUTES {
        let is_scoped = route.needs.permissions().iter().any(|it| it.is_scoped());
        let scoped = if is_scoped { ", scoped" } else { "" };
        let _ = writeln!(page, "| `{route}` | {}{scoped} |", route.needs);
    }
    let header =
        "| Permission | Description | Application types | Scoped |\n| --- | --- | --- | --- |";
    let _ = write!(page, "\n## Permissions\n\n{header}\n");
    for permission in ALL_PERMISSIONS {
        let kinds: Vec<&str> = permission.kinds().iter().map(|kind| kind.name()).collect();
        let scoped = if permission.is_scoped() { "yes" } else { "" };
        let description = permission.description();
        let kinds = kinds.join(", ");
        let _ = writeln!(
            page,
            "| `{permission}` | {description} | {kinds} | {scoped} |"
        );
    }
    let header = "| Permission | Routes |\n| --- | --- |";
    let _ = write!(page, "\n## Routes of each permission\n\n{header}\n");
    for permission in ALL_PERMISSIONS {
        let _ = writeln!(
            page,
            "| `{permission}` | {} |",
            routes_requiring(*permission)
        );
    }
    page
}

fn routes_requiring(permission: Permission) -> String {
    let routes = ROUTES.iter().filter_map(|route| {
        let required = route.needs.permissions();
        let others = required.iter().filter(|other| **other != permission);
        let word = match route.needs {
            AnyOf(_) => "or",
            _ => "with",
        };
        let others: String = others.map(|other| format!(", {word} `{other}`")).collect();
        let is_required = required.contains(&permission);
        is_required.then(|| format!("`{route}`{others}"))
    });
    let routes: Vec<String> = routes.collect();
    match routes.is_empty() {
        true => "none yet".to_owned(),
        false => routes.join("<br>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn routes_are_listed_by_permission() {
        assert_eq!(
            routes_requiring(TokenSearch),
            "`POST /v2/tokens/search`<br>`POST /tokens/search`"
        );
        assert_eq!(
            routes_requiring(TenantInvitationUpdate),
            "`POST /tenants/self/invitations/{id}/resend`, with `tenant:invitation:create`"
        );
        assert_eq!(routes_requiring(ApplePayManage), "none yet");
    }

    #[test]
    fn reference_lists_every_route_and_permission() {
        let reference = reference();

        for row in [
            "| `GET /ping` | nothing |",
            "| `GET /roles` | any key |",
            "| `POST /tokens` | `token:create`, scoped |",
            "| `token:create` | Create tokens | public, private | yes |",
            "| `log:read` | Read logs | management |  |",
        ] {
            assert!(reference.contains(row), "{row}");
        }
        let rows = reference.lines().filter(|line| line.starts_with("| `"));
        assert_eq!(rows.count(), ROUTES.len() + 2 * ALL_PERMISSIONS.len());
    }
}
