//! The inventory of cryptography, and warnings about keys and certificates that end.

use rcgen::{CertificateParams, KeyPair};
use serde_json::Value;

use crate::support::{Deployment, outcome, query, word_after};

/// Purposes that have keys in a vault with a tenant.
const STORED: [&str; 10] = [
    "root_kek",
    "tenant_kek",
    "data",
    "fingerprint",
    "index",
    "reply",
    "control",
    "audit_authority",
    "request",
    "security_code_wrap",
];

fn deployment() -> Deployment {
    let deployment = Deployment::start();
    deployment.run_ok(&["migrate"]);
    for name in ["One", "Two"] {
        deployment.run_ok(&["tenant", "create", "--name", name, "--type", "test"]);
    }
    deployment
}

/// Sets when the data keys were created, and has the vault accept that: times of keys are authenticated.
fn age_data_keys(deployment: &Deployment, days: u32) {
    let sql = format!(
        "update tenant_key set created_at = now() - interval '{days} days 1 hour' where purpose = 3"
    );
    query(&deployment.postgres, &sql);
    for name in ["One", "Two"] {
        let arguments = [
            "access",
            "re-anchor",
            "--tenant",
            name,
            "--keys",
            "--confirm",
        ];
        deployment.run_ok(&arguments);
    }
}

/// Writes a certificate that ends in this many days.
fn write_certificate(deployment: &Deployment, days: i64) {
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(["vault.example".to_owned()]).unwrap();
    let now = std::time::SystemTime::now();
    let hours = u64::try_from(24 * days.abs() + 1).unwrap();
    let distance = std::time::Duration::from_secs(hours * 60 * 60);
    let end = match days {
        0.. => now + distance,
        _ => now - distance,
    };
    params.not_after = end.into();
    let certificate = params.self_signed(&key).unwrap();
    std::fs::write(deployment.path("tls.crt"), certificate.pem()).unwrap();
    std::fs::write(deployment.path("tls.key"), key.serialize_pem()).unwrap();
    deployment.configure("");
}

#[test]
fn the_inventory_lists_keys_algorithms_certificates_and_libraries() {
    let deployment = deployment();
    write_certificate(&deployment, 100);
    age_data_keys(&deployment, 73);
    // The inventory needs no root key.
    std::fs::remove_file(deployment.path("root.key")).unwrap();

    let json = deployment.run_ok(&["crypto", "inventory", "--json"]);
    let table = deployment.run_ok(&["crypto", "inventory"]);

    let inventory: Value = serde_json::from_str(&json).unwrap();
    let keys = inventory["keys"].as_array().unwrap();
    let of = |purpose: &str| keys.iter().find(|key| key["purpose"] == purpose).unwrap();
    for purpose in STORED {
        let key = of(purpose);
        assert_eq!(key["states"][0]["state"], "active", "{key}");
        assert!(key["cryptoperiod_days"].as_f64().unwrap() >= 365.0, "{key}");
        assert!(table.contains(purpose), "{table}");
    }
    let data = of("data");
    assert_eq!(data["states"][0]["keys"], 2);
    assert_eq!(data["states"][0]["owners"], 2);
    assert_eq!(data["key_bits"], 256);
    assert_eq!(data["cryptoperiod_used"], 0.2, "{data}");
    assert_eq!(of("signing")["states"], serde_json::json!([]));
    let roots = &inventory["root_key"]["roots"];
    // A key-encryption key per tenant, and three keys of the vault.
    assert_eq!(roots[0]["wrapped_keys"], 5, "{roots}");
    assert_eq!(roots[0]["provider"], "file or shares");
    let certificate = &inventory["certificates"][0];
    assert_eq!(certificate["used_by"], "http");
    assert_eq!(certificate["days_left"], 100, "{certificate}");
    let libraries = inventory["libraries"].to_string();
    assert!(libraries.contains("aws-lc-rs"), "{libraries}");
    let suites = inventory["tls"]["cipher_suites"].to_string();
    assert!(suites.contains("TLS13_AES_256_GCM_SHA384"), "{suites}");
}

#[test]
fn doctor_warns_before_a_cryptoperiod_ends_and_fails_after_it() {
    let deployment = deployment();
    let doctor = || deployment.run(&["doctor"]);

    let young = doctor();
    age_data_keys(&deployment, 300);
    let due = doctor();
    age_data_keys(&deployment, 366);
    let overdue = doctor();
    let mut longer = deployment.command(&["doctor"]);
    longer.env("CLOAKROOM__CRYPTOPERIODS__DATA", "20000h");
    let longer = outcome(longer);

    let within = "every active key is within its cryptoperiod";
    assert!(young.stdout.contains(within), "{}", young.stdout);
    assert!(due.success, "{}", due.stdout);
    assert!(due.stdout.contains("300 of 365 days"), "{}", due.stdout);
    assert!(
        due.stdout.contains("cloakroom key rotate"),
        "{}",
        due.stdout
    );
    assert!(!overdue.success);
    assert!(
        overdue.stdout.contains("past the end"),
        "{}",
        overdue.stdout
    );
    assert!(longer.stdout.contains(within), "{}", longer.stdout);
}

#[test]
fn doctor_reports_certificates_that_end() {
    let deployment = deployment();
    let doctor = |days| {
        write_certificate(&deployment, days);
        deployment.run(&["doctor"])
    };

    let (valid, ending, ended) = (doctor(40), doctor(10), doctor(-1));

    assert!(valid.stdout.contains("1 certificates are valid"));
    assert!(ending.success, "{}", ending.stdout);
    assert!(
        ending.stdout.contains("ends in 10 days"),
        "{}",
        ending.stdout
    );
    assert!(!ended.success);
    assert!(ended.stdout.contains("has ended"), "{}", ended.stdout);
}

#[test]
fn the_key_of_another_certificate_is_found_before_a_node_starts() {
    let deployment = deployment();
    write_certificate(&deployment, 40);
    let key = KeyPair::generate().unwrap();
    std::fs::write(deployment.path("tls.key"), key.serialize_pem()).unwrap();

    for arguments in [&["config", "check"][..], &["doctor"]] {
        let found = deployment.run(arguments);

        assert!(!found.success, "{arguments:?}");
        let reason = "and its private key do not match";
        assert!(found.stdout.contains(reason), "{}", found.stdout);
    }
}

#[test]
fn nodes_report_ages_of_keys_and_ends_of_certificates() {
    let deployment = deployment();
    write_certificate(&deployment, 100);
    age_data_keys(&deployment, 73);
    let node = deployment.serve();
    let url = format!("{}/metrics", node.admin_url);
    let runtime = crate::support::runtime();
    let metrics =
        || runtime.block_on(async { reqwest::get(&url).await.unwrap().text().await.unwrap() });

    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(30);
    let ratio = loop {
        let text = metrics();
        let mut lines = text.lines();
        let name = "cloakroom_key_cryptoperiod_ratio{purpose=\"data\"} ";
        if let Some(value) = lines.find_map(|line| line.strip_prefix(name)) {
            break value.parse::<f64>().unwrap();
        }
        assert!(std::time::Instant::now() < deadline, "{text}");
        std::thread::sleep(std::time::Duration::from_millis(50));
    };

    assert!((0.2..0.21).contains(&ratio), "{ratio}");
    let name = "cloakroom_tls_certificate_not_after_timestamp_seconds{certificate=\"http\"}";
    assert!(metrics().contains(name));
}

#[test]
fn commands_that_act_on_keys_are_logged_with_person_and_host() {
    let deployment = deployment();
    let tenant = query(&deployment.postgres, "select public_id::text from tenant");
    let tenant = &tenant[0];
    let as_officer =
        |arguments: &[&str]| deployment.run_ok(&[arguments, &["--as", "Key Officer"]].concat());
    let app = [
        "app",
        "create",
        "--tenant",
        tenant,
        "--name",
        "A",
        "--type",
        "private",
        "--rule",
        "/ reveal token:create",
    ];
    let app = word_after(&deployment.run_ok(&app), "application ");
    let of_app = ["--tenant", tenant, "--app", &app];

    let created = as_officer(&[&["key", "create"], &of_app[..]].concat());
    let key = word_after(&created, "its id is ");
    as_officer(&[&["key", "delete", "--key", &key], &of_app[..]].concat());
    as_officer(&["webhook", "rotate-key"]);
    as_officer(&["access", "re-anchor", "--tenant", tenant, "--confirm"]);

    let entries = query(
        &deployment.postgres,
        "select entity_kind || ' ' || operation from log where origin like 'Key Officer, %@%' order by created_at, seq",
    );
    // An API key is created and deleted, a signing key is created, a tenant is updated.
    assert_eq!(entries, ["6 1", "6 4", "14 1", "7 3"]);
}

/// Without a login session, as in a container, only `sudo` knows the person.
#[test]
fn the_user_behind_sudo_is_logged() {
    let login = std::fs::read_to_string("/proc/self/loginuid").unwrap_or_default();
    let is_container = login.trim() == u32::MAX.to_string();
    if !is_container || !nix::unistd::getuid().is_root() {
        // The login user is logged, or the variable is not believed.
        return;
    }
    let deployment = deployment();
    let command = ["tenant", "create", "--name", "S", "--type", "test"];
    let created = outcome(deployment.sudo("1", &command));
    assert!(created.success, "{}", created.stderr);

    let sql =
        "select origin from log where entity_kind = 7 order by created_at desc, seq desc limit 1";
    let origin = query(&deployment.postgres, sql);
    assert!(origin[0].starts_with("daemon@"), "{origin:?}");
}
