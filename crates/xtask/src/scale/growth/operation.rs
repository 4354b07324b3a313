//! What is measured at each size: the statements of the service, and one that it will have.

use std::time::{Duration, Instant, SystemTime};

use anyhow::{Result, ensure};
use tokio_postgres::types::ToSql;
use tokio_postgres::{Row, Statement};
use uuid::Uuid;

use super::super::case::{DEEP, LIMIT, SIZE};
use super::super::database::{Database, Session};
use super::super::shape::{PLACES, TENANT};
use super::super::source::Source;
use super::cost::{Cost, counted, median_us, reset};
use super::fill::{COMMON_TERM, drawn};
use super::ids::Ids;
use super::{create, pass};

#[derive(Clone, Copy, PartialEq)]
pub(super) enum Operation {
    Get,
    FirstPage,
    DeepPage,
    OneByTerm,
    PageByTerm,
    Equal,
    Create,
    CreateAtOnce,
    Sweep,
    Rotate,
}

impl Operation {
    pub(super) const ALL: [Self; 10] = [
        Self::Get,
        Self::FirstPage,
        Self::DeepPage,
        Self::OneByTerm,
        Self::PageByTerm,
        Self::Equal,
        Self::Create,
        Self::CreateAtOnce,
        Self::Sweep,
        Self::Rotate,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::FirstPage => "page 1",
            Self::DeepPage => "page 1000",
            Self::OneByTerm => "rare term",
            Self::PageByTerm => "common term",
            Self::Equal => "fingerprint",
            Self::Create => "create",
            Self::CreateAtOnce => "create, 16",
            Self::Sweep => "sweep",
            Self::Rotate => "rotate",
        }
    }

    /// Those that only read write to the log too, where they are the first to meet a removed row.
    pub(super) fn writes(self) -> bool {
        matches!(
            self,
            Self::Create | Self::CreateAtOnce | Self::Sweep | Self::Rotate
        )
    }

    pub(super) fn meaning(self) -> &'static str {
        match self {
            Self::Get => "`tokens::find`, random ids of all tokens",
            Self::FirstPage => "`token_queries::of_kinds`, all types, 20 tokens",
            Self::DeepPage => "the same behind 999 pages",
            Self::OneByTerm => "`token_queries::by_term`, one or two tokens have it",
            Self::PageByTerm => "the same, one of twenty tokens has it, 20 tokens",
            Self::Equal => "`tokens::find_equal`, as a create with deduplication asks",
            Self::Create => {
                "`tokens::insert` with one term and one record, a commit each, 1 client"
            }
            Self::CreateAtOnce => "the same, 16 clients; time of the whole divided by creates",
            Self::Sweep => "`tokens::sweep`, 1,000 rows a batch; per row",
            Self::Rotate => "1,000 rows read by key and their sealed values written; per row",
        }
    }
}

/// How often each is done in a round.
pub(super) struct Counts {
    pub(super) single: usize,
    pub(super) pages: usize,
    pub(super) creates: usize,
    pub(super) creates_at_once: usize,
    pub(super) batches: usize,
}

/// One connection with what it asks, and what it asks for.
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

/// Where a page starts.
#[derive(Clone)]
struct Place {
    path: String,
    created_at: SystemTime,
    token_id: Uuid,
}

impl<'a> Bench<'a> {
    pub(super) async fn new(database: &'a Database, source: &Source, tokens: u64) -> Result<Self> {
        let session = database.connect().await?;
        let client = &session.client;
        let sql = format!("select {COMMON_TERM}");
        let top = Place {
            path: "0".to_owned(),
            created_at: SystemTime::UNIX_EPOCH,
            token_id: Uuid::nil(),
        };
        let mut bench = Self {
            database,
            tokens,
            find: client.prepare(source.text("tokens::find")?).await?,
            of_kinds: client
                .prepare(source.text("token_queries::of_kinds")?)
                .await?,
            by_term: client
                .prepare(source.text("token_queries::by_term")?)
                .await?,
            find_equal: client.prepare(source.text("tokens::find_equal")?).await?,
            insert_text: source.text("tokens::insert")?.to_owned(),
            sweep: client.prepare(source.text("tokens::sweep")?).await?,
            common_term: client.query_one(&sql, &[]).await?.get(0),
            deep: top.clone(),
            top,
            session,
        };
        bench.deep = bench.walk().await?;
        Ok(bench)
    }

    /// Goes through the pages before the deep one, as a client would.
    async fn walk(&self) -> Result<Place> {
        let mut place = self.top.clone();
        for _ in 1..DEEP {
            let rows = self.page(&place).await?;
            // The last one only tells that there is a next page.
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

    /// Random tokens: their ids and fingerprints.
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

/// Times and rows of the executions of one round.
struct Watch<'a> {
    database: &'a Database,
    times: Vec<Duration>,
    rows: usize,
}

impl<'a> Watch<'a> {
    async fn start(database: &'a Database) -> Result<Self> {
        reset(database).await?;
        Ok(Self {
            database,
            times: Vec::new(),
            rows: 0,
        })
    }

    fn count(&mut self, started_at: Instant, rows: usize) {
        self.times.push(started_at.elapsed());
        self.rows += rows;
    }

    /// A few tokens have been swept; all others must be found, or nothing was measured.
    fn expect_most(&self, rows_each: usize) -> Result<()> {
        let expected = self.times.len() * rows_each;
        ensure!(
            self.rows * 10 >= expected * 9,
            "only {} of {expected} rows were found",
            self.rows
        );
        Ok(())
    }

    async fn end(self, names: &[&str]) -> Result<Cost> {
        let units = self.times.len() as u64;
        counted(self.database, names, units, median_us(&self.times)).await
    }
}
