//! The part of a token that clients control, validated and ready for encryption.

use cloakroom_core::access::Container;
use cloakroom_core::keys::{self, TenantKeys};
use cloakroom_core::velocity::CandidateNumber;
use cloakroom_expressions::Context;
use cloakroom_platform::ids::TenantId;
use serde_json::Value;

use super::Error;
use super::attributes::TokenAttributes;
use super::token::{Token, TokenData};
use crate::attributes::{
    DigestInput, Digests, FingerprintSource, SearchIndex, Term, fingerprint_text, numbers_of,
    parse_template,
};
use crate::search_expressions::domain_of;
use crate::tokens::TokenVault;
use crate::types::TokenKind;

/// A token without its id, audit fields and security code.
pub(super) struct Content {
    pub kind: TokenKind,
    pub data: TokenData,
    pub container: Container,
    pub attributes: TokenAttributes,
}

impl Content {
    pub(super) fn data_value(&self) -> Result<Value, keys::Error> {
        // Data is validated before it is encrypted, so anything but JSON is an integrity failure.
        serde_json::from_slice(self.data.expose()).map_err(|_| keys::Error::Integrity)
    }

    /// Computes the search terms and, if `has_fingerprint` is true, the fingerprint.
    pub(super) async fn digests(
        &self,
        vault: &TokenVault,
        tenant: TenantId,
        keys: &TenantKeys,
        has_fingerprint: bool,
    ) -> Result<Digests, Error> {
        let search_indexes = self.search_indexes(vault, tenant).await?;
        let data = self.data_value()?;
        let metadata = self.attributes.metadata_map();
        let given = self.attributes.fingerprint_template();
        let input = DigestInput {
            kind: self.kind,
            data: &data,
            metadata: metadata.as_ref(),
            fingerprint: match &given {
                _ if !has_fingerprint => FingerprintSource::Nothing,
                Some(template) => FingerprintSource::Given(template),
                None => FingerprintSource::Type,
            },
            search_indexes: &search_indexes,
        };
        input.digest(keys).map_err(Error::Invalid)
    }

    async fn search_indexes(
        &self,
        vault: &TokenVault,
        tenant: TenantId,
    ) -> Result<Vec<SearchIndex>, Error> {
        let expressions = &vault.search_expressions;
        let texts = self.attributes.shown_search_indexes(self.kind);
        let mut search_indexes = Vec::with_capacity(texts.len());
        for text in texts {
            let domain = domain_of(expressions, tenant, self.kind, &text).await?;
            if let Ok(template) = parse_template(Context::SearchIndex, &text) {
                search_indexes.push(SearchIndex { template, domain });
            }
        }
        Ok(search_indexes)
    }

    /// The numbers of this token that count toward the velocity limit.
    pub(super) fn card_numbers(&self) -> Result<Vec<CandidateNumber>, keys::Error> {
        let data = self.data_value()?;
        let given = self.attributes.fingerprint_template().and_then(|template| {
            let metadata = self.attributes.metadata_map();
            let metadata = metadata.map_or(Value::Null, Value::Object);
            fingerprint_text(self.kind, &template, &data, &metadata).ok()
        });
        Ok(numbers_of(self.kind, &data, given.as_deref()))
    }

    /// Encrypts the data, bound to the row of `token`, which has this content.
    pub(super) fn seal(
        &self,
        keys: &TenantKeys,
        token: &Token,
        terms: &[Term],
    ) -> Result<Vec<u8>, keys::Error> {
        keys.seal(&token.record(terms), self.data.expose())
    }
}
