//! E-mail addresses. Only the syntax is validated.

use cloakroom_platform::card_numbers::contains_card_number;

const LENGTH_MAX: usize = 330;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Email(String);

impl Email {
    pub fn parse(text: &str) -> Result<Self, String> {
        let is_plain = !text.contains(|c: char| c.is_whitespace() || c.is_control());
        let is_shaped = match text.split_once('@') {
            Some((local, domain)) => {
                !local.is_empty() && !domain.is_empty() && !domain.contains('@')
            }
            None => false,
        };
        if !is_plain || !is_shaped || text.chars().count() > LENGTH_MAX {
            return Err(format!(
                "must be an e-mail address of at most {LENGTH_MAX} characters"
            ));
        }
        // Addresses are stored and shown in plaintext.
        if contains_card_number(text) {
            return Err("must not hold a card number".to_owned());
        }
        Ok(Self(text.to_owned()))
    }

    /// Wraps an address that was validated before it was stored.
    pub(super) fn from_stored(text: String) -> Self {
        Self(text)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_have_a_local_part_a_domain_and_a_maximum_length() {
        let longest = format!("{}@example.com", "é".repeat(318));
        let too_long = format!("e{longest}");
        let cases = [
            ("ada@example.com", true),
            ("ada+tokens@sub.example", true),
            ("ада@пример", true),
            (longest.as_str(), true),
            (too_long.as_str(), false),
            ("", false),
            ("ada", false),
            ("@example.com", false),
            ("ada@", false),
            ("ada@b@c", false),
            ("ada lovelace@example.com", false),
            ("ada@example.com\n", false),
            ("4242424242424242@example.com", false),
        ];
        for (text, expected) in cases {
            assert_eq!(Email::parse(text).is_ok(), expected, "{text}");
        }
    }
}
