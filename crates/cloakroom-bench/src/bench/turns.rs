//! Measures one node, PostgreSQL alone and the axum handler in turn.

use std::path::Path;

use anyhow::{Context, Result};

use super::engine::{Engine, Latencies, Rate, Statement, require_same_rows};
use super::load::Operation;
use super::pair::{PAIRS, Pair, Side};
use super::processes::CpuShares;
use super::report::{Compared, Comparison, EngineRow, HelloRow, Results, Row};
use super::server::Server;
use super::stage::{Measured, Stage, announce};
use super::{hello, probe};

/// The cost of a statement in PostgreSQL alone.
#[derive(Clone, Copy)]
pub(super) struct EngineMeasured {
    pub(super) rate: Rate,
    pub(super) latencies: Latencies,
    pub(super) cpu: CpuShares,
}

/// Measurements at one number of connections, in this order. Compared measurements are adjacent, so that other load on
/// the machine affects both.
const ORDER: [Turn; 6] = [
    Turn::Node(Operation::GetMasked),
    Turn::Engine(Statement::Find),
    Turn::Node(Operation::GetRevealed),
    Turn::Hello,
    Turn::Engine(Statement::Insert),
    Turn::Node(Operation::Create),
];

#[derive(Clone, Copy)]
enum Turn {
    Node(Operation),
    Engine(Statement),
    Hello,
}

pub(super) struct Turns<'a> {
    stage: &'a Stage,
    engine: Engine,
    hello: Server,
}

impl<'a> Turns<'a> {
    /// Fills the baseline with as many rows as the vault has, and starts the axum handler.
    pub(super) async fn new(stage: &'a Stage, program: &Path) -> Result<Self> {
        let card = probe::views_differ(&stage.load).await?;
        let folder = stage.folder.path();
        let hello = hello::start(program, &card, folder).await?;
        let bare = stage.empty_database("engine").await?;
        let shape = stage.database.shape().await?;
        let engine = Engine::new(bare, shape, stage.tokens, folder).await?;
        engine.run(Statement::Insert, 1, 1, 0.0).await?;
        let rows = require_same_rows(&stage.database, &engine.database).await?;
        engine.database.delete_newer_rows().await?;
        println!("bench: {}, {rows}", engine.describe());
        Ok(Self {
            stage,
            engine,
            hello,
        })
    }

    pub(super) async fn take(&self) -> Result<Results> {
        let mut results = Results::default();
        for &connections in &self.stage.plan.connections {
            if !results.hello.is_empty() {
                self.stage.database.delete_newer_rows().await?;
                self.engine.database.delete_newer_rows().await?;
            }
            self.at(connections, &mut results).await?;
        }
        results.operations.sort_by_key(|row| row.operation);
        results.judge();
        Ok(results)
    }

    async fn at(&self, connections: u32, results: &mut Results) -> Result<()> {
        let operations = &self.stage.plan.operations;
        let mut nodes = Vec::new();
        let (mut engines, mut hello) = (Vec::new(), None);
        for turn in ORDER {
            match turn {
                Turn::Node(operation) if operations.contains(&operation) => {
                    nodes.push((operation, self.node_at(operation, connections).await?));
                }
                Turn::Engine(statement)
                    if operations.iter().any(|one| statement_of(*one) == statement) =>
                {
                    engines.push((statement, self.engine_at(statement, connections).await?));
                }
                Turn::Hello => hello = Some(self.hello_at(connections).await?),
                Turn::Node(_) | Turn::Engine(_) => {}
            }
        }
        let hello = hello.context("the bare handler has its turn")?;
        for (operation, measured) in nodes {
            let statement = statement_of(operation);
            let engine = engines.iter().find(|engine| engine.0 == statement);
            let (_, engine) = engine.context("a statement is measured with its operation")?;
            let row = Row::new(operation, connections, &measured, engine, &hello);
            results.operations.push(row);
        }
        let rows = engines.iter();
        results.engine.extend(
            rows.map(|(statement, engine)| EngineRow::new(*statement, connections, engine)),
        );
        results.hello.push(HelloRow::new(connections, &hello));
        Ok(())
    }

    async fn node_at(&self, operation: Operation, connections: u32) -> Result<Measured> {
        let stage = self.stage;
        announce(operation.name(), connections, "node");
        stage.database.checkpoint().await?;
        let processes = stage.processes(&[&stage.node]);
        stage
            .measure(&stage.load, &processes, operation, connections)
            .await
    }

    async fn hello_at(&self, connections: u32) -> Result<Measured> {
        let stage = self.stage;
        announce("get", connections, "hello");
        let load = stage.load.sent_to(&self.hello.address);
        let processes = stage.processes(&[&self.hello]);
        stage
            .measure(&load, &processes, Operation::GetMasked, connections)
            .await
    }

    async fn engine_at(&self, statement: Statement, clients: u32) -> Result<EngineMeasured> {
        announce(statement.name(), clients, "engine");
        let (engine, plan) = (&self.engine, &self.stage.plan);
        engine.database.checkpoint().await?;
        let (warm, _) = engine.run(statement, clients, plan.warm_up_s, 0.0).await?;
        let processes = self.stage.processes(&[]);
        let start = processes.cpu_times()?;
        engine.connect(statement, clients).await?;
        let before = processes.cpu_times()?;
        let (rate, latencies) = engine
            .run(statement, clients, plan.measured_s, warm.per_s)
            .await?;
        let cpu = (processes.cpu_times()? - before) - (before - start);
        println!("{:>9.0}/s", rate.per_s);
        Ok(EngineMeasured {
            rate,
            latencies,
            cpu: cpu.shared_by(rate.transactions.saturating_sub(u64::from(clients))),
        })
    }

    /// The cost of each protection.
    pub(super) async fn compare_all(&self) -> Result<Vec<Comparison>> {
        let mut compared = Vec::new();
        for pair in PAIRS {
            let rows = self.compare(pair).await?;
            compared.push(Comparison::new(pair, rows));
        }
        compared.retain(|comparison| !comparison.rows.is_empty());
        Ok(compared)
    }

    /// Sends the same requests to a node with a feature and to one without, in turn.
    async fn compare(&self, pair: &Pair) -> Result<Vec<Compared>> {
        let stage = self.stage;
        let wanted = &stage.plan.operations;
        let operations = pair.operations.iter().copied();
        let operations: Vec<(Operation, Operation)> = operations
            .filter(|(_, without)| wanted.contains(without))
            .collect();
        if operations.is_empty() {
            return Ok(Vec::new());
        }
        let with = stage.start_node("with", pair.with.settings).await?;
        let without = stage.start_node("without", pair.without.settings).await?;
        let mut measured = Vec::new();
        for (operation, compared_with) in operations {
            for &connections in &stage.plan.connections {
                let measure = async |node, side: &Side, operation| {
                    announce(Operation::name(operation), connections, side.name);
                    self.rate_of(node, operation, connections).await
                };
                measured.push(Compared {
                    operation,
                    connections,
                    with_per_s: measure(&with, &pair.with, operation).await?,
                    without_per_s: measure(&without, &pair.without, compared_with).await?,
                });
            }
        }
        with.stop().await?;
        without.stop().await?;
        Ok(measured)
    }

    async fn rate_of(&self, node: &Server, operation: Operation, connections: u32) -> Result<f64> {
        let load = self.stage.load.sent_to(&node.address);
        let processes = self.stage.processes(&[node]);
        let measured = self
            .stage
            .measure(&load, &processes, operation, connections)
            .await?;
        Ok(measured.outcome.requests_per_s())
    }
}

/// The statement of the baseline for an operation of the node.
fn statement_of(operation: Operation) -> Statement {
    match operation {
        Operation::Create | Operation::CreateOnce => Statement::Insert,
        Operation::GetMasked | Operation::GetRevealed => Statement::Find,
    }
}
