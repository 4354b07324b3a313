//! The operator of a CLI command, as named in the audit log.

use cloakroom_platform::card_numbers::contains_card_number;

const NAME_CHARS_MAX: usize = 100;
/// Name, user and host.
const TEXT_CHARS_MAX: usize = 300;

/// Who runs a command, and where: `ada@vault1`, or `Grace Hopper, ada@vault1` if the operator set a
/// name.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Operator(String);

impl Operator {
    /// The operating-system user on a host, with the operator's own name if set.
    pub fn new(name: Option<&str>, user: &str, host: &str) -> Result<Self, &'static str> {
        let text = match name {
            Some(name) if !is_name(name) => {
                return Err("must be 1 to 100 printable characters, and no card number");
            }
            Some(name) => format!("{name}, {user}@{host}"),
            None => format!("{user}@{host}"),
        };
        Ok(Self(text))
    }

    /// An operator that another process of this host has named.
    pub fn parse(text: &str) -> Option<Self> {
        let length = text.chars().count();
        let is_plain = !text.chars().any(char::is_control) && !contains_card_number(text);
        let is_operator = (1..=TEXT_CHARS_MAX).contains(&length) && is_plain;
        is_operator.then(|| Self(text.to_owned()))
    }

    /// The operating-system user, without the host and the name that the operator chose.
    pub fn user(&self) -> &str {
        let account = self.0.rsplit(", ").next().unwrap_or_default();
        account.rsplit_once('@').map_or(account, |(user, _)| user)
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_name(name: &str) -> bool {
    let length = name.chars().count();
    (1..=NAME_CHARS_MAX).contains(&length)
        && !name.chars().any(char::is_control)
        && !contains_card_number(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_operator_is_named_by_user_and_host() {
        let shown = |name| Operator::new(name, "ada", "vault1").ok().map(|one| one.0);

        assert_eq!(shown(None).as_deref(), Some("ada@vault1"));
        let named = shown(Some("Grace Hopper"));
        assert_eq!(named.as_deref(), Some("Grace Hopper, ada@vault1"));
        for invalid in ["", "a\nb", "4242424242424242", &"x".repeat(101)] {
            assert_eq!(shown(Some(invalid)), None, "{invalid:?}");
            let parsed = Operator::parse(invalid);
            assert_eq!(parsed.is_some(), invalid.starts_with('x'), "{invalid:?}");
        }
        assert_eq!(Operator::parse(&"x".repeat(301)), None);
    }
}
