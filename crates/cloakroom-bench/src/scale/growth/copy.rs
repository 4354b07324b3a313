//! A copy of some tokens in a table of its own, to measure alternatives.

use std::time::Instant;

use anyhow::Result;
use tokio_postgres::Statement;
use uuid::Uuid;

use super::super::database::Database;
use super::super::shape::TENANT;
use super::cost::{Cost, counted, reset};
use super::pass::{BATCH, ROTATION};

const NAME: &str = "copied";

pub(super) struct Copy<'a> {
    database: &'a Database,
    rows: u64,
}

impl<'a> Copy<'a> {
    /// Copies the first tokens in insertion order, with the same keys and indexes.
    pub(super) async fn make(
        database: &'a Database,
        rows: u64,
        fill_factor: u32,
        more: &str,
    ) -> Result<Self> {
        let sql = format!(
            "drop table if exists {NAME};
            create table {NAME} (like token including all) with (fillfactor = {fill_factor});
            {more};
            insert into {NAME} select * from token limit {rows}"
        );
        database.run(&sql).await?;
        database.run(&format!("vacuum analyze {NAME}")).await?;
        database.run("checkpoint").await?;
        Ok(Self { database, rows })
    }

    pub(super) async fn bytes_per_token(&self) -> Result<f64> {
        let sql = format!("select pg_total_relation_size('{NAME}')");
        let bytes = self
            .database
            .first_row(&sql)
            .await?
            .unwrap_or_default()
            .concat();
        Ok(bytes.parse::<f64>()? / self.rows as f64)
    }

    /// Share of HOT updates.
    pub(super) async fn in_place(&self) -> Result<f64> {
        // Sessions report their statistics when idle.
        tokio::time::sleep(std::time::Duration::from_secs(2)).await;
        let sql = format!(
            "select n_tup_hot_upd::float8 / greatest(n_tup_upd, 1)
            from pg_stat_user_tables
            where relname = '{NAME}'"
        );
        let share = self
            .database
            .first_row(&sql)
            .await?
            .unwrap_or_default()
            .concat();
        Ok(share.parse()?)
    }

    /// Rewrites sealed values in key order: this many batches, or all.
    pub(super) async fn rotate(&self, batches: usize) -> Result<Cost> {
        let session = self.database.connect().await?;
        let client = &session.client;
        let [(batch_name, batch), (again_name, again)] = ROTATION;
        let own = |sql: &str| {
            sql.replace("from token", "from copied")
                .replace("update token", "update copied as token")
        };
        let (batch, again): (Statement, Statement) = (
            client.prepare(&own(batch)).await?,
            client.prepare(&own(again)).await?,
        );
        reset(self.database).await?;
        let started_at = Instant::now();
        let (mut rows, mut last) = (0, Uuid::nil());
        for _ in 0..batches {
            let old = client.query(&batch, &[&TENANT, &last, &BATCH]).await?;
            let ids: Vec<Uuid> = old.iter().map(|row| row.get(0)).collect();
            let Some(&end) = ids.last() else {
                break;
            };
            let versions: Vec<i32> = old.iter().map(|row| row.get(1)).collect();
            let sealed: Vec<Vec<u8>> = old.iter().map(|row| row.get(2)).collect();
            rows += client
                .execute(&again, &[&TENANT, &ids, &versions, &sealed])
                .await?;
            last = end;
        }
        let each = started_at.elapsed().as_secs_f64() * 1e6 / rows as f64;
        counted(self.database, &[batch_name, again_name], rows, each).await
    }

    /// Cost of a page of 20 tokens of these types: one index scan per type, as in the service, or one for all types.
    pub(super) async fn page(&self, walks: bool, kinds: &str) -> Result<Cost> {
        let one = format!(
            "select *
            from {NAME}
            where tenant_id = {TENANT}
              and path >= '/'
              and (path, created_at, token_id) < ('0', '1970-01-01', '00000000-0000-0000-0000-000000000000')"
        );
        let order = "order by path desc, created_at desc, token_id desc limit 21";
        let sql = match walks {
            true => format!(
                "select token.sealed
                from unnest('{kinds}'::smallint[]) as wanted (kind)
                cross join lateral ({one} and kind = wanted.kind {order}) token
                order by token.path desc, token.created_at desc, token.token_id desc
                limit 21"
            ),
            false => format!("{one} and kind = any('{kinds}') {order}"),
        };
        let named = format!("-- growth::page\n{sql}");
        self.database.run(&sql).await?;
        reset(self.database).await?;
        let (took, _) = self.database.time(&named).await?;
        counted(
            self.database,
            &["growth::page"],
            1,
            took.as_secs_f64() * 1e6,
        )
        .await
    }

    pub(super) async fn remove(self) -> Result<()> {
        self.database.run(&format!("drop table {NAME}")).await
    }
}
