//! Permissions and the application types that may hold them.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::ApplicationKind::{self, Management, Private, Public};

/// Lists every permission once: variant, name, application types, and description.
macro_rules! permissions {
    ($($variant:ident $name:literal [$($kind:ident)+] $description:literal;)+) => {
        /// An operation that an application may be allowed to perform.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Permission { $($variant),+ }

        /// Every permission, in the order of the documentation.
        pub const ALL_PERMISSIONS: &[Permission] = &[$(Permission::$variant),+];

        impl Permission {
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),+ }
            }

            pub fn description(self) -> &'static str {
                match self { $(Self::$variant => $description),+ }
            }

            /// The application types that may hold it.
            pub fn kinds(self) -> &'static [ApplicationKind] {
                match self { $(Self::$variant => &[$($kind),+]),+ }
            }
        }
    };
}

permissions! {
    TokenCreate "token:create" [Public Private] "Create tokens";
    TokenUpdate "token:update" [Public Private] "Update tokens";
    TokenRead "token:read" [Private] "Read tokens";
    TokenSearch "token:search" [Private] "Search tokens";
    TokenDelete "token:delete" [Private] "Delete tokens";
    TokenUse "token:use" [Private] "Use tokens in proxies and reactors";
    TokenIntentCreate "token-intent:create" [Public Private] "Create token intents";
    TokenIntentRead "token-intent:read" [Private] "Read token intents";
    TokenIntentDelete "token-intent:delete" [Private] "Delete token intents";
    ThreedsSessionCreate "3ds:session:create" [Public Private] "Create 3DS sessions";
    ThreedsSessionRead "3ds:session:read" [Private] "Read 3DS sessions";
    ThreedsSessionAuthenticate "3ds:session:authenticate" [Private] "Authenticate 3DS sessions";
    ProxyInvoke "proxy:invoke" [Private] "Invoke proxies";
    ReactorInvoke "reactor:invoke" [Private] "Invoke reactors";
    DocumentsCreate "documents:create" [Private] "Create documents";
    DocumentsRead "documents:read" [Private] "Read documents";
    DocumentsReveal "documents:reveal" [Private] "Reveal documents";
    DocumentsDelete "documents:delete" [Private] "Delete documents";
    NetworkTokenCreate "network-token:create" [Private] "Create network tokens";
    NetworkTokenRead "network-token:read" [Private] "Read network tokens";
    NetworkTokenReveal "network-token:reveal" [Private] "Reveal network tokens";
    NetworkTokenCryptogram "network-token:cryptogram" [Private] "Create cryptograms";
    NetworkTokenSuspend "network-token:suspend" [Private] "Suspend network tokens";
    NetworkTokenResume "network-token:resume" [Private] "Resume network tokens";
    NetworkTokenDelete "network-token:delete" [Private] "Delete network tokens";
    AccountUpdaterJobCreate "account-updater:job:create" [Private] "Create account updater jobs";
    AccountUpdaterJobRead "account-updater:job:read" [Private] "Read account updater jobs";
    AccountUpdaterInvoke "account-updater:real-time:invoke" [Private] "Update one account at once";
    ApplePayCreate "apple-pay:create" [Public Private] "Create Apple Pay tokens";
    ApplePaySession "apple-pay:session" [Public Private] "Start Apple Pay sessions";
    ApplePayRead "apple-pay:read" [Private] "Read Apple Pay tokens";
    ApplePayReveal "apple-pay:reveal" [Private] "Reveal Apple Pay tokens";
    ApplePayDelete "apple-pay:delete" [Private] "Delete Apple Pay tokens";
    ApplePayUnlink "apple-pay:unlink" [Private] "Unlink Apple Pay tokens";
    ApplePayManage "apple-pay:manage" [Management] "Manage Apple Pay domains";
    GooglePayCreate "google-pay:create" [Public Private] "Create Google Pay tokens";
    GooglePayRead "google-pay:read" [Private] "Read Google Pay tokens";
    GooglePayReveal "google-pay:reveal" [Private] "Reveal Google Pay tokens";
    GooglePayDelete "google-pay:delete" [Private] "Delete Google Pay tokens";
    ConnectionFormulas "orchestration:connection_formulas" [Private Management] "List connection formulas";
    ApplicationRead "application:read" [Management] "Read applications";
    ApplicationCreate "application:create" [Management] "Create applications";
    ApplicationUpdate "application:update" [Management] "Update applications";
    ApplicationDelete "application:delete" [Management] "Delete applications";
    ApplicationGrant "application:grant" [Management] "Administrator: grant more than the application itself holds";
    TenantRead "tenant:read" [Management] "Read the tenant";
    TenantUpdate "tenant:update" [Management] "Update the tenant";
    TenantDelete "tenant:delete" [Management] "Delete the tenant";
    TenantMemberRead "tenant:member:read" [Management] "Read members";
    TenantMemberUpdate "tenant:member:update" [Management] "Update members";
    TenantMemberDelete "tenant:member:delete" [Management] "Delete members";
    TenantInvitationCreate "tenant:invitation:create" [Management] "Create invitations";
    TenantInvitationRead "tenant:invitation:read" [Management] "Read invitations";
    TenantInvitationUpdate "tenant:invitation:update" [Management] "Update invitations";
    TenantInvitationDelete "tenant:invitation:delete" [Management] "Delete invitations";
    LogRead "log:read" [Management] "Read logs";
    ReportRead "report:read" [Management] "Read reports";
    ProxyRead "proxy:read" [Management] "Read proxies";
    ProxyCreate "proxy:create" [Management] "Create proxies";
    ProxyUpdate "proxy:update" [Management] "Update proxies";
    ProxyDelete "proxy:delete" [Management] "Delete proxies";
    ReactorRead "reactor:read" [Management] "Read reactors";
    ReactorCreate "reactor:create" [Management] "Create reactors";
    ReactorUpdate "reactor:update" [Management] "Update reactors";
    ReactorDelete "reactor:delete" [Management] "Delete reactors";
    WebhookRead "webhook:read" [Management] "Read webhooks";
    WebhookCreate "webhook:create" [Management] "Create webhooks";
    WebhookUpdate "webhook:update" [Management] "Update webhooks";
    WebhookDelete "webhook:delete" [Management] "Delete webhooks";
    KeysCreate "keys:create" [Management] "Create client encryption keys";
    KeysRead "keys:read" [Management] "Read client encryption keys";
    KeysDelete "keys:delete" [Management] "Delete client encryption keys";
}

/// The names of the permission to use tokens.
pub const USE_PERMISSIONS: &[Permission] = &[Permission::ProxyInvoke, Permission::TokenUse];

impl Permission {
    /// Finds a permission by name. `webhooks:` is an alias of `webhook:`: the documentation uses both.
    pub fn parse(name: &str) -> Option<Self> {
        let webhook = name
            .strip_prefix("webhooks:")
            .map(|verb| format!("webhook:{verb}"));
        let name = webhook.as_deref().unwrap_or(name);
        ALL_PERMISSIONS
            .iter()
            .copied()
            .find(|permission| permission.name() == name)
    }

    /// The names of the same permission: `proxy:invoke` is the newer name of `token:use`.
    fn names(&self) -> &[Self] {
        match self {
            Self::TokenUse | Self::ProxyInvoke => USE_PERMISSIONS,
            name => std::slice::from_ref(name),
        }
    }

    pub fn fits(self, kind: ApplicationKind) -> bool {
        self.kinds().contains(&kind)
    }

    /// Whether a session may hold it: every permission of public applications, and every token permission.
    pub fn fits_session(self) -> bool {
        self.fits(Public) || self.is_scoped()
    }

    /// Whether an access rule can restrict it to containers.
    pub fn is_scoped(self) -> bool {
        self.name().starts_with("token:") || matches!(self, Self::ProxyInvoke | Self::ReactorInvoke)
    }
}

impl fmt::Display for Permission {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Serialize for Permission {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for Permission {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let name = std::borrow::Cow::<str>::deserialize(deserializer)?;
        Self::parse(&name).ok_or_else(|| serde::de::Error::custom("expected a known permission"))
    }
}

/// A set of permissions, stored as a bit set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PermissionSet(u128);

impl PermissionSet {
    /// Whether the set grants a permission, under any of its names.
    pub fn contains(self, permission: Permission) -> bool {
        let names = permission.names().iter();
        names.fold(0, |bits, name| bits | 1 << *name as u8) & self.0 != 0
    }

    /// The permissions by the names that they were granted under.
    pub fn iter(self) -> impl Iterator<Item = Permission> {
        let is_named = move |permission: &Permission| self.0 & (1 << *permission as u8) != 0;
        ALL_PERMISSIONS.iter().copied().filter(is_named)
    }

    pub fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl FromIterator<Permission> for PermissionSet {
    fn from_iter<I: IntoIterator<Item = Permission>>(permissions: I) -> Self {
        Self(
            permissions
                .into_iter()
                .fold(0, |bits, permission| bits | 1 << permission as u8),
        )
    }
}

impl Serialize for PermissionSet {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(self.iter())
    }
}

impl<'de> Deserialize<'de> for PermissionSet {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Ok(Vec::<Permission>::deserialize(deserializer)?
            .into_iter()
            .collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_permission_has_a_unique_name_and_bit() {
        assert!(ALL_PERMISSIONS.len() <= 128);
        for permission in ALL_PERMISSIONS {
            assert_eq!(Permission::parse(permission.name()), Some(*permission));
            let alone: PermissionSet = [*permission].into_iter().collect();
            assert_eq!(alone.iter().collect::<Vec<_>>(), [*permission]);
        }
        assert_eq!(
            Permission::parse("webhooks:read"),
            Some(Permission::WebhookRead)
        );
        assert_eq!(Permission::parse("token:pci:read"), None);
    }

    #[test]
    fn public_applications_hold_only_browser_safe_permissions() {
        let public: Vec<&str> = ALL_PERMISSIONS
            .iter()
            .filter(|permission| permission.fits(Public))
            .map(|permission| permission.name())
            .collect();
        assert_eq!(
            public,
            [
                "token:create",
                "token:update",
                "token-intent:create",
                "3ds:session:create",
                "apple-pay:create",
                "apple-pay:session",
                "google-pay:create",
            ]
        );
    }
}
