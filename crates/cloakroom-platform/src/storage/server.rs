//! Inspects the database server: settings, clock, and the role of this session.

use std::time::{Duration, SystemTime};

use jiff::Timestamp;

use super::{Connection, Error, Statement, statement_error};

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

/// The role and the transport security of a connection.
#[derive(Debug)]
pub struct Session {
    pub role: String,
    pub is_superuser: bool,
    pub owns_tables: bool,
    pub is_encrypted: bool,
}

/// Reads the named settings of the server.
pub async fn settings(
    connection: &Connection,
    names: &[&str],
) -> Result<Vec<(String, String)>, Error> {
    let rows = connection
        .query(&SETTINGS, &[&names])
        .await
        .map_err(|error| statement_error(SETTINGS.name, &error))?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// Returns the absolute difference between the clocks of this node and of the database.
pub async fn clock_skew(connection: &Connection) -> Result<Duration, Error> {
    let before = SystemTime::now();
    let rows = connection
        .query(&CLOCK, &[])
        .await
        .map_err(|error| statement_error(CLOCK.name, &error))?;
    let after = SystemTime::now();
    let Some(server_time) = rows.first().map(|row| row.get::<_, Timestamp>(0)) else {
        return Ok(Duration::ZERO);
    };
    // A time between sending the query and receiving its result counts as equal.
    let server_time = SystemTime::from(server_time);
    Ok(before
        .duration_since(server_time)
        .or_else(|_| server_time.duration_since(after))
        .unwrap_or(Duration::ZERO))
}

pub async fn session(connection: &Connection) -> Result<Session, Error> {
    let rows = connection
        .query(&SESSION, &[])
        .await
        .map_err(|error| statement_error(SESSION.name, &error))?;
    let row = rows.first().ok_or(Error::Unavailable(
        "the current role is not in pg_roles".into(),
    ))?;
    Ok(Session {
        role: row.get(0),
        is_superuser: row.get(1),
        owns_tables: row.get(2),
        is_encrypted: row.get(3),
    })
}
