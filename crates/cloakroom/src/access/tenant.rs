//! A tenant: whose tokens these are.

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::{Error, TenantQuotas};
use crate::ids::TenantId;

/// Whether a tenant's data is real. Keys of one kind never reach tenants of the other.
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

    /// How API keys spell it.
    pub(super) fn key_mark(self) -> &'static str {
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
    /// The application that made it; nothing when it was made by command.
    pub created_by: Option<Uuid>,
    pub created_at: Timestamp,
    pub modified_by: Option<Uuid>,
    pub modified_at: Option<Timestamp>,
}

/// How a tenant wants its tokens treated. Kept and shown as names with text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct TenantSettings {
    /// Whether every token gets a fingerprint, asked for or not.
    #[serde(with = "flag")]
    pub fingerprint_tokens: bool,
    #[serde(with = "flag")]
    pub disable_ephemeral_proxy: bool,
    /// Whether a token that is already there is returned instead of a second one.
    #[serde(with = "flag")]
    pub deduplicate_tokens: bool,
    pub token_deduplication_behavior: DeduplicationBehavior,
}

/// What happens to the token that is already there.
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
        }
    }
}

impl TenantSettings {
    /// Reads what was kept; settings that did not exist then have their defaults.
    pub fn parse(text: &str) -> Option<Self> {
        serde_json::from_str(text).ok()
    }

    pub fn to_text(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Changes one setting by its name.
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
            _ => return Err(Error::invalid(name, "is no setting")),
        }
        Ok(())
    }
}

/// A flag that is written as text: official clients type every setting so.
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
    fn settings_are_kept_as_text_and_read_back() {
        let mut settings = TenantSettings::default();
        settings.set("deduplicate_tokens", "true").unwrap();
        settings
            .set("token_deduplication_behavior", "update_existing")
            .unwrap();

        let text = settings.to_text();

        insta::assert_snapshot!(text, @r#"{"fingerprint_tokens":"true","disable_ephemeral_proxy":"false","deduplicate_tokens":"true","token_deduplication_behavior":"update_existing"}"#);
        assert_eq!(TenantSettings::parse(&text), Some(settings));
        assert_eq!(TenantSettings::parse("{}"), Some(TenantSettings::default()));
        assert_eq!(
            TenantSettings::parse(r#"{"fingerprint_tokens":true}"#),
            None
        );
    }

    #[test]
    fn unknown_settings_and_values_are_refused() {
        for (name, text) in [
            ("fingerprint_token", "true"),
            ("fingerprint_tokens", "yes"),
            ("token_deduplication_behavior", "replace"),
        ] {
            assert!(
                TenantSettings::default().set(name, text).is_err(),
                "{name} {text}"
            );
        }
    }
}
