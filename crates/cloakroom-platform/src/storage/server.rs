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

// Objects in the schema of the vault that change what its statements do, or run with its rights, and settings of its sessions.
// The migrations create one function, and none of the others. Members of extensions were installed by an administrator.
const FOREIGN_OBJECTS: Statement = Statement {
    name: "storage::foreign_objects",
    text: "-- storage::foreign_objects
        with own as (
            select oid, relkind, relrowsecurity
            from pg_class
            where relnamespace = 'public'::regnamespace
        ), found as (
            select 'pg_trigger'::regclass as class, pg_trigger.oid, '' as prefix
            from pg_trigger
            join own on own.oid = tgrelid
            where not tgisinternal
            union all
            select 'pg_event_trigger'::regclass, oid, ''
            from pg_event_trigger
            union all
            select 'pg_rewrite'::regclass, pg_rewrite.oid, ''
            from pg_rewrite
            join own on own.oid = ev_class
            where rulename <> '_RETURN'
            union all
            select 'pg_policy'::regclass, pg_policy.oid, ''
            from pg_policy
            join own on own.oid = polrelid
            union all
            select 'pg_class'::regclass, oid, 'row-level security on '
            from own
            where relrowsecurity
            union all
            select 'pg_class'::regclass, oid, ''
            from own
            where relkind in ('v', 'm', 'f')
            union all
            select 'pg_proc'::regclass, oid, ''
            from pg_proc
            where pronamespace = 'public'::regnamespace
              and oid is distinct from to_regprocedure('public.drop_log_days(integer)')
        )
        select prefix || pg_describe_object(class, found.oid, 0)
        from found
        where not exists (
            select
            from pg_depend
            where classid = class
              and objid = found.oid
              and deptype = 'e'
        )
        union all
        select format('setting %s of %s', setting, case
                   when setrole = 0 then 'the database'
                   else 'role ' || session_user
               end)
        from pg_db_role_setting
        cross join unnest(setconfig) as setting
        where setdatabase in (0, (select oid from pg_database where datname = current_database()))
          and setrole in (0, (select oid from pg_roles where rolname = session_user))
        order by 1",
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

/// Describes triggers, rules, policies, functions and views in the schema of the vault that no migration made, and settings
/// of its role and database.
pub async fn foreign_objects(connection: &Connection) -> Result<Vec<String>, Error> {
    let rows = connection
        .query(&FOREIGN_OBJECTS, &[])
        .await
        .map_err(|error| statement_error(FOREIGN_OBJECTS.name, &error))?;
    Ok(rows.iter().map(|row| row.get(0)).collect())
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
