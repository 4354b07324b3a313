//! Lists and searches of the first version: pages by number, newest first.

use super::list::{all_kinds, container_of, is_covered, operation};
use super::store::{self, OffsetPage, OldTerms, Reach};
use super::{Error, OldFilter};
use crate::access::Permission;
use crate::api::NumberedPage;
use crate::caller::Caller;
use crate::card_numbers::card_numbers_in;
use crate::token_attributes::TokenId;
use crate::token_attributes::{data_term, fold, folded_metadata_terms};
use crate::token_rows::TokenRow;
use crate::tokens::{self, TokenView};
use crate::vault::Vault;
use crate::velocity;

/// How many rows are looked at where only some of them are covered: the older list has no way to go on
/// from where it stopped.
const LOOK: i64 = 1_000;

/// One page, and how many tokens there are on all pages.
pub struct OldListed {
    pub tokens: Vec<TokenView>,
    pub total: u64,
}

/// Lists what the caller may read.
pub async fn list_old(
    vault: &Vault,
    caller: &Caller,
    filter: &OldFilter,
    page: NumberedPage,
) -> Result<OldListed, Error> {
    listed(vault, caller, filter, (page, Permission::TokenRead)).await
}

/// Finds what the caller may search.
pub async fn search_old(
    vault: &Vault,
    caller: &Caller,
    filter: &OldFilter,
    page: NumberedPage,
) -> Result<OldListed, Error> {
    listed(vault, caller, filter, (page, Permission::TokenSearch)).await
}

async fn listed(
    vault: &Vault,
    caller: &Caller,
    filter: &OldFilter,
    asked: (NumberedPage, Permission),
) -> Result<OldListed, Error> {
    let listed = page_of(vault, caller, filter, asked).await?;
    tokens::record_reads(vault, caller, operation(asked.1), &listed.tokens).await?;
    Ok(listed)
}

async fn page_of(
    vault: &Vault,
    caller: &Caller,
    filter: &OldFilter,
    asked: (NumberedPage, Permission),
) -> Result<OldListed, Error> {
    let (page, permission) = asked;
    let reach = caller.reach(permission)?;
    if let Some(ids) = &filter.ids {
        return by_ids(vault, caller, (ids, filter), asked).await;
    }
    let reach = Reach {
        lows: reach.iter().map(|path| path.as_str().to_owned()).collect(),
        ends: reach.iter().map(crate::access::Container::end).collect(),
    };
    let is_exact = caller.fills_reach(permission);
    let (offset, size) = match is_exact {
        true => (page.offset(), page.limit()),
        false => (0, LOOK),
    };
    let looked_at = OffsetPage { offset, size };
    let (db, tenant) = (&vault.db, caller.tenant);
    let (mut rows, mut total) = match terms_of(vault, caller, filter).await? {
        None => store::old_page(db, tenant, &reach, &all_kinds(), looked_at).await?,
        Some(wanted) => store::old_page_by_terms(db, tenant, &reach, &wanted, looked_at).await?,
    };
    if !is_exact {
        (rows, total) = covered(vault, caller, rows, asked).await?;
    }
    Ok(OldListed {
        tokens: tokens::view_readable(vault, caller, rows, permission).await?,
        total: total.unsigned_abs(),
    })
}

/// The covered ones among the newest rows in reach: those of the page, and how many there are. What is
/// not covered must not even be counted.
async fn covered(
    vault: &Vault,
    caller: &Caller,
    rows: Vec<TokenRow>,
    asked: (NumberedPage, Permission),
) -> Result<(Vec<TokenRow>, i64), Error> {
    let (page, permission) = asked;
    let mut covered = Vec::new();
    for row in rows {
        let container = container_of(vault, caller, &row).await?;
        if is_covered(caller, permission, (&row, &container)) {
            covered.push(row);
        }
    }
    let total = i64::try_from(covered.len()).unwrap_or(i64::MAX);
    let skipped = usize::try_from(page.offset()).unwrap_or(usize::MAX);
    let rows = covered.into_iter().skip(skipped).take(page.size);
    Ok((rows.collect(), total))
}

/// What tokens have that meet the filter; nothing when all do.
async fn terms_of(
    vault: &Vault,
    caller: &Caller,
    filter: &OldFilter,
) -> Result<Option<OldTerms>, Error> {
    let keys = vault.keys.of(caller.tenant).await?;
    let mut wanted = OldTerms {
        terms: Vec::new(),
        conditions: filter.metadata.len() + usize::from(filter.data.is_some()),
    };
    for (key, value) in &filter.metadata {
        wanted
            .terms
            .extend(folded_metadata_terms(&keys, key, value));
    }
    if let Some(data) = &filter.data {
        velocity::admit(vault, caller, &card_numbers_in(data.expose())).await?;
        wanted.terms.push(data_term(&keys, data.expose()));
    }
    Ok((wanted.conditions > 0).then_some(wanted))
}

/// At most a hundred ids were named: they are read, and the rest is sorted out here.
async fn by_ids(
    vault: &Vault,
    caller: &Caller,
    what: (&[String], &OldFilter),
    asked: (NumberedPage, Permission),
) -> Result<OldListed, Error> {
    let ((ids, filter), (page, permission)) = (what, asked);
    let ids: Vec<TokenId> = ids
        .iter()
        .map(|text| TokenId::of(caller.tenant, text))
        .collect();
    let mut found = tokens::find_readable(vault, caller, &ids, permission).await?;
    found.retain(|view| {
        let has = |(key, value): &(String, String)| has_entry(view, key, value);
        filter.metadata.iter().all(has)
    });
    found.sort_by_key(|view| std::cmp::Reverse((view.token.created_at, *view.token.id.key())));
    let total = found.len() as u64;
    let skipped = usize::try_from(page.offset()).unwrap_or(usize::MAX);
    Ok(OldListed {
        tokens: found.into_iter().skip(skipped).take(page.size).collect(),
        total,
    })
}

fn has_entry(view: &TokenView, key: &str, value: &str) -> bool {
    let kept = view.token.metadata.as_deref();
    let kept: serde_json::Map<String, serde_json::Value> = kept
        .and_then(|text| serde_json::from_str(text).ok())
        .unwrap_or_default();
    kept.iter().any(|(name, text)| {
        fold(name) == fold(key) && text.as_str().is_some_and(|text| fold(text) == fold(value))
    })
}
