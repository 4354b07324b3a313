//! Every SQL statement that finds tokens by something else than their ids.

use cloakroom_crypto::Fingerprint;
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use crate::ids::TenantId;
use crate::storage::{Db, Error, statements};
use crate::tokens::{Term, TokenRow, token_columns};

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

/// What a term cannot say alone.
#[derive(Default)]
pub(super) struct Exactly<'a> {
    pub fingerprint: Option<&'a Fingerprint>,
    pub metadata: Option<(&'a str, &'a str)>,
}

statements! {
    // Containers in descending order of their paths, each with its newest tokens: the newest of each
    // type, merged, so that one index serves lists with and without a type.
    IN_CONTAINERS: "token_queries::in_containers" = concat!(
        "select ", token_columns!(), "
        from container
        cross join lateral (
            select newest.*
            from unnest($4::smallint[]) as wanted (kind)
            cross join lateral (
                select *
                from token
                where tenant_id = $1
                  and container_id = container.container_id
                  and kind = wanted.kind
                  and (expires_at is null or expires_at > now())
                order by created_at desc, token_id desc
                limit $5
            ) newest
            order by created_at desc, token_id desc
            limit $5
        ) token
        where container.tenant_id = $1
          and container.path >= $2
          and container.path < $3
        order by container.path desc, token.created_at desc, token.token_id desc
        limit $5"
    );
    IN_CONTAINER_BELOW: "token_queries::in_container_below" = concat!(
        "select ", token_columns!(), "
        from unnest($3::smallint[]) as wanted (kind)
        cross join lateral (
            select *
            from token
            where tenant_id = $1
              and container_id = $2
              and kind = wanted.kind
              and (created_at, token_id) < ($4, $5)
              and (expires_at is null or expires_at > now())
            order by created_at desc, token_id desc
            limit $6
        ) token
        order by token.created_at desc, token.token_id desc
        limit $6"
    );
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
          and ($7::bytea is null or token.fingerprint = $7)
          and ($8::text is null or token.metadata::jsonb ->> $8 = $9)
        order by term.path desc, term.created_at desc, term.token_id desc
        limit $10"
    );
    // The older lists are ordered by time across containers and tell how many there are: their cost
    // grows with the number of the page.
    OLD_PAGE: "token_queries::old_page" = concat!(
        "with page as (
            select newest.created_at, newest.token_id
            from container
            cross join unnest($4::smallint[]) as wanted (kind)
            cross join lateral (
                select created_at, token_id
                from token
                where tenant_id = $1
                  and container_id = container.container_id
                  and kind = wanted.kind
                  and (expires_at is null or expires_at > now())
                order by created_at desc, token_id desc
                limit $5::bigint + $6::bigint
            ) newest
            where container.tenant_id = $1
              and exists (
                select
                from unnest($2::text[], $3::text[]) as reach (low, beyond)
                where container.path >= reach.low
                  and container.path < reach.beyond
              )
            order by newest.created_at desc, newest.token_id desc
            offset $5
            limit $6
        )
        select ", token_columns!(), "
        from page
        join token
          on token.tenant_id = $1
         and token.token_id = page.token_id
        order by page.created_at desc, page.token_id desc"
    );
    OLD_COUNT: "token_queries::old_count" =
        "select count(*)
        from container
        join token
          on token.tenant_id = $1
         and token.container_id = container.container_id
        where container.tenant_id = $1
          and (token.expires_at is null or token.expires_at > now())
          and exists (
            select
            from unnest($2::text[], $3::text[]) as reach (low, beyond)
            where container.path >= reach.low
              and container.path < reach.beyond
          )";
    OLD_PAGE_BY_TERM: "token_queries::old_page_by_term" = concat!(
        "select ", token_columns!(), "
        from term
        join token
          on token.tenant_id = $1
         and token.token_id = term.token_id
        where term.tenant_id = $1
          and term.term = $2
          and token.terms @> $3::bytea[]
          and (token.expires_at is null or token.expires_at > now())
          and exists (
            select
            from unnest($4::text[], $5::text[]) as reach (low, beyond)
            where term.path >= reach.low
              and term.path < reach.beyond
          )
        order by term.created_at desc, term.token_id desc
        offset $6
        limit $7"
    );
    OLD_COUNT_BY_TERM: "token_queries::old_count_by_term" =
        "select count(*)
        from term
        join token
          on token.tenant_id = $1
         and token.token_id = term.token_id
        where term.tenant_id = $1
          and term.term = $2
          and token.terms @> $3::bytea[]
          and (token.expires_at is null or token.expires_at > now())
          and exists (
            select
            from unnest($4::text[], $5::text[]) as reach (low, beyond)
            where term.path >= reach.low
              and term.path < reach.beyond
          )";
}

/// The first tokens in a range of containers.
pub(super) async fn in_containers(
    db: &Db,
    tenant: TenantId,
    range: &Range<'_>,
    kinds: &[i16],
    limit: usize,
) -> Result<Vec<TokenRow>, Error> {
    let rows = db
        .read(
            &IN_CONTAINERS,
            &[
                &tenant.number,
                &range.low,
                &range.end,
                &kinds,
                &as_limit(limit),
            ],
        )
        .await?;
    Ok(read(&rows))
}

/// The tokens of one container below a place in it.
pub(super) async fn in_container_below(
    db: &Db,
    tenant: TenantId,
    place: (i32, Place),
    kinds: &[i16],
    limit: usize,
) -> Result<Vec<TokenRow>, Error> {
    let (container, place) = place;
    let rows = db
        .read(
            &IN_CONTAINER_BELOW,
            &[
                &tenant.number,
                &container,
                &kinds,
                &place.created_at,
                &place.token_id,
                &as_limit(limit),
            ],
        )
        .await?;
    Ok(read(&rows))
}

/// The tokens with a term in a range of containers, below a place in the container at its end.
pub(super) async fn by_term(
    db: &Db,
    tenant: TenantId,
    what: (&Term, &Exactly<'_>),
    below: (&Range<'_>, Place),
    limit: usize,
) -> Result<Vec<TokenRow>, Error> {
    let ((term, exactly), (range, place)) = (what, below);
    let fingerprint = exactly.fingerprint.map(|print| &print.as_bytes()[..]);
    let (key, value) = exactly.metadata.unzip();
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
                &key,
                &value,
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
    offset: (i64, i64),
) -> Result<(Vec<TokenRow>, i64), Error> {
    let number = &tenant.number;
    let (lows, ends) = (&reach.lows, &reach.ends);
    let rows = db
        .read(
            &OLD_PAGE,
            &[number, lows, ends, &kinds, &offset.0, &offset.1],
        )
        .await?;
    let count = db.read_optional(&OLD_COUNT, &[number, lows, ends]).await?;
    Ok((read(&rows), count.map_or(0, |row| row.get(0))))
}

/// A page of the tokens that have all of these terms, and how many there are.
pub(super) async fn old_page_by_terms(
    db: &Db,
    tenant: TenantId,
    reach: &Reach,
    terms: &[Term],
    offset: (i64, i64),
) -> Result<(Vec<TokenRow>, i64), Error> {
    let number = &tenant.number;
    let (lows, ends) = (&reach.lows, &reach.ends);
    let terms: Vec<&[u8]> = terms.iter().map(|term| &term[..]).collect();
    let first = terms.first().copied().unwrap_or_default();
    let rows = db
        .read(
            &OLD_PAGE_BY_TERM,
            &[number, &first, &terms, lows, ends, &offset.0, &offset.1],
        )
        .await?;
    let count = db
        .read_optional(&OLD_COUNT_BY_TERM, &[number, &first, &terms, lows, ends])
        .await?;
    Ok((read(&rows), count.map_or(0, |row| row.get(0))))
}

fn read(rows: &[Row]) -> Vec<TokenRow> {
    rows.iter().map(TokenRow::read).collect()
}

fn as_limit(limit: usize) -> i64 {
    i64::try_from(limit).unwrap_or(i64::MAX)
}
