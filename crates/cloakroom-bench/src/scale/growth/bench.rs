//! Runs the operations on one connection.

use std::time::{Instant, SystemTime};

use anyhow::Result;
use cloakroom_devtools::service_sql::ServiceSql;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};
use uuid::Uuid;

use super::super::case::{DEEP, LIMIT, SIZE};
use super::super::database::{Database, Session};
use super::super::shape::{PLACES, TENANT};
use super::cost::Cost;
use super::fill::{COMMON_TERM, drawn};
use super::ids::Ids;
use super::operation::{Counts, Operation};
use super::watch::Watch;
use super::{create, pass};

/// A connection with prepared statements and their arguments.
pub(super) struct Bench<'a> {
    pub(super) database: &'a Database,
    pub(super) session: Session,
    tokens: u64,
    find: Statement,
    of_kinds: Statement,
    by_term: Statement,
    find_equal: Statement,
    insert_text: String,
    sweep: Statement,
    top: Place,
    deep: Place,
    common_term: Vec<u8>,
}

/// Start of a page.
#[derive(Clone)]
struct Place {
    path: String,
    created_at: SystemTime,
    token_id: Uuid,
}

impl<'a> Bench<'a> {
    pub(super) async fn new(database: &'a Database, sql: &ServiceSql, tokens: u64) -> Result<Self> {
        let session = database.connect().await?;
        let client = &session.client;
        let common_term = format!("select {COMMON_TERM}");
        let top = Place {
            path: "0".to_owned(),
            created_at: SystemTime::UNIX_EPOCH,
            token_id: Uuid::nil(),
        };
        let mut bench = Self {
            database,
            tokens,
            find: client.prepare(sql.statement("tokens::find")?).await?,
            of_kinds: client
                .prepare(sql.statement("token_queries::of_kinds")?)
                .await?,
            by_term: client
                .prepare(sql.statement("token_queries::by_term")?)
                .await?,
            find_equal: client.prepare(sql.statement("tokens::find_equal")?).await?,
            insert_text: sql.statement("tokens::insert")?.to_owned(),
            sweep: client.prepare(sql.statement("tokens::sweep")?).await?,
            common_term: client.query_one(&common_term, &[]).await?.get(0),
            deep: top.clone(),
            top,
            session,
        };
        bench.deep = bench.walk().await?;
        Ok(bench)
    }

    /// Reads the pages before the deep one, as a client does.
    async fn walk(&self) -> Result<Place> {
        let mut place = self.top.clone();
        for _ in 1..DEEP {
            let rows = self.page(&place).await?;
            // The last row only indicates a next page.
            let Some(last) = rows.get(usize::try_from(SIZE)? - 1) else {
                anyhow::bail!("there are no {DEEP} pages");
            };
            let container = usize::try_from(last.get::<_, i32>("container_id"))?;
            place = Place {
                path: PLACES[container - 1].path.to_owned(),
                created_at: last.get("created_at"),
                token_id: last.get("token_id"),
            };
        }
        Ok(place)
    }

    async fn page(&self, place: &Place) -> Result<Vec<Row>> {
        let kinds: Vec<i16> = (1..=9).collect();
        let limit = i64::try_from(LIMIT)?;
        let Place {
            path,
            created_at,
            token_id,
        } = place;
        let params: [&(dyn ToSql + Sync); 7] =
            [&TENANT, &kinds, &"/", path, created_at, token_id, &limit];
        Ok(self.session.client.query(&self.of_kinds, &params).await?)
    }

    async fn by_term(&self, term: &[u8], fingerprint: Option<&[u8]>) -> Result<usize> {
        let limit = i64::try_from(LIMIT)?;
        let Place {
            path,
            created_at,
            token_id,
        } = &self.top;
        let params: [&(dyn ToSql + Sync); 8] = [
            &TENANT,
            &term,
            &"/",
            path,
            created_at,
            token_id,
            &fingerprint,
            &limit,
        ];
        Ok(self
            .session
            .client
            .query(&self.by_term, &params)
            .await?
            .len())
    }

    /// One round of one operation.
    pub(super) async fn measure(&self, operation: Operation, counts: &Counts) -> Result<Cost> {
        match operation {
            Operation::Get => self.gets(counts.single).await,
            Operation::FirstPage => self.pages(&self.top, counts.pages).await,
            Operation::DeepPage => self.pages(&self.deep, counts.pages).await,
            Operation::OneByTerm => self.rare_terms(counts.single).await,
            Operation::PageByTerm => self.common_terms(counts.pages).await,
            Operation::Equal => self.equals(counts.single).await,
            Operation::Create => self.creates(counts.creates, 1).await,
            Operation::CreateAtOnce => self.creates(counts.creates_at_once, 16).await,
            Operation::Sweep => pass::sweep(self, &self.sweep, counts.batches).await,
            Operation::Rotate => pass::rotate(self, counts.batches, pass::Order::Key).await,
        }
    }

    /// Ids and fingerprints of random tokens.
    pub(super) async fn draw(&self, count: usize) -> Result<Vec<(Uuid, Vec<u8>)>> {
        let rows = self
            .session
            .client
            .query(&drawn(count, self.tokens), &[])
            .await?;
        Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
    }

    async fn gets(&self, count: usize) -> Result<Cost> {
        let drawn = self.draw(count).await?;
        let mut watch = Watch::start(self.database).await?;
        for (id, _) in &drawn {
            let started_at = Instant::now();
            let params: [&(dyn ToSql + Sync); 2] = [&TENANT, id];
            let found = self.session.client.query_opt(&self.find, &params).await?;
            watch.count(started_at, usize::from(found.is_some()));
        }
        watch.expect_most(1)?;
        watch.end(&["tokens::find"]).await
    }

    async fn pages(&self, place: &Place, count: usize) -> Result<Cost> {
        let mut watch = Watch::start(self.database).await?;
        for _ in 0..count {
            let started_at = Instant::now();
            let rows = self.page(place).await?.len();
            watch.count(started_at, rows);
        }
        watch.expect_most(usize::try_from(LIMIT)?)?;
        watch.end(&["token_queries::of_kinds"]).await
    }

    async fn rare_terms(&self, count: usize) -> Result<Cost> {
        let drawn = self.draw(count).await?;
        let mut watch = Watch::start(self.database).await?;
        for (_, fingerprint) in &drawn {
            let started_at = Instant::now();
            let rows = self.by_term(&fingerprint[..16], Some(fingerprint)).await?;
            watch.count(started_at, rows);
        }
        watch.expect_most(1)?;
        watch.end(&["token_queries::by_term"]).await
    }

    async fn common_terms(&self, count: usize) -> Result<Cost> {
        let mut watch = Watch::start(self.database).await?;
        for _ in 0..count {
            let started_at = Instant::now();
            let rows = self.by_term(&self.common_term, None).await?;
            watch.count(started_at, rows);
        }
        watch.expect_most(usize::try_from(LIMIT)?)?;
        watch.end(&["token_queries::by_term"]).await
    }

    async fn equals(&self, count: usize) -> Result<Cost> {
        let drawn = self.draw(count).await?;
        let largest = super::super::shape::LARGEST;
        let mut watch = Watch::start(self.database).await?;
        for (_, fingerprint) in &drawn {
            let started_at = Instant::now();
            let params: [&(dyn ToSql + Sync); 5] = [
                &TENANT,
                &&fingerprint[..16],
                &largest,
                &Uuid::nil(),
                fingerprint,
            ];
            let found = self.session.client.query_opt(&self.find_equal, &params);
            watch.count(started_at, usize::from(found.await?.is_some()));
        }
        watch.end(&["tokens::find_equal"]).await
    }

    async fn creates(&self, count: usize, clients: usize) -> Result<Cost> {
        let ids = Ids::Random.make(count, 0);
        let work = create::Work {
            text: &self.insert_text,
            clients,
            settings: "",
        };
        create::measure(self.database, &work, ids).await
    }
}
