//! Security codes: readable for their time, on every node, and then nowhere.

use std::time::{Duration, Instant};

use cloakroom::access::Tenant;
use cloakroom::admin::Readiness;
use cloakroom::config::{Config, Secret};
use cloakroom::doctor::{self, Verdict};
use cloakroom::keys::RootKey;
use cloakroom::security_codes::SealedCode;
use cloakroom::{Vault, ids, jobs, security_codes};
use cloakroom_crypto::{SecurityCode, WrapContext};
use metrics_exporter_prometheus::PrometheusBuilder;
use tokio::task::JoinSet;
use tokio_postgres::Client;
use uuid::Uuid;

use crate::support::{Lines, TestDatabase, TestRedis, TestServer, TestVault};

/// Longer than a real code, so that it cannot be found by chance.
const CANARY: &str = "canary-of-a-code-9071";
const INSERT: &str = "insert into security_code (tenant_id, token_id, key_id, sealed, expires_at)
    values ($1, $2, $3, $4, now() + make_interval(secs => $5))";

/// A vault with a tenant, and the Redis that its nodes share, if any.
struct Site {
    first: TestVault,
    tenant: Tenant,
    redis: Option<TestRedis>,
    change: fn(&mut Config),
    /// For doing what another room does, and for meddling.
    database: Client,
}

impl Site {
    /// One node, and no Redis.
    async fn alone() -> Self {
        Self::start(TestDatabase::create().await, None, |_| {}).await
    }

    async fn with_redis() -> Self {
        Self::with_settings(|_| {}).await
    }

    async fn with_settings(change: fn(&mut Config)) -> Self {
        let redis = TestRedis::start(&[]).await;
        Self::start(TestDatabase::create().await, Some(redis), change).await
    }

    async fn start(
        database: TestDatabase,
        redis: Option<TestRedis>,
        change: fn(&mut Config),
    ) -> Self {
        let first = TestVault::start_with(database, |config| {
            config.redis.url = redis.as_ref().map(|redis| Secret::new(redis.url()));
            change(config);
        })
        .await;
        Self {
            tenant: first.tenant().await,
            database: first.database.connect().await,
            first,
            redis,
            change,
        }
    }

    fn redis(&self) -> &TestRedis {
        self.redis.as_ref().unwrap()
    }

    fn configuration(&self) -> Config {
        let mut config = self.first.configuration();
        config.redis = self.first.vault.config.redis.clone();
        (self.change)(&mut config);
        config
    }

    /// A further node: same database, root key and Redis, and nothing in its memory.
    async fn another_node(&self) -> Vault {
        Vault::open(self.configuration()).await.unwrap()
    }

    /// Keeps a code through a node, as the room of tokens does.
    async fn keep(&self, node: &Vault, code: &str) -> Uuid {
        let token = ids::new_uuid();
        let code = (code, node.config.security_codes.retention);
        let sealed = security_codes::seal(node, self.tenant.id, &token, code)
            .await
            .unwrap();
        let seconds = sealed.retention.as_secs_f64();
        let number = self.tenant.id.number;
        self.database
            .execute(
                INSERT,
                &[&number, &token, &sealed.key_id, &sealed.sealed, &seconds],
            )
            .await
            .unwrap();
        token
    }

    async fn read(&self, node: &Vault, token: &Uuid) -> Option<String> {
        read(node, &self.tenant, token).await
    }

    async fn sql(&self, statement: &str) {
        self.database.batch_execute(statement).await.unwrap();
    }
}

async fn read(node: &Vault, tenant: &Tenant, token: &Uuid) -> Option<String> {
    let found = security_codes::find(node, tenant.id, token).await.unwrap();
    found.map(|code| code.expose().clone())
}

/// The jobs of a node, until the value is dropped.
fn run_jobs(node: &Vault) -> JoinSet<()> {
    jobs::start(node, &Readiness::new(jobs::CHECKS))
}

/// Waits for something that must happen soon.
async fn until(what: &str, mut holds: impl AsyncFnMut() -> bool) {
    let deadline = Instant::now() + Duration::from_secs(30);
    while !holds().await {
        assert!(Instant::now() < deadline, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_node_alone_reads_what_it_sealed() {
    let site = Site::alone().await;
    let node = &site.first.vault;

    let token = site.keep(node, "123").await;

    assert_eq!(site.read(node, &token).await.as_deref(), Some("123"));
    assert_eq!(site.read(node, &ids::new_uuid()).await, None);
    assert_eq!(site.read(&site.another_node().await, &token).await, None);
}

#[tokio::test]
async fn another_node_reads_through_redis_as_soon_as_a_code_is_sealed() {
    let site = Site::with_redis().await;
    let (node, other) = (&site.first.vault, site.another_node().await);

    let token = site.keep(node, "1234").await;
    let read = site.read(&other, &token).await;
    site.redis().run("FLUSHALL").await;
    let read_from_memory = site.read(&other, &token).await;

    assert_eq!(read.as_deref(), Some("1234"));
    assert_eq!(read_from_memory.as_deref(), Some("1234"));
}

#[tokio::test]
async fn a_connection_that_went_stale_is_made_anew_unnoticed() {
    let site = Site::with_redis().await;
    let (node, other) = (&site.first.vault, site.another_node().await);
    security_codes::tend(&other).await;
    let token = site.keep(node, "123").await;

    site.redis().run("CLIENT KILL TYPE normal").await;

    assert_eq!(site.read(&other, &token).await.as_deref(), Some("123"));
}

#[tokio::test]
async fn many_at_once_share_one_key_and_one_look_up() {
    let site = Site::with_redis().await;
    let (node, other) = (&site.first.vault, site.another_node().await);
    let (tenant, token) = (site.tenant.id, ids::new_uuid());
    security_codes::tend(&other).await;

    let code = ("123", node.config.security_codes.retention);
    let sealed = futures(50, |_| security_codes::seal(node, tenant, &token, code)).await;
    let sealed: Vec<_> = sealed.into_iter().map(Result::unwrap).collect();
    let keys = site.redis().keys().await;
    let opened = futures(50, |n| {
        let SealedCode { key_id, sealed, .. } = &sealed[n];
        security_codes::open(&other, tenant, &token, key_id, sealed)
    })
    .await;

    assert_eq!(keys.len(), 1, "{keys:?}");
    assert!(opened.iter().flatten().all(|code| code.expose() == "123"));
    assert_eq!(opened.iter().flatten().count(), 50);
    assert_eq!(site.redis().calls_of("get").await, 1);
    assert_eq!(node.security_codes.live_keys(), 1);
    assert_eq!(other.security_codes.live_keys(), 1);
}

#[tokio::test]
async fn keys_that_redis_forgot_are_published_again() {
    let site = Site::with_redis().await;
    let token = site.keep(&site.first.vault, "123").await;
    site.redis().run("FLUSHALL").await;
    let newcomer = site.another_node().await;

    let forgotten = site.read(&newcomer, &token).await;
    let _jobs = run_jobs(&site.first.vault);
    until("publishing", async || site.redis().keys().await.len() == 1).await;

    assert_eq!(forgotten, None);
    assert_eq!(site.read(&newcomer, &token).await.as_deref(), Some("123"));
}

#[tokio::test]
async fn without_redis_own_codes_are_read_and_others_are_absent() {
    let lines = Lines::capture();
    let mut site = Site::with_redis().await;
    let (node, other) = (site.first.vault.clone(), site.another_node().await);
    let others = site.keep(&other, "456").await;
    let _jobs = run_jobs(&node);
    site.redis.take().unwrap().kill().await;

    let mut slowest = Duration::ZERO;
    for _ in 0..20 {
        let started = Instant::now();
        let own = site.keep(&node, "123").await;
        assert_eq!(site.read(&node, &own).await.as_deref(), Some("123"));
        assert_eq!(site.read(&node, &others).await, None);
        slowest = slowest.max(started.elapsed());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }

    println!("slowest round without Redis: {slowest:?}");
    assert!(slowest < Duration::from_secs(1), "{slowest:?}");
    assert_eq!(site.read(&other, &others).await.as_deref(), Some("456"));
    assert_eq!(lines.count("Redis is away"), 1, "{}", lines.text());
}

#[tokio::test]
async fn a_redis_that_stands_still_is_waited_for_briefly_and_served_later() {
    let site = Site::with_redis().await;
    let (node, other) = (&site.first.vault, site.another_node().await);
    let others = site.keep(&other, "456").await;
    let _jobs = run_jobs(node);
    let stopped = site.redis().stand_still();

    let mut delays = Vec::new();
    for _ in 0..10 {
        let started = Instant::now();
        assert_eq!(site.read(node, &others).await, None);
        delays.push(started.elapsed());
    }
    let started = Instant::now();
    let own = site.keep(node, "123").await;
    let sealing = started.elapsed();
    drop(stopped);
    until("publishing", async || {
        site.read(&other, &own).await.as_deref() == Some("123")
    })
    .await;

    delays.sort();
    println!("reading another's code: {delays:?}; sealing: {sealing:?}");
    assert!(delays[9] < Duration::from_secs(1), "{delays:?}");
    assert!(delays[5] < Duration::from_millis(200), "{delays:?}");
    assert!(sealing < Duration::from_secs(1), "{sealing:?}");
}

#[tokio::test]
async fn a_code_is_unreadable_at_its_retention_by_the_databases_clock() {
    let site = Site::alone().await;
    let node = &site.first.vault;
    let token = site.keep(node, "123").await;
    let age = async |minutes: u32| {
        let shift = format!(
            "update security_code set expires_at = expires_at - interval '{minutes} minutes'"
        );
        site.sql(&shift).await;
    };

    age(59).await;
    let before = site.read(node, &token).await;
    age(2).await;
    let after = site.read(node, &token).await;

    assert_eq!(before.as_deref(), Some("123"));
    assert_eq!(after, None);
    assert_eq!(node.security_codes.live_keys(), 1);
    site.sql("update security_code set expires_at = now() + interval '1 minute'")
        .await;
    assert_eq!(site.read(node, &token).await.as_deref(), Some("123"));
}

/// I06 in seconds: the same rules, with a retention of three and an epoch of two.
#[tokio::test]
async fn after_its_time_no_copy_of_a_code_opens() {
    let site = Site::with_settings(|config| {
        config.security_codes.retention = Duration::from_secs(3);
        config.security_codes.epoch = Duration::from_secs(2);
    })
    .await;
    let (node, other) = (&site.first.vault, site.another_node().await);
    let _jobs = (run_jobs(node), run_jobs(&other));

    let sealed_at = Instant::now();
    let token = site.keep(node, "123").await;
    let alive = site.read(&other, &token).await;
    let restored_alive = site.read(&site.another_node().await, &token).await;
    let backup = site.first.database.dump(&["--data-only"]);
    until("forgetting", async || {
        node.security_codes.live_keys() + other.security_codes.live_keys() == 0
            && site.redis().keys().await.is_empty()
    })
    .await;
    let forgotten_after = sealed_at.elapsed();

    println!("forgotten after {forgotten_after:?}");
    assert_eq!(alive.as_deref(), Some("123"));
    assert_eq!(restored_alive.as_deref(), Some("123"));
    assert!(forgotten_after > Duration::from_secs(4), "too early");
    assert!(forgotten_after < Duration::from_secs(9), "too late");
    site.sql("delete from security_code").await;
    site.sql(&copied_rows(&backup)).await;
    site.sql("update security_code set expires_at = now() + interval '1 day'")
        .await;
    assert_eq!(site.read(node, &token).await, None);
    assert_eq!(site.read(&other, &token).await, None);
    assert_eq!(site.read(&site.another_node().await, &token).await, None);
}

#[tokio::test]
async fn a_row_that_was_moved_or_changed_by_sql_does_not_open_and_is_told() {
    let attacks = [
        "update security_code set sealed = (select sealed from security_code where token_id = $2)
         where token_id = $1",
        "update security_code set sealed = set_byte(sealed, 40, get_byte(sealed, 40) # 1)
         where token_id = $1 or $2::uuid is null",
        "update security_code set sealed = substr(sealed, 1, 20)
         where token_id = $1 or $2::uuid is null",
        "update security_code set key_id = '\\x00' where token_id = $1 or $2::uuid is null",
    ];
    let site = Site::with_redis().await;
    let node = &site.first.vault;
    for attack in attacks {
        let lines = Lines::capture();
        let token = site.keep(node, "123").await;
        let another = site.keep(node, "456").await;
        assert_eq!(site.read(node, &token).await.as_deref(), Some("123"));

        let meddled = site.database.execute(attack, &[&token, &another]).await;
        assert_eq!(meddled.unwrap(), 1);

        assert_eq!(site.read(node, &token).await, None, "{attack}");
        assert_eq!(lines.count("integrity_error"), 1, "{}", lines.text());
        assert_eq!(site.read(node, &another).await.as_deref(), Some("456"));
    }
}

#[tokio::test]
async fn a_code_moved_to_another_tenant_does_not_open() {
    let site = Site::alone().await;
    let node = &site.first.vault;
    let token = site.keep(node, "123").await;
    let stranger = site.first.tenant().await;
    let foreign = read(node, &stranger, &token).await;

    site.sql(&format!(
        "update security_code set tenant_id = {}",
        stranger.id.number
    ))
    .await;

    assert_eq!(foreign, None);
    assert_eq!(read(node, &stranger, &token).await, None);
    assert_eq!(site.read(node, &token).await, None);
}

#[tokio::test]
async fn a_key_counts_only_under_its_own_name_and_with_an_end() {
    let site = Site::with_redis().await;
    let (left, right) = (site.another_node().await, site.another_node().await);
    let (one, two) = (site.keep(&left, "1").await, site.keep(&right, "2").await);
    let names = site.redis().keys().await;
    let [first, second] = &names[..] else {
        panic!("{names:?}")
    };

    let lines = Lines::capture();
    site.redis().run(&format!("RENAME {first} aside")).await;
    site.redis().run(&format!("RENAME {second} {first}")).await;
    site.redis().run(&format!("RENAME aside {second}")).await;
    let node = &site.first.vault;
    let swapped = (site.read(node, &one).await, site.read(node, &two).await);
    site.redis().run(&format!("RENAME {first} aside")).await;
    site.redis().run(&format!("RENAME {second} {first}")).await;
    site.redis().run(&format!("RENAME aside {second}")).await;
    for name in &names {
        site.redis().run(&format!("PERSIST {name}")).await;
    }
    let endless = site.read(node, &one).await;
    for name in &names {
        site.redis().run(&format!("PEXPIRE {name} 60000")).await;
    }

    assert_eq!(swapped, (None, None));
    assert_eq!(lines.count("integrity_error"), 2, "{}", lines.text());
    assert_eq!(endless, None);
    assert_eq!(site.read(node, &one).await.as_deref(), Some("1"));
}

#[tokio::test]
async fn redis_cannot_make_a_fetched_key_live_longer() {
    let site = Site::with_settings(|config| {
        config.security_codes.retention = Duration::from_secs(3);
        config.security_codes.epoch = Duration::from_secs(1);
    })
    .await;
    let other = site.another_node().await;
    let _jobs = run_jobs(&other);
    let token = site.keep(&site.first.vault, "123").await;
    let name = &site.redis().keys().await[0];
    site.redis().run(&format!("PEXPIRE {name} 3600000")).await;

    let read = site.read(&other, &token).await;
    let held = other.security_codes.live_keys();

    assert_eq!((read.as_deref(), held), (Some("123"), 1));
    until("forgetting", async || other.security_codes.live_keys() == 0).await;
}

#[tokio::test]
async fn what_becomes_of_codes_is_counted() {
    let recorder = PrometheusBuilder::new().build_recorder();
    let _counting = metrics::set_default_local_recorder(&recorder);
    let site = Site::with_redis().await;
    let (node, other) = (&site.first.vault, site.another_node().await);

    let token = site.keep(node, "123").await;
    site.read(node, &token).await;
    site.read(node, &ids::new_uuid()).await;
    site.redis().run("FLUSHALL").await;
    site.read(&other, &token).await;
    let stopped = site.redis().stand_still();
    site.read(&other, &token).await;
    drop(stopped);
    site.sql("update security_code set sealed = ''").await;
    site.read(node, &token).await;
    security_codes::tend(node).await;

    let text = recorder.handle().render();
    for line in [
        "security_codes_total{outcome=\"sealed\"} 1",
        "security_codes_total{outcome=\"opened\"} 1",
        "security_codes_total{outcome=\"absent\"} 1",
        "security_codes_total{outcome=\"key_gone\"} 1",
        "security_codes_total{outcome=\"key_unreachable\"} 1",
        "security_codes_total{outcome=\"altered\"} 1",
        "integrity_errors_total 1",
        "security_code_keys_live 1",
        "redis_up 1",
    ] {
        assert!(text.lines().any(|found| found == line), "{line} in {text}");
    }
}

#[tokio::test]
async fn neither_codes_nor_keys_are_found_where_they_do_not_belong() {
    let server = TestServer::start().await;
    let database = TestDatabase::on(&server.postgres.url()).await;
    let lines = Lines::capture();
    let site = Site::start(database, Some(TestRedis::start(&[]).await), |_| {}).await;
    let (node, other) = (&site.first.vault, site.another_node().await);
    let _jobs = run_jobs(node);

    let token = site.keep(node, CANARY).await;
    assert_eq!(site.read(&other, &token).await.as_deref(), Some(CANARY));
    site.sql("update security_code set sealed = substr(sealed, 1, 20)")
        .await;
    assert_eq!(site.read(&other, &token).await, None);
    site.sql("checkpoint").await;

    let names = site.redis().keys().await;
    let wrapped = site.redis().value(&names[0]).await;
    let key = unwrapped(&site, &names[0], &wrapped).await;
    let mut media = vec![
        ("dump", site.first.database.dump(&[]).into_bytes()),
        ("node log", lines.text().into_bytes()),
        (
            "server log",
            std::fs::read(server.postgres.log_file()).unwrap(),
        ),
    ];
    for_each_file(&server.postgres.data_folder(), &mut |bytes| {
        media.push(("data or wal", bytes));
    });
    let searched: usize = media.iter().map(|(_, bytes)| bytes.len()).sum();
    println!("searched {searched} bytes");
    for secret in [CANARY.as_bytes(), &key, &wrapped] {
        for (place, bytes) in &media {
            assert!(!holds(bytes, secret), "{place}");
        }
        // A dump writes bytes in hexadecimal.
        assert!(!holds(&media[0].1, hex::encode(secret).as_bytes()));
    }
    assert_eq!(wrapped.len(), 86);
    for secret in [CANARY.as_bytes(), &key] {
        assert!(!holds(&wrapped, secret));
    }
    // The search is not blind: the id of the key is in the row, in clear.
    let id = names[0].rsplit(':').next().unwrap();
    assert!(holds(&media[0].1, id.as_bytes()));
}

#[tokio::test]
async fn a_sweep_removes_what_has_expired_once_and_nothing_else() {
    let site = Site::alone().await;
    let fill = |count: u32, expiry: &str| {
        format!(
            "insert into security_code (tenant_id, token_id, key_id, sealed, expires_at)
             select 1, gen_random_uuid(), '', '', now() {expiry}
             from generate_series(1, {count})"
        )
    };
    site.sql(&fill(2_500, "- interval '1 second'")).await;
    site.sql(&fill(7, "+ interval '1 hour'")).await;

    let sweeps = futures(3, |_| security_codes::sweep(&site.first.vault.db)).await;

    let removed: u64 = sweeps.into_iter().map(Result::unwrap).sum();
    let left = site
        .database
        .query_one("select count(*) from security_code", &[])
        .await
        .unwrap();
    assert_eq!(removed, 2_500);
    assert_eq!(left.get::<_, i64>(0), 7);
}

#[tokio::test]
async fn the_jobs_of_a_node_sweep() {
    let site = Site::alone().await;
    let token = site.keep(&site.first.vault, "123").await;
    site.sql("update security_code set expires_at = now()")
        .await;

    let _jobs = run_jobs(&site.first.vault);

    let row = "select from security_code where token_id = $1";
    until("sweeping", async || {
        site.database
            .query_opt(row, &[&token])
            .await
            .unwrap()
            .is_none()
    })
    .await;
}

#[tokio::test]
async fn doctor_tells_what_redis_means_for_security_codes() {
    let site = Site::alone().await;
    let on_disk = TestRedis::start(&[("save", "60 1")]).await;
    let appending = TestRedis::start(&[("appendonly", "yes")]).await;
    let volatile = TestRedis::start(&[]).await;
    let secretive = TestRedis::start(&[("rename-command", "CONFIG\" \"")]).await;
    let gone = TestRedis::start(&[]).await;
    let gone_url = gone.url();
    gone.kill().await;
    let cases = [
        (None, Verdict::Good, "redis.url is not set"),
        (Some(volatile.url()), Verdict::Good, "it writes nothing"),
        (Some(on_disk.url()), Verdict::Bad, "it writes to disk"),
        (Some(appending.url()), Verdict::Bad, "it writes to disk"),
        (
            Some(secretive.url()),
            Verdict::Warning,
            "could not be checked",
        ),
        (Some(gone_url), Verdict::Bad, "it does not answer"),
        (
            Some("redis://".to_owned()),
            Verdict::Bad,
            "the address of Redis",
        ),
    ];
    for (url, verdict, words) in cases {
        let mut config = site.configuration();
        config.redis.url = url.map(Secret::new);
        let findings = doctor::examine(&config).await;
        let found = findings.iter().any(|finding| {
            finding.area == "redis" && finding.verdict == verdict && finding.what.contains(words)
        });
        assert!(found, "{words}: {findings:?}");
    }
}

#[tokio::test]
async fn the_documented_rights_of_a_redis_user_are_enough() {
    let site = Site::with_redis().await;
    let rights = "~cloakroom:* +time +set +get +pttl +ping";
    let user = format!("ACL SETUSER limited on >secret {rights}");
    site.redis().run(&user).await;
    let mut config = site.configuration();
    let address = site.redis().url();
    let (_, host) = address.split_once('@').unwrap();
    config.redis.url = Some(Secret::new(format!("redis://limited:secret@{host}")));
    let one = Vault::open(config.clone()).await.unwrap();
    let two = Vault::open(config.clone()).await.unwrap();

    let token = site.keep(&one, "123").await;

    assert_eq!(site.read(&two, &token).await.as_deref(), Some("123"));
    let findings = doctor::examine(&config).await;
    let is_told = |words: &str| findings.iter().any(|found| found.what.contains(words));
    assert!(is_told("because it refuses CONFIG GET"), "{findings:?}");
}

#[tokio::test]
async fn redis_is_reached_over_tls_and_must_be_the_right_one() {
    let folder = tempfile::tempdir().unwrap();
    let redis = TestRedis::start_tls(folder.path()).await;
    let stranger = rcgen::generate_simple_self_signed(["127.0.0.1".to_owned()]).unwrap();
    let wrong_ca = folder.path().join("wrong.crt");
    std::fs::write(&wrong_ca, stranger.cert.pem()).unwrap();
    let site = Site::alone().await;
    let node = async |ca_file: std::path::PathBuf| {
        let mut config = site.configuration();
        config.redis.url = Some(Secret::new(redis.tls_url()));
        config.redis.ca_file = Some(ca_file);
        let node = Vault::open(config).await.unwrap();
        // The job of a node has time for the handshake; a request of an unoptimized build may not.
        security_codes::tend(&node).await;
        node
    };
    let (one, two) = (node(redis.ca_file()).await, node(redis.ca_file()).await);

    let token = site.keep(&one, "123").await;

    assert_eq!(site.read(&two, &token).await.as_deref(), Some("123"));
    assert_eq!(site.read(&node(wrong_ca).await, &token).await, None);
}

#[tokio::test]
async fn what_sealing_and_reading_cost() {
    let site = Site::with_redis().await;
    let (node, other) = (&site.first.vault, site.another_node().await);
    let (token, rounds) = (site.keep(node, "123").await, 2_000_u32);
    let (tenant, started) = (site.tenant.id, Instant::now());
    let code = ("123", node.config.security_codes.retention);
    for _ in 0..rounds {
        security_codes::seal(node, tenant, &token, code)
            .await
            .unwrap();
    }
    let seal = started.elapsed() / rounds;

    let started = Instant::now();
    assert!(site.read(&other, &token).await.is_some());
    let first_read = started.elapsed();
    let started = Instant::now();
    for _ in 0..200 {
        assert!(site.read(&other, &token).await.is_some());
    }
    let read = started.elapsed() / 200;

    println!("seal {seal:?}, first read elsewhere {first_read:?}, then {read:?}");
    assert!(seal < Duration::from_millis(5), "{seal:?}");
}

/// Runs `count` of them at the same moment.
async fn futures<T, F: Future<Output = T>>(count: usize, make: impl Fn(usize) -> F) -> Vec<T> {
    let mut running: Vec<_> = (0..count).map(|n| Box::pin(make(n))).collect();
    let mut done: Vec<Option<T>> = (0..count).map(|_| None).collect();
    std::future::poll_fn(|context| {
        for (future, slot) in running.iter_mut().zip(&mut done) {
            if slot.is_none()
                && let std::task::Poll::Ready(value) = future.as_mut().poll(context)
            {
                *slot = Some(value);
            }
        }
        if done.iter().all(Option::is_some) {
            std::task::Poll::Ready(())
        } else {
            std::task::Poll::Pending
        }
    })
    .await;
    done.into_iter().flatten().collect()
}

/// The codes of a dump, as a statement that puts them back.
fn copied_rows(dump: &str) -> String {
    let (_, rest) = dump.split_once("COPY public.security_code ").unwrap();
    let (head, rest) = rest.split_once(" FROM stdin;\n").unwrap();
    let (rows, _) = rest.split_once("\\.\n").unwrap();
    let values: Vec<String> = rows
        .lines()
        .map(|row| {
            let columns = row.split('\t').map(|text| text.replace("\\\\", "\\"));
            let quoted: Vec<String> = columns.map(|text| format!("'{text}'")).collect();
            format!("({})", quoted.join(", "))
        })
        .collect();
    assert_eq!(values.len(), 1, "{rows}");
    format!(
        "insert into security_code {head} values {}",
        values.join(", ")
    )
}

/// The bytes of a published key, as nobody but a node should have them.
async fn unwrapped(site: &Site, name: &str, wrapped: &[u8]) -> Vec<u8> {
    let root = RootKey::load(&site.first.vault.config.root_key).unwrap();
    let id = hex::decode(name.rsplit(':').next().unwrap()).unwrap();
    let context = WrapContext {
        environment: "test",
        tenant: Some(id.try_into().unwrap()),
        version: 1,
    };
    let key = root
        .unwrap::<SecurityCode>(wrapped, &context)
        .await
        .unwrap();
    key.expose_for_custody().expose().clone()
}

fn holds(bytes: &[u8], secret: &[u8]) -> bool {
    memchr::memmem::find(bytes, secret).is_some()
}

fn for_each_file(folder: &std::path::Path, look: &mut dyn FnMut(Vec<u8>)) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            for_each_file(&path, look);
        } else if let Ok(bytes) = std::fs::read(&path) {
            look(bytes);
        }
    }
}
