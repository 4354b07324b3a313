//! Filling tokens into a JSON document that refers to them.

use std::collections::HashMap;

use cloakroom_expressions::{Context, Document, Reference, ReferenceKind};
use serde_json::Value;

use super::Error;
use super::enrichments::enrichments;
use crate::access::Permission;
use crate::api::Broken;
use crate::caller::Caller;
use crate::keys;
use crate::token_attributes::{Details, TokenId, sources};
use crate::tokens::{self, FoundAll, TokenBody, TokenView};
use crate::vault::Vault;

/// Replaces every reference by what a read of its token would show.
pub async fn detokenize(vault: &Vault, caller: &Caller, document: &Value) -> Result<Value, Error> {
    caller.require_somewhere(Permission::TokenRead)?;
    let document = Document::parse(Context::Detokenize, document);
    let document = document.map_err(|error| wrong(&error.path, &error))?;
    let limit = caller.quotas.detokenize_limit;
    if document.references().len() > limit {
        let rule = format!("must hold at most {limit} expressions");
        return Err(Error::Invalid(vec![Broken::new("body", rule)]));
    }
    let values = load(vault, caller, document.references()).await?;
    let filled = document.fill(|reference| values.get(reference), &sources());
    filled.map_err(|error| wrong(&error.path, &error))
}

/// An expression that is wrong, or has no value, where it stands.
fn wrong(path: &str, error: &impl ToString) -> Error {
    let path = match path {
        "" => "body",
        path => path,
    };
    Error::Invalid(vec![Broken::new(path, error.to_string())])
}

/// Loads every token once; one that does not exist fails them all, and so does one that the caller
/// may not read.
async fn load(
    vault: &Vault,
    caller: &Caller,
    references: &[Reference],
) -> Result<HashMap<Reference, Value>, Error> {
    if references.is_empty() {
        return Ok(HashMap::new());
    }
    let is_token = |kind| matches!(kind, ReferenceKind::Token | ReferenceKind::TokenData);
    let wanted: Vec<(&Reference, TokenId)> = references
        .iter()
        .filter(|reference| is_token(reference.kind))
        .map(|reference| (reference, TokenId::of(caller.tenant, &reference.id)))
        .collect();
    let mut ids: Vec<TokenId> = wanted.iter().map(|(_, id)| id.clone()).collect();
    ids.sort_by_key(|id| *id.key());
    ids.dedup();
    let found = tokens::find_all(vault, caller, &ids).await?;
    // Other kinds of things are not kept by this vault, so none of them exists.
    let views = match found {
        FoundAll::All(views) if references.len() == wanted.len() => views,
        FoundAll::All(_) => return Err(unknown(references, |it| !is_token(it.kind))),
        FoundAll::Missing(missing) => {
            let is_missing = |it: &Reference| missing.contains(&TokenId::of(caller.tenant, &it.id));
            return Err(unknown(references, |it| {
                !is_token(it.kind) || is_missing(it)
            }));
        }
    };
    let mut values = HashMap::new();
    for (reference, id) in wanted {
        let view = views.iter().find(|view| view.token.id == id);
        let view = view.ok_or(keys::Error::Integrity)?;
        let value = match reference.kind {
            ReferenceKind::Token => whole(caller, view)?,
            _ => data(view)?,
        };
        values.insert(reference.clone(), value);
    }
    Ok(values)
}

/// Names those that do not exist, each once, in the order of the document.
fn unknown(references: &[Reference], is_unknown: impl Fn(&Reference) -> bool) -> Error {
    let mut ids: Vec<String> = Vec::new();
    for reference in references.iter().filter(|it| is_unknown(it)) {
        if !ids.contains(&reference.id) {
            ids.push(reference.id.clone());
        }
    }
    Error::Unknown(ids)
}

/// The data as the caller may see it; null when that is nothing.
fn data(view: &TokenView) -> Result<Value, keys::Error> {
    let shown = view.shown.as_ref().and_then(|shown| shown.data.as_ref());
    match shown {
        None => Ok(Value::Null),
        Some(raw) => serde_json::from_str(raw.get()).map_err(|_| keys::Error::Integrity),
    }
}

/// The token as a read would show it, and what is known about its card number besides.
fn whole(caller: &Caller, view: &TokenView) -> Result<Value, keys::Error> {
    // By way of text: a raw value cannot become any other value directly.
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
