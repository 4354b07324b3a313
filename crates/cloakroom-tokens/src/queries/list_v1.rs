//! Lists and searches of v1: numbered pages, newest first.

use cloakroom_core::access::Permission;
use cloakroom_core::caller::Caller;
use cloakroom_core::velocity;
use cloakroom_platform::api::NumberedPage;

use super::list::{all_kinds, container_of, is_covered, operation};
use super::store::{self, OffsetPage, Reach};
use super::{Error, FilterV1};
use crate::attributes::{TokenId, data_terms, fold_case, folded_metadata_terms, numbers_in_search};
use crate::search_expressions::domains;
use crate::tokens::{self, SearchTerms, TokenRow, TokenVault, TokenView};

/// Rows that are scanned if the caller's rules cover only some of them. v1 has no cursor to continue a scan.
const SCAN_ROWS: i64 = 1_000;

/// A page, and the total number of tokens.
pub struct TokenPageV1 {
    pub tokens: Vec<TokenView>,
    pub total: u64,
}

/// Lists the tokens that the caller may read.
pub async fn list_v1(
    vault: &TokenVault,
    caller: &Caller,
    filter: &FilterV1,
    page: NumberedPage,
) -> Result<TokenPageV1, Error> {
    list_and_record(vault, caller, filter, page, Permission::TokenRead).await
}

/// Finds the tokens that the caller may search.
pub async fn search_v1(
    vault: &TokenVault,
    caller: &Caller,
    filter: &FilterV1,
    page: NumberedPage,
) -> Result<TokenPageV1, Error> {
    list_and_record(vault, caller, filter, page, Permission::TokenSearch).await
}

async fn list_and_record(
    vault: &TokenVault,
    caller: &Caller,
    filter: &FilterV1,
    page: NumberedPage,
    permission: Permission,
) -> Result<TokenPageV1, Error> {
    let listed = read_page(vault, caller, filter, page, permission).await?;
    tokens::record_reads(vault, caller, operation(permission), &listed.tokens).await?;
    Ok(listed)
}

async fn read_page(
    vault: &TokenVault,
    caller: &Caller,
    filter: &FilterV1,
    page: NumberedPage,
    permission: Permission,
) -> Result<TokenPageV1, Error> {
    let reach = caller.reach(permission)?;
    if filter.ids.is_some() {
        return by_ids(vault, caller, filter, page, permission).await;
    }
    let reach = Reach {
        lows: reach.iter().map(|path| path.as_str().to_owned()).collect(),
        ends: reach
            .iter()
            .map(cloakroom_core::access::Container::end)
            .collect(),
    };
    let is_exact = caller.covers_reach(permission);
    let (offset, size) = match is_exact {
        true => (page.offset(), page.limit()),
        false => (0, SCAN_ROWS),
    };
    let scanned = OffsetPage { offset, size };
    let (db, tenant) = (&vault.db, caller.tenant);
    let searched = terms_of(vault, caller, filter).await?;
    let (mut rows, mut total) = match &searched {
        None => store::page_v1(db, tenant, &reach, &all_kinds(), scanned).await?,
        Some(searched) => store::page_v1_by_terms(db, tenant, &reach, searched, scanned).await?,
    };
    if !is_exact {
        (rows, total) = covered(vault, caller, rows, page, permission).await?;
    }
    Ok(TokenPageV1 {
        tokens: tokens::view_readable(vault, caller, rows, permission, searched.as_ref()).await?,
        total: total.unsigned_abs(),
    })
}

/// Filters the rows that the caller's rules cover; returns those on the page and their total. The total must not count
/// other rows, because the count would disclose them.
async fn covered(
    vault: &TokenVault,
    caller: &Caller,
    rows: Vec<TokenRow>,
    page: NumberedPage,
    permission: Permission,
) -> Result<(Vec<TokenRow>, i64), Error> {
    let mut covered = Vec::new();
    for row in rows {
        let container = container_of(vault, caller, &row).await?;
        if is_covered(caller, permission, &row, &container) {
            covered.push(row);
        }
    }
    let total = i64::try_from(covered.len()).unwrap_or(i64::MAX);
    let skipped = usize::try_from(page.offset()).unwrap_or(usize::MAX);
    let rows = covered.into_iter().skip(skipped).take(page.size);
    Ok((rows.collect(), total))
}

/// The search terms of the filter; `None` if all tokens match.
async fn terms_of(
    vault: &TokenVault,
    caller: &Caller,
    filter: &FilterV1,
) -> Result<Option<SearchTerms>, Error> {
    let keys = vault.keys.of(caller.tenant).await?;
    let mut search_terms = SearchTerms {
        terms: Vec::new(),
        conditions: filter.metadata.len() + usize::from(filter.data.is_some()),
    };
    for (key, value) in &filter.metadata {
        search_terms
            .terms
            .extend(folded_metadata_terms(&keys, key, value));
    }
    if let Some(data) = &filter.data {
        velocity::admit(&vault.velocity, caller, &numbers_in_search(data.expose())).await?;
        let domains = domains(&vault.search_expressions, caller.tenant).await?;
        let terms = data_terms(&keys, &domains, data.expose());
        search_terms.terms.extend(terms);
    }
    Ok((search_terms.conditions > 0).then_some(search_terms))
}

/// Reads the tokens with these ids, at most a hundred, and filters them in memory.
async fn by_ids(
    vault: &TokenVault,
    caller: &Caller,
    filter: &FilterV1,
    page: NumberedPage,
    permission: Permission,
) -> Result<TokenPageV1, Error> {
    let ids: Vec<TokenId> = filter
        .ids
        .iter()
        .flatten()
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
    Ok(TokenPageV1 {
        tokens: found.into_iter().skip(skipped).take(page.size).collect(),
        total,
    })
}

fn has_entry(view: &TokenView, key: &str, value: &str) -> bool {
    let metadata = view.token.attributes.metadata_map().unwrap_or_default();
    metadata.iter().any(|(name, text)| {
        fold_case(name) == fold_case(key)
            && text
                .as_str()
                .is_some_and(|text| fold_case(text) == fold_case(value))
    })
}
