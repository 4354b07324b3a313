//! The adversary: a database administrator, or an attacker with the role of the service.
//!
//! Every manipulation of every table and column is tried on a vault in use. The vault rejects it, a verification names
//! it, or `docs/trust/adversary.toml` lists it as harmless, with the reason. Anything else fails.

mod attack;
mod expected;
mod observe;
mod rows;
mod scene;
mod transfers;

use std::collections::BTreeSet;

use cloakroom::tokens::{Scope, verify_histories};
use cloakroom::{access, audit, keys, rotation, transfer};
use cloakroom_testkit::TestVault;
use serde_json::Value;

use self::attack::{Attack, attacks_on};
use self::expected::{Expectations, Outcome, Outcomes};
use self::observe::Observations;
use self::rows::Table;
use self::scene::Scene;

/// Parts of the list of tables, so that tests run them at the same time.
const PARTS: usize = 4;

#[tokio::test(flavor = "multi_thread")]
async fn nothing_unlisted_passes_1() {
    attack_part(0).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_unlisted_passes_2() {
    attack_part(1).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_unlisted_passes_3() {
    attack_part(2).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn nothing_unlisted_passes_4() {
    attack_part(3).await;
}

/// Writes `docs/trust/adversary.md`: `cargo xtask services run -- cargo nextest run --workspace --run-ignored only
/// adversary::record`.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "writes docs/trust/adversary.md"]
async fn record() {
    let mut stage = Stage::set().await;
    let tables = stage.scene.tables.clone();
    let mut outcomes = Outcomes::new();
    for table in &tables {
        stage.attack(table, &mut outcomes).await;
    }
    Expectations::load().record(&tables, &outcomes);
}

async fn attack_part(part: usize) {
    let mut stage = Stage::set().await;
    let tables = stage.scene.tables.clone();
    let expectations = Expectations::load();
    expectations.check_columns(&tables);
    let mut outcomes = Outcomes::new();
    for table in tables.iter().skip(part).step_by(PARTS) {
        stage.attack(table, &mut outcomes).await;
    }
    expectations.compare(&tables, &outcomes, (part, PARTS));
}

/// A scene that is set again when an attack leaves traces.
struct Stage {
    scene: Scene,
    expected: Observations,
    /// What a node that starts later returns: it has no security codes, because nodes share them through Redis.
    expected_later: Observations,
}

impl Stage {
    async fn set() -> Self {
        let stage = Self::set_again().await;
        let again = stage.scene.observe(&stage.scene.vault).await;
        assert_eq!(again, stage.expected, "the scene is not stable");
        assert_eq!(verify(&stage.scene).await, Vec::<String>::new());
        stage
    }

    async fn set_again() -> Self {
        let scene = Scene::set().await;
        let later = scene.vault.second_node().await;
        Self {
            expected: scene.observe(&scene.vault).await,
            expected_later: scene.observe(&later).await,
            scene,
        }
    }

    /// Tries every manipulation of a table and its columns.
    async fn attack(&mut self, table: &Table, outcomes: &mut Outcomes) {
        let attacks = self.attacks_on(table).await;
        let places: Vec<_> = attacks.iter().map(Attack::place).collect();
        let mut missing = BTreeSet::new();
        for (index, place) in places.iter().enumerate() {
            // A scene that was set again has other rows, and more or fewer that can be restored, but the same kinds of
            // attacks.
            let attacks = self.attacks_on(table).await;
            let same = attacks.iter().filter(|attack| attack.place() == *place);
            let earlier = places[..index].iter().filter(|it| *it == place).count();
            let Some(attack) = same.clone().nth(earlier).or(same.clone().next_back()) else {
                missing.insert(place);
                continue;
            };
            let place = place.clone();
            let result = self.try_attack(attack).await;
            let worst = outcomes.entry(place).or_insert_with(|| result.clone());
            if result.0 < worst.0 {
                *worst = result;
            }
        }
        let kinds = places.iter().collect::<BTreeSet<_>>().len();
        assert!(
            missing.len() * 10 <= kinds,
            "not tried on {}: {missing:?}",
            table.name
        );
    }

    async fn attacks_on(&self, table: &Table) -> Vec<Attack> {
        let rows = table.rows(&self.scene.database).await;
        // Rows of the first tenant: the other one is deleted.
        let is_used = |row: &Value| row.get("tenant_id").is_none_or(|tenant| tenant == 1);
        let used: Vec<usize> = (0..rows.len()).filter(|at| is_used(&rows[*at])).collect();
        let middle = used.get(used.len() / 2).copied().unwrap_or_default();
        let is_victim = |row: &Value| row["alias"] == "order 17" && is_used(row);
        let victim = rows.iter().position(is_victim).unwrap_or(middle);
        attacks_on(table, &self.scene.old[&table.name], &rows, victim)
    }

    /// Carries out an attack, classifies what follows from it, and undoes it.
    async fn try_attack(&mut self, attack: &Attack) -> (Outcome, Vec<String>) {
        let (scene, table) = (&self.scene, &attack.table);
        let replaced = table
            .replace(&scene.database, &attack.removed, &attack.added)
            .await;
        if replaced.is_err() {
            return (Outcome::Rejected, Vec::new());
        }
        let cold = scene.vault.try_node_with(|_| {}).await;
        let mut changes = scene.changes(&scene.vault, &self.expected).await;
        match &cold {
            Ok(cold) => changes.extend(scene.changes(cold, &self.expected_later).await),
            Err(_) => changes.push((Effect::Rejected, "start".to_owned())),
        }
        let effect = changes.iter().map(|(effect, _)| *effect).max();
        // What all nodes reject is decided, and verifications take most of the time.
        let is_named = effect != Some(Effect::Rejected) && !verify(scene).await.is_empty();
        let undone = table
            .replace(&scene.database, &attack.added, &attack.removed)
            .await;
        // A node may continue to reject requests, which would make every further attack look harmless.
        let is_intact = undone.is_ok_and(|count| count == attack.added.len() as u64)
            && (changes.is_empty() || scene.observe(&scene.vault).await == self.expected);
        if !is_intact {
            *self = Self::set_again().await;
        }
        let names: BTreeSet<String> = changes
            .into_iter()
            .filter(|(effect, _)| *effect == Effect::Changed)
            .map(|(_, name)| name)
            .collect();
        let outcome = match effect {
            Some(Effect::Rejected) => Outcome::Rejected,
            _ if is_named => Outcome::Detected,
            None => Outcome::Unnoticed,
            Some(Effect::Changed) => Outcome::Effective,
        };
        (outcome, names.into_iter().collect())
    }
}

impl Scene {
    /// Responses that differ from what they were before the attack. It persists, so that a difference which does not repeat
    /// has another cause, such as the load of the machine.
    async fn changes(&self, node: &TestVault, expected: &Observations) -> Vec<(Effect, String)> {
        let observed = self.observe(node).await;
        let mut changes = compare(expected, &observed);
        if changes.iter().any(|(effect, _)| *effect == Effect::Changed) {
            let again = compare(expected, &self.observe(node).await);
            for (_, name) in changes.extract_if(.., |change| !again.contains(change)) {
                println!("{name} differed once: {:?}", observed[&name]);
            }
        }
        for (_, name) in changes.iter().filter(|(it, _)| *it == Effect::Changed) {
            println!("{name}: {:?} became {:?}", expected[name], observed[name]);
        }
        changes
    }
}

fn compare(expected: &Observations, observed: &Observations) -> Vec<(Effect, String)> {
    let compare = |(name, before): (&String, &(http::StatusCode, String))| {
        let now = &observed[name];
        let effect = match now.0.is_client_error() || now.0.is_server_error() {
            true => Effect::Rejected,
            false => Effect::Changed,
        };
        (before != now).then(|| (effect, name.clone()))
    };
    expected.iter().filter_map(compare).collect()
}

/// What an attack does to a response, in increasing severity.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    /// A request that was successful fails.
    Rejected,
    /// A caller learns or may do something else.
    Changed,
}

/// Everything that `cloakroom audit verify` and `doctor` say about the stored rows.
async fn verify(scene: &Scene) -> Vec<String> {
    let vault = &scene.vault.vault;
    let (control, environment) = (vault.keys.control(), vault.keys.environment());
    let log = audit::verify(&vault.audit, None, |_| {}).await.unwrap();
    let rows = access::verify_rows(&vault.db, control).await.unwrap();
    let stale = access::verify_states(&vault.db, control).await.unwrap();
    let tokens = verify_histories(vault, Scope::All, |_| {}).await.unwrap();
    let keys = keys::inspect(&vault.db, vault.keys.root(), environment, &rows.tenants).await;
    let proofs = rotation::verify_proofs(vault).await.unwrap();
    let exports = transfer::export::verify_requests(vault).await.unwrap();
    let log = log.findings.iter().map(ToString::to_string);
    let tokens = tokens.findings.iter().map(ToString::to_string);
    log.chain(rows.altered)
        .chain(stale)
        .chain(tokens)
        .chain(keys.unwrap().broken)
        .chain(proofs)
        .chain(exports)
        .collect()
}
