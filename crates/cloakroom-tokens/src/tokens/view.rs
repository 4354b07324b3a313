//! A token as a caller sees it, with its data redacted, masked or revealed.

use cloakroom_core::access::{Container, Permission, Purpose, Transform};
use cloakroom_core::caller::Caller;
use cloakroom_core::keys;
use cloakroom_crypto::Sensitive;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::create::planned_write::Claim;
use super::freshness::report_stale;
use super::store::{self, TokenRow};
use super::token::TokenData;
use super::{Error, Token};
use crate::attributes::{Details, NO_MASK, Term, TokenId, parse_mask};
use crate::tokens::TokenVault;
use crate::types::{TokenKind, truncate, with_security_code};
use crate::{containers, security_codes};

/// A token with the data that its caller may see.
#[derive(Clone)]
pub struct TokenView {
    pub token: Token,
    /// `None` if the caller may know only that the token exists.
    pub shown: Option<VisibleData>,
}

impl TokenView {
    /// Replaces revealed data with masked data, for a stored response.
    pub(super) fn mask_revealed(&mut self) {
        if let Some(shown) = &mut self.shown
            && shown.transform == Transform::Reveal
        {
            shown.data = shown.masked.take();
            shown.transform = Transform::Mask;
        }
    }
}

/// A token's data as a caller sees it.
#[derive(Clone)]
pub struct VisibleData {
    /// `None` if redacted.
    pub data: Option<Box<RawValue>>,
    pub details: Details,
    /// The transform that was applied.
    pub transform: Transform,
    /// The masked form of revealed data, if the response is stored for an idempotency key.
    masked: Option<Box<RawValue>>,
}

/// A token with its decrypted data.
pub(super) struct OpenedToken {
    pub token: Token,
    pub data: TokenData,
    pub container_number: i32,
    pub terms: Vec<Term>,
}

impl OpenedToken {
    /// Whether it has the fingerprint and the container of a claim.
    pub(super) fn has(&self, claim: &Claim) -> bool {
        let token = &self.token;
        let mut others = claim.other_fingerprints.iter().map(|it| it.fingerprint);
        let has_fingerprint = token
            .fingerprint
            .is_some_and(|print| print == claim.fingerprint || others.any(|other| print == other));
        has_fingerprint && token.container == claim.container
    }

    /// The time of a write at `now`, later than the write before it: clocks of nodes differ slightly.
    pub(super) fn next_write(&self, now: Timestamp) -> Timestamp {
        let next = self.token.written_at() + SignedDuration::from_micros(1);
        now.max(next)
    }

    pub(super) fn data_value(&self) -> Result<Value, keys::Error> {
        serde_json::from_slice(self.data.expose()).map_err(|_| keys::Error::Integrity)
    }
}

/// The container that a row names. It is authenticated only when the data is opened.
async fn container_of(
    vault: &TokenVault,
    caller: &Caller,
    row: &TokenRow,
) -> Result<Container, Error> {
    let container =
        containers::container_of(&vault.container_numbers, caller.tenant, row.container).await?;
    // Lists are ordered by the path in the row, which must be the one that is authorized.
    let container = container.filter(|container| container.as_str() == row.path);
    Ok(container.ok_or(keys::Error::Integrity)?)
}

/// Decrypts the data of a row, which authenticates the attributes that it is bound to, and rejects a row that is older
/// than the latest known write.
///
/// Returns `NotFound` if the token was deleted after the row was read.
pub(super) async fn open(
    vault: &TokenVault,
    caller: &Caller,
    row: TokenRow,
) -> Result<OpenedToken, Error> {
    let opened = decrypt(vault, caller, row).await?;
    match is_stale(vault, caller, &opened.token) {
        false => Ok(opened),
        true => Box::pin(reopen(vault, caller, &opened.token.id)).await,
    }
}

/// Opens the row again: a concurrent request may have written it after it was read.
async fn reopen(vault: &TokenVault, caller: &Caller, id: &TokenId) -> Result<OpenedToken, Error> {
    let row = store::find(&vault.reads, caller.tenant, id).await?;
    let opened = decrypt(vault, caller, row.ok_or(Error::NotFound)?).await?;
    if is_stale(vault, caller, &opened.token) {
        report_stale(caller.tenant);
        return Err(keys::Error::Integrity.into());
    }
    Ok(opened)
}

fn is_stale(vault: &TokenVault, caller: &Caller, token: &Token) -> bool {
    let written_at = token.written_at();
    vault
        .latest_writes
        .is_stale(caller.tenant, token.id.key(), written_at)
}

/// Remembers the row of a token whose data is disclosed or used: older ones are rejected from then on.
pub(super) fn remember(vault: &TokenVault, caller: &Caller, token: &Token) {
    let written_at = token.written_at();
    vault
        .latest_writes
        .remember(caller.tenant, token.id.key(), written_at);
}

/// Decrypts the data of a row, which authenticates the attributes that it is bound to.
pub(super) async fn decrypt(
    vault: &TokenVault,
    caller: &Caller,
    row: TokenRow,
) -> Result<OpenedToken, Error> {
    let container = container_of(vault, caller, &row).await?;
    let token = Token {
        id: row.id,
        kind: TokenKind::from_number(row.kind).ok_or(keys::Error::Integrity)?,
        container,
        attributes: row.attributes,
        row_version: row.row_version,
        fingerprint: row.fingerprint,
        has_security_code: row.has_security_code,
        security_code_until: row.security_code_until,
        created_by: row.created_by,
        created_at: row.created_at,
        modified_by: row.modified_by,
        modified_at: row.modified_at,
    };
    let data = vault
        .keys
        .open(caller.tenant, &token.record(&row.terms), &row.sealed)
        .await?;
    Ok(OpenedToken {
        token,
        data,
        container_number: row.container,
        terms: row.terms,
    })
}

/// Finds a token by id and decrypts its data.
pub(super) async fn open_by_id(
    vault: &TokenVault,
    caller: &Caller,
    id: &TokenId,
) -> Result<OpenedToken, Error> {
    let row = store::find(&vault.reads, caller.tenant, id).await?;
    let opened = open(vault, caller, row.ok_or(Error::NotFound)?).await?;
    match opened.token.id == *id {
        true => Ok(opened),
        false => Err(Error::NotFound),
    }
}

/// Transforms a token's data as `permission` allows in the token's container.
pub(super) async fn view(
    vault: &TokenVault,
    caller: &Caller,
    opened: OpenedToken,
    permission: Permission,
) -> Result<TokenView, Error> {
    let id = opened.token.id.text();
    let transform = caller.require_on(permission, opened.token.subject(&id))?;
    drop(id);
    view_with(vault, caller, opened, transform).await
}

/// Transforms a token's data as the caller's rules allow for a purpose.
pub(super) async fn view_for(
    vault: &TokenVault,
    caller: &Caller,
    opened: OpenedToken,
    purpose: Purpose,
) -> Result<TokenView, Error> {
    let id = opened.token.id.text();
    let transform = purpose.require_on(caller, opened.token.subject(&id))?;
    drop(id);
    view_with(vault, caller, opened, transform).await
}

/// The terms that tokens were searched by. A token that meets all conditions has at least one term of each.
pub struct SearchTerms {
    pub terms: Vec<Term>,
    pub conditions: usize,
}

impl SearchTerms {
    /// One condition that any of these terms meets.
    pub fn any_of(terms: Vec<Term>) -> Self {
        let conditions = 1;
        Self { terms, conditions }
    }

    fn are_met_by(&self, opened: &OpenedToken) -> bool {
        let is_met = |term: &&Term| opened.terms.contains(term);
        self.terms.iter().filter(is_met).count() >= self.conditions
    }
}

/// Transforms each row by the access rule for its container; rows without a matching rule are skipped.
///
/// A row of `term` is not authenticated, so a token that was searched by terms must itself have them.
pub async fn view_readable(
    vault: &TokenVault,
    caller: &Caller,
    rows: Vec<TokenRow>,
    permission: Permission,
    searched: Option<&SearchTerms>,
) -> Result<Vec<TokenView>, Error> {
    let mut views = Vec::with_capacity(rows.len());
    for row in rows {
        let row_version = row.row_version;
        let opened = match open(vault, caller, row).await {
            Err(Error::NotFound) => continue,
            opened => opened?,
        };
        if searched.is_some_and(|searched| !searched.are_met_by(&opened)) {
            // A concurrent update may have removed the term after the row was read.
            match opened.token.row_version == row_version {
                true => return Err(keys::Error::Integrity.into()),
                false => continue,
            }
        }
        match view(vault, caller, opened, permission).await {
            Ok(view) => views.push(view),
            Err(Error::PermissionDenied(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(views)
}

/// Views the existing token that deduplication found: as a read does, or without data if reading is denied.
pub(super) async fn view_duplicate(
    vault: &TokenVault,
    caller: &Caller,
    opened: OpenedToken,
) -> Result<TokenView, Error> {
    let decided = {
        let id = opened.token.id.text();
        caller.require_on(Permission::TokenRead, opened.token.subject(&id))
    };
    match decided {
        Ok(transform) => view_with(vault, caller, opened, transform).await,
        Err(_) => Ok(TokenView {
            token: opened.token,
            shown: None,
        }),
    }
}

async fn view_with(
    vault: &TokenVault,
    caller: &Caller,
    opened: OpenedToken,
    transform: Transform,
) -> Result<TokenView, Error> {
    let OpenedToken { token, data, .. } = opened;
    if transform == Transform::Reveal {
        remember(vault, caller, &token);
    }
    let code = find_code(vault, caller, &token, transform).await?;
    let visible = Plaintext {
        kind: token.kind,
        mask: token.attributes.mask.as_deref(),
        data: &data,
        code: code.as_ref(),
    };
    let shown = Some(visible.show(vault, caller, transform)?);
    Ok(TokenView { token, shown })
}

/// Finds a token's security code if the transform is `reveal` and the code has not expired.
pub(super) async fn find_code(
    vault: &TokenVault,
    caller: &Caller,
    token: &Token,
    transform: Transform,
) -> Result<Option<Sensitive<String>>, Error> {
    match transform {
        Transform::Reveal if token.has_security_code => {
            // Boxed to keep the common path's future small.
            let found = security_codes::find(&vault.security_codes, caller.tenant, token.id.key());
            Ok(Box::pin(found).await?)
        }
        _ => Ok(None),
    }
}

/// Decrypted data with the attributes that determine how it is masked.
pub(super) struct Plaintext<'a> {
    pub kind: TokenKind,
    pub mask: Option<&'a str>,
    pub data: &'a TokenData,
    pub code: Option<&'a Sensitive<String>>,
}

impl Plaintext<'_> {
    /// Applies a transform to the data.
    pub(super) fn show(
        &self,
        vault: &TokenVault,
        caller: &Caller,
        transform: Transform,
    ) -> Result<VisibleData, keys::Error> {
        // Data is validated before it is encrypted, so anything but JSON is an integrity failure.
        let text = std::str::from_utf8(self.data.expose()).map_err(|_| keys::Error::Integrity)?;
        let is_stored = caller.lease.is_some();
        let needs_mask = transform == Transform::Mask || is_stored;
        let value = match needs_mask || Details::exist_for(self.kind) {
            true => serde_json::from_str(text).map_err(|_| keys::Error::Integrity)?,
            false => Value::Null,
        };
        let masked = || self.masked(&value).as_ref().map(to_raw_value).transpose();
        let (data, stored) = match transform {
            Transform::Redact => (Ok(None), Ok(None)),
            Transform::Mask => (masked(), Ok(None)),
            Transform::Reveal => (
                self.revealed(text).map(Some),
                if is_stored { masked() } else { Ok(None) },
            ),
        };
        let unreadable = |_| keys::Error::Integrity;
        Ok(VisibleData {
            data: data.map_err(unreadable)?,
            details: Details::of(&vault.bins, caller.tenant_kind, self.kind, &value),
            transform,
            masked: stored.map_err(unreadable)?,
        })
    }

    /// Evaluates the mask; `None` if the token has none, or if it yields null.
    ///
    /// Clients write masks, so their expressions get neither the security code nor the truncated digits of a card
    /// number. The default masks of types are known to reveal neither.
    fn masked(&self, data: &Value) -> Option<Value> {
        let sources = crate::attributes::sources();
        let masked = match self.mask {
            Some(NO_MASK) => return None,
            Some(text) => parse_mask(text)?.apply_with(&truncate(self.kind, data), &sources),
            None => self.kind.default_mask()?.mask.apply_with(data, &sources),
        };
        (!masked.is_null()).then_some(masked)
    }

    /// The data as the client sent it, with the security code as the last member.
    fn revealed(&self, text: &str) -> Result<Box<RawValue>, serde_json::Error> {
        match self.code {
            Some(code) => with_security_code(text, code.expose()),
            None => RawValue::from_string(text.to_owned()),
        }
    }
}
