//! PKCS#11 with SoftHSM2: a token in a folder of the test.

use std::path::Path;
use std::process::Command;

use cloakroom_crypto::RootWrapped;
use cloakroom_custody::{Failure, create_pkcs11_key};
use cloakroom_devtools::packages;
use cloakroom_platform::config;
use cryptoki::context::Pkcs11;
use cryptoki::mechanism::Mechanism;
use cryptoki::mechanism::aead::GcmParams;
use cryptoki::object::Attribute;

use crate::behavior::{
    CONTEXT_BYTES, check_wrapping, load, unwrap, weaknesses, wrap, write_secret,
};

const MODULE: &str = "/usr/lib/softhsm/libsofthsm2.so";
const PIN: &str = "4711-0815";
const FOLDER: &str = "CLOAKROOM_TEST_TOKEN_FOLDER";

/// Runs a test in a process of its own, because SoftHSM2 finds its tokens by an environment variable.
fn with_token(test: &str, body: impl AsyncFnOnce(&Path, config::RootKey)) {
    if let Some(folder) = std::env::var_os(FOLDER) {
        let folder = Path::new(&folder);
        let config = config::RootKey {
            provider: config::Provider::Pkcs11,
            pkcs11_module: Some(MODULE.into()),
            pkcs11_token: Some("vault".into()),
            pkcs11_key: Some("root".into()),
            pkcs11_pin_file: Some(write_secret(folder, "pin", PIN)),
            ..config::RootKey::default()
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .enable_all()
            .build();
        runtime.unwrap().block_on(body(folder, config));
        return;
    }
    packages::require(&[("softhsm2-util", "softhsm2"), ("pkcs11-tool", "opensc")]).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let tokens = folder.path().join("tokens");
    std::fs::create_dir(&tokens).unwrap();
    let file = folder.path().join("softhsm2.conf");
    let text = format!(
        "directories.tokendir = {}\nlog.level = ERROR\n",
        tokens.display()
    );
    std::fs::write(&file, text).unwrap();
    let softhsm = Command::new("softhsm2-util")
        .args(["--init-token", "--free", "--label", "vault"])
        .args(["--so-pin", "12345678", "--pin", PIN])
        .env("SOFTHSM2_CONF", &file)
        .output()
        .unwrap();
    assert!(softhsm.status.success(), "{softhsm:?}");
    let child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", test, "--nocapture", "--test-threads", "1"])
        .env("SOFTHSM2_CONF", &file)
        .env(FOLDER, folder.path())
        .output()
        .unwrap();
    let output = String::from_utf8_lossy(&child.stdout) + String::from_utf8_lossy(&child.stderr);
    assert!(child.status.success(), "{output}");
    assert!(output.contains("1 passed"), "{output}");
}

fn change_pin(from: &str, to: &str) {
    let output = Command::new("pkcs11-tool")
        .args(["--module", MODULE, "--token-label", "vault", "--login"])
        .args(["--pin", from, "--change-pin", "--new-pin", to])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
}

/// Runs OpenSC's `pkcs11-tool` on the token.
fn pkcs11_tool(arguments: &[&str]) -> String {
    let output = Command::new("pkcs11-tool")
        .args([
            "--module",
            MODULE,
            "--token-label",
            "vault",
            "--login",
            "--pin",
            PIN,
        ])
        .args(arguments)
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn a_key_in_an_hsm_wraps_and_cannot_leave() {
    with_token(
        "pkcs11::a_key_in_an_hsm_wraps_and_cannot_leave",
        async |_, config| {
            let missing = wrap(&load(&config)).await.err().unwrap();
            assert!(matches!(missing, Failure::Disabled(_)), "{missing}");

            let name = create_pkcs11_key(&config).unwrap();
            let again = create_pkcs11_key(&config);

            assert_eq!(name, "vault/root");
            assert!(again.is_err());
            check_wrapping(&config).await;
            assert_eq!(weaknesses(&config).await, "");
            // OpenSC sees the same attributes.
            let listed = pkcs11_tool(&["--list-objects", "--type", "secrkey"]);
            assert!(listed.contains("never extractable"), "{listed}");
        },
    );
}

/// Another program decrypts a wrapped key with the context of its row, and not without it.
#[test]
fn the_token_authenticates_the_context_of_the_row() {
    with_token(
        "pkcs11::the_token_authenticates_the_context_of_the_row",
        async |_, config| {
            create_pkcs11_key(&config).unwrap();
            // The login ends with the last session, so this one stays open.
            let roots = load(&config);
            let (key, wrapped) = wrap(&roots).await.unwrap();
            let wrapped = RootWrapped::parse(&wrapped).unwrap();
            let (nonce, sealed) = wrapped.ciphertext.split_at(12);
            let module = Pkcs11::new(MODULE).unwrap();
            let slot = module.get_slots_with_initialized_token().unwrap()[0];
            let session = module.open_ro_session(slot).unwrap();
            let label = Attribute::Label(b"root".to_vec());
            let root = session.find_objects(&[label]).unwrap()[0];
            let decrypt = |aad: &[u8]| {
                let mut nonce: [u8; 12] = nonce.try_into().unwrap();
                let parameters = GcmParams::new(&mut nonce, aad, 128.into()).unwrap();
                session.decrypt(&Mechanism::AesGcm(parameters), root, sealed)
            };

            let decrypted = decrypt(CONTEXT_BYTES).unwrap();

            assert!(decrypted == *key.expose_for_custody().expose());
            assert!(decrypt(b"").is_err());
        },
    );
}

#[test]
fn a_wrong_pin_is_sent_once_and_does_not_lock_the_token() {
    with_token(
        "pkcs11::a_wrong_pin_is_sent_once_and_does_not_lock_the_token",
        async |folder, config| {
            create_pkcs11_key(&config).unwrap();
            let roots = load(&config);
            // The login belongs to the process: ends when its last session is closed.
            write_secret(folder, "pin", "0000-0000");

            let denied = wrap(&roots).await.err();
            assert!(matches!(denied, Some(Failure::Denied(_))), "{denied:?}");
            // The token would accept it now, if it was sent again.
            change_pin(PIN, "0000-0000");
            for _ in 0..10 {
                let denied = wrap(&roots).await.err();
                assert!(matches!(denied, Some(Failure::Denied(_))), "{denied:?}");
            }
            change_pin("0000-0000", PIN);
            write_secret(folder, "pin", PIN);
            let (key, wrapped) = wrap(&roots).await.unwrap();

            let unwrapped = unwrap(&roots, &wrapped).await.unwrap();
            assert_eq!(unwrapped.check_value(), key.check_value());
            let readable = folder.join("pin");
            let mode = std::os::unix::fs::PermissionsExt::from_mode(0o440);
            std::fs::set_permissions(readable, mode).unwrap();
            let rejected = wrap(&load(&config)).await.err();
            assert!(
                matches!(rejected, Some(Failure::Configuration(_))),
                "{rejected:?}"
            );
        },
    );
}

#[test]
fn a_deleted_key_is_disabled_and_a_weak_one_is_named() {
    with_token(
        "pkcs11::a_deleted_key_is_disabled_and_a_weak_one_is_named",
        async |_, config| {
            pkcs11_tool(&[
                "--keygen",
                "--key-type",
                "AES:32",
                "--label",
                "root",
                "--id",
                "01",
                "--extractable",
            ]);
            let roots = load(&config);
            let (_, wrapped) = wrap(&roots).await.unwrap();

            let weaknesses = weaknesses(&config).await;
            pkcs11_tool(&["--delete-object", "--type", "secrkey", "--label", "root"]);
            let deleted = unwrap(&load(&config), &wrapped).await.err();

            assert!(weaknesses.contains("can be extracted"), "{weaknesses}");
            assert!(matches!(deleted, Some(Failure::Disabled(_))), "{deleted:?}");
        },
    );
}

#[test]
fn a_missing_token_or_module_is_reported() {
    with_token(
        "pkcs11::a_missing_token_or_module_is_reported",
        async |folder, config| {
            let other_token = config::RootKey {
                pkcs11_token: Some("another".into()),
                ..config.clone()
            };
            let no_module = config::RootKey {
                pkcs11_module: Some(folder.join("none.so")),
                ..config
            };

            let absent = wrap(&load(&other_token)).await.err();
            let not_loaded = wrap(&load(&no_module)).await.err();

            assert!(
                matches!(absent, Some(Failure::Unavailable(_))),
                "{absent:?}"
            );
            assert!(
                matches!(not_loaded, Some(Failure::Configuration(_))),
                "{not_loaded:?}"
            );
        },
    );
}

/// SoftHSM2 locks the files of its token. Another process that holds the locks makes it hang, as an HSM does whose
/// network is cut.
#[test]
fn a_token_that_hangs_fails_after_the_deadline_and_recovers() {
    with_token(
        "pkcs11::a_token_that_hangs_fails_after_the_deadline_and_recovers",
        async |folder, config| {
            create_pkcs11_key(&config).unwrap();
            let config = config::RootKey {
                deadline: std::time::Duration::from_millis(500),
                ..config
            };
            let roots = load(&config);
            let (key, wrapped) = wrap(&roots).await.unwrap();
            roots.start_serving();

            let mut lock = hold_locks(&folder.join("tokens"));
            let hanging = unwrap(&roots, &wrapped).await.err();
            lock.kill().unwrap();
            lock.wait().unwrap();
            let mut recovered = unwrap(&roots, &wrapped).await;
            for _ in 0..100 {
                if recovered.is_ok() {
                    break;
                }
                tokio::time::sleep(std::time::Duration::from_millis(100)).await;
                recovered = unwrap(&roots, &wrapped).await;
            }

            assert!(
                matches!(hanging, Some(Failure::Unavailable(_))),
                "{hanging:?}"
            );
            assert_eq!(recovered.unwrap().check_value(), key.check_value());
        },
    );
}

/// Locks every file below a folder in another process, until it is killed.
fn hold_locks(folder: &Path) -> std::process::Child {
    use std::io::BufRead as _;
    let program = "import fcntl, pathlib, sys, time\n\
        files = [open(p, 'r+b') for p in pathlib.Path(sys.argv[1]).rglob('*') if p.is_file()]\n\
        [fcntl.lockf(f, fcntl.LOCK_EX) for f in files]\n\
        print('locked', flush=True)\n\
        time.sleep(600)";
    let mut child = Command::new("python3")
        .args(["-c", program])
        .arg(folder)
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut line = String::new();
    let stdout = child.stdout.as_mut().unwrap();
    std::io::BufReader::new(stdout)
        .read_line(&mut line)
        .unwrap();
    assert_eq!(line.trim(), "locked");
    child
}
