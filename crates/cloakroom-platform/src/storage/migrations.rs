//! The numbered schema migrations: listing, applying and checking them.

use tokio_postgres::error::SqlState;

use super::{Connection, Error, Statement};

/// A forward-only schema migration.
pub struct Migration {
    pub number: i32,
    pub name: &'static str,
    pub sql: &'static str,
}

/// All migrations, in order. A test fails if a file in `migrations/` is missing here.
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
    Migration {
        number: 16,
        name: "threeds_retention",
        sql: include_str!("../../../../migrations/0016_threeds_retention.sql"),
    },
    Migration {
        number: 17,
        name: "reserved_token_ids",
        sql: include_str!("../../../../migrations/0017_reserved_token_ids.sql"),
    },
    Migration {
        number: 18,
        name: "client_key_bindings",
        sql: include_str!("../../../../migrations/0018_client_key_bindings.sql"),
    },
    Migration {
        number: 19,
        name: "tenant_deletion",
        sql: include_str!("../../../../migrations/0019_tenant_deletion.sql"),
    },
    Migration {
        number: 20,
        name: "webhooks",
        sql: include_str!("../../../../migrations/0020_webhooks.sql"),
    },
    Migration {
        number: 21,
        name: "proxies",
        sql: include_str!("../../../../migrations/0021_proxies.sql"),
    },
    Migration {
        number: 22,
        name: "hosted_pages",
        sql: include_str!("../../../../migrations/0022_hosted_pages.sql"),
    },
    Migration {
        number: 23,
        name: "signed_log",
        sql: include_str!("../../../../migrations/0023_signed_log.sql"),
    },
    Migration {
        number: 24,
        name: "access_state",
        sql: include_str!("../../../../migrations/0024_access_state.sql"),
    },
    Migration {
        number: 25,
        name: "search_expressions",
        sql: include_str!("../../../../migrations/0025_search_expressions.sql"),
    },
    Migration {
        number: 26,
        name: "key_rotation",
        sql: include_str!("../../../../migrations/0026_key_rotation.sql"),
    },
    Migration {
        number: 27,
        name: "import_and_export",
        sql: include_str!("../../../../migrations/0027_import_and_export.sql"),
    },
    Migration {
        number: 28,
        name: "digest_keys",
        sql: include_str!("../../../../migrations/0028_digest_keys.sql"),
    },
    Migration {
        number: 29,
        name: "audit_stream",
        sql: include_str!("../../../../migrations/0029_audit_stream.sql"),
    },
];

/// The table of applied migrations. They are identified by number alone: an applied migration is never edited.
const CREATE_MIGRATION_TABLE: &str = "create table if not exists migration (
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

/// Returns the number of the newest applied migration; 0 for an empty database.
pub async fn applied(connection: &Connection) -> Result<i32, Error> {
    let failed = |error: tokio_postgres::Error| {
        match error.code() {
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Error::Migrations(
            "this role may not read the tables (42501): run `cloakroom migrate --grant-to ROLE` as the role that owns them"
                .to_owned(),
        ),
        _ => super::statement_error(APPLIED.name, &error),
    }
    };
    let exists = connection.query(&TABLE_EXISTS, &[]).await.map_err(failed)?;
    if !exists.first().is_some_and(|row| row.get(0)) {
        return Ok(0);
    }
    let rows = connection.query(&APPLIED, &[]).await.map_err(failed)?;
    Ok(rows.first().map_or(0, |row| row.get(0)))
}

/// Applies the missing migrations, each in its own transaction, and returns them.
///
/// Concurrent runs are safe: each locks the table `migration` before it reads it.
pub async fn migrate(connection: &Connection) -> Result<Vec<&'static Migration>, Error> {
    let failed = |error: tokio_postgres::Error| {
        match error.code() {
        Some(&SqlState::INSUFFICIENT_PRIVILEGE) => Error::Migrations(
            "this role may not change the schema (42501): run `cloakroom migrate` as the role that owns the tables, and \
             grant the role of the nodes access to them with --grant-to"
                .to_owned(),
        ),
        _ => super::statement_error("a migration", &error),
    }
    };
    // `create table if not exists` can fail when two sessions run it concurrently. The retry finds the table.
    if connection.run(CREATE_MIGRATION_TABLE).await.is_err() {
        connection
            .run(CREATE_MIGRATION_TABLE)
            .await
            .map_err(failed)?;
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

/// Returns an error if the database lacks a migration that this version needs.
///
/// A newer database is accepted: migrations are additive, so that nodes can be upgraded one by one.
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

/// Grants a role that owns no tables the right to read and write all of them. The audit log is append-only: the role can
/// insert entries, keys and checkpoints, and nothing else. Days are removed by a function of the owner. `role` is not quoted
/// and must be a plain identifier.
pub async fn grant(connection: &Connection, role: &str) -> Result<(), Error> {
    let sql = format!(
        "grant usage on schema public to {role};
        grant select, insert, update, delete on all tables in schema public to {role};
        do $$
        declare
            part text;
        begin
            for part in
                select inhrelid::regclass::text from pg_inherits where inhparent = 'log'::regclass
                union all values ('log'), ('log_key'), ('log_checkpoint'), ('log_retention')
            loop
                execute format('revoke update, delete, truncate on %s from {role}', part);
            end loop;
        end
        $$;
        revoke insert on log_retention from {role};
        grant execute on function drop_log_days(integer) to {role}"
    );
    connection
        .run(&sql)
        .await
        .map_err(|error| super::statement_error("a grant", &error))
}

/// Sets how many days of the audit log `drop_log_days` retains. Requires the rights of the owner.
pub async fn set_log_retention(connection: &Connection, keep_days: usize) -> Result<(), Error> {
    let sql =
        format!("update log_retention set keep_days = {keep_days} where keep_days <> {keep_days}");
    connection
        .run(&sql)
        .await
        .map_err(|error| super::statement_error("the retention", &error))
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
