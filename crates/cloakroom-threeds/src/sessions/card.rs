//! Decrypts the card of a session, for its card network only.

use cloakroom_core::audit::{EntityKind, Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::keys;
use cloakroom_crypto::Sensitive;
use cloakroom_tokens::bins::CardDetails;
use cloakroom_tokens::types::TokenKind;
use cloakroom_tokens::{intents, tokens};
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::Error;
use super::session::CardReference;
use crate::server::ThreedsServer;

/// A card with its decrypted number.
pub(super) struct DecryptedCard {
    pub number: Sensitive<String>,
    /// `YYMM`, if the card has an expiry.
    pub expiry: Option<String>,
    pub is_network_token: bool,
    pub brand: Option<&'static str>,
    /// When the token or token intent expires.
    pub expires_at: Option<Timestamp>,
    /// The application that created the token or token intent.
    pub creator: Uuid,
    /// Audit log entry for the use of the number.
    pub entry: Entry,
}

/// Decrypts a card; returns `None` if the token or token intent does not exist or contains no card number.
///
/// Requires no permission on the token: its number is sent only to the card's own network.
pub(super) async fn decrypt(
    server: &ThreedsServer,
    caller: &Caller,
    reference: &CardReference,
) -> Result<Option<DecryptedCard>, Error> {
    let (kind, data, expires_at, (creator, entry)) = match reference {
        CardReference::Token(id) => match tokens::read_data_internally(server, caller, id).await {
            Ok(token) => {
                let use_of = (token.created_by, token.entry);
                (token.kind, token.data, token.expires_at, use_of)
            }
            Err(tokens::Error::NotFound) => return Ok(None),
            Err(error) => return Err(error.into()),
        },
        CardReference::TokenIntent(id) => match intents::open(server, caller, id).await {
            Ok(opened) => {
                let intent = opened.intent;
                let used = (Operation::Use, EntityKind::TokenIntent);
                let entry = Entry::new(caller, used.0, used.1, intent.id);
                let use_of = (intent.created_by, entry);
                (intent.kind, opened.data, Some(intent.expires_at), use_of)
            }
            Err(intents::Error::NotFound) => return Ok(None),
            Err(error) => return Err(error.into()),
        },
    };
    let data: Value = serde_json::from_slice(data.expose()).map_err(|_| keys::Error::Integrity)?;
    let number = match kind {
        TokenKind::Card | TokenKind::NetworkToken => data.get("number").and_then(Value::as_str),
        TokenKind::CardNumber => data.as_str(),
        _ => None,
    };
    let Some(number) = number else {
        return Ok(None);
    };
    let details = CardDetails::of(&server.bins, caller.tenant_kind, number);
    Ok(Some(DecryptedCard {
        number: Sensitive::new(number.to_owned()),
        expiry: expiry(&data),
        is_network_token: kind == TokenKind::NetworkToken,
        brand: details.and_then(|details| details.brand),
        expires_at,
        creator,
        entry,
    }))
}

fn expiry(data: &Value) -> Option<String> {
    let month = data.get("expiration_month")?.as_u64()?;
    let year = data.get("expiration_year")?.as_u64()?;
    Some(format!("{:02}{month:02}", year % 100))
}
