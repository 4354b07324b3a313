//! The values of the expressions of a request.

use std::collections::{HashMap, HashSet};

use cloakroom_core::access::Purpose;
use cloakroom_core::audit::Entry;
use cloakroom_core::caller::Caller;
use cloakroom_core::gates::rate_limits::admit_work;
use cloakroom_expressions::{Reference, ReferenceKind};
use cloakroom_tokens::documents;
use cloakroom_tokens::tokens::reveals_anywhere;
use serde_json::Value;

use super::encrypted::{self, Decrypted};
use super::error::Error;
use super::target::Target;
use super::template::RequestTemplate;
use crate::server::ProxyServer;

/// Maximum number of tokens and token intents in one request.
const TOKENS_MAX: usize = 20;

/// Values by their references, except those of the proxied request itself.
#[derive(Default)]
pub(super) struct Values {
    pub(super) by_reference: HashMap<Reference, Value>,
    /// The audit log entries of tokens, intents and encrypted values.
    pub(super) entries: Vec<Entry>,
    /// The decrypted content of `BT-ENCRYPTED`.
    pub(super) encrypted: Option<Value>,
    /// Whether the caller may use a value that it does not see.
    pub(super) are_hidden: bool,
}

/// Loads every value once, as the caller may use it. Holds a permit while it works, and none afterwards.
pub(super) async fn load(
    server: &ProxyServer,
    target: &Target,
    caller: &Caller,
    sent: &http::HeaderMap,
    template: &RequestTemplate,
) -> Result<Values, Error> {
    let is_proxy = |it: &Reference| it.kind == ReferenceKind::Proxy;
    if template.content_references().any(is_proxy) {
        let rule = "must not contain `proxy`, which is available in headers only";
        return Err(Error::invalid_at("body", rule));
    }
    if let Some(definition) = &target.definition {
        template.require_allowed(&definition.allowed_requests)?;
    }
    let is_data = |it: &Reference| it.kind != ReferenceKind::Proxy;
    let has_data = template.references().any(is_data);
    if has_data && !reveals_anywhere(caller) {
        template.require_closed()?;
    }
    let tokens: Vec<Reference> = template.references().filter(is_stored).cloned().collect();
    let distinct: HashSet<(bool, &str)> = tokens
        .iter()
        .map(|it| (it.kind == ReferenceKind::TokenIntent, it.id.as_str()))
        .collect();
    if distinct.len() > TOKENS_MAX {
        return Err(Error::TooManyTokens(TOKENS_MAX));
    }
    let is_encrypted = |it: &Reference| it.kind == ReferenceKind::Encrypted;
    let uses_encrypted = template.references().any(is_encrypted);
    let reads_encrypted = uses_encrypted || target.transforms_read_encrypted();
    let _permit = match distinct.is_empty() && !reads_encrypted {
        true => None,
        false => Some(admit_work(&server.limits, caller.tenant, distinct.len() <= 1).await?),
    };
    let decrypted = match reads_encrypted {
        true => encrypted::decrypt(server, caller, sent).await?,
        false => None,
    };
    let loaded = documents::load(server, caller, &tokens, Purpose::Use).await?;
    let mut values = Values {
        by_reference: loaded.values,
        entries: loaded.entries,
        encrypted: decrypted.as_ref().map(Decrypted::all),
        are_hidden: loaded.are_hidden,
    };
    if uses_encrypted {
        let rule = "is required by the expression `encrypted`";
        let decrypted = decrypted.ok_or_else(|| Error::invalid_at("BT-ENCRYPTED", rule))?;
        let usable = decrypted.require_use(caller)?;
        values.entries.extend(usable.entries);
        values.are_hidden |= usable.are_hidden;
        for reference in template.references().filter(|it| is_encrypted(it)) {
            values
                .by_reference
                .insert(reference.clone(), usable.value.clone());
        }
    }
    if values.are_hidden {
        template.require_closed()?;
        if target.appends_json() {
            template.require_json()?;
        }
    }
    Ok(values)
}

/// Whether a reference is to something in the vault.
fn is_stored(reference: &&Reference) -> bool {
    !matches!(
        reference.kind,
        ReferenceKind::Encrypted | ReferenceKind::Proxy
    )
}
