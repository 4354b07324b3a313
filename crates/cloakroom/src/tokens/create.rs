//! Creating a token: check, authorize, seal, keep.

use cloakroom_crypto::Sensitive;
use cloakroom_expressions::Mask;
use jiff::Timestamp;
use serde_json::Value;
use uuid::Uuid;

use super::expiry::{self, Expiry};
use super::token::{Bound, TokenData, parse_id};
use super::view::show;
use super::{Error, NewToken, Privacy, Token, TokenKind, TokenView, card, metadata, store};
use crate::access::{Container, Permission};
use crate::api::Broken;
use crate::caller::Caller;
use crate::card_numbers::holds_card_number;
use crate::vault::Vault;
use crate::{containers, ids, storage};

/// What is kept in clear is searched for card numbers first.
const NO_CARD_NUMBER: &str = "must not hold a card number: it is kept in clear";

const DATA_BYTES_MAX: usize = 1024 * 1024;
const MASK_BYTES_MAX: usize = 16 * 1024;

/// A fresh row's version; updates count on from here.
const FIRST_VERSION: u32 = 1;

/// Everything about a new token, checked.
struct Checked {
    id: Option<Uuid>,
    kind: TokenKind,
    data: TokenData,
    container: Container,
    mask: Option<String>,
    metadata: Option<String>,
    expiry: Option<Expiry>,
}

/// Seals the data and keeps it in the caller's tenant.
///
/// Returns once the token is durable, with the data as the caller's grant for creating shows it.
pub async fn create(vault: &Vault, caller: &Caller, new: NewToken<'_>) -> Result<TokenView, Error> {
    let new = check(new, caller).map_err(Error::Invalid)?;
    let transform = caller.require(Permission::TokenCreate, &new.container)?;

    // Everything that can fail comes before the write: after it, the answer must be a success.
    let shown = show(new.kind, new.mask.as_deref(), &new.data, transform)?;
    let id = new.id.unwrap_or_else(ids::new_uuid);
    let created_at = seal_and_insert(vault, caller, id, &new).await?;
    let token = Token {
        id,
        kind: new.kind,
        container: new.container,
        row_version: FIRST_VERSION,
        expiry: new.expiry,
        mask: new.mask,
        metadata: new.metadata,
        created_by: caller.application,
        created_at,
        modified_by: None,
        modified_at: None,
    };
    Ok(TokenView { token, shown })
}

/// Seals and inserts, making room first where an expired token still occupies the id.
async fn seal_and_insert(
    vault: &Vault,
    caller: &Caller,
    id: Uuid,
    new: &Checked,
) -> Result<Timestamp, Error> {
    let keys = vault.keys.of(caller.tenant).await?;
    let bound = Bound {
        id: &id,
        kind: new.kind,
        container: &new.container,
        expiry: new.expiry,
        mask: new.mask.as_deref(),
    };
    let sealed = keys.seal(&bound.record(FIRST_VERSION), new.data.expose())?;
    let row = store::NewRow {
        id,
        container: containers::number_of(vault, caller.tenant, &new.container).await?,
        kind: new.kind,
        expiry: new.expiry,
        created_by: caller.application,
        sealed: &sealed,
        mask: new.mask.as_deref(),
        metadata: new.metadata.as_deref(),
    };
    let mut inserted = store::insert(&vault.db, caller.tenant, &row).await;
    if is_taken(&inserted) && store::delete_expired(&vault.db, caller.tenant, id).await? {
        inserted = store::insert(&vault.db, caller.tenant, &row).await;
    }
    match inserted {
        Ok(Some(created_at)) => Ok(created_at),
        Ok(None) => Err(Error::Invalid(vec![Broken::new(
            "expires_at",
            expiry::RULE,
        )])),
        Err(_) if is_taken(&inserted) => Err(Error::IdTaken),
        Err(error) => Err(error.into()),
    }
}

fn is_taken<T>(inserted: &Result<T, storage::Error>) -> bool {
    inserted
        .as_ref()
        .is_err_and(|error| error.is_conflict("token_pkey"))
}

/// Checks every attribute, so that the client learns of all broken rules at once.
fn check(new: NewToken<'_>, caller: &Caller) -> Result<Checked, Vec<Broken>> {
    let mut broken = Vec::new();
    let kind = ok_or_collect(settle_kind(new.kind.as_deref()), &mut broken);
    let id = ok_or_collect(settle_id(new.id.as_deref()), &mut broken);
    let data = ok_or_collect(settle_data(&new, kind, caller), &mut broken);
    let container = match (new.containers, new.privacy, kind) {
        (None, Some(privacy), Some(kind)) => settle_privacy(&privacy, kind),
        (containers, ..) => settle_container(containers),
    };
    let container = ok_or_collect(container, &mut broken);
    let mask = ok_or_collect(settle_mask(new.mask), &mut broken);
    let metadata = ok_or_collect(
        metadata::settle(new.metadata.unwrap_or_default()),
        &mut broken,
    );
    let expiry = ok_or_collect(settle_expiry(new.expires_at.as_deref()), &mut broken);
    match (kind, data.flatten()) {
        (Some(kind), Some(data)) if broken.is_empty() => Ok(Checked {
            id: id.flatten(),
            kind,
            data,
            container: container
                .flatten()
                .unwrap_or_else(|| kind.default_container()),
            mask: mask.flatten(),
            metadata: metadata.flatten(),
            expiry: expiry.flatten(),
        }),
        _ => Err(broken),
    }
}

fn ok_or_collect<T>(result: Result<T, Vec<Broken>>, broken: &mut Vec<Broken>) -> Option<T> {
    result.map_err(|rules| broken.extend(rules)).ok()
}

fn settle_kind(name: Option<&str>) -> Result<TokenKind, Vec<Broken>> {
    let name = name.ok_or_else(|| vec![Broken::new("type", "is required")])?;
    let names: Vec<&str> = TokenKind::ALL.into_iter().map(TokenKind::name).collect();
    let rule = || {
        vec![Broken::new(
            "type",
            format!("must be one of {}", names.join(", ")),
        )]
    };
    TokenKind::parse(name).ok_or_else(rule)
}

/// Only UUIDs so far; they are kept in binary, so one spelling is accepted.
fn settle_id(id: Option<&str>) -> Result<Option<Uuid>, Vec<Broken>> {
    let Some(text) = id else { return Ok(None) };
    parse_id(text).map(Some).ok_or_else(|| {
        vec![Broken::new(
            "id",
            "must be a UUID in lower case with hyphens",
        )]
    })
}

fn settle_data(
    new: &NewToken<'_>,
    kind: Option<TokenKind>,
    caller: &Caller,
) -> Result<Option<TokenData>, Vec<Broken>> {
    let raw = new
        .data
        .ok_or_else(|| vec![Broken::new("data", "is required")])?;
    if raw.get().len() > DATA_BYTES_MAX {
        let rule = format!("must be at most {DATA_BYTES_MAX} bytes of JSON");
        return Err(vec![Broken::new("data", rule)]);
    }
    let settled = match kind {
        None => return Ok(None),
        Some(TokenKind::Token) => raw.get().as_bytes().to_vec(),
        Some(TokenKind::Card) => card::settle(raw, caller.tenant_kind)?,
    };
    Ok(Some(Sensitive::new(settled)))
}

fn settle_container(containers: Option<Vec<String>>) -> Result<Option<Container>, Vec<Broken>> {
    match containers.as_deref() {
        None => Ok(None),
        Some([path]) if holds_card_number(path) => {
            Err(vec![Broken::new("containers[0]", NO_CARD_NUMBER)])
        }
        Some([path]) => Container::parse(path)
            .map(Some)
            .map_err(|rule| vec![Broken::new("containers[0]", rule.to_string())]),
        Some(_) => Err(vec![Broken::new(
            "containers",
            "must hold exactly one path",
        )]),
    }
}

/// Builds a container from classification and impact level, each with the type's own as default.
fn settle_privacy(privacy: &Privacy, kind: TokenKind) -> Result<Option<Container>, Vec<Broken>> {
    const CLASSIFICATIONS: [&str; 4] = ["general", "bank", "pci", "pii"];
    const IMPACT_LEVELS: [&str; 3] = ["low", "moderate", "high"];
    let mut broken = Vec::new();
    let mut check = |given: Option<&str>, name: &str, known: &[&str]| {
        if given.is_some_and(|word| !known.contains(&word)) {
            let rule = format!("must be one of {}", known.join(", "));
            broken.push(Broken::new(format!("privacy.{name}"), rule));
        }
    };
    let classification = privacy.classification.as_deref();
    let impact_level = privacy.impact_level.as_deref();
    check(classification, "classification", &CLASSIFICATIONS);
    check(impact_level, "impact_level", &IMPACT_LEVELS);
    if !broken.is_empty() {
        return Err(broken);
    }
    let default = kind.default_container();
    let mut defaults = default.as_str().trim_matches('/').split('/');
    let (class, level) = (
        defaults.next().unwrap_or_default(),
        defaults.next().unwrap_or_default(),
    );
    let path = format!(
        "/{}/{}/",
        classification.unwrap_or(class),
        impact_level.unwrap_or(level)
    );
    Ok(Some(Container::known(&path)))
}

fn settle_mask(mask: Option<Value>) -> Result<Option<String>, Vec<Broken>> {
    let Some(mask) = mask else { return Ok(None) };
    let text = mask.to_string();
    if text.len() > MASK_BYTES_MAX {
        let rule = format!("must be at most {MASK_BYTES_MAX} bytes of JSON");
        return Err(vec![Broken::new("mask", rule)]);
    }
    if holds_card_number(&text) {
        return Err(vec![Broken::new("mask", NO_CARD_NUMBER)]);
    }
    match Mask::parse(&mask) {
        Ok(_) => Ok(Some(text)),
        Err(error) => Err(vec![Broken::new("mask", error.to_string())]),
    }
}

fn settle_expiry(text: Option<&str>) -> Result<Option<Expiry>, Vec<Broken>> {
    let Some(text) = text else { return Ok(None) };
    Expiry::parse(text)
        .map(Some)
        .ok_or_else(|| vec![Broken::new("expires_at", expiry::RULE)])
}
