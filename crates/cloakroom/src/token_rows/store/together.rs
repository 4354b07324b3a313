//! Statements that many requests share: reads of single tokens, and tokens that are kept.
//!
//! Alone, a request has the statement that is quickest for one row. Several become one statement for
//! all of their rows, which does everything or nothing; when it does nothing, because one of them is in
//! the way, each is done by itself.

use futures_util::future::{join, join_all};
use jiff::Timestamp;
use tokio_postgres::Row;
use uuid::Uuid;

use super::change::Values;
use super::columns::Columns;
use super::write::{Signed, Target, insert};
use super::{FIND, token_columns};
use crate::audit::{Entry, Pens, logged};
use crate::config::Database;
use crate::convoy::{Convoy, Load, Size, Stranded};
use crate::idempotency::replied;
use crate::ids::TenantId;
use crate::storage::{Db, Error, Params, statements};

statements! {
    // What `tokens::find` does, for several tokens of several tenants. Large ones come without their data:
    // they are fetched one by one, so that nobody waits for theirs.
    //
    // One look-up by key for each, whatever the statistics say: the plan is made once, perhaps while the
    // table is empty.
    FIND_MANY: "tokens::find_many" = concat!(
        "select found.*, asked.position
        from unnest($1::integer[], $2::uuid[]) with ordinality as asked (tenant_id, token_id, position)
        cross join lateral (
            select ", token_columns!("case when octet_length(token.sealed) <= 65536 then token.sealed end"), "
            from token
            where token.tenant_id = asked.tenant_id
              and token.token_id = asked.token_id
              and (token.expires_at is null or token.expires_at > now())
            offset 0
        ) as found"
    );
    // What `tokens::insert` does, for several tokens: all of them, or none if an expiry has passed.
    // Intents are converted by that one alone.
    //
    // Counting the fresh ones has all of them written before anything else is, in their order: two
    // statements that want the same wait for each other in one direction only.
    INSERT_MANY: "tokens::insert_many" = concat!(
        "with given as materialized (
            select tenant_id, token_id, alias, container_id, kind, expires_at,
                   expires_offset_minutes, created_by, sealed, mask, metadata, fingerprint,
                   fingerprint_expression, search_indexes, terms::bytea[] as terms, path,
                   code_key_id, sealed_code, now() + make_interval(secs => code_seconds) as code_until,
                   claims, coalesce(created_at, now()) as created_at
            from unnest($1::integer[], $2::uuid[], $3::text[], $4::integer[], $5::smallint[],
                        $6::timestamptz[], $7::smallint[], $8::uuid[], $9::bytea[], $10::text[],
                        $11::text[], $12::bytea[], $13::text[], $14::text[], $15::text[],
                        $16::text[], $17::bytea[], $18::bytea[], $19::float8[], $20::boolean[],
                        $21::timestamptz[])
                as given (tenant_id, token_id, alias, container_id, kind, expires_at,
                          expires_offset_minutes, created_by, sealed, mask, metadata, fingerprint,
                          fingerprint_expression, search_indexes, terms, path, code_key_id,
                          sealed_code, code_seconds, claims, created_at)
        ), fresh as (
            insert into token
                (tenant_id, token_id, alias, container_id, kind, expires_at,
                 expires_offset_minutes, created_by, sealed, mask, metadata, fingerprint,
                 fingerprint_expression, search_indexes, terms, path, security_code_until,
                 created_at)
            select tenant_id, token_id, alias, container_id, kind, expires_at,
                   expires_offset_minutes, created_by, sealed, mask, metadata, fingerprint,
                   fingerprint_expression, search_indexes, terms, path, code_until, created_at
            from given
            where not exists (select from given where expires_at <= now())
            returning true
        ), termed as (
            insert into term (tenant_id, term, path, created_at, token_id)
            select tenant_id, term, path, created_at, token_id
            from given, unnest(terms) as term
            where (select count(*) from fresh) > 0
        ), coded as (
            insert into security_code (tenant_id, token_id, key_id, sealed, expires_at)
            select tenant_id, token_id, code_key_id, sealed_code, code_until
            from given
            where code_key_id is not null
              and (select count(*) from fresh) > 0
        ), claimed as (
            insert into claim (tenant_id, fingerprint, container_id, token_id)
            select tenant_id, fingerprint, container_id, token_id
            from given
            where claims
              and (select count(*) from fresh) > 0
            order by tenant_id, fingerprint, container_id
        ), ", replied!("$22", "fresh"), ", ", logged!("$23", "fresh"), "
        select now()
        where (select count(*) from fresh) > 0");
}

/// Reads of single tokens.
pub(crate) type Reads = Convoy<Finding>;

/// Finds tokens by their keys.
pub(crate) struct Finding {
    db: Db,
}

impl Finding {
    pub(crate) fn in_convoy(db: &Db, settings: &Database) -> Reads {
        Convoy::new(Self { db: db.clone() }, size(settings))
    }

    async fn find(&self, asked: &Asked) -> Result<Option<Row>, Error> {
        let params: Params<'_> = &[&asked.tenant, &asked.key];
        self.db.read_optional(&FIND, params).await
    }
}

/// The key of a token that is asked for.
pub(crate) struct Asked {
    pub tenant: i32,
    pub key: Uuid,
}

impl Load for Finding {
    type Item = Asked;
    /// A row of `token_columns!`.
    type Answer = Result<Option<Row>, Error>;

    const NAME: &'static str = "token_reads";

    async fn carry(&self, items: Vec<Asked>) -> Vec<Self::Answer> {
        if let [asked] = &items[..] {
            return vec![self.find(asked).await];
        }
        let (tenants, keys): (Vec<i32>, Vec<Uuid>) =
            items.iter().map(|asked| (asked.tenant, asked.key)).unzip();
        match self.db.read(&FIND_MANY, &[&tenants, &keys]).await {
            Ok(rows) => {
                let mut found: Vec<Self::Answer> = items.iter().map(|_| Ok(None)).collect();
                for row in rows {
                    let position = usize::try_from(row.get::<_, i64>(POSITION) - 1);
                    let position = position.unwrap_or(usize::MAX);
                    if let Some(answer) = found.get_mut(position) {
                        *answer = match row.get::<_, Option<&[u8]>>(SEALED) {
                            Some(_) => Ok(Some(row)),
                            None => self.find(&items[position]).await,
                        };
                    }
                }
                found
            }
            // One that the server stumbles over is in the way of all.
            Err(Error::Refused { .. }) => {
                join_all(items.iter().map(|asked| self.find(asked))).await
            }
            Err(error) => items.iter().map(|_| Err(error.clone())).collect(),
        }
    }
}

/// Where `tokens::find_many` has the data of a token, and which of those asked for it is.
const SEALED: usize = 11;
const POSITION: usize = 19;

/// Tokens that are kept: those that nobody can be in the way of, and the others.
///
/// Whoever names an id or claims a fingerprint may want what somebody else has. Such tokens travel
/// by themselves, and so does their trouble.
pub(crate) struct Writes {
    plain: Convoy<Keeping>,
    wanted: Convoy<Keeping>,
}

impl Writes {
    pub(crate) fn new(db: &Db, pens: &Pens, settings: &Database) -> Self {
        let convoy = || {
            let (db, pens) = (db.clone(), pens.clone());
            Convoy::new(Keeping { db, pens }, size(settings))
        };
        Self {
            plain: convoy(),
            wanted: convoy(),
        }
    }

    /// When it was created; none if its expiry had passed.
    pub(super) async fn keep(&self, new: New) -> Result<Option<Timestamp>, Error> {
        let convoy = match new.values.is_named || new.values.claims {
            true => &self.wanted,
            false => &self.plain,
        };
        convoy.join(new).await.unwrap_or_else(|stranded| {
            Err(match stranded {
                Stranded::Behind => behind(),
                Stranded::Lost => Error::OutcomeUnknown("a shared insert"),
            })
        })
    }
}

/// Keeps new tokens.
pub(crate) struct Keeping {
    db: Db,
    pens: Pens,
}

/// A token to keep, with what goes along.
pub(crate) struct New {
    pub tenant: TenantId,
    pub values: Values,
    /// When it is created; without it, when the database does it.
    pub at: Option<Timestamp>,
    /// The answer that is kept with it.
    pub kept: Vec<String>,
}

impl Load for Keeping {
    type Item = New;
    type Answer = Result<Option<Timestamp>, Error>;

    const NAME: &'static str = "token_writes";

    fn bytes(new: &New) -> usize {
        let Values {
            sealed,
            mask,
            metadata,
            search_indexes,
            ..
        } = &new.values;
        let texts =
            [mask, metadata, search_indexes].map(|text| text.as_ref().map_or(0, String::len));
        let kept = new.kept.iter().map(String::len);
        sealed.len() + texts.iter().sum::<usize>() + kept.sum::<usize>()
    }

    async fn carry(&self, items: Vec<New>) -> Vec<Self::Answer> {
        self.keep(&items).await
    }
}

impl Keeping {
    /// Keeps all of them together. When one is in the way of all, each half is tried by itself, down to
    /// the one.
    async fn keep(&self, items: &[New]) -> Vec<Result<Option<Timestamp>, Error>> {
        if let [new] = items {
            return vec![self.insert(new).await];
        }
        match self.insert_many(items).await {
            Ok(Some(now)) => {
                let at = |new: &New| Ok(Some(new.at.unwrap_or(now)));
                items.iter().map(at).collect()
            }
            Ok(None) | Err(Error::Refused { .. } | Error::RolledBack) => {
                let (one, other) = items.split_at(items.len() / 2);
                let halves = join(Box::pin(self.keep(one)), Box::pin(self.keep(other)));
                let (mut one, other) = halves.await;
                one.extend(other);
                one
            }
            Err(error) => items.iter().map(|_| Err(error.clone())).collect(),
        }
    }

    async fn insert(&self, new: &New) -> Result<Option<Timestamp>, Error> {
        let mut pen = self.pens.take().await?;
        let signed = Signed {
            entries: pen.sign(&new.values.entries),
            at: new.at,
            kept: &new.kept,
        };
        let written = insert(Target::Alone(&self.db), new.tenant, &new.values, &signed).await;
        pen.settle(&written, |rows| !rows.is_empty());
        Ok(written?.first().map(|row| row.get(0)))
    }

    async fn insert_many(&self, all: &[New]) -> Result<Option<Timestamp>, Error> {
        // Everybody in the same order, or two that want the same would wait for each other.
        let mut all: Vec<&New> = all.iter().collect();
        all.sort_by_key(|new| (new.tenant.number, *new.values.id.key()));
        let columns = Columns::of(&all);
        let entries: Vec<&Entry> = all.iter().flat_map(|new| &new.values.entries).collect();
        let mut pen = self.pens.take().await?;
        let signed = pen.sign(entries);
        let written = self.db.write(&INSERT_MANY, &columns.params(&signed)).await;
        pen.settle(&written, |rows| !rows.is_empty());
        Ok(written?.first().map(|row| row.get(0)))
    }
}

/// No statement could be begun in time.
pub(super) fn behind() -> Error {
    Error::Unavailable("no statement could be begun in time".into())
}

fn size(settings: &Database) -> Size {
    Size::of_statements(settings.max_connections, settings.acquire_timeout)
}
