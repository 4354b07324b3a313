//! The security code of a card in token data and in expressions.

use cloakroom_crypto::Sensitive;
use serde_json::Value;

use super::TokenKind;

/// The member of the data that contains the security code.
pub(super) const MEMBER: &str = "cvc";

/// The security code in token data. It is stored separately from the data.
#[derive(Debug)]
pub enum SecurityCode {
    /// Not mentioned: a stored code is unchanged.
    Absent,
    /// Three or four digits.
    Given(Sensitive<String>),
    /// An explicit null.
    Removed,
}

/// Whether a patch of the data sets or removes the security code, and nothing else.
pub fn is_security_code_alone(kind: TokenKind, patch: &Value) -> bool {
    let members = patch.as_object();
    kind.has_security_code() && members.is_some_and(|it| it.keys().eq([MEMBER]))
}

/// Whether the expression of a search index or a fingerprint refers to the security code.
///
/// A digest of three digits discloses them and would outlive them. Expressions never receive the code, so this check
/// only rejects expressions that could never match. Every mention of the name counts, except as a metadata key.
pub fn refers_to_security_code(expression: &str) -> bool {
    const METADATA: [&str; 3] = ["metadata.", "metadata['", "metadata[\""];
    let is_part = |character: char| character.is_alphanumeric() || "_-".contains(character);
    expression.match_indices(MEMBER).any(|(start, name)| {
        let (before, after) = (&expression[..start], &expression[start + name.len()..]);
        let is_whole = !before.ends_with(is_part) && !after.starts_with(is_part);
        is_whole && !METADATA.iter().any(|path| before.ends_with(path))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_that_refer_to_the_security_code_are_detected() {
        let cases = [
            ("{{ data.cvc }}", true),
            ("{{data.cvc}}", true),
            ("{{- data.cvc -}}", true),
            ("{{ data['cvc'] }}", true),
            ("{{ data[\"cvc\"] }}", true),
            ("{{ data[ 'cvc' ] }}", true),
            ("{{ data | json: '$.cvc' }}", true),
            ("{{ data | json: \"$.cvc\" }}", true),
            ("{{ data | json: '$..cvc' }}", true),
            ("{{ data | json: '$[\"cvc\"]' }}", true),
            ("{{ data | json: '$[\"number\",\"cvc\"]' }}", true),
            ("{{ data.number }}|{{ data.cvc | last4 }}", true),
            ("{{ data.cvc.size }}", true),
            ("{% if data.cvc %}{{ data.number }}{% endif %}", true),
            ("{% assign name = 'cvc' %}{{ data[name] }}", true),
            ("{{ metadata.cvc }}{{ data.cvc }}", true),
            ("{{ mydata.cvc }}", true),
            ("{{ metadata.cvc }}", false),
            ("{{ metadata['cvc'] }}", false),
            ("{{ metadata[\"cvc\"] }}", false),
            ("{{ data.cvc_checked }}", false),
            ("{{ data.no-cvc }}", false),
            ("{{ data.cvcs }}", false),
            ("{{ data.\u{e4}cvc }}", false),
            ("{{ data.CVC }}", false),
            ("{{ data.number }}", false),
            ("{{ data | stringify }}", false),
            ("", false),
        ];
        for (expression, expected) in cases {
            assert_eq!(
                refers_to_security_code(expression),
                expected,
                "{expression}"
            );
        }
    }
}
