//! Every SQL statement that finds tokens by something else than their ids.

use cloakroom_crypto::Fingerprint;
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::ids::TenantId;
use crate::storage::{Db, Error, statements};
use crate::token_attributes::Term;
use crate::token_rows::{TokenRow, token_columns};

/// Paths from `low` up to, but without, `end`.
pub(super) struct Range<'a> {
    pub low: &'a str,
    pub end: &'a str,
}

/// The place of a token inside its container; pages go on below it.
#[derive(Clone, Copy)]
pub(super) struct Place {
    pub created_at: Timestamp,
    pub token_id: Uuid,
}

impl Place {
    /// Below every token.
    pub(super) const LOWEST: Self = Self {
        created_at: Timestamp::UNIX_EPOCH,
        token_id: Uuid::nil(),
    };
}

/// Where a page goes on: in these containers, and in the one at their end below this place.
pub(super) type Below<'a> = (&'a Range<'a>, Place);

/// What expired and was not swept yet: little, and hashed whatever the planner expects of it.
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

/// The keys of the tokens that have `$5` of the terms `$2`, in the containers between `$3` and `$4`.
/// The tokens themselves are not looked at.
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
            having count(*) = $5"
        )
    };
}

/// Reads the tokens of a page one by one, by their keys, whatever the planner expects of the page.
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
    // One walk down `token_by_path` for each type, merged: at most a page of each is read, however
    // many tokens and containers there are. Empty containers are not in the index and cost nothing;
    // an expired token that was not swept yet costs as much as one that is shown.
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
    // One walk down the primary key of `term`. The fingerprint is compared as a whole, because its
    // term is only its beginning; in this form the planner does not take the comparison for a rare
    // match, which would talk it into parallel workers.
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
    // The older lists are ordered by time across containers and tell how many there are. Both a
    // count and a page read the index of everything in reach, and cost as much as there is.
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
    // A token has exactly one of the terms of each condition, so the one that has as many of all
    // these terms as there are conditions meets them all.
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

/// The tokens of these types in a range of containers, below a place in the one at its end.
pub(super) async fn of_kinds(
    db: &Db,
    tenant: TenantId,
    kinds: &[i16],
    below: Below<'_>,
    limit: usize,
) -> Result<Vec<TokenRow>, Error> {
    let (range, place) = below;
    let rows = db
        .read(
            &OF_KINDS,
            &[
                &tenant.number,
                &kinds,
                &range.low,
                &range.end,
                &place.created_at,
                &place.token_id,
                &as_limit(limit),
            ],
        )
        .await?;
    Ok(read(&rows))
}

/// The tokens with a term in a range of containers, below a place in the one at its end; only those
/// with this fingerprint when there is one.
pub(super) async fn by_term(
    db: &Db,
    tenant: TenantId,
    what: (&Term, Option<&Fingerprint>),
    below: Below<'_>,
    limit: usize,
) -> Result<Vec<TokenRow>, Error> {
    let ((term, fingerprint), (range, place)) = (what, below);
    let fingerprint = fingerprint.map(|print| &print.as_bytes()[..]);
    let rows = db
        .read(
            &BY_TERM,
            &[
                &tenant.number,
                &&term[..],
                &range.low,
                &range.end,
                &place.created_at,
                &place.token_id,
                &fingerprint,
                &as_limit(limit),
            ],
        )
        .await?;
    Ok(read(&rows))
}

/// Several ranges at once, for the older lists.
pub(super) struct Reach {
    pub lows: Vec<String>,
    pub ends: Vec<String>,
}

/// A page of everything in reach, and how much that is.
pub(super) async fn old_page(
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

/// Terms of which a token has as many as there are conditions, when it meets them all.
pub(super) struct OldTerms {
    pub terms: Vec<Term>,
    pub conditions: usize,
}

/// A page of the tokens that meet all conditions, and how many there are.
pub(super) async fn old_page_by_terms(
    db: &Db,
    tenant: TenantId,
    reach: &Reach,
    wanted: &OldTerms,
    page: OffsetPage,
) -> Result<(Vec<TokenRow>, i64), Error> {
    let number = &tenant.number;
    let (lows, ends) = (&reach.lows, &reach.ends);
    let terms: Vec<&[u8]> = wanted.terms.iter().map(|term| &term[..]).collect();
    let conditions = as_limit(wanted.conditions);
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

/// A page by how many tokens come before it.
#[derive(Clone, Copy)]
pub(super) struct OffsetPage {
    pub offset: i64,
    pub size: i64,
}

impl OffsetPage {
    /// Whether nothing can be on it. Reading what lies far behind the end would cost the most.
    fn is_past(self, count: i64) -> bool {
        self.size == 0 || self.offset >= count
    }
}

fn read(rows: &[Row]) -> Vec<TokenRow> {
    rows.iter().map(TokenRow::read).collect()
}

fn as_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
