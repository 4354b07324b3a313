//! AWS KMS, against moto and against a server of our own for what moto does not check.

use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use cloakroom_custody::Failure;
use cloakroom_platform::config;
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::behavior::{check_wrapping, load, unwrap, weaknesses, wrap, write_secret};
use crate::kms_server::{ARN, KEY_ID, KmsServer, SECRET};
use crate::python;
use crate::relay::{Network, Relay};

fn configuration(folder: &Path, address: SocketAddr, arn: &str, secret: &str) -> config::RootKey {
    let credentials =
        format!("[default]\naws_access_key_id = {KEY_ID}\naws_secret_access_key = {secret}\n");
    config::RootKey {
        provider: config::Provider::AwsKms,
        aws_kms_key: Some(arn.to_owned()),
        aws_kms_endpoint: Some(format!("http://{address}")),
        aws_kms_credentials_file: Some(write_secret(folder, "credentials", &credentials)),
        deadline: Duration::from_secs(2),
        ..config::RootKey::default()
    }
}

async fn start() -> (KmsServer, TempDir, config::RootKey) {
    let (server, folder) = (KmsServer::start().await, tempfile::tempdir().unwrap());
    let config = configuration(folder.path(), server.address, ARN, SECRET);
    (server, folder, config)
}

/// moto's server, which runs until it is dropped.
struct Moto {
    process: Child,
    address: SocketAddr,
}

impl Moto {
    async fn start() -> Self {
        let programs = tokio::task::spawn_blocking(python::programs).await.unwrap();
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = free.local_addr().unwrap();
        drop(free);
        let process = Command::new(programs.join("moto_server"))
            .args(["-H", "127.0.0.1", "-p", &address.port().to_string()])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let moto = Self { process, address };
        for _ in 0..600 {
            if TcpStream::connect(address).await.is_ok() {
                return moto;
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        panic!("moto did not start");
    }

    /// Sends a request that moto does not authenticate.
    async fn send(&self, operation: &str, body: Value) -> Value {
        let body = body.to_string();
        let request = format!(
            "POST / HTTP/1.1\r\nHost: {}\r\nConnection: close\r\n\
             Content-Type: application/x-amz-json-1.1\r\nX-Amz-Target: TrentService.{operation}\r\n\
             Authorization: AWS4-HMAC-SHA256 Credential={KEY_ID}/20260101/eu-central-1/kms/aws4_request, \
             SignedHeaders=host, Signature=0\r\nContent-Length: {}\r\n\r\n{body}",
            self.address,
            body.len()
        );
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut response = String::new();
        stream.read_to_string(&mut response).await.unwrap();
        let (_, body) = response.split_once("\r\n\r\n").unwrap();
        serde_json::from_str(body).unwrap_or(Value::Null)
    }
}

impl Drop for Moto {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

#[tokio::test]
async fn kms_of_moto_wraps_and_survives_rotation() {
    let moto = Moto::start().await;
    let folder = tempfile::tempdir().unwrap();
    let created = moto.send("CreateKey", json!({})).await;
    let arn = created["KeyMetadata"]["Arn"].as_str().unwrap().to_owned();
    let config = configuration(folder.path(), moto.address, &arn, SECRET);

    check_wrapping(&config).await;
    let before = weaknesses(&config).await;
    moto.send("EnableKeyRotation", json!({"KeyId": arn})).await;
    let after = weaknesses(&config).await;

    assert!(before.contains("rotation of the key is off"), "{before}");
    assert_eq!(after, "");
    let (account, _) = arn.rsplit_once('/').unwrap();
    let missing = format!("{account}/00000000-0000-4000-8000-000000000000");
    let missing = configuration(folder.path(), moto.address, &missing, SECRET);
    let failure = wrap(&load(&missing)).await.err();
    assert!(matches!(failure, Some(Failure::Disabled(_))), "{failure:?}");
}

#[tokio::test]
async fn signed_requests_carry_the_context_of_the_row() {
    let (server, _folder, config) = start().await;
    check_wrapping(&config).await;

    wrap(&load(&config)).await.unwrap();

    let expected = json!({
        "cloakroom": "v2",
        "environment": "test",
        "tenant": "07070707-0707-0707-0707-070707070707",
        "purpose": "tenant_kek",
        "version": "3",
    });
    assert_eq!(server.change(|state| state.context.clone()), expected);
}

/// boto3 signs as the server expects it.
#[tokio::test]
async fn the_server_of_the_tests_speaks_the_protocol() {
    let (server, _folder, _) = start().await;
    let program = format!(
        "import boto3, botocore\n\
         make = lambda secret: boto3.client('kms', region_name='eu-central-1', endpoint_url='http://{}',\n\
             aws_access_key_id='{KEY_ID}', aws_secret_access_key=secret)\n\
         kms = make('{SECRET}')\n\
         context = {{'environment': 'test'}}\n\
         blob = kms.encrypt(KeyId='{ARN}', Plaintext=b'secret', EncryptionContext=context)['CiphertextBlob']\n\
         assert kms.decrypt(KeyId='{ARN}', CiphertextBlob=blob, EncryptionContext=context)['Plaintext'] == b'secret'\n\
         def fails(code, client, context):\n    \
             try:\n        client.decrypt(KeyId='{ARN}', CiphertextBlob=blob, EncryptionContext=context)\n    \
             except botocore.exceptions.ClientError as error:\n        assert error.response['Error']['Code'] == code, error\n    \
             else:\n        raise SystemExit(code + ' expected')\n\
         fails('InvalidCiphertextException', kms, {{'environment': 'production'}})\n\
         fails('InvalidSignatureException', make('wrong'), context)\n",
        server.address
    );
    python::run(program).await;
}

#[tokio::test]
async fn errors_of_kms_are_told_apart() {
    let (server, folder, config) = start().await;
    let (_, wrapped) = wrap(&load(&config)).await.unwrap();
    let unwrap_with = async |error| {
        server.change(|state| state.error = Some(error));
        unwrap(&load(&config), &wrapped).await.err().unwrap()
    };

    for (error, kind) in [
        ("DisabledException", "disabled"),
        ("KMSInvalidStateException", "disabled"),
        ("NotFoundException", "disabled"),
        ("IncorrectKeyException", "integrity"),
        ("InvalidCiphertextException", "integrity"),
        ("AccessDeniedException", "denied"),
        ("ExpiredTokenException", "denied"),
        ("ThrottlingException", "unavailable"),
        ("KMSInternalException", "unavailable"),
        ("SomethingNewException", "unavailable"),
    ] {
        let failure = unwrap_with(error).await;
        assert_eq!(failure.kind(), kind, "{error}: {failure}");
    }
    server.change(|state| state.error = None);
    let wrong = configuration(folder.path(), server.address, ARN, "wrong");
    let wrong = unwrap(&load(&wrong), &wrapped).await.err().unwrap();
    assert!(matches!(wrong, Failure::Denied(_)), "{wrong}");
}

/// A throttled call is repeated within its deadline, a denied one is not.
#[tokio::test]
async fn only_transient_errors_are_repeated() {
    let (server, _folder, config) = start().await;
    let (_, wrapped) = wrap(&load(&config)).await.unwrap();
    let count = async |error| {
        let before = server.change(|state| {
            state.error = Some(error);
            state.requests
        });
        let _ = unwrap(&load(&config), &wrapped).await;
        server.change(|state| state.requests - before)
    };

    assert_eq!(count("ThrottlingException").await, 3);
    assert_eq!(count("AccessDeniedException").await, 1);
}

#[tokio::test]
async fn a_cut_or_stalled_network_is_unavailability_and_ends() {
    let (server, folder, _) = start().await;
    let relay = Relay::start(server.address).await;
    let config = configuration(folder.path(), relay.address, ARN, SECRET);
    let roots = load(&config);
    let (key, wrapped) = wrap(&roots).await.unwrap();
    roots.start_serving();

    relay.set(Network::Cut);
    let cut = unwrap(&roots, &wrapped).await.err();
    relay.set(Network::Stalled);
    let stalled = unwrap(&roots, &wrapped).await.err();
    relay.set(Network::Up);
    let restored = unwrap(&roots, &wrapped).await;

    assert!(matches!(cut, Some(Failure::Unavailable(_))), "{cut:?}");
    assert!(
        matches!(stalled, Some(Failure::Unavailable(_))),
        "{stalled:?}"
    );
    assert_eq!(restored.unwrap().check_value(), key.check_value());
}

#[tokio::test]
async fn a_key_without_rotation_is_named() {
    let (server, _folder, config) = start().await;
    server.change(|state| state.is_rotated = false);

    let weaknesses = weaknesses(&config).await;

    assert!(weaknesses.contains("rotation"), "{weaknesses}");
}
