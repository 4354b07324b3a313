//! SQL statements of lists and searches.

use cloakroom_crypto::Fingerprint;
use cloakroom_platform::ids::TenantId;
use cloakroom_platform::storage::{Db, Error, statements};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::attributes::Term;
use crate::tokens::{SearchTerms, TokenRow, token_columns};

/// The position of a token in its container; pages continue below it.
#[derive(Clone, Copy)]
pub(super) struct SortKey {
    pub created_at: Timestamp,
    pub token_id: Uuid,
}

impl SortKey {
    /// Below every token.
    pub(super) const LOWEST: Self = Self {
        created_at: Timestamp::UNIX_EPOCH,
        token_id: Uuid::nil(),
    };
}

/// Where a page continues: in the containers from `low` (inclusive) to `end` (exclusive), and below this position in
/// the container at the end.
#[derive(Clone, Copy)]
pub(super) struct PageStart<'a> {
    pub low: &'a str,
    pub end: &'a str,
    pub sort_key: SortKey,
}

/// Selects the tokens with a term, and with a fingerprint if given.
pub(super) struct TermFilter {
    pub term: Term,
    pub fingerprint: Option<Fingerprint>,
}

impl TermFilter {
    pub(super) fn of(term: Term) -> Self {
        Self {
            term,
            fingerprint: None,
        }
    }
}

/// Expired tokens that are not swept yet. There are few, and the subquery is hashed regardless of planner estimates.
macro_rules! expired {
    () => {
        "(
                select token_id
                from token
                where tenant_id = $1
                  and expires_at <= now()
            )"
    };
}

/// The keys of the tokens that have at least `$5` of the terms `$2`, in the containers between `$3` and `$4`. Does not read the
/// tokens themselves.
macro_rules! with_terms {
    () => {
        concat!(
            "
            select found.created_at, found.token_id
            from unnest($3::text[], $4::text[]) as reach (low, beyond)
            cross join lateral (
                select path, created_at, token_id
                from term
                where tenant_id = $1
                  and term = any($2::bytea[])
                  and path >= reach.low
                  and path < reach.beyond
                offset 0
            ) found
            where found.token_id not in ",
            expired!(),
            "
            group by found.path, found.created_at, found.token_id
            having count(*) >= $5"
        )
    };
}

/// Reads the tokens of a page by key, one lookup each, regardless of planner estimates.
macro_rules! tokens_of_page {
    () => {
        concat!(
            "select ",
            token_columns!(),
            "
        from page
        cross join lateral (
            select *
            from token
            where tenant_id = $1
              and token_id = page.token_id
            limit 1
        ) token
        order by page.created_at desc, page.token_id desc"
        )
    };
}

statements! {
    // Merges one descending scan of the index `token_by_path` per type. Each scan reads at most a page, regardless of
    // the number of tokens and containers. Empty containers are not in the index and cost nothing; an expired token
    // that is not swept yet costs as much as a returned one.
    OF_KINDS: "token_queries::of_kinds" = concat!(
        "select ", token_columns!(), "
        from unnest($2::smallint[]) as wanted (kind)
        cross join lateral (
            select *
            from token
            where tenant_id = $1
              and kind = wanted.kind
              and path >= $3
              and (path, created_at, token_id) < ($4, $5, $6)
              and (expires_at is null or expires_at > now())
            order by path desc, created_at desc, token_id desc
            limit $7
        ) token
        order by token.path desc, token.created_at desc, token.token_id desc
        limit $7"
    );
    // One descending scan of the primary key of `term`. The full fingerprint is compared, because its term is only a
    // prefix. With `coalesce`, the planner does not estimate the comparison as highly selective, which would make it
    // choose parallel workers.
    BY_TERM: "token_queries::by_term" = concat!(
        "select ", token_columns!(), "
        from term
        join token
          on token.tenant_id = $1
         and token.token_id = term.token_id
        where term.tenant_id = $1
          and term.term = $2
          and term.path >= $3
          and (term.path, term.created_at, term.token_id) < ($4, $5, $6)
          and (token.expires_at is null or token.expires_at > now())
          and coalesce(token.fingerprint = $7, $7::bytea is null)
        order by term.path desc, term.created_at desc, term.token_id desc
        limit $8"
    );
    // `token_queries::by_term` for several terms, as `token_queries::of_kinds` does it for types. A token can have
    // several of them.
    BY_ANY_TERM: "token_queries::by_any_term" = concat!(
        "with page as (
            select distinct found.path, found.created_at, found.token_id
            from unnest($2::bytea[]) as wanted (term)
            cross join lateral (
                select term.path, term.created_at, term.token_id
                from term
                join token
                  on token.tenant_id = $1
                 and token.token_id = term.token_id
                where term.tenant_id = $1
                  and term.term = wanted.term
                  and term.path >= $3
                  and (term.path, term.created_at, term.token_id) < ($4, $5, $6)
                  and (token.expires_at is null or token.expires_at > now())
                order by term.path desc, term.created_at desc, term.token_id desc
                limit $7
            ) found
            order by found.path desc, found.created_at desc, found.token_id desc
            limit $7
        )
        select ", token_columns!(), "
        from page
        cross join lateral (
            select *
            from token
            where tenant_id = $1
              and token_id = page.token_id
            limit 1
        ) token
        order by page.path desc, page.created_at desc, page.token_id desc"
    );
    // v1 lists are ordered by time across containers and return a total. Both the count and the page scan the index of
    // all tokens in reach, so their cost is linear in that number.
    OLD_COUNT: "token_queries::old_count" =
        "select coalesce(sum(counted.tokens), 0)::bigint - (
            select count(*)
            from token
            join unnest($2::text[], $3::text[]) as reach (low, beyond)
              on token.path >= reach.low
             and token.path < reach.beyond
            where token.tenant_id = $1
              and token.expires_at <= now()
        )
        from unnest($2::text[], $3::text[]) as reach (low, beyond)
        cross join unnest($4::smallint[]) as wanted (kind)
        cross join lateral (
            select count(*) as tokens
            from token
            where tenant_id = $1
              and kind = wanted.kind
              and path >= reach.low
              and path < reach.beyond
        ) counted";
    OLD_PAGE: "token_queries::old_page" = concat!(
        "with page as (
            select found.created_at, found.token_id
            from unnest($2::text[], $3::text[]) as reach (low, beyond)
            cross join lateral (
                select created_at, token_id
                from token
                where tenant_id = $1
                  and kind = any($4::smallint[])
                  and path >= reach.low
                  and path < reach.beyond
                offset 0
            ) found
            where found.token_id not in ", expired!(), "
            order by found.created_at desc, found.token_id desc
            offset $5
            limit $6
        )
        ", tokens_of_page!()
    );
    // A token has at most one of the terms of each condition on metadata, so a token with as many terms as there are
    // conditions meets all of them. A condition on data, of which it can have several terms, is the only one.
    OLD_COUNT_BY_TERMS: "token_queries::old_count_by_terms" = concat!(
        "select count(*)
        from (", with_terms!(), ") counted"
    );
    OLD_PAGE_BY_TERMS: "token_queries::old_page_by_terms" = concat!(
        "with page as (", with_terms!(), "
            order by found.created_at desc, found.token_id desc
            offset $6
            limit $7
        )
        ", tokens_of_page!()
    );
}

/// Finds the tokens of these types in a range of containers, below a position in the container at its end.
pub(super) async fn of_kinds(
    db: &Db,
    tenant: TenantId,
    kinds: &[i16],
    page_start: PageStart<'_>,
    limit: usize,
) -> Result<Vec<TokenRow>, Error> {
    let PageStart { low, end, sort_key } = page_start;
    let rows = db
        .read(
            &OF_KINDS,
            &[
                &tenant.number,
                &kinds,
                &low,
                &end,
                &sort_key.created_at,
                &sort_key.token_id,
                &as_limit(limit),
            ],
        )
        .await?;
    Ok(read(&rows))
}

/// Finds the tokens with a term, and with a fingerprint if given, in a range of containers, below a position in the
/// container at its end.
pub(super) async fn by_term(
    db: &Db,
    tenant: TenantId,
    filter: &TermFilter,
    page_start: PageStart<'_>,
    limit: usize,
) -> Result<Vec<TokenRow>, Error> {
    let PageStart { low, end, sort_key } = page_start;
    let fingerprint = filter.fingerprint.as_ref();
    let fingerprint = fingerprint.map(|print| &print.as_bytes()[..]);
    let rows = db
        .read(
            &BY_TERM,
            &[
                &tenant.number,
                &&filter.term[..],
                &low,
                &end,
                &sort_key.created_at,
                &sort_key.token_id,
                &fingerprint,
                &as_limit(limit),
            ],
        )
        .await?;
    Ok(read(&rows))
}

/// Finds the tokens with any of these terms in a range of containers, below a position in the container at its end.
pub(super) async fn by_any_term(
    db: &Db,
    tenant: TenantId,
    terms: &[Term],
    page_start: PageStart<'_>,
    limit: usize,
) -> Result<Vec<TokenRow>, Error> {
    let PageStart { low, end, sort_key } = page_start;
    let terms: Vec<&[u8]> = terms.iter().map(|term| &term[..]).collect();
    let rows = db
        .read(
            &BY_ANY_TERM,
            &[
                &tenant.number,
                &terms,
                &low,
                &end,
                &sort_key.created_at,
                &sort_key.token_id,
                &as_limit(limit),
            ],
        )
        .await?;
    Ok(read(&rows))
}

/// Several ranges of containers, for v1 lists.
pub(super) struct Reach {
    pub lows: Vec<String>,
    pub ends: Vec<String>,
}

/// Reads a page of all tokens in reach, and their total.
pub(super) async fn page_v1(
    db: &Db,
    tenant: TenantId,
    reach: &Reach,
    kinds: &[i16],
    page: OffsetPage,
) -> Result<(Vec<TokenRow>, i64), Error> {
    let number = &tenant.number;
    let (lows, ends) = (&reach.lows, &reach.ends);
    let count = db
        .read_optional(&OLD_COUNT, &[number, lows, ends, &kinds])
        .await?;
    let count = count.map_or(0, |row| row.get(0));
    if page.is_past(count) {
        return Ok((Vec::new(), count));
    }
    let rows = db
        .read(
            &OLD_PAGE,
            &[number, lows, ends, &kinds, &page.offset, &page.size],
        )
        .await?;
    Ok((read(&rows), count))
}

/// Reads a page of the tokens that meet all conditions, and their total.
pub(super) async fn page_v1_by_terms(
    db: &Db,
    tenant: TenantId,
    reach: &Reach,
    search_terms: &SearchTerms,
    page: OffsetPage,
) -> Result<(Vec<TokenRow>, i64), Error> {
    let number = &tenant.number;
    let (lows, ends) = (&reach.lows, &reach.ends);
    let terms: Vec<&[u8]> = search_terms.terms.iter().map(|term| &term[..]).collect();
    let conditions = as_limit(search_terms.conditions);
    let count = db
        .read_optional(
            &OLD_COUNT_BY_TERMS,
            &[number, &terms, lows, ends, &conditions],
        )
        .await?;
    let count = count.map_or(0, |row| row.get(0));
    if page.is_past(count) {
        return Ok((Vec::new(), count));
    }
    let (offset, size) = (page.offset, page.size);
    let rows = db
        .read(
            &OLD_PAGE_BY_TERMS,
            &[number, &terms, lows, ends, &conditions, &offset, &size],
        )
        .await?;
    Ok((read(&rows), count))
}

/// A page by offset.
#[derive(Clone, Copy)]
pub(super) struct OffsetPage {
    pub offset: i64,
    pub size: i64,
}

impl OffsetPage {
    /// Whether the page is empty. A read far past the end would be the most expensive one.
    fn is_past(self, count: i64) -> bool {
        self.size == 0 || self.offset >= count
    }
}

fn read(rows: &[Row]) -> Vec<TokenRow> {
    rows.iter().map(TokenRow::decode).collect()
}

fn as_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
