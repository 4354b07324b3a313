//! Types of settings: parsing, formatting and description.

use std::fmt;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::SignedDuration;

use super::finding::Finding;

/// The type of a setting.
///
/// Error messages state the rule but never the value, which may be a misplaced secret.
pub(super) trait Setting: Sized {
    /// Whether a TOML array is accepted as well.
    const IS_LIST: bool = false;

    fn kind() -> String;
    fn parse(text: &str) -> Result<Self, String>;
    /// The value in configuration syntax; `None` if unset or secret.
    fn text(&self) -> Option<String>;
}

/// Defines an enum whose variants are selected by name in the configuration.
macro_rules! choice {
    (
        $(#[$meta:meta])*
        pub enum $name:ident { $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+ }
    ) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, Eq, PartialEq)]
        pub enum $name { $($(#[$variant_meta])* $variant,)+ }

        impl $name {
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }

        impl $crate::config::setting::Setting for $name {
            fn kind() -> String {
                [$(concat!("`", $text, "`")),+].join(", ")
            }

            fn parse(text: &str) -> Result<Self, String> {
                match text {
                    $($text => Ok(Self::$variant),)+
                    _ => Err(format!("must be one of {}", Self::kind())),
                }
            }

            fn text(&self) -> Option<String> {
                Some(self.as_str().to_owned())
            }
        }
    };
}
pub(super) use choice;

/// Text that is redacted in `Debug` output, such as a database URL with its password.
#[derive(Clone, Eq, PartialEq)]
pub struct Secret(String);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    pub fn reveal(&self) -> &str {
        &self.0
    }

    /// Reads the secret from `file`, the value of the setting with the suffix `_file`.
    pub(super) fn resolve(
        setting: &str,
        secret: &mut Option<Self>,
        file: Option<&Path>,
        findings: &mut Vec<Finding>,
    ) {
        let Some(path) = file else { return };
        let location = format!("{setting}_file");
        if secret.is_some() {
            let message = format!("{setting} is set as well; remove one of them");
            findings.push(Finding::error(location, message));
            return;
        }
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("cannot read {}: {}", path.display(), error.kind()));
        match text.and_then(|text| Self::parse(&text)) {
            Ok(found) => *secret = Some(found),
            Err(message) => findings.push(Finding::error(location, message)),
        }
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl Setting for Secret {
    fn kind() -> String {
        "secret text".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text.trim() {
            "" => Err("must not be empty".to_owned()),
            trimmed => Ok(Self::new(trimmed)),
        }
    }

    fn text(&self) -> Option<String> {
        None
    }
}

impl<T: Setting> Setting for Option<T> {
    const IS_LIST: bool = T::IS_LIST;

    fn kind() -> String {
        T::kind()
    }

    fn parse(text: &str) -> Result<Self, String> {
        T::parse(text).map(Some)
    }

    fn text(&self) -> Option<String> {
        self.as_ref().and_then(Setting::text)
    }
}

impl Setting for String {
    fn kind() -> String {
        "text".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        if text.is_empty() {
            return Err("must not be empty".to_owned());
        }
        Ok(text.to_owned())
    }

    fn text(&self) -> Option<String> {
        Some(self.clone())
    }
}

impl Setting for PathBuf {
    fn kind() -> String {
        "path".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        String::parse(text).map(Self::from)
    }

    fn text(&self) -> Option<String> {
        Some(self.display().to_string())
    }
}

impl Setting for bool {
    fn kind() -> String {
        "`true`, `false`".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "must be true or false".to_owned())
    }

    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }
}

/// Integer settings are limits. Zero is rejected because it would stop the service.
impl Setting for usize {
    fn kind() -> String {
        "whole number".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        match text.parse() {
            Ok(0) | Err(_) => Err("must be a whole number, 1 or more".to_owned()),
            Ok(number) => Ok(number),
        }
    }

    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Setting for f64 {
    fn kind() -> String {
        "number".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "must be a number".to_owned())
    }

    fn text(&self) -> Option<String> {
        Some(format!("{self:?}"))
    }
}

impl Setting for SocketAddr {
    fn kind() -> String {
        "address and port".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        text.parse()
            .map_err(|_| "must be an address and a port, such as 127.0.0.1:8080".to_owned())
    }

    fn text(&self) -> Option<String> {
        Some(self.to_string())
    }
}

impl Setting for Duration {
    fn kind() -> String {
        "duration".to_owned()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let signed: Option<SignedDuration> = text.parse().ok();
        signed
            .and_then(|signed| Duration::try_from(signed).ok())
            .filter(|duration| !duration.is_zero())
            .ok_or_else(|| "must be a duration above zero, such as 10s, 5m or 1h".to_owned())
    }

    fn text(&self) -> Option<String> {
        let signed = SignedDuration::try_from(*self).ok()?;
        Some(format!("{signed:#}"))
    }
}

#[cfg(test)]
mod tests;
