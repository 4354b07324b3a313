//! Rows of any table as JSON, so that one harness can copy, change and put back all of them.

use serde_json::{Map, Value};
use tokio_postgres::Client;

/// A table of the vault, with the columns that identify a row.
#[derive(Clone, Debug)]
pub(super) struct Table {
    pub(super) name: String,
    pub(super) columns: Vec<Column>,
    key: Vec<String>,
}

#[derive(Clone, Debug)]
pub(super) struct Column {
    pub(super) name: String,
    pub(super) kind: String,
    pub(super) is_nullable: bool,
}

/// Every table with its columns, in order. Partitions are part of their table.
pub(super) async fn list_tables(database: &Client) -> Vec<Table> {
    let sql = "select class.relname::text, attribute.attname::text, format_type(attribute.atttypid, null),
               not attribute.attnotnull, coalesce(attribute.attnum = any(index.indkey), false)
        from pg_class class
        join pg_attribute attribute on attribute.attrelid = class.oid
        left join pg_index index on index.indrelid = class.oid and index.indisprimary
        where class.relnamespace = 'public'::regnamespace
          and class.relkind in ('r', 'p')
          and not class.relispartition
          and attribute.attnum > 0
          and not attribute.attisdropped
        order by class.relname, attribute.attnum";
    let mut tables: Vec<Table> = Vec::new();
    for row in database.query(sql, &[]).await.unwrap() {
        let name: String = row.get(0);
        if tables.last().is_none_or(|table| table.name != name) {
            tables.push(Table {
                name,
                columns: Vec::new(),
                key: Vec::new(),
            });
        }
        let table = tables.last_mut().unwrap();
        let column: String = row.get(1);
        if row.get(4) {
            table.key.push(column.clone());
        }
        table.columns.push(Column {
            name: column,
            kind: row.get(2),
            is_nullable: row.get(3),
        });
    }
    for table in &mut tables {
        // Entries of the audit log have no primary key, which would cost every insert.
        if table.key.is_empty() {
            table.key = ["slot", "chain", "seq"].map(str::to_owned).to_vec();
        }
    }
    tables
}

impl Table {
    pub(super) async fn rows(&self, database: &Client) -> Vec<Value> {
        let (name, key) = (&self.name, self.key.join(", "));
        let sql = format!("select to_jsonb(it)::text from {name} it order by {key}");
        let rows = database.query(&sql, &[]).await.unwrap();
        rows.iter()
            .map(|row| serde_json::from_str(row.get(0)).unwrap())
            .collect()
    }

    /// The columns that identify a row, with its values.
    pub(super) fn identity(&self, row: &Value) -> Value {
        let members = self
            .key
            .iter()
            .map(|name| (name.clone(), row[name].clone()));
        Value::Object(members.collect::<Map<_, _>>())
    }

    pub(super) fn has_column(&self, name: &str) -> bool {
        self.columns.iter().any(|column| column.name == name)
    }

    pub(super) fn is_key(&self, column: &str) -> bool {
        self.key.iter().any(|name| name == column)
    }

    /// Removes rows and adds others, in one transaction. Returns how many rows it removed, and fails if the schema does not
    /// allow it.
    pub(super) async fn replace(
        &self,
        database: &Client,
        removed: &[Value],
        added: &[Value],
    ) -> Result<u64, tokio_postgres::Error> {
        let name = &self.name;
        let delete = format!("delete from {name} it where to_jsonb(it) @> $1::text::jsonb");
        let insert = format!(
            "insert into {name} select * from jsonb_populate_record(null::{name}, $1::text::jsonb)"
        );
        database.batch_execute("begin").await?;
        let change = async {
            let mut count = 0;
            for row in removed {
                let identity = self.identity(row).to_string();
                count += database.execute(&delete, &[&identity]).await?;
            }
            for row in added {
                database.execute(&insert, &[&row.to_string()]).await?;
            }
            Ok(count)
        };
        let changed = change.await;
        let end = if changed.is_ok() {
            "commit"
        } else {
            "rollback"
        };
        database.batch_execute(end).await?;
        changed
    }
}
