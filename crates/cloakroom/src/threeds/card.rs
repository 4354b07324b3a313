//! The card behind a session: opened for a network, and for nobody else.

use cloakroom_crypto::Sensitive;
use jiff::Timestamp;
use serde_json::Value;

use super::Error;
use super::session::CardReference;
use crate::audit::{EntityKind, Entry, Operation};
use crate::bins::CardDetails;
use crate::caller::Caller;
use crate::token_types::TokenKind;
use crate::vault::Vault;
use crate::{keys, token_intents, tokens};

/// A card whose number was opened.
pub(super) struct OpenedCard {
    pub number: Sensitive<String>,
    /// `YYMM`, if the card tells it.
    pub expiry: Option<String>,
    pub is_network_token: bool,
    pub brand: Option<&'static str>,
    /// When the token or intent ends.
    pub expires_at: Option<Timestamp>,
    /// Says that the number was used.
    pub entry: Entry,
}

/// Opens a card; nothing if there is no such token or intent, or if it holds no card.
///
/// No permission on the token is asked for: its number goes to the card's own network and to nobody
/// else.
pub(super) async fn open(
    vault: &Vault,
    caller: &Caller,
    reference: &CardReference,
) -> Result<Option<OpenedCard>, Error> {
    let (kind, data, expires_at, entry) = match reference {
        CardReference::Token(id) => match tokens::lend_data(vault, caller, id).await {
            Ok(lent) => (lent.kind, lent.data, lent.expires_at, lent.entry),
            Err(tokens::Error::NotFound) => return Ok(None),
            Err(error) => return Err(error.into()),
        },
        CardReference::TokenIntent(id) => match token_intents::open(vault, caller, id).await {
            Ok(opened) => {
                let (intent, kind) = (opened.intent.id, opened.intent.kind);
                let used = (Operation::Use, EntityKind::TokenIntent);
                let entry = Entry::of(caller, used.0, used.1, intent);
                (kind, opened.data, Some(opened.intent.expires_at), entry)
            }
            Err(token_intents::Error::NotFound) => return Ok(None),
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
    let details = CardDetails::of(&vault.bins, caller.tenant_kind, number);
    Ok(Some(OpenedCard {
        number: Sensitive::new(number.to_owned()),
        expiry: expiry(&data),
        is_network_token: kind == TokenKind::NetworkToken,
        brand: details.and_then(|details| details.brand),
        expires_at,
        entry,
    }))
}

fn expiry(data: &Value) -> Option<String> {
    let month = data.get("expiration_month")?.as_u64()?;
    let year = data.get("expiration_year")?.as_u64()?;
    Some(format!("{:02}{month:02}", year % 100))
}
