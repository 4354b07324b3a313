//! Replaces references to tokens and token intents in a JSON document with their values.

use cloakroom_core::access::{Permission, Purpose};
use cloakroom_core::caller::Caller;
use cloakroom_expressions::{Context, Document};
use cloakroom_platform::api::FieldError;
use serde_json::Value;

use super::Error;
use super::values::load;
use crate::attributes::sources;
use crate::tokens::TokenVault;

/// Replaces every reference with the token as a read returns it, or with the token intent and its data.
pub async fn detokenize(
    vault: &TokenVault,
    caller: &Caller,
    document: &Value,
) -> Result<Value, Error> {
    caller.require_anywhere(Permission::TokenRead)?;
    let document = Document::parse(Context::Detokenize, document);
    let document = document.map_err(|error| expression_error(&error.path, &error))?;
    let limit = caller.quotas.detokenize_limit;
    if document.references().len() > limit {
        let rule = format!("must contain at most {limit} expressions");
        return Err(Error::Invalid(vec![FieldError::new("body", rule)]));
    }
    let loaded = load(vault, caller, document.references(), Purpose::Read).await?;
    vault.audit.record_reads(loaded.entries).await?;
    let filled = document.fill(|reference| loaded.values.get(reference), &sources());
    filled.map_err(|error| expression_error(&error.path, &error))
}

/// The error of an expression that is invalid or has no value, with its path.
fn expression_error(path: &str, error: &impl ToString) -> Error {
    let path = match path {
        "" => "body",
        path => path,
    };
    Error::Invalid(vec![FieldError::new(path, error.to_string())])
}
