//! TLS: which servers are trusted, and client certificates.

use std::time::Duration;

use cloakroom_platform::certificates;
use cloakroom_platform::config::Config;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::harness::{Authority, Client, Leaf, Server, ServerTls, TENANT, respond, tenant};
use crate::{DestinationUrl, SendError};

const OK: &str = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok";

async fn start(tls: ServerTls) -> Server {
    Server::start(tls, |stream| respond(stream, OK)).await
}

/// A setting with one entry of the destinations file.
fn with_destination(authority: &Authority, entry: &str) -> impl FnOnce(&mut Config) {
    let text = format!("[[destination]]\n{entry}\n");
    let path = authority.write("destinations.toml", &text);
    move |config| {
        config.egress.ca_file = None;
        config.egress.destinations_file = Some(path);
    }
}

#[tokio::test]
async fn a_valid_certificate_is_accepted() {
    let authority = Authority::new();
    let server = start(ServerTls::new(&authority.issue("psp.example"))).await;
    let client = Client::new(&authority, &server);
    assert_eq!(client.get_text().await.as_deref(), Ok("ok"));
}

#[tokio::test]
async fn invalid_certificates_are_rejected_before_anything_is_sent() {
    let authority = Authority::new();
    for (case, leaf) in [
        ("expired", authority.issue_expired("psp.example")),
        ("wrong name", authority.issue("other.example")),
        ("self-signed", Leaf::self_signed("psp.example")),
        ("unknown CA", Authority::new().issue("psp.example")),
    ] {
        let server = start(ServerTls::new(&leaf)).await;
        let client = Client::new(&authority, &server);

        let error = client.get_text().await.unwrap_err();

        assert_eq!(error, SendError::Tls, "{case}");
        assert!(!error.was_sent());
    }
}

/// The server answers the ClientHello with a ServerHello of TLS 1.1, whatever the client offers.
#[tokio::test]
async fn tls_below_1_2_is_rejected() {
    let authority = Authority::new();
    let server = Server::start_tcp(([127, 0, 0, 1], 0).into(), |mut stream| async move {
        let mut hello = [0; 5];
        let _ = stream.read_exact(&mut hello).await;
        let mut rest = vec![0; usize::from(u16::from_be_bytes([hello[3], hello[4]]))];
        let _ = stream.read_exact(&mut rest).await;
        // Handshake record of TLS 1.1: ServerHello, random, no session, TLS_RSA_WITH_AES_128_CBC_SHA.
        let mut response = vec![22, 3, 2, 0, 42, 2, 0, 0, 38, 3, 2];
        response.extend([7; 32]);
        response.extend([0, 0x00, 0x2f, 0]);
        let _ = stream.write_all(&response).await;
        let _ = stream.read(&mut rest).await;
    })
    .await;
    let client = Client::new(&authority, &server);
    assert_eq!(client.get_text().await, Err(SendError::Tls));
}

#[tokio::test]
async fn a_private_authority_is_trusted_for_its_hosts_only() {
    let authority = Authority::new();
    let server = start(ServerTls::new(&authority.issue("psp.example"))).await;
    let ca_file = authority.file();
    let entry = format!("hosts = [\"psp.example\"]\nca_file = {ca_file:?}");
    let client = Client::with(&authority, &server, with_destination(&authority, &entry));
    assert_eq!(client.get_text().await.as_deref(), Ok("ok"));

    let server = start(ServerTls::new(&authority.issue("other.example"))).await;
    let mut client = Client::with(&authority, &server, with_destination(&authority, &entry));
    let url = client.url.as_str().replace("psp.example", "other.example");
    client.url = DestinationUrl::parse(&url).unwrap();
    assert_eq!(client.get_text().await, Err(SendError::Tls));
}

/// A certificate of a public authority does not verify for a host with a private one.
#[tokio::test]
async fn a_private_authority_replaces_the_public_ones() {
    let (public, private) = (Authority::new(), Authority::new());
    let server = start(ServerTls::new(&public.issue("psp.example"))).await;
    let entry = format!("hosts = [\"psp.example\"]\nca_file = {:?}", private.file());
    let with_private = with_destination(&private, &entry);
    let ca_file = public.file();
    let client = Client::with(&public, &server, |config| {
        with_private(config);
        config.egress.ca_file = Some(ca_file);
    });
    assert_eq!(client.get_text().await, Err(SendError::Tls));
}

#[tokio::test]
async fn client_certificates_are_presented_for_listed_hosts_and_tenants() {
    let authority = Authority::new();
    let server = start(ServerTls::mutual(
        &authority.issue("psp.example"),
        &authority,
    ))
    .await;
    let identity = authority.issue("vault.example");
    let entry = format!(
        "hosts = [\"psp.example\"]\nca_file = {:?}\ncertificate_file = {:?}\nkey_file = {:?}\ntenants = [\"{}\"]",
        authority.file(),
        authority.write("client.pem", &identity.certificate),
        authority.write("client.key", &identity.key),
        TENANT.uuid,
    );
    let with_entry = with_destination(&authority, &entry);
    let ca_file = authority.file();
    let client = Client::with(&authority, &server, |config| {
        with_entry(config);
        config.egress.ca_file = Some(ca_file);
    });

    assert_eq!(client.get_text().await.as_deref(), Ok("ok"));
    let of_other = client.get_as(tenant(2)).await;
    assert_eq!(of_other.err(), Some(SendError::Tls));
}

#[tokio::test]
async fn a_client_certificate_of_another_authority_is_rejected() {
    let authority = Authority::new();
    let server = start(ServerTls::mutual(
        &authority.issue("psp.example"),
        &authority,
    ))
    .await;
    let identity = Authority::new().issue("vault.example");
    let entry = format!(
        "hosts = [\"psp.example\"]\nca_file = {:?}\ncertificate_file = {:?}\nkey_file = {:?}",
        authority.file(),
        authority.write("client.pem", &identity.certificate),
        authority.write("client.key", &identity.key),
    );
    let client = Client::with(&authority, &server, with_destination(&authority, &entry));
    assert_eq!(client.get_text().await, Err(SendError::Tls));
}

#[tokio::test]
async fn a_changed_client_certificate_is_presented_by_new_connections() {
    let authority = Authority::new();
    let server = start(ServerTls::mutual(
        &authority.issue("psp.example"),
        &authority,
    ))
    .await;
    let write = |identity: &Leaf| {
        let certificate = authority.write("client.pem", &identity.certificate);
        (certificate, authority.write("client.key", &identity.key))
    };
    let (certificate, key) = write(&Authority::new().issue("vault.example"));
    let entry = format!(
        "hosts = [\"psp.example\"]\nca_file = {:?}\ncertificate_file = {certificate:?}\nkey_file = {key:?}",
        authority.file(),
    );
    let client = Client::with(&authority, &server, with_destination(&authority, &entry));
    let certificates = client.egress.certificates();
    let mut watcher = JoinSet::new();
    watcher.spawn(certificates::watch(certificates));
    assert_eq!(client.get_text().await, Err(SendError::Tls));

    write(&authority.issue("vault.example"));

    let deadline = Instant::now() + Duration::from_secs(60);
    while client.get_text().await.is_err() {
        assert!(
            Instant::now() < deadline,
            "the certificate is not presented"
        );
        sleep(Duration::from_millis(200)).await;
    }
}

#[tokio::test]
async fn unusable_destination_files_are_reported() {
    let authority = Authority::new();
    let leaf = authority.issue("vault.example");
    let certificate = authority.write("client.pem", &leaf.certificate);
    let other_key = authority.write("other.key", &authority.issue("vault.example").key);
    let tenant = Uuid::nil();
    for (entry, expected) in [
        ("hosts = []".to_owned(), "hosts must be"),
        ("hosts = [\"10.0.0.1\"]".to_owned(), "hosts must be"),
        (
            format!("hosts = [\"a.example\"]\nca_file = {other_key:?}"),
            "cannot read certificates",
        ),
        (
            format!("hosts = [\"a.example\"]\ncertificate_file = {certificate:?}"),
            "must be set together",
        ),
        (
            format!(
                "hosts = [\"a.example\"]\ncertificate_file = {certificate:?}\nkey_file = {other_key:?}"
            ),
            "do not match",
        ),
        (
            format!("hosts = [\"a.example\"]\ntenant = \"{tenant}\""),
            "unknown field",
        ),
    ] {
        let mut config = Config::default();
        with_destination(&authority, &entry)(&mut config);
        let error = crate::Egress::open(&config).err().unwrap().to_string();
        assert!(error.starts_with("egress.destinations_file: "), "{error}");
        assert!(error.contains(expected), "{error}");
    }
}
