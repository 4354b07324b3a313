//! Every route once, with what it needs: the one table that tests and documentation go by.
//!
//! The handlers do the asking. The table says what they are to ask for, and the tests try every route
//! with every permission.

use std::fmt::{self, Write as _};

use http::Method;

use crate::access::ALL_PERMISSIONS;
use crate::access::ApplicationKind::{self, Private, Public};
use crate::access::Permission::{self, *};
use Needs::{Key, KeyInAddress, Kinds, Nothing, Permissions};

/// Who may pass a door.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    /// Any valid key.
    Key,
    /// A public key as `apiKey` in the address, because a browser is sent there.
    KeyInAddress,
    /// Any key of an application of one of these kinds.
    Kinds(&'static [ApplicationKind]),
    /// All of these. The scoped ones are needed in the containers of the tokens concerned.
    Permissions(&'static [Permission]),
}

impl Needs {
    pub fn permissions(self) -> &'static [Permission] {
        match self {
            Self::Permissions(needed) => needed,
            Self::Nothing | Self::Key | Self::KeyInAddress | Self::Kinds(_) => &[],
        }
    }
}

impl fmt::Display for Needs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Nothing => f.write_str("nothing"),
            Self::Key => f.write_str("any key"),
            Self::KeyInAddress => f.write_str("a public key in the address, as `apiKey`"),
            Self::Kinds(kinds) => {
                let names: Vec<&str> = kinds.iter().map(|kind| kind.name()).collect();
                write!(f, "a key of a {} application", names.join(" or "))
            }
            Self::Permissions(needed) => {
                let names: Vec<String> = needed.iter().map(|name| format!("`{name}`")).collect();
                f.write_str(&names.join(" and "))
            }
        }
    }
}

/// A route and what it needs.
#[derive(Debug)]
pub struct Door {
    pub method: Method,
    pub path: &'static str,
    pub needs: Needs,
}

impl fmt::Display for Door {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method, self.path)
    }
}

macro_rules! doors {
    ($($method:ident $path:literal $needs:expr;)+) => {
        /// Every route of the service, in the order of the documentation.
        pub static DOORS: &[Door] = &[$(Door {
            method: Method::$method,
            path: $path,
            needs: $needs,
        }),+];
    };
}

doors! {
    GET "/ping" Nothing;
    GET "/openapi.json" Nothing;
    GET "/pages/method.html" Nothing;
    GET "/pages/challenge.html" Nothing;

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

    POST "/3ds/sessions" Permissions(&[ThreedsSessionCreate]);
    GET "/3ds/sessions/{id}" Permissions(&[ThreedsSessionRead]);
    PUT "/3ds/sessions/{id}" Permissions(&[ThreedsSessionCreate]);
    POST "/3ds/sessions/{id}/authenticate" Permissions(&[ThreedsSessionAuthenticate]);
    GET "/3ds/sessions/{id}/challenge-result" Permissions(&[ThreedsSessionAuthenticate]);
    GET "/3ds/sessions/{id}/method-notification" Nothing;
    POST "/3ds/sessions/{id}/method-notification" Nothing;
    GET "/3ds/sessions/{id}/challenge-notification" Nothing;
    POST "/3ds/sessions/{id}/challenge-notification" Nothing;
    GET "/3ds/redirect/{id}" KeyInAddress;
    POST "/3ds/redirect/{id}/device" KeyInAddress;
    POST "/3ds/redirect/{id}/authenticate" KeyInAddress;
    POST "/3ds/redirect/{id}/finish" KeyInAddress;

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

    POST "/enrichments/bank-account-verify" Permissions(&[TokenUse]);
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

    GET "/logs" Permissions(&[LogRead]);
    GET "/logs/entity-types" Permissions(&[LogRead]);

    GET "/tenants/self" Permissions(&[TenantRead]);
    PUT "/tenants/self" Permissions(&[TenantUpdate]);
    DELETE "/tenants/self" Permissions(&[TenantDelete]);
    GET "/tenants/self/quotas" Permissions(&[TenantRead]);
    PUT "/tenants/self/quotas" Permissions(&[TenantUpdate]);
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
    GET "/proxies" Key;
    POST "/proxies" Key;
    GET "/proxies/{id}" Key;
    DELETE "/proxies/{id}" Key;
    PUT "/proxies/{id}" Key;
    PATCH "/proxies/{id}" Key;
}

const OPENING: &str = "# Who may ask what

Every key belongs to an application, and what the application was granted decides. Three kinds of application
exist: private ones run on servers, public ones in browsers and apps, management ones administer. A kind may
hold only the permissions that are listed for it below.

A permission in the list `permissions` of an application holds everywhere. A *scoped* one can be given by an
access rule instead, for one container and everything below it; the token's container then decides.

Without a valid key the answer is 401. A key that holds what is needed nowhere gets 403 before anything else of
the request is looked at; one that holds it in other containers gets 403 for the token, or a list without it.

This page is written by `cargo xtask generate` from the table that the tests try every route by.
";

/// The documentation of the table, as Markdown.
pub fn reference() -> String {
    let mut page = OPENING.to_owned();
    // Writing to a string cannot fail.
    let _ = write!(
        page,
        "\n## What each route needs\n\n| route | needs |\n| --- | --- |\n"
    );
    for door in DOORS {
        let is_scoped = door.needs.permissions().iter().any(|it| it.is_scoped());
        let scoped = if is_scoped { ", scoped" } else { "" };
        let _ = writeln!(page, "| `{door}` | {}{scoped} |", door.needs);
    }
    let heads = "| permission | for | kinds of application | scoped |\n| --- | --- | --- | --- |";
    let _ = write!(page, "\n## The permissions\n\n{heads}\n");
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
    let heads = "| permission | routes |\n| --- | --- |";
    let _ = write!(page, "\n## What each permission opens\n\n{heads}\n");
    for permission in ALL_PERMISSIONS {
        let _ = writeln!(page, "| `{permission}` | {} |", opened_by(*permission));
    }
    page
}

fn opened_by(permission: Permission) -> String {
    let opened = DOORS.iter().filter_map(|door| {
        let needed = door.needs.permissions();
        let others = needed.iter().filter(|other| **other != permission);
        let others: String = others.map(|other| format!(", with `{other}`")).collect();
        let is_opened = needed.contains(&permission);
        is_opened.then(|| format!("`{door}`{others}"))
    });
    let opened: Vec<String> = opened.collect();
    match opened.is_empty() {
        true => "none yet".to_owned(),
        false => opened.join("<br>"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permission_opens_the_doors_that_need_it() {
        assert_eq!(
            opened_by(TokenSearch),
            "`POST /v2/tokens/search`<br>`POST /tokens/search`"
        );
        assert_eq!(
            opened_by(TenantInvitationUpdate),
            "`POST /tenants/self/invitations/{id}/resend`, with `tenant:invitation:create`"
        );
        assert_eq!(opened_by(ApplePayManage), "none yet");
    }

    #[test]
    fn the_reference_names_every_route_and_every_permission() {
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
        assert_eq!(rows.count(), DOORS.len() + 2 * ALL_PERMISSIONS.len());
    }
}
