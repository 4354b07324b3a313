//! Timing side channels of key lookups.

use std::time::Instant;

use cloakroom::access::{self, Anchored, ApiKey, ApplicationKind, Permission, TenantKind};
use cloakroom::{Node, access_change, authentication};
use cloakroom_testkit::{SeededRng, TestApplication, TestVault, grants, number_or};
use futures_util::{StreamExt as _, stream};

/// Kinds of rejected keys.
const KINDS: [&str; 4] = ["unknown", "wrong secret", "expired", "deleted"];
/// Maximum of Welch's t for two kinds; random noise exceeds it once in 100,000 runs.
const T_MAX: f64 = 4.5;
/// Concurrent lookups.
const CONCURRENCY: usize = 16;

/// Lookup times of one kind of key, in microseconds.
struct Sample {
    mean: f64,
    variance: f64,
    count: f64,
}

#[tokio::test]
async fn lookup_time_does_not_depend_on_why_a_key_is_rejected() {
    let vault = TestVault::start().await;
    let mut chance = SeededRng::from_environment();
    let count = number_or("CLOAKROOM_TEST_LOOK_UPS", 4_000);
    let held = held_keys(&vault).await;

    let samples = measure(&vault.vault, &mut chance, &held, count).await;
    let summary = summarize(&samples);
    println!("{count} lookups: {summary}");
    assert!(largest_t(&samples) < T_MAX, "{summary}");
}

/// Keys of each kind except unknown ones, which are generated for each lookup. There are enough that no key is looked
/// up twice concurrently, because the second request would join the first lookup and finish sooner.
async fn held_keys(vault: &TestVault) -> [Vec<String>; 3] {
    let tenant = vault.tenant().await;
    let database = vault.database.connect().await;
    let changes = [
        None,
        Some("update application_key set expires_at = now() - interval '1 day' where key_id = $1"),
        Some("delete from application_key where key_id = $1"),
    ];
    let mut held: [Vec<String>; 3] = Default::default();
    for (kind, change) in held.iter_mut().zip(changes) {
        for _ in 0..4 * CONCURRENCY {
            let holder = holder(vault, &tenant).await;
            if let Some(change) = change {
                let changed = database.execute(change, &[&holder.key_id]).await.unwrap();
                assert_eq!(changed, 1);
                access_change::reanchor(&vault.vault, tenant.id, Anchored::Access)
                    .await
                    .unwrap();
            }
            kind.push(holder.key);
        }
    }
    held
}

async fn holder(vault: &TestVault, tenant: &access::Tenant) -> TestApplication {
    let granted = grants(&[Permission::TokenCreate]);
    vault
        .holder(tenant, ApplicationKind::Private, granted)
        .await
}

/// Looks up keys of all kinds in random order, so that other load affects all kinds alike.
async fn measure(
    vault: &Node,
    chance: &mut SeededRng,
    held: &[Vec<String>; 3],
    count: usize,
) -> [Sample; 4] {
    let lookups = stream::iter(0..count).map(|number| {
        let kind = chance.below(KINDS.len());
        let fresh = ApiKey::generate(TenantKind::Test, "us", ApplicationKind::Private);
        let key = match kind {
            0 => fresh.expose().to_owned(),
            kind => {
                let keys = &held[kind - 1];
                with_another_secret(&keys[number % keys.len()], fresh.expose(), kind)
            }
        };
        async move {
            let begun = Instant::now();
            let outcome = authentication::authenticate(vault, &key).await;
            let taken = begun.elapsed();
            assert!(outcome.is_err(), "{}", KINDS[kind]);
            (kind, taken.as_secs_f64() * 1e6)
        }
    });
    let mut times: [Vec<f64>; 4] = Default::default();
    let mut responses = lookups.buffer_unordered(CONCURRENCY);
    while let Some((kind, taken)) = responses.next().await {
        times[kind].push(taken);
    }
    times.map(Sample::of)
}

/// Replaces the end of the secret for the kind "wrong secret"; expired and deleted keys are returned unchanged.
fn with_another_secret(held: &str, fresh: &str, kind: usize) -> String {
    match kind {
        1 => format!("{}{}", &held[..held.len() - 6], &fresh[fresh.len() - 6..]),
        _ => held.to_owned(),
    }
}

impl Sample {
    /// Excludes the slowest tenth, which reflects the load of the machine.
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        times.truncate(times.len() * 9 / 10);
        let count = times.len() as f64;
        let mean = times.iter().sum::<f64>() / count;
        let variance = times.iter().map(|time| (time - mean).powi(2)).sum::<f64>() / (count - 1.0);
        Self {
            mean,
            variance,
            count,
        }
    }

    /// Welch's t of two samples.
    fn t(&self, other: &Self) -> f64 {
        let spread = self.variance / self.count + other.variance / other.count;
        (self.mean - other.mean) / spread.sqrt()
    }
}

fn pairs() -> impl Iterator<Item = (usize, usize)> {
    (0..KINDS.len()).flat_map(|one| (0..one).map(move |other| (other, one)))
}

fn largest_t(samples: &[Sample; 4]) -> f64 {
    let t = |(one, other): (usize, usize)| samples[one].t(&samples[other]).abs();
    pairs().map(t).fold(0.0, f64::max)
}

fn summarize(samples: &[Sample; 4]) -> String {
    let means = KINDS.iter().zip(samples);
    let means: Vec<String> = means
        .map(|(kind, it)| format!("{kind} {:.1} µs", it.mean))
        .collect();
    let t = |(one, other): (usize, usize)| {
        let t = samples[one].t(&samples[other]);
        format!("t({}, {}) = {t:.1}", KINDS[one], KINDS[other])
    };
    let ts: Vec<String> = pairs().map(t).collect();
    format!("{}; {}", means.join(", "), ts.join(", "))
}
