//! Non-interference: responses do not depend on data that the callers may not see.
//!
//! Two worlds, one tenant each, differ only in the hidden part of one planted value. Callers with random grants, none
//! of which reveals the value according to the model, send the same random calls to both. Every response must be the
//! same in both worlds after ids are renamed: status, text, order, totals, and which fingerprints are equal. Unless a
//! caller may update or delete it, the known token must be unchanged. Unless a caller may send the value, a destination must
//! receive the same in both worlds too.

mod call;
mod model;
mod proxied;
mod transcript;
mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cloakroom::route_requirements::ROUTES;
use cloakroom_testkit::{
    SeededRng, TestDatabase, TestDestination, TestVault, number_or, use_long_timeouts,
};
use futures_util::future::join_all;

use self::call::Calls;
use self::model::Spec;
use self::transcript::Transcript;
use self::world::{Plant, Planted, World};

/// Sequences that run concurrently, each in its own pair of worlds.
const WORKERS: usize = 4;
/// Applications per world.
const SPECS: usize = 24;

/// Counters for the summary.
#[derive(Default)]
struct Figures {
    sequences: AtomicUsize,
    calls: AtomicUsize,
    compared: AtomicUsize,
    integrity: AtomicUsize,
    succeeded: AtomicUsize,
    received: AtomicUsize,
}

/// I13: permissions, transforms and containers bound what any sequence of calls discloses.
#[tokio::test]
async fn responses_do_not_depend_on_hidden_data() {
    let sequences = number_or("CLOAKROOM_TEST_SEQUENCES", 600);
    let destination = TestDestination::start().await;
    proxied::repeat(&destination);
    let vault = TestVault::start_with(TestDatabase::create().await, |config| {
        use_long_timeouts(config);
        destination.allow(config);
    })
    .await;
    let figures = Arc::new(Figures::default());
    let mut chance = SeededRng::from_environment();

    let workers = (0..WORKERS).map(|_| {
        let (setting, figures, chance) = ((&vault, &destination), figures.clone(), chance.fork());
        async move { work(setting, &figures, chance, sequences).await }
    });
    join_all(workers.collect::<Vec<_>>()).await;

    let count = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
    println!(
        "{} sequences, {} calls to each world ({} succeeded), {} routes; \
         {} requests received by destinations; {} sequences compared, {} tokens found unchanged",
        count(&figures.sequences),
        count(&figures.calls),
        count(&figures.succeeded),
        ROUTES.len(),
        count(&figures.received),
        count(&figures.compared),
        count(&figures.integrity),
    );
    assert!(sequences / 3 < count(&figures.compared));
    assert!(sequences / 10 < count(&figures.integrity));
    assert!(sequences / 10 < count(&figures.received));
}

async fn work(
    (vault, destination): (&TestVault, &TestDestination),
    figures: &Figures,
    mut chance: SeededRng,
    sequences: usize,
) {
    let mut specs = Vec::new();
    let mut worlds = Vec::new();
    while figures.sequences.fetch_add(1, Ordering::Relaxed) < sequences {
        // Replaces the worlds now and then, before they accumulate too many tokens.
        if worlds.is_empty() || chance.one_in(100) {
            specs = (0..SPECS).map(|_| Spec::random(&mut chance)).collect();
            worlds = Vec::new();
            for _ in 0..2 {
                worlds.push(World::create(vault, destination, &specs).await);
            }
        }
        run(&specs, (&worlds, destination), figures, &mut chance).await;
    }
    figures.sequences.fetch_sub(1, Ordering::Relaxed);
}

/// Runs one sequence in both worlds.
async fn run(
    specs: &[Spec],
    (worlds, destination): (&[World], &TestDestination),
    figures: &Figures,
    chance: &mut SeededRng,
) {
    let plant = Plant::random(chance);
    let mut callers: Vec<usize> = (0..=chance.below(2)).map(|_| chance.below(SPECS)).collect();
    callers.retain(|caller| !specs[*caller].may_see(&plant));
    // One caller could store an intent or encrypted value where another sees it.
    let is_movable = plant.planted != Planted::Token && 1 < callers.len();
    if is_movable {
        callers.retain(|caller| !specs[*caller].reveals_somewhere());
    }
    if callers.is_empty() {
        return;
    }
    let are_public = callers.iter().all(|caller| specs[*caller].is_public());
    let may_send = callers.iter().any(|caller| specs[*caller].may_send(&plant));
    let calls = Calls::random(chance, &plant, &callers, are_public);
    let mut transcripts = Vec::new();
    let mut unchanged = Vec::new();
    for (side, world) in worlds.iter().enumerate() {
        let planted = world.plant(&plant, side).await;
        let mut transcript = Transcript::new(&planted);
        for call in &calls.0 {
            world.send(call, &mut transcript).await;
            let received = world.received(destination);
            figures
                .received
                .fetch_add(received.len(), Ordering::Relaxed);
            if !may_send {
                transcript.add_received(received);
            }
        }
        unchanged.push(world.is_unchanged(&planted).await);
        world.clear_revealed().await;
        if are_public {
            world.delete(&transcript.created, &planted).await;
        }
        figures
            .succeeded
            .fetch_add(transcript.succeeded, Ordering::Relaxed);
        transcripts.push(transcript);
    }
    figures.calls.fetch_add(calls.0.len(), Ordering::Relaxed);
    let specs: Vec<&Spec> = callers.iter().map(|caller| &specs[*caller]).collect();
    let describe = || format!("{plant:#?}\n{specs:#?}\n{calls:#?}");
    figures.compared.fetch_add(1, Ordering::Relaxed);
    let lines = transcripts[0].lines.iter().zip(&transcripts[1].lines);
    for (position, (one, other)) in lines.enumerate() {
        assert_eq!(
            one,
            other,
            "response {position} differs between the worlds\n{}",
            describe()
        );
    }
    assert_eq!(
        transcripts[0].lines.len(),
        transcripts[1].lines.len(),
        "a destination received more in one of the worlds\n{}",
        describe()
    );
    if !specs
        .iter()
        .any(|spec| spec.may_change(world::KNOWN_CONTAINER))
    {
        figures.integrity.fetch_add(1, Ordering::Relaxed);
        assert!(
            unchanged.iter().all(|same| *same),
            "a token was changed\n{}",
            describe()
        );
    }
}
