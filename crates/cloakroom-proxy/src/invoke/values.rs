//! The values of the expressions of a request.

use std::collections::{HashMap, HashSet};

use cloakroom_core::access::Purpose;
use cloakroom_core::audit::Entry;
use cloakroom_core::caller::Caller;
use cloakroom_core::gates::rate_limits::admit_work;
use cloakroom_expressions::{Reference, ReferenceKind};
use cloakroom_tokens::documents;
use serde_json::Value;

use super::encrypted;
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
    /// The audit log entries of tokens and intents.
    pub(super) entries: Vec<Entry>,
    /// The decrypted content of `BT-ENCRYPTED`.
    pub(super) encrypted: Option<Value>,
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
    let tokens: Vec<Reference> = template.references().filter(is_stored).cloned().collect();
    let distinct: HashSet<(bool, &str)> = tokens
        .iter()
        .map(|it| (it.kind == ReferenceKind::TokenIntent, it.id.as_str()))
        .collect();
    if distinct.len() > TOKENS_MAX {
        return Err(Error::TooManyTokens(TOKENS_MAX));
    }
    let is_encrypted = |it: &Reference| it.kind == ReferenceKind::Encrypted;
    let uses_encrypted =
        template.references().any(is_encrypted) || target.transforms_read_encrypted();
    let _permit = match distinct.is_empty() && !uses_encrypted {
        true => None,
        false => Some(admit_work(&server.limits, caller.tenant, distinct.len() <= 1).await?),
    };
    let encrypted = match uses_encrypted {
        true => encrypted::decrypt(server, caller, sent).await?,
        false => None,
    };
    let loaded = documents::load(server, caller, &tokens, Purpose::Use).await?;
    let mut values = loaded.values;
    for reference in template.references() {
        let value = match reference.kind {
            ReferenceKind::Config => target.configuration(&reference.id)?,
            ReferenceKind::Encrypted => encrypted.clone().ok_or_else(|| {
                Error::invalid_at("BT-ENCRYPTED", "is required by the expression `encrypted`")
            })?,
            _ => continue,
        };
        values.insert(reference.clone(), value);
    }
    Ok(Values {
        by_reference: values,
        entries: loaded.entries,
        encrypted,
    })
}

/// Whether a reference is to something in the vault.
fn is_stored(reference: &&Reference) -> bool {
    !matches!(
        reference.kind,
        ReferenceKind::Config | ReferenceKind::Encrypted | ReferenceKind::Proxy
    )
}
