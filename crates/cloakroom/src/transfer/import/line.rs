//! Parses a line of the input.

use cloakroom_platform::api::{FieldError, Object, read_json};
use cloakroom_platform::card_numbers::contains_card_number;
use cloakroom_tokens::tokens::NewToken;
use serde::Deserialize;
use uuid::Uuid;

/// Members that requests of clients do not have.
#[derive(Default, Deserialize)]
struct Extension {
    /// The token has no mask, not even that of its type.
    #[serde(default)]
    no_mask: bool,
}

const EXTENSION: &str = "\"no_mask\"";

/// A parsed line.
pub(super) struct Line<'a> {
    pub new: NewToken<'a>,
    pub has_no_mask: bool,
}

impl<'a> Line<'a> {
    pub(super) fn parse(text: &'a str) -> Result<Self, FieldError> {
        let Object(new): Object<NewToken<'a>> = read_json(text.as_bytes())?;
        let has_no_mask = match text.contains(EXTENSION) {
            true => read_json::<Object<Extension>>(text.as_bytes())?.0.no_mask,
            false => false,
        };
        Ok(Self { new, has_no_mask })
    }
}

/// The id of a line, if it may be written to a file: it is in clear there, and validation has not seen it.
pub(super) fn shown_id(id: Option<&str>) -> Option<String> {
    let is_shown = |id: &&str| Uuid::try_parse(id).is_ok() || !contains_card_number(id);
    id.filter(is_shown).map(str::to_owned)
}
