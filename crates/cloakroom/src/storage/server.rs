//! What the database server says about itself: settings, clock, and who we are to it.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use super::{Connection, Error, Statement, refusal};

const SETTINGS: Statement = Statement {
    name: "storage::settings",
    text: "-- storage::settings
        select name, setting
        from pg_settings
        where name = any($1)",
};

const CLOCK: Statement = Statement {
    name: "storage::clock",
    text: "-- storage::clock
        select clock_timestamp()",
};

const SESSION: Statement = Statement {
    name: "storage::session",
    text: "-- storage::session
        select rolname::text, rolsuper,
               exists (
                   select from pg_tables
                   where tablename = 'token' and tableowner = rolname
               ),
               exists (select from pg_stat_ssl where pid = pg_backend_pid() and ssl)
        from pg_roles
        where rolname = current_user",
};

/// Who this connection is to the server, and how it got there.
#[derive(Debug)]
pub struct Session {
    pub role: String,
    pub is_superuser: bool,
    pub owns_tables: bool,
    pub is_encrypted: bool,
}

/// The named settings of the server, as it reports them.
pub async fn settings(
    connection: &Connection,
    names: &[&str],
) -> Result<Vec<(String, String)>, Error> {
    let rows = connection
        .query(&SETTINGS, &[&names])
        .await
        .map_err(|error| refusal(SETTINGS.name, &error))?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// How far this node's clock is from the database's, either way.
pub async fn clock_skew(connection: &Connection) -> Result<Duration, Error> {
    let before = SystemTime::now();
    let rows = connection
        .query(&CLOCK, &[])
        .await
        .map_err(|error| refusal(CLOCK.name, &error))?;
    let after = SystemTime::now();
    let Some(theirs) = rows.first().map(|row| row.get::<_, Timestamp>(0)) else {
        return Ok(Duration::ZERO);
    };
    // Anything between sending and receiving counts as equal.
    let theirs = SystemTime::from(theirs);
    Ok(before
        .duration_since(theirs)
        .or_else(|_| theirs.duration_since(after))
        .unwrap_or(Duration::ZERO))
}

pub async fn session(connection: &Connection) -> Result<Session, Error> {
    let rows = connection
        .query(&SESSION, &[])
        .await
        .map_err(|error| refusal(SESSION.name, &error))?;
    let row = rows
        .first()
        .ok_or(Error::Unavailable("the role is not known".into()))?;
    Ok(Session {
        role: row.get(0),
        is_superuser: row.get(1),
        owns_tables: row.get(2),
        is_encrypted: row.get(3),
    })
}
