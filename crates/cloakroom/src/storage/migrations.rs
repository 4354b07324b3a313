//! The schema's numbered migrations: which there are, which are applied, and applying them.

use super::{Connection, Error, Statement};

/// One forward-only step of the schema.
pub struct Migration {
    pub number: i32,
    pub name: &'static str,
    pub sql: &'static str,
}

/// Every migration, in order. A file in `migrations/` that is missing here fails a test.
pub const MIGRATIONS: &[Migration] = &[
    Migration {
        number: 1,
        name: "foundation",
        sql: include_str!("../../../../migrations/0001_foundation.sql"),
    },
    Migration {
        number: 2,
        name: "finding_tokens",
        sql: include_str!("../../../../migrations/0002_finding_tokens.sql"),
    },
    Migration {
        number: 3,
        name: "bins",
        sql: include_str!("../../../../migrations/0003_bins.sql"),
    },
    Migration {
        number: 4,
        name: "security_codes",
        sql: include_str!("../../../../migrations/0004_security_codes.sql"),
    },
    Migration {
        number: 5,
        name: "quotas",
        sql: include_str!("../../../../migrations/0005_quotas.sql"),
    },
    Migration {
        number: 6,
        name: "log",
        sql: include_str!("../../../../migrations/0006_log.sql"),
    },
    Migration {
        number: 7,
        name: "applications",
        sql: include_str!("../../../../migrations/0007_applications.sql"),
    },
    Migration {
        number: 8,
        name: "members",
        sql: include_str!("../../../../migrations/0008_members.sql"),
    },
    Migration {
        number: 9,
        name: "client_keys",
        sql: include_str!("../../../../migrations/0009_client_keys.sql"),
    },
    Migration {
        number: 10,
        name: "sessions",
        sql: include_str!("../../../../migrations/0010_sessions.sql"),
    },
    Migration {
        number: 11,
        name: "token_intents",
        sql: include_str!("../../../../migrations/0011_token_intents.sql"),
    },
    Migration {
        number: 12,
        name: "replies",
        sql: include_str!("../../../../migrations/0012_replies.sql"),
    },
    Migration {
        number: 13,
        name: "nodes",
        sql: include_str!("../../../../migrations/0013_nodes.sql"),
    },
    Migration {
        number: 14,
        name: "threeds",
        sql: include_str!("../../../../migrations/0014_threeds.sql"),
    },
    Migration {
        number: 15,
        name: "deprecations",
        sql: include_str!("../../../../migrations/0015_deprecations.sql"),
    },
];

/// Migrations are found by number alone: an applied one is never edited.
const BOOKKEEPING: &str = "create table if not exists migration (
    number integer primary key,
    name text not null,
    applied_at timestamptz not null default now()
)";

const APPLIED: Statement = Statement {
    name: "storage::applied",
    text: "-- storage::applied
        select coalesce(max(number), 0) from migration",
};

const TABLE_EXISTS: Statement = Statement {
    name: "storage::migration_table_exists",
    text: "-- storage::migration_table_exists
        select to_regclass('migration') is not null",
};

/// The number of the newest applied migration; 0 for an empty database.
pub async fn applied(connection: &Connection) -> Result<i32, Error> {
    let failed = |error| super::refusal(APPLIED.name, &error);
    let exists = connection.query(&TABLE_EXISTS, &[]).await.map_err(failed)?;
    if !exists.first().is_some_and(|row| row.get(0)) {
        return Ok(0);
    }
    let rows = connection.query(&APPLIED, &[]).await.map_err(failed)?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}

/// Applies what is missing, one transaction per migration, and returns what was applied.
///
/// Two runs at once are safe: each takes the bookkeeping table's lock before it looks.
pub async fn migrate(connection: &Connection) -> Result<Vec<&'static Migration>, Error> {
    let failed = |error| super::refusal("a migration", &error);
    // Two of these at one moment can collide despite `if not exists`; the loser then finds it.
    if connection.run(BOOKKEEPING).await.is_err() {
        connection.run(BOOKKEEPING).await.map_err(failed)?;
    }
    let mut done = Vec::new();
    for migration in MIGRATIONS {
        connection
            .run("begin; lock table migration in exclusive mode")
            .await
            .map_err(failed)?;
        let result = if applied(connection).await? < migration.number {
            let record = format!(
                "insert into migration (number, name) values ({}, '{}')",
                migration.number, migration.name
            );
            done.push(migration);
            connection
                .run(&format!("{};\n{record}; commit", migration.sql))
                .await
        } else {
            connection.run("commit").await
        };
        result.map_err(failed)?;
    }
    Ok(done)
}

/// Refuses a database that lacks a migration which this version needs.
///
/// A newer database is fine: migrations only add, so that nodes can be upgraded one by one.
pub async fn check(connection: &Connection) -> Result<(), Error> {
    let applied = applied(connection).await?;
    let needed = MIGRATIONS.last().map_or(0, |migration| migration.number);
    if applied < needed {
        return Err(Error::Migrations(format!(
            "the database is at migration {applied}, this version needs {needed}: \
             run `cloakroom migrate`"
        )));
    }
    Ok(())
}

/// Lets a role that owns nothing read and write every table, except that nobody changes the record of
/// what was done: its days are only added to, and emptied. The name must be a plain identifier.
pub async fn grant(connection: &Connection, role: &str) -> Result<(), Error> {
    let sql = format!(
        "grant usage on schema public to {role};
        grant select, insert, update, delete on all tables in schema public to {role};
        do $$
        declare
            part text;
        begin
            revoke update, delete on log from {role};
            for part in
                select inhrelid::regclass from pg_inherits where inhparent = 'log'::regclass
            loop
                execute format('revoke update, delete on %s from {role}', part);
                execute format('grant truncate on %s to {role}', part);
            end loop;
        end
        $$"
    );
    connection
        .run(&sql)
        .await
        .map_err(|error| super::refusal("a grant", &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_migration_file_is_listed_in_order() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../migrations");
        let mut files: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();

        let listed: Vec<String> = MIGRATIONS
            .iter()
            .map(|migration| format!("{:04}_{}.sql", migration.number, migration.name))
            .collect();

        assert_eq!(files, listed);
    }
}
