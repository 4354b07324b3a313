//! Loads the tokens and token intents that a document refers to.

use std::collections::HashMap;

use cloakroom_core::access::{Permission, Purpose};
use cloakroom_core::audit::{Entry, Operation};
use cloakroom_core::caller::Caller;
use cloakroom_core::keys;
use cloakroom_expressions::{Reference, ReferenceKind};
use serde_json::Value;

use super::Error;
use super::enrichments::enrichments;
use crate::attributes::{Details, TokenId};
use crate::intents::{self, IntentBody, OpenedIntent, RevealedIntent};
use crate::tokens::{self, Lookup, TokenBody, TokenVault, TokenView};

/// The values of references.
#[derive(Default)]
pub struct LoadedValues {
    pub values: HashMap<Reference, Value>,
    /// The audit log entries, one for each token and intent. They must be recorded before the values are sent.
    pub entries: Vec<Entry>,
    /// Whether the caller may use a value that it does not see.
    pub are_hidden: bool,
}

/// Loads every token and every intent once. Fails if one does not exist or the caller may not load it for this purpose.
pub async fn load(
    vault: &TokenVault,
    caller: &Caller,
    references: &[Reference],
    purpose: Purpose,
) -> Result<LoadedValues, Error> {
    if references.is_empty() {
        return Ok(LoadedValues::default());
    }
    let intents = Intents::open(vault, caller, references, purpose).await?;
    let token_references: Vec<(&Reference, TokenId)> = references
        .iter()
        .filter(|reference| is_token(reference.kind))
        .map(|reference| (reference, TokenId::of(caller.tenant, &reference.id)))
        .collect();
    let mut ids: Vec<TokenId> = token_references.iter().map(|(_, id)| id.clone()).collect();
    ids.sort_by_key(|id| *id.key());
    ids.dedup();
    let (views, missing) = match tokens::find_all(vault, caller, &ids, purpose).await? {
        Lookup::All(views) => (views, Vec::new()),
        Lookup::Missing(missing) => (Vec::new(), missing),
    };
    let is_missing = |it: &Reference| match it.kind {
        ReferenceKind::Token | ReferenceKind::TokenData => {
            missing.contains(&TokenId::of(caller.tenant, &it.id))
        }
        ReferenceKind::TokenIntent => intents.missing.contains(&it.id),
        // The vault stores no other kind.
        _ => true,
    };
    if references.iter().any(is_missing) {
        return Err(unknown_ids(references, is_missing));
    }
    let mut loaded = intents.reveal(vault, caller, purpose).await?;
    let operation = operation(purpose);
    loaded
        .entries
        .extend(tokens::read_entries(caller, operation, &views));
    for (reference, id) in token_references {
        let view = views.iter().find(|view| view.token.id == id);
        let view = view.ok_or(keys::Error::Integrity)?;
        loaded.are_hidden |= !tokens::reveals(caller, &view.token);
        let value = match reference.kind {
            ReferenceKind::Token => token_value(caller, view)?,
            _ => data_value(view)?,
        };
        loaded.values.insert(reference.clone(), value);
    }
    Ok(loaded)
}

fn is_token(kind: ReferenceKind) -> bool {
    matches!(kind, ReferenceKind::Token | ReferenceKind::TokenData)
}

/// The token intents that a document refers to.
struct Intents {
    opened: Vec<(String, OpenedIntent)>,
    missing: Vec<String>,
}

impl Intents {
    /// Opens every intent once. The permission is checked first, so that a caller without `token-intent:read` does not
    /// learn which intents exist. A use requires no such permission.
    async fn open(
        vault: &TokenVault,
        caller: &Caller,
        references: &[Reference],
        purpose: Purpose,
    ) -> Result<Self, Error> {
        let mut ids: Vec<&String> = references
            .iter()
            .filter(|reference| reference.kind == ReferenceKind::TokenIntent)
            .map(|reference| &reference.id)
            .collect();
        ids.sort_unstable();
        ids.dedup();
        if !ids.is_empty() && purpose == Purpose::Read {
            caller.require_anywhere(Permission::TokenIntentRead)?;
        }
        let (mut opened, mut missing) = (Vec::new(), Vec::new());
        for id in ids {
            match intents::open(vault, caller, id).await {
                Ok(intent) => opened.push((id.clone(), intent)),
                Err(intents::Error::NotFound) => missing.push(id.clone()),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(Self { opened, missing })
    }

    /// Reveals all intents, if the caller may.
    async fn reveal(
        self,
        vault: &TokenVault,
        caller: &Caller,
        purpose: Purpose,
    ) -> Result<LoadedValues, Error> {
        let (ids, opened): (Vec<String>, Vec<OpenedIntent>) = self.opened.into_iter().unzip();
        let revealed = intents::reveal(vault, caller, opened, purpose).await?;
        let entries = intents::read_entries(caller, operation(purpose), &revealed);
        let mut values = HashMap::new();
        let mut are_hidden = false;
        for (id, revealed) in ids.into_iter().zip(revealed) {
            let kind = ReferenceKind::TokenIntent;
            let container = revealed.view.intent.kind.default_container();
            are_hidden |= !tokens::reveals_in(caller, &container);
            values.insert(Reference { kind, id }, intent_value(caller, revealed)?);
        }
        Ok(LoadedValues {
            values,
            entries,
            are_hidden,
        })
    }
}

/// The intent as a read returns it, with its data.
fn intent_value(caller: &Caller, revealed: RevealedIntent) -> Result<Value, keys::Error> {
    let body = IntentBody::new(caller, &revealed.view);
    let mut intent = serde_json::to_value(body).map_err(|_| keys::Error::Integrity)?;
    if let Some(members) = intent.as_object_mut() {
        members.insert("data".to_owned(), revealed.data);
    }
    Ok(intent)
}

/// Lists the ids that do not exist, without duplicates, in document order.
fn unknown_ids(references: &[Reference], is_unknown: impl Fn(&Reference) -> bool) -> Error {
    let mut ids: Vec<String> = Vec::new();
    for reference in references.iter().filter(|it| is_unknown(it)) {
        if !ids.contains(&reference.id) {
            ids.push(reference.id.clone());
        }
    }
    Error::Unknown(ids)
}

/// The data as the caller may see it; null if redacted.
fn data_value(view: &TokenView) -> Result<Value, keys::Error> {
    let shown = view.shown.as_ref().and_then(|shown| shown.data.as_ref());
    match shown {
        None => Ok(Value::Null),
        Some(raw) => serde_json::from_str(raw.get()).map_err(|_| keys::Error::Integrity),
    }
}

/// The token as a read returns it, with the enrichments of its card number.
fn token_value(caller: &Caller, view: &TokenView) -> Result<Value, keys::Error> {
    // Through text: a `RawValue` cannot be converted into a `Value` directly.
    let text = serde_json::to_string(&TokenBody::new(caller, view));
    let mut token: Value = text
        .and_then(|text| serde_json::from_str(&text))
        .map_err(|_| keys::Error::Integrity)?;
    let details = view.shown.as_ref().map(|shown| &shown.details);
    if let Some(Details::Card(Some(card))) = details
        && let Some(members) = token.as_object_mut()
    {
        members.insert("enrichments".to_owned(), enrichments(card));
    }
    Ok(token)
}

fn operation(purpose: Purpose) -> Operation {
    match purpose {
        Purpose::Read => Operation::Read,
        Purpose::Use => Operation::Use,
    }
}
