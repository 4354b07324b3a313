//! Tenants and their settings.

use cloakroom_platform::callback_hosts::CallbackHosts;
use cloakroom_platform::egress_hosts::HostList;
use cloakroom_platform::ids::TenantId;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Error, TenantQuotas};

/// Whether a tenant's data is real. Keys of one kind never authenticate for tenants of the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TenantKind {
    Test = 1,
    Production = 2,
}

impl TenantKind {
    pub const ALL: [Self; 2] = [Self::Test, Self::Production];

    pub fn from_number(number: i16) -> Option<Self> {
        match number {
            1 => Some(Self::Test),
            2 => Some(Self::Production),
            _ => None,
        }
    }

    pub fn name(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Production => "production",
        }
    }

    /// Environment segment in API keys.
    pub(super) fn key_segment(self) -> &'static str {
        match self {
            Self::Test => "test",
            Self::Production => "prod",
        }
    }
}

#[derive(Clone, Debug)]
pub struct Tenant {
    pub id: TenantId,
    pub name: String,
    pub kind: TenantKind,
    pub settings: TenantSettings,
    pub quotas: TenantQuotas,
    /// The application that created the tenant; `None` if it was created with the CLI.
    pub created_by: Option<Uuid>,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
}

/// Settings of a tenant. Stored and shown as strings by name.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantSettings {
    /// Whether every token gets a fingerprint, even if the request does not specify one.
    #[serde(with = "flag")]
    pub fingerprint_tokens: bool,
    #[serde(with = "flag")]
    pub disable_ephemeral_proxy: bool,
    /// Whether creating a duplicate returns the existing token.
    #[serde(with = "flag")]
    pub deduplicate_tokens: bool,
    pub token_deduplication_behavior: DeduplicationBehavior,
    /// Whether metadata values may look like card numbers: one in ten 16-digit order numbers does. Omitted when false.
    #[serde(with = "flag", skip_serializing_if = "std::ops::Not::not")]
    pub card_numbers_in_metadata: bool,
    /// Whether configuration values of proxies are returned masked. Omitted when false.
    #[serde(with = "flag", skip_serializing_if = "std::ops::Not::not")]
    pub mask_proxy_configuration: bool,
    /// Hosts that hosted 3-D Secure pages may redirect browsers to. Omitted when empty.
    #[serde(skip_serializing_if = "CallbackHosts::is_empty")]
    pub threeds_callback_hosts: CallbackHosts,
    /// Hosts that proxies and webhooks may send requests to, among those that the operator allows. If `None`, all of
    /// these.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub egress_hosts: Option<HostList>,
    /// Sites that may embed web elements. Omitted when empty.
    #[serde(skip_serializing_if = "CallbackHosts::is_empty")]
    pub elements_sites: CallbackHosts,
    /// Hosts besides the vault that web elements may send values to. Omitted when empty.
    #[serde(skip_serializing_if = "CallbackHosts::is_empty")]
    pub elements_hosts: CallbackHosts,
}

/// How a duplicate affects the existing token.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeduplicationBehavior {
    #[default]
    ReadExisting,
    UpdateExisting,
}

impl Default for TenantSettings {
    fn default() -> Self {
        Self {
            fingerprint_tokens: true,
            disable_ephemeral_proxy: false,
            deduplicate_tokens: false,
            token_deduplication_behavior: DeduplicationBehavior::ReadExisting,
            card_numbers_in_metadata: false,
            mask_proxy_configuration: false,
            threeds_callback_hosts: CallbackHosts::default(),
            egress_hosts: None,
            elements_sites: CallbackHosts::default(),
            elements_hosts: CallbackHosts::default(),
        }
    }
}

impl TenantSettings {
    /// Parses the stored text; settings that were added later get their defaults.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Sets one setting by name.
    pub fn set(&mut self, name: &str, text: &str) -> Result<(), Error> {
        let flag = || match text {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(Error::invalid(name, "must be `true` or `false`")),
        };
        match name {
            "fingerprint_tokens" => self.fingerprint_tokens = flag()?,
            "disable_ephemeral_proxy" => self.disable_ephemeral_proxy = flag()?,
            "deduplicate_tokens" => self.deduplicate_tokens = flag()?,
            "card_numbers_in_metadata" => self.card_numbers_in_metadata = flag()?,
            "mask_proxy_configuration" => self.mask_proxy_configuration = flag()?,
            "token_deduplication_behavior" => {
                self.token_deduplication_behavior = match text {
                    "read_existing" => DeduplicationBehavior::ReadExisting,
                    "update_existing" => DeduplicationBehavior::UpdateExisting,
                    _ => {
                        let rule = "must be `read_existing` or `update_existing`";
                        return Err(Error::invalid(name, rule));
                    }
                }
            }
            "threeds_callback_hosts" => {
                let hosts = text.parse().map_err(|rule| Error::invalid(name, rule));
                self.threeds_callback_hosts = hosts?;
            }
            "egress_hosts" => {
                let hosts = match text.trim() {
                    "" => Ok(None),
                    text => text.parse().map(Some),
                };
                self.egress_hosts = hosts.map_err(|rule| Error::invalid(name, rule))?;
            }
            "elements_sites" => {
                let hosts = text.parse().map_err(|rule| Error::invalid(name, rule));
                self.elements_sites = hosts?;
            }
            "elements_hosts" => {
                let hosts = text.parse().map_err(|rule| Error::invalid(name, rule));
                self.elements_hosts = hosts?;
            }
            _ => return Err(Error::invalid(name, "is no setting")),
        }
        Ok(())
    }
}

/// A boolean serialized as a string: the official clients type every setting as a string.
mod flag {
    use serde::de::Error as _;
    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(flag: &bool, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(if *flag { "true" } else { "false" })
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<bool, D::Error> {
        match String::deserialize(deserializer)?.as_str() {
            "true" => Ok(true),
            "false" => Ok(false),
            _ => Err(D::Error::custom("neither true nor false")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_round_trip_through_text() {
        let mut settings = TenantSettings::default();
        settings.set("deduplicate_tokens", "true").unwrap();
        settings
            .set("token_deduplication_behavior", "update_existing")
            .unwrap();

        let text = settings.to_text();

        insta::assert_snapshot!(text, @r#"{"fingerprint_tokens":"true","disable_ephemeral_proxy":"false","deduplicate_tokens":"true","token_deduplication_behavior":"update_existing"}"#);
        assert_eq!(TenantSettings::parse(&text), Some(settings.clone()));
        settings.set("card_numbers_in_metadata", "true").unwrap();
        settings
            .set("threeds_callback_hosts", "shop.example")
            .unwrap();
        settings
            .set("egress_hosts", "api.example.com, *.psp.example")
            .unwrap();
        let text = settings.to_text();
        assert!(text.contains(r#""card_numbers_in_metadata":"true""#));
        assert!(text.contains(r#""threeds_callback_hosts":"shop.example""#));
        assert!(text.contains(r#""egress_hosts":"*.psp.example,api.example.com""#));
        assert_eq!(TenantSettings::parse(&text), Some(settings.clone()));
        settings.set("egress_hosts", " ").unwrap();
        assert_eq!(settings.egress_hosts, None);
        assert_eq!(TenantSettings::parse("{}"), Some(TenantSettings::default()));
        assert_eq!(
            TenantSettings::parse(r#"{"fingerprint_tokens":true}"#),
            None
        );
    }

    #[test]
    fn unknown_settings_and_values_are_rejected() {
        for (name, text) in [
            ("fingerprint_token", "true"),
            ("fingerprint_tokens", "yes"),
            ("token_deduplication_behavior", "replace"),
            ("threeds_callback_hosts", "https://shop.example"),
            ("egress_hosts", "10.0.0.1"),
            ("egress_hosts", "api.example.com,"),
            ("elements_sites", "*.example"),
            ("elements_hosts", "https://shop.example"),
        ] {
            assert!(
                TenantSettings::default().set(name, text).is_err(),
                "{name} {text}"
            );
        }
    }
}
