//! Reads all tokens of a tenant in one snapshot of the database, with their data, for an export.

use cloakroom_core::audit::{Entry, Operation, Outcome};
use cloakroom_core::caller::Caller;
use cloakroom_crypto::Sensitive;
use cloakroom_platform::api::format_at_offset;
use cloakroom_platform::storage::{self, Connection};
use futures_util::{StreamExt as _, TryStreamExt as _};
use serde::Serialize;
use serde_json::value::RawValue;

use super::store::{self, ExportFilter};
use super::token::entity_kind;
use super::view::{OpenedToken, decrypt};
use super::{Error, TokenVault};
use crate::attributes::NO_MASK;

/// A token as a line of an export, in the shape of a request that creates it.
#[derive(Serialize)]
struct ExportLine<'a> {
    id: &'a str,
    #[serde(rename = "type")]
    kind: &'static str,
    data: &'a RawValue,
    #[serde(skip_serializing_if = "Option::is_none")]
    mask: Option<&'a RawValue>,
    /// Null would mean the default mask of the type.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    no_mask: bool,
    containers: [&'a str; 1],
    #[serde(skip_serializing_if = "Option::is_none")]
    metadata: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    search_indexes: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint_expression: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    expires_at: Option<String>,
    /// Tokens that are equal in the source remain separate tokens.
    deduplicate_token: bool,
}

/// A decrypted token.
pub struct ExportedToken {
    pub id: String,
    /// One line of JSON, without its end.
    pub line: Sensitive<String>,
    /// The audit log entry, which must be durable before the line is written anywhere.
    pub entry: Entry,
}

/// A connection that sees one moment of the database.
pub struct Snapshot {
    connection: Connection,
}

impl Snapshot {
    pub async fn open(vault: &TokenVault) -> Result<Self, Error> {
        let connection = storage::connect_once(&vault.config.database).await?;
        let begin = "begin transaction isolation level repeatable read, read only";
        let begun = connection.run(begin).await;
        begun.map_err(|_| storage::Error::Unavailable("the snapshot could not be taken".into()))?;
        Ok(Self { connection })
    }

    /// Counts the tokens of a filter, independently of `read_all`.
    pub async fn count(
        &self,
        caller: &Caller,
        filter: &ExportFilter,
    ) -> Result<u64, storage::Error> {
        store::count_exported(&self.connection, caller.tenant, filter).await
    }

    /// Decrypts all tokens of a filter in the order of their keys and passes them on in chunks of at most `size`.
    pub async fn read_all(
        &self,
        vault: &TokenVault,
        caller: &Caller,
        (filter, size): (&ExportFilter, usize),
        mut take: impl AsyncFnMut(Vec<ExportedToken>) -> Result<(), Error>,
    ) -> Result<(), Error> {
        let rows = store::stream_exported(&self.connection, caller.tenant, filter).await?;
        let mut chunks = std::pin::pin!(rows.try_chunks(size));
        while let Some(chunk) = chunks.next().await {
            let chunk = chunk.map_err(|error| error.1)?;
            let mut tokens = Vec::with_capacity(chunk.len());
            for row in chunk {
                let opened = decrypt(vault, caller, row).await?;
                tokens.push(exported(caller, &opened)?);
            }
            take(tokens).await?;
        }
        Ok(())
    }
}

fn exported(caller: &Caller, opened: &OpenedToken) -> Result<ExportedToken, Error> {
    let OpenedToken { token, data, .. } = opened;
    let unreadable = |_| cloakroom_core::keys::Error::Integrity;
    fn raw(text: Option<&str>) -> Option<&RawValue> {
        text.and_then(|text| serde_json::from_str(text).ok())
    }
    let (id, attributes) = (token.id.text(), &token.attributes);
    let has_no_mask = attributes.mask.as_deref() == Some(NO_MASK);
    let line = ExportLine {
        id: &id,
        kind: token.kind.name(),
        data: serde_json::from_slice(data.expose()).map_err(unreadable)?,
        mask: raw(attributes.mask.as_deref()).filter(|_| !has_no_mask),
        no_mask: has_no_mask,
        containers: [token.container.as_str()],
        metadata: raw(attributes.metadata.as_deref()),
        search_indexes: raw(attributes.search_indexes.as_deref()),
        fingerprint_expression: attributes.fingerprint_expression.as_deref(),
        expires_at: attributes
            .expiry
            .map(|expiry| format_at_offset(expiry.at, expiry.offset_minutes)),
        deduplicate_token: false,
    };
    let line = serde_json::to_string(&line).map_err(unreadable)?;
    let (number, entity) = (caller.tenant.number, entity_kind(token.kind));
    let entry = Entry::by_system(number, Operation::Read, entity, &*id);
    Ok(ExportedToken {
        line: Sensitive::new(line),
        entry: entry.with_outcome(Outcome::Revealed),
        id: id.into_owned(),
    })
}
