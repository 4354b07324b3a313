//! Tokens as the database keeps them: how they are found, written and swept, alone or together.

mod store;

pub(crate) use self::store::{
    Before, CodeChange, EXPIRED_STATEMENTS, Finding, Outcome, Reads, SHARED_STATEMENTS, STATEMENTS,
    TokenRow, Told, Values, WRITE_STATEMENTS, Write, Writes, delete, find, find_all, find_equal,
    find_place, is_expired, key_is_taken, sweep, sweep_one, token_columns, write,
};
use crate::audit::EntityKind;
use crate::token_types::TokenKind;

/// What records call a token of this type.
pub(crate) fn entity_kind(kind: TokenKind) -> EntityKind {
    match kind {
        TokenKind::Card => EntityKind::Card,
        TokenKind::Bank => EntityKind::Bank,
        _ => EntityKind::Token,
    }
}
