//! The security code of a card: what the data says about it, and who may not ask for it.

use cloakroom_crypto::Sensitive;

/// The member of the data that holds it.
pub(super) const MEMBER: &str = "cvc";

/// What the data says about the security code, which is kept apart from it.
#[derive(Debug)]
pub enum SecurityCode {
    /// Nothing: a code that is kept already stays.
    Absent,
    /// Three or four digits.
    Given(Sensitive<String>),
    /// An explicit null.
    Removed,
}

/// Whether a search index or a fingerprint would be made of the security code.
///
/// A digest of three digits is as good as the digits and would outlive them. Expressions never get
/// to see the code, so this only spares people an expression that never finds anything: every
/// mention of the name counts, except as a member of the metadata.
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
    fn expressions_that_ask_for_the_security_code_are_noticed() {
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
