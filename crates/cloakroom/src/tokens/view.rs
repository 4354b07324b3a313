//! A token as one caller may see it: its data redacted, masked or revealed.

use cloakroom_crypto::Sensitive;
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

use super::token::TokenData;
use super::{Error, Token};
use crate::access::{Container, Permission, Transform};
use crate::caller::Caller;
use crate::token_attributes::Term;
use crate::token_attributes::{Details, NO_MASK, TokenId, parse_mask};
use crate::token_rows::{self, TokenRow};
use crate::token_types::TokenKind;
use crate::vault::Vault;
use crate::{containers, keys, security_codes};

/// A token with what its caller may see of it.
#[derive(Clone)]
pub struct TokenView {
    pub token: Token,
    /// Absent when the caller may know that the token exists, and no more.
    pub shown: Option<Shown>,
}

impl TokenView {
    /// The same without the security code.
    pub(super) fn forget_code(&mut self) {
        if let Some(shown) = &mut self.shown {
            shown.forget_code();
        }
    }
}

/// What a caller may see of a token's data.
#[derive(Clone)]
pub struct Shown {
    /// Absent when redacted.
    pub data: Option<Box<RawValue>>,
    pub details: Details,
    /// How the data came to look so.
    pub transform: Transform,
    /// Whether the data ends with a security code.
    has_code: bool,
}

impl Shown {
    /// The same without the security code, which is kept nowhere but in its own place.
    pub(super) fn forget_code(&mut self) {
        if !std::mem::take(&mut self.has_code) {
            return;
        }
        let text = self.data.take();
        let text = text.as_ref().map(|data| data.get());
        let kept = text.and_then(|text| text.rsplit_once(CODE_MEMBER));
        self.data = kept.and_then(|(kept, _)| RawValue::from_string(format!("{kept}}}")).ok());
    }
}

/// How a security code begins within revealed data.
const CODE_MEMBER: &str = ",\"cvc\":\"";

/// A token whose data was opened.
pub(super) struct Opened {
    pub token: Token,
    pub data: TokenData,
    pub container_number: i32,
    pub terms: Vec<Term>,
}

/// The container that a row says it is in; opening its data proves it.
async fn container_of(vault: &Vault, caller: &Caller, row: &TokenRow) -> Result<Container, Error> {
    let container = containers::container_of(vault, caller.tenant, row.container).await?;
    Ok(container.ok_or(keys::Error::Integrity)?)
}

/// Opens the data of a row, which proves that nobody changed what it is bound to.
pub(super) async fn open(vault: &Vault, caller: &Caller, row: TokenRow) -> Result<Opened, Error> {
    let container = container_of(vault, caller, &row).await?;
    let token = Token {
        id: row.id,
        kind: TokenKind::from_number(row.kind).ok_or(keys::Error::Integrity)?,
        container,
        row_version: row.row_version,
        expiry: row.expiry,
        mask: row.mask,
        metadata: row.metadata,
        fingerprint: row.fingerprint,
        fingerprint_expression: row.fingerprint_expression,
        search_indexes: row.search_indexes,
        has_security_code: row.has_security_code,
        created_by: row.created_by,
        created_at: row.created_at,
        modified_by: row.modified_by,
        modified_at: row.modified_at,
    };
    let data = vault
        .keys
        .open(caller.tenant, &token.record(), &row.sealed)
        .await?;
    Ok(Opened {
        token,
        data,
        container_number: row.container,
        terms: row.terms,
    })
}

/// Opens the token that an id names.
pub(super) async fn open_named(
    vault: &Vault,
    caller: &Caller,
    id: &TokenId,
) -> Result<Opened, Error> {
    let row = token_rows::find(&vault.token_reads, caller.tenant, id).await?;
    let opened = open(vault, caller, row.ok_or(Error::NotFound)?).await?;
    match opened.token.id == *id {
        true => Ok(opened),
        false => Err(Error::NotFound),
    }
}

/// Shows a token as `permission` lets the caller see it where it lies.
pub(super) async fn view(
    vault: &Vault,
    caller: &Caller,
    opened: Opened,
    permission: Permission,
) -> Result<TokenView, Error> {
    let id = opened.token.id.text();
    let transform = caller.require_on(permission, opened.token.subject(&id))?;
    drop(id);
    view_opened(vault, caller, opened, transform).await
}

/// Shows each row as its own container's rule says; what no rule covers is left out.
pub(crate) async fn view_readable(
    vault: &Vault,
    caller: &Caller,
    rows: Vec<TokenRow>,
    permission: Permission,
) -> Result<Vec<TokenView>, Error> {
    let mut views = Vec::with_capacity(rows.len());
    for row in rows {
        let opened = open(vault, caller, row).await?;
        match view(vault, caller, opened, permission).await {
            Ok(view) => views.push(view),
            Err(Error::Denied(_)) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(views)
}

/// Shows a token that deduplication met: as a read would, or only that it exists.
pub(super) async fn view_met(
    vault: &Vault,
    caller: &Caller,
    opened: Opened,
) -> Result<TokenView, Error> {
    let decided = {
        let id = opened.token.id.text();
        caller.require_on(Permission::TokenRead, opened.token.subject(&id))
    };
    match decided {
        Ok(transform) => view_opened(vault, caller, opened, transform).await,
        Err(_) => Ok(TokenView {
            token: opened.token,
            shown: None,
        }),
    }
}

async fn view_opened(
    vault: &Vault,
    caller: &Caller,
    opened: Opened,
    transform: Transform,
) -> Result<TokenView, Error> {
    let Opened { token, data, .. } = opened;
    let code = find_code(vault, caller, &token, transform).await?;
    let visible = Visible {
        kind: token.kind,
        mask: token.mask.as_deref(),
        data: &data,
        code: code.as_ref(),
    };
    let shown = Some(visible.show(vault, caller, transform)?);
    Ok(TokenView { token, shown })
}

/// The security code of a token, for those who may see it while it is kept.
pub(super) async fn find_code(
    vault: &Vault,
    caller: &Caller,
    token: &Token,
    transform: Transform,
) -> Result<Option<Sensitive<String>>, Error> {
    match transform {
        Transform::Reveal if token.has_security_code => {
            // Boxed, because most do not need it.
            let found = security_codes::find(vault, caller.tenant, token.id.key());
            Ok(Box::pin(found).await?)
        }
        _ => Ok(None),
    }
}

/// Data and what decides how it appears.
pub(super) struct Visible<'a> {
    pub kind: TokenKind,
    pub mask: Option<&'a str>,
    pub data: &'a TokenData,
    pub code: Option<&'a Sensitive<String>>,
}

impl Visible<'_> {
    /// Applies a transform to the data.
    pub(super) fn show(
        &self,
        vault: &Vault,
        caller: &Caller,
        transform: Transform,
    ) -> Result<Shown, keys::Error> {
        // Data was checked before it was sealed, so text that is not JSON did not come from here.
        let text = std::str::from_utf8(self.data.expose()).map_err(|_| keys::Error::Integrity)?;
        let value = match transform == Transform::Mask || Details::exist_for(self.kind) {
            true => serde_json::from_str(text).map_err(|_| keys::Error::Integrity)?,
            false => Value::Null,
        };
        let data = match transform {
            Transform::Redact => Ok(None),
            Transform::Mask => self.masked(&value).as_ref().map(to_raw_value).transpose(),
            Transform::Reveal => RawValue::from_string(self.revealed(text)).map(Some),
        };
        Ok(Shown {
            data: data.map_err(|_| keys::Error::Integrity)?,
            details: Details::of(vault, caller.tenant_kind, self.kind, &value),
            transform,
            has_code: transform == Transform::Reveal && self.code.is_some(),
        })
    }

    /// The evaluated mask; nothing when the token has none, or one that yields nothing.
    ///
    /// The security code is not there to be masked: what is shown to many must not depend on it.
    fn masked(&self, data: &Value) -> Option<Value> {
        let sources = crate::token_attributes::sources();
        let masked = match self.mask {
            Some(NO_MASK) => return None,
            Some(text) => parse_mask(text)?.apply_with(data, &sources),
            None => self.kind.default_mask()?.mask.apply_with(data, &sources),
        };
        (!masked.is_null()).then_some(masked)
    }

    /// The data as it was given; a security code takes the last place in it.
    fn revealed(&self, text: &str) -> String {
        match (self.code, text.strip_suffix('}')) {
            (Some(code), Some(open)) => format!("{open}{CODE_MEMBER}{}\"}}", code.expose()),
            _ => text.to_owned(),
        }
    }
}
