//! Short texts that pages show on one line: names and references.

use crate::card_numbers::{NO_CARD_NUMBER, contains_card_number};

/// Trims a text and validates the result, which is what callers store.
///
/// Rejects line breaks, control characters, card numbers, and characters that are invisible or change the direction of
/// the text around them: they make a text look like another one.
pub fn one_line(text: &str, length_max: usize) -> Result<&str, String> {
    let text = text.trim();
    let is_length_valid = (1..=length_max).contains(&text.chars().count());
    if !is_length_valid || text.chars().any(is_hidden) {
        return Err(format!(
            "must be one line of 1 to {length_max} characters, none of them invisible"
        ));
    }
    match contains_card_number(text) {
        true => Err(NO_CARD_NUMBER.to_owned()),
        false => Ok(text),
    }
}

fn is_hidden(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{ad}'
                | '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{2069}'
                | '\u{feff}'
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_trimmed_before_they_are_validated() {
        assert_eq!(one_line(" Ada \n", 3), Ok("Ada"));
        assert_eq!(one_line("Zoë d’Été", 9), Ok("Zoë d’Été"));
        for text in ["", " \t ", "Adas"] {
            assert!(one_line(text, 3).is_err(), "{text:?}");
        }
    }

    #[test]
    fn hidden_characters_and_card_numbers_are_rejected() {
        for hidden in "\0\n\u{7f}\u{85}\u{ad}\u{61c}\u{200b}\u{200f}\u{2028}\u{2029}\u{202a}\u{202e}\u{2060}\u{2069}\u{feff}".chars() {
            assert!(one_line(&format!("a{hidden}b"), 50).is_err(), "{hidden:?}");
        }
        let number = one_line("4242 4242 4242 4242", 50);
        assert_eq!(number, Err(NO_CARD_NUMBER.to_owned()));
    }
}
