//! Time stamps of checkpoints, with OpenSSL as the time-stamp authority and as the auditor.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use cloakroom::config::Secret;
use cloakroom::sinks::{self, Error, TimeStamps};
use cloakroom_testkit::TestVault;
use tokio::net::TcpListener;

use super::note;

fn openssl(folder: &Path, arguments: &[&str]) -> bool {
    let output = Command::new("openssl")
        .args(arguments)
        .current_dir(folder)
        .output()
        .unwrap();
    output.status.success()
}

/// Creates key, certificate and configuration of an authority.
fn create_authority(folder: &Path) {
    let settings = "[tsa]\ndefault_tsa = it\n[it]\nserial = serial\nsigner_cert = tsa.pem\nsigner_key = tsa.key\n\
                    signer_digest = sha256\ndefault_policy = 1.2.3.4.1\ndigests = sha256\n";
    std::fs::write(folder.join("tsa.conf"), settings).unwrap();
    std::fs::write(folder.join("serial"), "01\n").unwrap();
    let create = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority \
                  -keyout tsa.key -out tsa.pem -addext extendedKeyUsage=critical,timeStamping \
                  -addext keyUsage=critical,digitalSignature";
    let arguments: Vec<&str> = create.split_whitespace().collect();
    assert!(openssl(folder, &arguments));
}

/// Signs what it is sent. It is down for the first request, and answers the second with a time stamp of something else.
#[expect(clippy::disallowed_methods, reason = "the server ends with the test")]
async fn start_authority(folder: PathBuf) -> String {
    let requests = Arc::new(AtomicUsize::new(0));
    let answer = async move |query: Bytes| {
        let number = requests.fetch_add(1, Ordering::Relaxed);
        if number == 0 {
            return Err(StatusCode::SERVICE_UNAVAILABLE);
        }
        let mut query = query.to_vec();
        if number == 1 {
            query[40] ^= 1;
        }
        std::fs::write(folder.join("query.tsq"), query).unwrap();
        let reply = "ts -reply -config tsa.conf -queryfile query.tsq -out reply.tsr";
        let arguments: Vec<&str> = reply.split(' ').collect();
        assert!(openssl(&folder, &arguments));
        Ok(std::fs::read(folder.join("reply.tsr")).unwrap())
    };
    let routes = Router::new().route("/tsa", post(answer));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/tsa", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, routes).await.unwrap() });
    url
}

#[tokio::test]
async fn an_auditor_verifies_the_time_of_a_checkpoint_with_openssl() {
    let folder = tempfile::tempdir().unwrap();
    let stamps = tempfile::tempdir().unwrap();
    create_authority(folder.path());
    let url = start_authority(folder.path().to_owned()).await;
    let vault = TestVault::start().await;
    let node = vault
        .node_with(|config| {
            config.audit.time_stamp_url = Some(Secret::new(url));
            config.audit.time_stamp_directory = Some(stamps.path().to_owned());
            config.audit.time_stamp_interval = Duration::from_secs(3600);
        })
        .await;
    let client = vault.revealing_client().await.at(&node.base_url);
    client.post("/tokens", note("a")).await;
    node.vault.audit.checkpoint().await.unwrap();
    let holder = cloakroom::ids::new_uuid();
    let stamp = async || sinks::stamp(&node.vault, holder).await;

    let down = stamp().await;
    assert!(matches!(down, Err(Error::Status(503))), "{down:?}");
    let of_something_else = stamp().await;
    assert!(
        matches!(of_something_else, Err(Error::Response)),
        "{of_something_else:?}"
    );
    assert_eq!(TimeStamps::read(stamps.path()).unwrap().last, 0);
    stamp().await.unwrap();

    let stamped = TimeStamps::read(stamps.path()).unwrap().last;
    assert!(0 < stamped);
    let path = |name: String| stamps.path().join(name).display().to_string();
    let (data, response) = (
        path(format!("{stamped}.note")),
        path(format!("{stamped}.tsr")),
    );
    let verify = |data: &str| {
        let arguments = ["ts", "-verify", "-CAfile", "tsa.pem", "-in", &response];
        openssl(folder.path(), &[&arguments[..], &["-data", data]].concat())
    };
    assert!(verify(&data));
    std::fs::write(folder.path().join("other.note"), "other").unwrap();
    assert!(!verify("other.note"));
    let checkpoints = std::fs::read_to_string(stamps.path().join("checkpoints.jsonl")).unwrap();
    assert!(checkpoints.contains("cloakroom.audit/test"));

    // The next time stamp is due after the interval.
    client.post("/tokens", note("b")).await;
    node.vault.audit.checkpoint().await.unwrap();
    stamp().await.unwrap();
    assert_eq!(TimeStamps::read(stamps.path()).unwrap().last, stamped);
}
