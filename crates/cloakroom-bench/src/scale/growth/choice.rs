//! Design alternatives, measured in the largest table.

use anyhow::Result;
use cloakroom_devtools::service_sql::ServiceSql;
use comfy_table::Table;
use serde::Serialize;

use super::super::database::Database;
use super::super::report::{align_right, new};
use super::bench::Bench;
use super::copy::Copy;
use super::cost::{Cost, median_cost};
use super::ids::Ids;
use super::pass::{self, Order};
use super::{SHORT, create};

const ROUNDS: usize = 3;
const CREATES: usize = 10_000;
/// Tokens in the tables of the alternatives.
const COPIED: u64 = 200_000;

/// A design decision and the cost of each option.
#[derive(Serialize)]
pub(super) struct Choice {
    question: &'static str,
    options: Vec<Measured>,
}

#[derive(Serialize)]
struct Measured {
    name: String,
    /// Bytes of a token and its indexes, if the options differ.
    bytes_per_token: Option<f64>,
    /// Share of HOT updates.
    in_place: Option<f64>,
    cost: Cost,
}

impl Measured {
    fn of(name: impl Into<String>, cost: Cost) -> Self {
        Self {
            name: name.into(),
            bytes_per_token: None,
            in_place: None,
            cost,
        }
    }
}

impl Choice {
    pub(super) fn table(&self) -> Table {
        let mut table = new([
            self.question,
            "µs",
            "blocks",
            "of them read",
            "log bytes",
            "log pages",
            "bytes per token",
            "in place",
        ]);
        for option in &self.options {
            let cost = &option.cost;
            table.add_row([
                option.name.clone(),
                format!("{:.0}", cost.microseconds),
                format!("{:.1}", cost.blocks()),
                format!("{:.2}", cost.blocks_read),
                format!("{:.0}", cost.wal_bytes),
                format!("{:.2}", cost.wal_pages),
                shown(option.bytes_per_token, 0),
                shown(option.in_place, 2),
            ]);
        }
        align_right(&mut table, 1..8);
        table
    }
}

fn shown(number: Option<f64>, digits: usize) -> String {
    number.map_or_else(String::new, |number| format!("{number:.digits$}"))
}

pub(super) async fn compare(
    database: &Database,
    sql: &ServiceSql,
    tokens: u64,
) -> Result<Vec<Choice>> {
    let (rounds, creates) = match tokens < SHORT {
        true => (1, CREATES / 10),
        false => (ROUNDS, CREATES),
    };
    let text = sql.statement("tokens::insert")?;
    let copied = COPIED.min(tokens / 2);
    Ok(vec![
        ids(database, text, rounds, creates).await?,
        rotations(&Bench::new(database, sql, tokens).await?, rounds).await?,
        fill_factors(database, copied).await?,
        column_orders(database, copied).await?,
    ])
}

/// With and without WAL compression of full pages.
async fn ids(database: &Database, text: &str, rounds: usize, creates: usize) -> Result<Choice> {
    const PLAIN: &str = "set wal_compression = off";
    const PACKED: &str = "set wal_compression = lz4";
    let options = [
        ("random ids", Ids::Random, PLAIN),
        ("ids by time", Ids::ByTime, PLAIN),
        ("ids by window", Ids::ByWindow, PLAIN),
        ("random ids, log compressed", Ids::Random, PACKED),
        ("ids by time, log compressed", Ids::ByTime, PACKED),
    ];
    let mut measured = vec![Vec::new(); options.len()];
    for round in 0..rounds {
        for ((at, (_, ids, settings)), costs) in options.iter().enumerate().zip(&mut measured) {
            let work = create::Work {
                text,
                clients: 16,
                settings,
            };
            let ids = ids.make(creates, round * options.len() + at);
            costs.push(create::measure(database, &work, ids).await?);
        }
    }
    Ok(Choice {
        question: "create, 16 clients",
        options: options
            .iter()
            .zip(&measured)
            .map(|((name, ..), costs)| Measured::of(*name, median_cost(costs)))
            .collect(),
    })
}

/// Batches of a key rotation directly after a checkpoint, in two orders.
async fn rotations(bench: &Bench<'_>, rounds: usize) -> Result<Choice> {
    const BATCHES: usize = 3;
    let orders = [
        ("in the order of ids", Order::Key),
        ("in the order of lists", Order::List),
    ];
    let mut measured = vec![Vec::new(); orders.len()];
    for _ in 0..rounds {
        for ((_, order), costs) in orders.iter().zip(&mut measured) {
            costs.push(pass::rotate(bench, BATCHES, *order).await?);
        }
    }
    Ok(Choice {
        question: "rotate, per row",
        options: orders
            .iter()
            .zip(&measured)
            .map(|((name, _), costs)| Measured::of(*name, median_cost(costs)))
            .collect(),
    })
}

/// Fill factors: the cost of rotating all keys.
async fn fill_factors(database: &Database, rows: u64) -> Result<Choice> {
    let mut options = Vec::new();
    for fill_factor in [100, 95, 90, 80] {
        let copy = Copy::make(database, rows, fill_factor, "").await?;
        let bytes_per_token = Some(copy.bytes_per_token().await?);
        // In a large table, every row is the first of its page since the checkpoint, as in these batches.
        for (which, batches) in [("3 batches", 3), ("all", usize::MAX)] {
            let cost = copy.rotate(batches).await?;
            options.push(Measured {
                bytes_per_token,
                in_place: Some(copy.in_place().await?),
                ..Measured::of(format!("fill factor {fill_factor}, {which}"), cost)
            });
        }
        copy.remove().await?;
    }
    Ok(Choice {
        question: "rotate a copy, per row",
        options,
    })
}

/// The index of lists with the type first, as in the service, and with the path first.
async fn column_orders(database: &Database, rows: u64) -> Result<Choice> {
    const PATH_FIRST: &str = "do $$ begin execute (
            select string_agg(format('drop index %s', indexrelid::regclass), ';')
            from pg_index
            where indrelid = 'copied'::regclass and not indisprimary); end $$;
        create index on copied (tenant_id, path, created_at, token_id, kind)";
    const EVERY_TYPE: &str = "{1,2,3,4,5,6,7,8,9}";
    const NO_TYPE: &str = "{7}";
    let mut options = Vec::new();
    for (order, walks, more) in [("type first", true, ""), ("path first", false, PATH_FIRST)] {
        let copy = Copy::make(database, rows, 100, more).await?;
        let bytes_per_token = Some(copy.bytes_per_token().await?);
        for (which, kinds) in [
            ("all types", EVERY_TYPE),
            ("a type that no token has", NO_TYPE),
        ] {
            options.push(Measured {
                bytes_per_token,
                ..Measured::of(format!("{order}, {which}"), copy.page(walks, kinds).await?)
            });
        }
        copy.remove().await?;
    }
    Ok(Choice {
        question: "list, page 1",
        options,
    })
}
