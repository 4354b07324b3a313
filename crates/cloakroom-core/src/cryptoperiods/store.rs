//! SQL statements that count keys.

use cloakroom_crypto::{KeyPurpose, RootId};
use cloakroom_platform::storage::{Db, Error, statements};
use jiff::Timestamp;
use tokio_postgres::Row;

use crate::keys::State;

/// The keys of one purpose in one state.
#[derive(Clone, Debug)]
pub struct KeyCount {
    pub purpose: KeyPurpose,
    pub state: State,
    pub keys: i64,
    /// Tenants that have such a key; one for the vault itself.
    pub owners: i64,
    /// The lowest and the highest version.
    pub versions: (i32, i32),
    /// Creation of the oldest key and of the newest.
    pub oldest: Timestamp,
    pub newest: Timestamp,
}

/// A root key that wrapped stored keys.
#[derive(Clone, Debug)]
pub struct RootCount {
    /// `None` if the wrapped keys do not name their root key in a known form.
    pub root: Option<RootId>,
    pub keys: i64,
}

/// The unexpired client encryption keys.
#[derive(Clone, Debug)]
pub struct ClientKeyCount {
    pub keys: i64,
    pub tenants: i64,
    /// Creation of the oldest key, if there is one.
    pub oldest: Option<Timestamp>,
    /// The next key to expire.
    pub next_expiry: Option<Timestamp>,
}

statements! {
    // The root key has no row: it is as old as its last signed rotation, or as the vault. Numbers of purposes: 1 is the root key.
    COUNT_KEYS: "cryptoperiods::count_keys" =
        "select purpose, state, count(*), count(distinct owner), min(version), max(version), min(created_at),
            max(created_at)
        from (
            select tenant_id as owner, purpose, version, state, created_at
            from tenant_key
            union all
            select 0, purpose, version, state, created_at
            from system_key
            union all
            select 0, 1::smallint, 1, 2::smallint, coalesce((
                select max(substring(statement from 'time: ([0-9TZ:.-]+)[[:space:]]*$')::timestamptz)
                from key_proof
                where tenant_id = 0
                  and purpose = 1
            ), created_at)
            from vault
        ) as stored
        group by purpose, state
        order by purpose, state";
    // The beginning of a key that a root key wrapped: its format, the provider, the length of the id and the id.
    COUNT_ROOTS: "cryptoperiods::count_roots" =
        "select substring(wrapped from 1 for 4 + 256 * get_byte(wrapped, 2) + get_byte(wrapped, 3)) as head, count(*)
        from (
            select wrapped
            from tenant_key
            where purpose = $1
              and octet_length(wrapped) > 4
            union all
            select wrapped
            from system_key
            where octet_length(wrapped) > 4
        ) as stored
        group by head
        order by head";
    COUNT_CLIENT_KEYS: "cryptoperiods::count_client_keys" =
        "select count(*), count(distinct tenant_id), min(created_at), min(expires_at)
        from client_key
        where expires_at > now()";
}

pub(super) async fn count_keys(db: &Db) -> Result<Vec<KeyCount>, Error> {
    let rows = db.read(&COUNT_KEYS, &[]).await?;
    // Rows of unknown purposes and states come from a newer version or from SQL; nothing uses them.
    Ok(rows.iter().filter_map(key_count).collect())
}

fn key_count(row: &Row) -> Option<KeyCount> {
    Some(KeyCount {
        purpose: KeyPurpose::try_from(row.get::<_, i16>(0)).ok()?,
        state: State::from_number(row.get(1))?,
        keys: row.get(2),
        owners: row.get(3),
        versions: (row.get(4), row.get(5)),
        oldest: row.get(6),
        newest: row.get(7),
    })
}

pub(super) async fn count_roots(db: &Db) -> Result<Vec<RootCount>, Error> {
    let purpose = KeyPurpose::TenantKek.number();
    let rows = db.read(&COUNT_ROOTS, &[&purpose]).await?;
    let count = |row: &Row| RootCount {
        root: root_id(row.get(0)),
        keys: row.get(1),
    };
    Ok(rows.iter().map(count).collect())
}

fn root_id(head: &[u8]) -> Option<RootId> {
    let (&[_format, provider, _, _], name) = head.split_first_chunk()?;
    RootId::new(provider, std::str::from_utf8(name).ok()?).ok()
}

pub(super) async fn count_client_keys(db: &Db) -> Result<ClientKeyCount, Error> {
    let row = db.read_optional(&COUNT_CLIENT_KEYS, &[]).await?;
    Ok(match row {
        Some(row) => ClientKeyCount {
            keys: row.get(0),
            tenants: row.get(1),
            oldest: row.get(2),
            next_expiry: row.get(3),
        },
        None => ClientKeyCount {
            keys: 0,
            tenants: 0,
            oldest: None,
            next_expiry: None,
        },
    })
}
